"""The examples run, in a small size, and show what they say."""

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import anndata
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import scaleshift as ss
from scaleshift.cli import main

EXAMPLES = Path(__file__).parents[1] / "examples"
pytestmark = pytest.mark.skipif(not EXAMPLES.is_dir(), reason="no examples beside the tests")


def example(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def run(monkeypatch, capsys):
    """Run an example with arguments, as a script would be; what it printed."""

    def run(name, *arguments):
        monkeypatch.setattr(sys, "argv", [f"{name}.py", *map(str, arguments)])
        example(name).main()
        return capsys.readouterr().out

    return run


def test_every_example_says_how_it_is_run_and_is_in_the_table_of_the_readme():
    table = (EXAMPLES / "README.md").read_text()
    for path in EXAMPLES.glob("*.py"):
        text = path.read_text()
        assert f"python examples/{path.name}" in text.split('"""')[1], path
        assert f"({path.name})" in table, path
        assert len(text.splitlines()) < 200, path


# Proportions -------------------------------------------------------------------------------------------


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
    found = subprocess.run([*command, "a", "b"], capture_output=True, text=True, check=False)
    assert found.returncode == 1
    assert "usage: python examples/scanpy_study.py [FOLDER]" in found.stderr
    done = subprocess.run([*command, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "beside the gates: proportions differ" in done.stdout
    assert ("neighbours of the same label" in done.stdout) == (importlib.util.find_spec("scanpy") is not None)
    assert np.isfinite(float(re.search(r"by ([0-9.]+) at most", done.stdout)[1]))


@pytest.fixture(scope="module")
def workbook(tmp_path_factory):
    """What the example of FCS files has written, and what it printed."""
    pytest.importorskip("openpyxl", reason="openpyxl is missing: pip install 'scaleshift[excel]'")
    folder = tmp_path_factory.mktemp("fcs")
    command = [sys.executable, str(EXAMPLES / "fcs_to_excel.py"), "--cells", "2000", "--output", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder, done.stdout


def test_fcs_files_become_a_workbook_whose_numbers_are_near_the_gates(workbook):
    folder, printed = workbook
    assert "cut.fcs: is cut off" in printed
    assert "8 samples, 16,000 cells" in printed
    percent = pd.read_excel(folder / "proportions.xlsx", sheet_name="percent", index_col="sample")
    assert percent.index.tolist() == ["S02", "S07", "S11", "S13", "S15"]
    assert percent["centre"].tolist() == ["A", "A", "B", "B", "B"]
    gated = pd.read_excel(folder / "proportions.xlsx", sheet_name="gated").dropna(subset="gated")
    assert gated["sample"].unique().tolist() == ["S13"]
    assert gated["difference"].abs().max() < 3  # percentage points
    assert (folder / "proportions.png").stat().st_size > 10_000


def test_the_command_line_of_the_example_gives_the_same_percentages(workbook, tmp_path):
    files, study = str(workbook[0] / "fcs"), str(tmp_path / "study.zarr")
    cli("ingest", files, study, "--meta", f"{files}/samples.csv", "--skip")
    cli("label", study, f"{files}/gates.csv")
    chosen = ["--source", "gated == true", "--method", "open-set"]
    cli("quantify", study, *chosen, "--output", str(tmp_path / "results"))
    written = [path / "proportions.xlsx" for path in (tmp_path / "results", workbook[0])]
    for sheet in ("percent", "low", "high", "gated"):
        by_command, by_script = (pd.read_excel(path, sheet_name=sheet) for path in written)
        pd.testing.assert_frame_equal(by_command[by_script.columns], by_script)


def cli(*words, code=0):
    done = CliRunner().invoke(main, list(words))
    assert done.exit_code == code, done.output
    return done.output


def test_weights_of_label_shift_take_errors_away(run):
    printed = run("retrain_by_weights", "--draws", 3, "--cells", 1_000)
    near, far = (
        re.search(rf"{name}: weights take away (-?\d+)% .* would (-?\d+)%", printed)
        for name in ("S02", "S13")
    )
    assert int(near[1]) > 15
    assert int(near[2]) - int(near[1]) < 5  # near the source the estimated shares do as well as the true ones
    assert int(far[1]) < int(far[2])  # and of another centre they do not


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


def test_a_killed_run_over_the_atlas_goes_on_to_the_same_bits(tmp_path):
    command = [sys.executable, str(EXAMPLES / "slurm_atlas.py"), str(tmp_path), "--samples", "5"]
    done = subprocess.run([*command, "--cells", "400000"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "to the same bits as undisturbed: yes" in done.stdout
    assert float(re.search(r"parts; ([0-9.]+) percentage points off", done.stdout)[1]) < 2
    kept, parts = (int(re.search(rf"{what}", done.stdout)[1]) for what in (r"kept: (\d+)", r"(\d+) parts"))
    assert 0 < kept < parts


# Where models fail -------------------------------------------------------------------------------------


def test_the_example_of_failing_slices_tells_where_and_what_grew(capsys):
    example("failing_slices").main(4_000)
    told = capsys.readouterr().out
    assert re.search(r"wrong in \d+ % \(", told)
    assert "most often predicts" in told
    assert "The same slices in S11 and S15" in told
    costs = [float(found) for found in re.findall(r"growth of these slices \+([0-9.]+) points", told)]
    assert len(costs) == 2
    assert costs[1] == pytest.approx(costs[0], abs=0.5)  # the growth is seen without labels too


def test_the_example_of_error_by_shift_runs_and_draws(tmp_path, monkeypatch, capsys):
    arguments = ["--draws", "4", "--bootstrap", "30", "--output", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", ["error_by_shift.py", *arguments])
    example("error_by_shift").main()
    printed = capsys.readouterr().out
    assert "mean of (estimate - realised) / realised" in printed
    means = pd.read_csv(tmp_path / "error_by_shift.csv").groupby("scale").mean(numeric_only=True)
    assert means.loc[4, "cross-validation"] < 0.5 * means.loc[4, "realised"]
    assert 0.5 < means.loc[4, "direct"] / means.loc[4, "realised"] < 2
    assert (tmp_path / "error_by_shift.png").stat().st_size > 10_000


def test_planted_slices_are_found_where_high_losses_show_nothing(run, tmp_path):
    run("planted_slices", "--seeds", 1, "--rows", 2_500, "--easy", "--output", tmp_path)
    results = pd.read_csv(tmp_path / "planted_slices.csv")
    means = results.groupby("method")["precision"].mean()
    assert means["DominoSlicer"] > 0.9
    assert means["rows of highest loss"] < 0.6
    assert means["Domino as published"] <= means["DominoSlicer"]
    assert (tmp_path / "planted_slices.png").stat().st_size > 10_000


def test_the_nightly_watch_tells_the_error_without_labels_and_rings(tmp_path):
    command = [sys.executable, str(EXAMPLES / "nightly_monitoring.py"), "--cells", "4000"]
    done = subprocess.run(
        [*command, "--state", str(tmp_path / "watched")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 3, done.stderr
    assert "the alarm rang in night 5; the staining fades from night 4 on" in done.stdout
    nights = re.findall(r"error ([0-9.]+) \(([0-9.]+) to ([0-9.]+)\).*truly ([0-9.]+)", done.stdout)
    assert len(nights) == 5
    for error, low, high, truly in np.array(nights, dtype=float):
        assert low < error < high
        assert error == pytest.approx(truly, rel=0.15)
    again = subprocess.run(
        [*command, "--state", str(tmp_path / "watched")], capture_output=True, text=True, check=False
    )
    assert (again.returncode, again.stdout) == (2, "")
    assert "name tonight's study" in again.stderr


def test_one_night_is_judged_from_what_was_learned_once_and_by_the_command_line_alike(tmp_path, monkeypatch):
    night = example("nightly_monitoring")
    study, tonight = str(tmp_path / "trained.zarr"), str(tmp_path / "tonight.zarr")
    ss.write_cells(night.made_up_night(0, 2_000), study)
    ss.append_cells(night.made_up_night(1, 2_000), study)
    ss.write_cells(night.without_labels(night.made_up_night(6, 2_000)), tonight)
    night.learn(ss.open_cells(study, samples=["night 0"]), tmp_path / "watched")
    words, code = night.judge(ss.open_cells(tonight), tmp_path / "watched", above=0.1)
    assert code == 3
    asked = ["--source", "night == 0", "--target", "night == 1", "--alarm-above", "0.1", "--alarm-on", "low"]
    state = ["--state", str(tmp_path / "watching")]
    cli("error", study, "--model", "multinomial", *asked, *state, "--forget", "1", "--bootstrap", "100")
    told = json.loads(cli("error", tonight, *state, "--json", "--quiet", code=3))
    assert f"error {told['targets'][0]['methods'][0]['error']:.3f} " in words


# Which features ----------------------------------------------------------------------------------------


def test_few_features_rank_better_than_all_and_more_positives_better_than_few(tmp_path, monkeypatch, capsys):
    module = example("auc_by_features")
    monkeypatch.setattr(module, "D", 400)
    arguments = ["--draws", "1", "--sizes", "2", "20", "100", "--output", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", ["auc_by_features.py", *arguments])
    module.main()
    printed = capsys.readouterr().out
    auc = pd.read_csv(tmp_path / "auc_by_features.csv").set_index(["method", "number"])["auc"]
    assert auc["SparseAUC", 20] > max(auc["SparseAUC", 2], auc["SparseAUC", 100]) + 0.02
    assert auc["SparseAUC", 20] > max(
        auc["StoIHT", 20], auc["HSG-HT", 20], auc["SOLAM", 0], auc["SPAM l2", 0]
    )
    assert auc["SparseAUC", 20] == pytest.approx(auc["screening", 20], abs=0.02)  # which the example says
    by_rate = [auc[f"SHT by passes, {rate} % positives", 300] for rate in (5, 25, 50)]
    assert by_rate[0] < min(by_rate[1:]) - 0.05
    assert "at its best k: " in printed
    assert (tmp_path / "auc_by_features.png").stat().st_size > 10_000
