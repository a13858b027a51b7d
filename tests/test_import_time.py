"""Importing scaleshift costs next to nothing, and the first use of a name no more than what it needs."""

import json
import subprocess
import sys

import import_time
import pytest
from timing import ratios

HEAVY = {
    "dask.array",
    "distributed",
    "matplotlib",
    "numba",
    "numpy",
    "pandas",
    "rich.progress",
    "scipy.stats",
    "sklearn.cluster",
    "sklearn.linear_model",
    "sklearn.model_selection",
    "xarray",
    "zarr",
}


def imported_by(code):
    """Which of the heavy modules a fresh interpreter has after some code."""
    told = f"{code}; import json, sys; print(json.dumps(sorted(sys.modules)))"
    result = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    return HEAVY & set(json.loads(result.stdout))


def test_importing_scaleshift_imports_nothing_heavy():
    assert imported_by("import scaleshift; dir(scaleshift); scaleshift.__version__") == set()


@pytest.mark.parametrize(
    ("name", "without"),
    [
        ("open_cells", {"distributed", "matplotlib", "numba", "scipy.stats", "sklearn.linear_model"}),
        (
            "OpenSetQuantifier",
            {"distributed", "matplotlib", "zarr", "sklearn.cluster", "sklearn.linear_model"},
        ),
        ("SparseAUC", {"distributed", "matplotlib", "zarr", "sklearn.cluster", "sklearn.linear_model"}),
        ("PredictionError", {"distributed", "matplotlib", "zarr", "sklearn.cluster", "sklearn.linear_model"}),
        ("DataError", HEAVY),
    ],
)
def test_the_first_use_of_a_name_does_without_what_it_does_not_need(name, without):
    assert not imported_by(f"import scaleshift; scaleshift.{name}") & without


def test_importing_scaleshift_takes_no_longer_than_what_it_stands_on():
    asked = {name: ["-c", name] for name in (import_time.BASE, import_time.PACKAGE)}
    found = ratios(import_time.measure(asked, rounds=3), import_time.BASE)
    assert found[import_time.PACKAGE] <= 1.2


def test_an_interpreter_that_fails_is_no_measurement():
    with pytest.raises(RuntimeError, match="ended with 3"):
        import_time.cpu_seconds(["-c", "raise SystemExit(3)"])
