"""scaleshift report: the page of what other verbs left, again or elsewhere."""

import shutil

import numpy as np
import pytest
import xarray as xr
import zarr
from click.testing import CliRunner

import scaleshift as ss
from scaleshift.cli import main, zarr_groups

RNG = np.random.default_rng(0)


def run(*arguments, code=0):
    found = CliRunner().invoke(main, [*map(str, arguments)])
    assert found.exit_code == code, found.output
    return found


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Three samples of two kinds of cells, the last without labels; described by day, arm and a mixture."""
    code = (RNG.random(1_500) > 0.4).astype(int)
    sample = np.repeat(["S1", "S2", "S3"], 500)
    label = np.where(sample == "S3", None, np.array(["A", "B"], object)[code])
    X = np.array([[-4.0, 0], [4.0, 0]])[code] + RNG.standard_normal((1_500, 2))
    told = {"day": [0, 7, 7], "arm": ["x", None, "y"], "gated": [True, True, False], "dose": [1.5, None, 2]}
    cells = ss.as_cells(X, sample=sample, label=label)
    cells = cells.assign_coords({name: ("sample", values) for name, values in told.items()})
    path = tmp_path_factory.mktemp("study") / "study.zarr"
    ss.write_cells(cells, path)
    return path


@pytest.fixture(scope="module")
def results(study, tmp_path_factory):
    folder = tmp_path_factory.mktemp("work") / "results"
    arguments = ("--source", "sample == S1", "--bootstrap", "20", "--output", folder)
    run("quantify", study, *arguments)
    return folder


def test_the_page_is_made_again_to_the_byte(results, tmp_path):
    found = run("report", results, "--output", tmp_path / "new")
    assert found.stdout == ""
    assert f"wrote {tmp_path / 'new' / 'report.html'}: open it in a browser" in found.stderr
    assert (tmp_path / "new" / "report.html").read_bytes() == (results / "report.html").read_bytes()


def test_without_output_it_is_written_beside_the_results(results, tmp_path):
    copied = shutil.copytree(results, tmp_path / "results")
    page = (copied / "report.html").read_bytes()
    for given in (copied, copied / "proportions.zarr"):
        (copied / "report.html").unlink()
        run("report", given, "--quiet")
        assert (copied / "report.html").exists()
    assert (copied / "report.html").read_bytes() != page  # the gates stand beside the store, not in it


def test_several_results_of_a_folder_are_one_page(study, results, tmp_path):
    both = shutil.copytree(results, tmp_path / "both")
    run("auc", study, "--positive", "A", "--output", both)
    run("report", both)
    page = (both / "report.html").read_text()
    assert "Class proportions" in page
    assert "held-out" in page
    assert page.count("<!doctype html>") == 1


def test_what_cannot_be_reported_is_an_error_with_a_way_out(results, study, tmp_path):
    (tmp_path / "empty").mkdir()
    zarr.create_group(tmp_path / "foreign.zarr")
    told = {
        "nowhere": "nowhere does not exist: expected a folder that --output of a verb named",
        "empty": "empty holds none of proportions.zarr, league.zarr",
        "foreign.zarr": "foreign.zarr is no result of scaleshift",
    }
    for name, words in told.items():
        found = run("report", tmp_path / name, code=1)
        assert words in found.stderr.replace("\n", " ")
    assert (
        "is a file: expected the folder in which it lies"
        in run("report", results / "proportions.csv", code=1).stderr
    )
    assert "a study" in run("report", study, code=1).stderr


def test_a_store_with_codecs_that_run_code_is_refused(results, tmp_path):
    forged = shutil.copytree(results, tmp_path / "forged") / "proportions.zarr" / "flag" / "zarr.json"
    forged.write_text(forged.read_text().replace('"vlen-utf8"', '"pickle"'))
    assert "pickle" in run("report", tmp_path / "forged", code=1).stderr


def test_a_damaged_table_of_gates_is_named(results, tmp_path):
    copied = shutil.copytree(results, tmp_path / "results")
    (copied / "gated.csv").write_bytes(b"sample,label\n\xff\xfe,1\n")
    assert "gated.csv" in run("report", copied, code=1).stderr


def test_what_was_not_known_of_a_sample_is_empty_and_numbers_stay_numbers(results):
    found = xr.open_zarr(results / "proportions.zarr", consolidated=False).load()
    assert found["arm"].values.tolist() == ["", "y"]
    assert found["dose"].dtype == float
    assert np.isnan(found["dose"].values[0])


def test_a_store_of_the_user_is_found_before_anything_is_computed(study, tmp_path):
    (tmp_path / "out" / "proportions.zarr").mkdir(parents=True)
    arguments = ("quantify", study, "--source", "sample == S1", "--output", tmp_path / "out")
    assert "proportions.zarr is there, and scaleshift did not write it" in run(*arguments, code=1).stderr
    assert not zarr_groups.is_ours(tmp_path / "out" / "proportions.zarr")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["proportions.zarr"]
