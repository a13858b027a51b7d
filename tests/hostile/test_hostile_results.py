"""Results that were forged, or are of another program, end in one line or a page: no harm is done."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path

import numpy as np
import pytest
import zarr
from danger import chunk_of, edit

import scaleshift as ss
from scaleshift.cli import html_page, zarr_groups
from scaleshift.cli.results import GROUPS

QUANTIFY = ("quantify", "study.zarr", "--source", "sample == S1", "--method", "cc", "--bootstrap", "0")
OTHERS_PAGE = "<!doctype html><title>MultiQC</title>"


@pytest.fixture
def results(danger, study):
    """What quantify leaves; it is read from, and `output` is written to."""
    danger.output.mkdir()
    danger.run(*QUANTIFY, "--output", "output", codes=(0,))
    shutil.copytree(danger.output, danger.work / "results")
    shutil.rmtree(danger.output)
    danger.output.mkdir()
    return danger.work / "results"


def attributes(path, **changes):
    found = json.loads((path / "zarr.json").read_text())
    edit(path, attributes=found["attributes"] | changes)


def pickle_codec(results):
    codecs = [{"name": "pickle", "configuration": {}}]
    edit(results / "proportions.zarr" / "flag", codecs=codecs)


def link_of_a_chunk(results):
    chunk = chunk_of(results / "proportions.zarr", "proportion")
    chunk.unlink()
    chunk.symlink_to(results.parent.parent / "secret.txt")


def link_of_the_gates(results):
    (results / "gated.csv").unlink()
    (results / "gated.csv").symlink_to(results.parent.parent / "secret.txt")


def pipe(results):
    (results / "proportions.zarr" / "zarr.json").unlink()
    os.mkfifo(results / "proportions.zarr" / "zarr.json")


def huge_shape(results):
    edit(results / "proportions.zarr" / "proportion", shape=[2**40, 2**20])


def negative_shape(results):
    edit(results / "proportions.zarr" / "proportion", shape=[-1, 3])


def other_shape(results):
    edit(results / "proportions.zarr" / "unknown", shape=[77])


def nested(results):
    (results / "proportions.zarr" / "zarr.json").write_text("[" * 200_000)


def no_variables(results):
    for path in (results / "proportions.zarr").iterdir():
        if path.is_dir():
            shutil.rmtree(path)


def lacks_one(results):
    shutil.rmtree(results / "proportions.zarr" / "n_cells")


def text_for_numbers(results):
    shutil.rmtree(results / "proportions.zarr" / "proportion")
    shutil.copytree(results / "proportions.zarr" / "flag", results / "proportions.zarr" / "proportion")


def damaged_chunk(results):
    chunk_of(results / "proportions.zarr", "proportion").write_bytes(b"\0" * 40)


def times(results):
    found = json.loads((results / "proportions.zarr" / "proportion" / "zarr.json").read_text())
    told = found["attributes"] | {"units": "days since 9999-99-99", "scale_factor": "x"}
    edit(results / "proportions.zarr" / "proportion", attributes=told)


def forged_gates(results):
    (results / "gated.csv").write_text("sample,label,gated\n=1+1,<script>,x\n")


REFUSED = (pickle_codec, link_of_a_chunk, link_of_the_gates, pipe, huge_shape, negative_shape, other_shape)
REFUSED += (nested, no_variables, lacks_one, text_for_numbers, damaged_chunk, times, forged_gates)


@pytest.mark.parametrize("forge", REFUSED)
def test_forged_results_are_refused_in_a_line(danger, results, forge):
    forge(results)
    danger.run("report", "results", "--output", "output", codes=(1,))
    assert list(danger.output.iterdir()) == []


def test_a_chunk_that_unpacks_without_end_takes_no_more_memory_than_there_is(danger, results):
    array = results / "proportions.zarr" / "flag"
    edit(array, codecs=[{"name": "vlen-utf8"}, {"name": "gzip", "configuration": {"level": 9}}])
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    packed = b"".join(packer.compress(bytes(2**24)) for _ in range(512)) + packer.flush()
    chunk_of(results / "proportions.zarr", "flag").write_bytes(packed)
    assert len(packed) < 10_000_000
    danger.alone("report", "results", "--output", "output", codes=(1,))


ATTRIBUTES = {
    "not_json": {"parameters": "forged", "source_samples": "[", "features": '{"a": 1}'},
    "numbers": {"parameters": 7, "source_samples": 7, "study": 7, "choice": 7, "resampled": 7},
    "lists": {"parameters": ["a"], "study": ["<script>"], "resampled": [1], "variables": [1]},
    "deep": {"parameters": "[" * 200_000, "variables": "[" * 200_000},
    "long": {"study": "<b>" * 100_000, "<script>": "x"},
    "other_version": {"scaleshift_version": "99.0<script>"},
}


@pytest.mark.parametrize("what", ATTRIBUTES)
def test_forged_attributes_cost_their_lines_alone(danger, results, what):
    attributes(results / "proportions.zarr", **ATTRIBUTES[what])
    danger.run("report", "results", "--output", "output", codes=(0,))
    page = (danger.output / "report.html").read_text()
    assert page.count("<script>") == 1
    assert ">S2</th>" in page


@pytest.mark.parametrize("values", [-3.0, 7.0, np.nan, np.inf, -np.inf, 1e300, 1e-320])
def test_numbers_that_are_no_shares_have_a_page(danger, results, values):
    for name in ("proportion", "proportion_low", "unknown", "n_cells", "unknown_baseline"):
        array = zarr.open_array(results / "proportions.zarr", path=name, mode="r+")
        if array.dtype.kind == "f":
            array[...] = values
    danger.run("report", "results", "--output", "output", codes=(0,))
    assert ">S2</th>" in (danger.output / "report.html").read_text()


# Where it is written -----------------------------------------------------------------------------------


def test_the_page_of_another_program_stays(danger, results):
    (danger.output / "report.html").write_text(OTHERS_PAGE)
    for arguments in (("report", "results"), QUANTIFY):
        danger.run(*arguments, "--output", "output", codes=(1,), names="scaleshift did not write it")
    danger.run("compare", "study.zarr", "--methods", "cc,bbse", "--output", "output", codes=(1,))
    danger.run("auc", "study.zarr", "--positive", "T", "--output", "output", codes=(1,))
    assert [path.name for path in danger.output.iterdir()] == ["report.html"]
    assert (danger.output / "report.html").read_text() == OTHERS_PAGE


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: os.symlink("/dev/zero", path)])
def test_what_is_no_file_is_not_replaced(danger, results, make):
    make(danger.output / "report.html")
    danger.run("report", "results", "--output", "output", codes=(1,), names="did not write it")
    assert os.path.lexists(danger.output / "report.html")


def test_a_link_to_a_page_is_replaced_and_not_followed(danger, results):
    page = (results / "report.html").read_bytes() + b"<!-- mine -->"
    (danger.root / "keep" / "page.html").write_bytes(page)
    (danger.output / "report.html").symlink_to(danger.root / "keep" / "page.html")
    danger.run("report", "results", "--output", "output", codes=(0,))
    assert not (danger.output / "report.html").is_symlink()
    assert (danger.root / "keep" / "page.html").read_bytes() == page


@pytest.mark.parametrize("group", GROUPS)
def test_a_link_in_place_of_a_result_is_found_before_anything_is_computed(tmp_path, group):
    (tmp_path / group).symlink_to(tmp_path / "nowhere")
    with pytest.raises(ss.DataError, match="is there, and scaleshift did not write it"):
        zarr_groups.refuse_foreign(tmp_path / group)


def test_a_pipe_in_place_of_a_result_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "zarr.json")
    assert not zarr_groups.is_ours(tmp_path)


OF_ANOTHER = {
    "compare": ("league.zarr", ("compare", "study.zarr", "--methods", "cc,bbse", "--output", "output")),
    "auc": ("path.zarr", ("auc", "study.zarr", "--positive", "T", "--output", "output")),
    "slices": ("slices.zarr", ("slices", "study.zarr", "--predictions", "none", "--output", "output")),
    "error": ("error.zarr", ("error", "study.zarr", "--target", "sample == S2", "--output", "output")),
}


@pytest.mark.parametrize("verb", OF_ANOTHER)
def test_a_store_of_the_user_is_found_before_anything_is_computed(danger, study, verb):
    name, arguments = OF_ANOTHER[verb]
    (danger.output / name).mkdir(parents=True)
    (danger.output / name / "mine.txt").write_text("mine")
    text = danger.run(*arguments, codes=(1, 2))
    assert "did not write it" in text or verb == "error", text
    assert [path.name for path in danger.output.iterdir()] == [name]


#: A report and wrong usage, with which all is imported, and then one by somebody else
SOMEBODY = """
import contextlib, os, sys
from scaleshift.cli import main
main(["report", sys.argv[1]], standalone_mode=False)
with contextlib.suppress(SystemExit):
    main(["report"])
os.setgid(65534)
os.setuid(65534)
main(["report", sys.argv[2]])
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs to be another user")
def test_folders_without_rights_are_named(results):
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        for name, rights, told in (
            ("read-only", 0o555, "Permission denied"),
            ("closed", 0o700, "not readable"),
        ):
            copied = shutil.copytree(results, Path(folder, name))
            copied.chmod(rights)
            command = [sys.executable, "-c", SOMEBODY, str(results), str(copied)]
            found = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
            assert found.returncode in (1, 2)
            assert told in found.stderr
            assert name in found.stderr
            assert "Traceback" not in found.stderr


# A run that is killed ----------------------------------------------------------------------------------

SLOW = """
import sys, time
from scaleshift.cli import main, zarr_groups
written = zarr_groups.write
def write(*arguments):
    written(*arguments)
    print("half", flush=True)
    time.sleep(60)
zarr_groups.write = write
main(sys.argv[1:])
"""


def test_a_run_that_is_killed_leaves_no_page_of_other_numbers(danger, study, results):
    shutil.copytree(results, danger.output, dirs_exist_ok=True)
    command = [sys.executable, "-c", SLOW, *QUANTIFY, "--output", "output"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout.readline() == b"half\n"
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert (danger.output / "proportions.csv").exists()
    assert not (danger.output / "report.html").exists()
    danger.run("report", "output", codes=(0,))
    assert html_page.is_ours(danger.output / "report.html")


def test_pages_that_are_written_at_once_are_whole(results):
    command = [sys.executable, "-m", "scaleshift", "report", str(results)]
    runs = [subprocess.Popen(command, stderr=subprocess.PIPE) for _ in range(2)]
    pages = set()
    while any(run.poll() is None for run in runs):
        pages.add((results / "report.html").read_bytes()[-7:])
        time.sleep(0.01)
    assert [run.returncode for run in runs] == [0, 0], [run.stderr.read() for run in runs]
    for run in runs:
        run.stderr.close()
    assert pages == {b"</html>"}
    assert not [path for path in results.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize("scheduler", ["local", "processes"])
def test_with_closed_streams_standard_output_is_json_alone(danger, study, scheduler):
    arguments = [sys.executable, "-m", "scaleshift", *QUANTIFY, "--json", "--scheduler", scheduler]
    command = ["bash", "-c", '"$@" 2>&- <&-', "bash", *arguments]
    found = subprocess.run(command, capture_output=True, timeout=240, check=True)
    assert json.loads(found.stdout)["schema"] == "scaleshift.quantify/1"
