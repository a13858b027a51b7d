"""A store larger than what a pass may hold: memory and cost, as benchmarks/out_of_core.py measures them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "out_of_core.py"


@pytest.mark.slow
def test_twenty_million_cells_stay_out_of_memory(tmp_path):
    environment = {name: value for name, value in os.environ.items() if name != "OPENBLAS_CORETYPE"}
    arguments = [sys.executable, SCRIPT, "--folder", tmp_path, "--json", tmp_path / "found.json"]
    subprocess.run(arguments, check=True, env=environment)
    found = json.loads((tmp_path / "found.json").read_text())
    assert found["peak_memory_gb"] < 1.5
    assert found["pass_over_read_plus_kernel"] <= 1.2
