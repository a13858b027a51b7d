"""The examples run, in a small size."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import anndata
import numpy as np
import pandas as pd
import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
pytestmark = pytest.mark.skipif(not EXAMPLES.is_dir(), reason="no examples beside the tests")


def example(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def adata(tmp_path_factory):
    """The example's study, 500 cells a sample, as anndata reads it."""
    path = tmp_path_factory.mktemp("example") / "demo.zarr"
    example("scanpy_study").write_study(path, 500)
    with pytest.warns(anndata.ImplicitModificationWarning, match="str index"):
        return anndata.read_zarr(path)


def test_anndata_opens_the_study_of_the_scanpy_example(adata):
    assert adata.shape == (4_000, 8)
    assert adata.obs["sample"].value_counts().tolist() == [500] * 8
    assert 0.1 < adata.obs["label"].isna().mean() < 0.4


def test_the_scanpy_example_goes_back_and_quantifies(adata, capsys):
    example("scanpy_study").quantify(adata)
    printed = capsys.readouterr().out
    assert re.findall(r"│ (S\d\d) ", printed) == ["S02", "S05", "S07", "S11", "S13", "S15"]
    difference = float(re.search(r"differ by ([0-9.]+) percentage points", printed)[1])
    assert difference < 6


@pytest.mark.filterwarnings("ignore")  # those of scanpy and what it brings along
def test_scanpy_finds_neighbours_in_the_study(adata):
    pytest.importorskip("scanpy", reason="scanpy is missing: pip install 'scaleshift[examples]'")
    assert example("scanpy_study").neighbours_of_the_same_label(adata, 300) > 0.8


def test_the_scanpy_example_runs_as_a_script(tmp_path):
    command = [sys.executable, str(EXAMPLES / "scanpy_study.py")]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 1
    assert "usage: python examples/scanpy_study.py FOLDER" in found.stderr
    done = subprocess.run([*command, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "beside the gates: proportions differ" in done.stdout
    assert ("neighbours of the same label" in done.stdout) == (importlib.util.find_spec("scanpy") is not None)
    assert np.isfinite(float(re.search(r"by ([0-9.]+) at most", done.stdout)[1]))


def test_the_example_of_contamination_runs_and_draws(tmp_path, monkeypatch, capsys):
    arguments = ["--repetitions", "1", "--markers", "3", "--unknown", "0", "0.3", "--cells", "600"]
    monkeypatch.setattr(sys, "argv", ["contamination.py", *arguments, "--output", str(tmp_path)])
    example("contamination").main()
    printed = capsys.readouterr().out
    assert "unknown cells: a far Gaussian" in printed
    results = pd.read_csv(tmp_path / "contamination.csv")
    assert len(results) == 3 * 2 * 6
    error = results[(results["noise"] == "far") & (results["unknown"] == 0.3)].set_index("method")["error"]
    assert error["soft landmarks"] < 0.05 < 0.1 < error["RFFM"]
    assert (tmp_path / "contamination.png").stat().st_size > 10_000


def test_the_example_of_a_class_left_out_runs_on_the_demo(tmp_path, monkeypatch, capsys):
    module = example("left_out_class")
    x, y, sample = module.load(None)
    kept = np.isin(sample, ["S01", "S02"])
    monkeypatch.setattr(module, "load", lambda path: (x[kept], y[kept], sample[kept]))
    monkeypatch.setattr(sys, "argv", ["left_out_class.py", "--cells", "600", "--output", str(tmp_path)])
    module.main()
    assert "none: all classes known" in capsys.readouterr().out
    means = module.table(pd.read_csv(tmp_path / "left_out_class.csv"))
    assert means.loc["Monocytes", "RFFM"] > 0.3 > means.loc["Monocytes", "soft landmarks"]
    assert (tmp_path / "left_out_class.png").stat().st_size > 10_000


def test_the_example_of_failing_slices_tells_where_and_what_grew(capsys):
    example("failing_slices").main(4_000)
    told = capsys.readouterr().out
    assert re.search(r"wrong in \d+ % \(", told)
    assert "most often predicts" in told
    assert "The same slices in S11 and S15" in told


def test_the_example_of_error_by_shift_runs_and_draws(tmp_path, monkeypatch, capsys):
    arguments = ["--draws", "4", "--bootstrap", "30", "--output", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", ["error_by_shift.py", *arguments])
    example("error_by_shift").main()
    assert "cross-validation" in capsys.readouterr().out
    means = pd.read_csv(tmp_path / "error_by_shift.csv").groupby("scale").mean(numeric_only=True)
    assert means.loc[4, "cross-validation"] < 0.5 * means.loc[4, "realised"]
    assert 0.5 < means.loc[4, "direct"] / means.loc[4, "realised"] < 2
    assert (tmp_path / "error_by_shift.png").stat().st_size > 10_000
