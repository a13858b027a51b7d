"""What the benchmarks' page says: verdicts are computed, stale files are named; and the limit is one."""

import re

import claims
import claims_kernels
import fma_limit
import pytest
import run

RESULT = {
    "machine": {"cpu": "one", "load_average": 3.0},
    "keops_flags": "",
    "results": [
        {
            "n_columns": 5,
            "elements_per_ns": {"kernel": 3.0},
            "share_of_limit": 0.9,
            "share_of_limit_with_additions": 0.95,
            "peers": {"numpy": 5.9, "prototype": 0.95},
            "missing": {"torch": "No module named 'torch'"},
        }
    ],
}


def line(page: str, peer: str) -> str:
    """The row of a peer."""
    return next(row for row in page.splitlines() if f"| {peer} |" in row)


def test_a_bar_is_reached_where_the_number_says_so():
    page = claims.page({"fourier": RESULT}, {"fourier": claims_kernels.fourier})
    assert ">= 6: **missed**" in line(page, "numpy")
    assert ">= 0.95: reached" in line(page, "prototype")
    assert ">= 0.85: reached" in line(page, "share of the FMA limit")
    assert "3 rows have a bar, 1 miss it" in page


def test_a_number_of_at_most_is_missed_above_it():
    row = claims.Row("memory", "", "", 2.1, claims.at_most(2))
    assert row.cells()[4] == "<= 2: **missed**"
    assert row._replace(number=2.0).cells()[4] == "<= 2: reached"


def test_a_bar_of_two_ends_is_missed_beyond_either():
    row = claims.Row("coverage", "", "", 0.99, claims.Bar(0.92, 0.98))
    assert row.cells()[4] == "0.92 to 0.98: **missed**"
    assert row._replace(number=0.91).cells()[4] == "0.92 to 0.98: **missed**"
    assert row._replace(number=0.95).cells()[4] == "0.92 to 0.98: reached"


def test_no_benchmark_of_a_cpu_gives_its_work_to_a_gpu():
    assert run.ENVIRONMENT["SCALESHIFT_DEVICE"] == "cpu"


def test_a_peer_that_is_not_there_has_a_row_with_the_reason():
    page = claims.page({"fourier": RESULT}, {"fourier": claims_kernels.fourier})
    assert "No module named 'torch'" in line(page, "torch")


def test_files_of_an_older_form_are_named_and_the_rest_is_shown():
    old = {**RESULT, "results": [{"n_columns": 5}]}
    rows = {
        "fourier": claims_kernels.fourier,
        "landmarks": claims_kernels.landmarks,
        "gpu": claims_kernels.gpu,
    }
    page = claims.page({"fourier": RESULT, "landmarks": old}, rows)
    assert "Not run yet: landmarks (its file is of an older form), gpu." in page
    assert "Fourier class sums" in page


def test_runs_on_equal_machines_share_a_letter_whatever_the_load():
    idle = {**RESULT, "machine": {"cpu": "one", "load_average": 0.1}}
    other = {**RESULT, "machine": {"cpu": "two"}}
    rows = dict.fromkeys("abc", claims_kernels.fourier)
    page = claims.page({"a": RESULT, "b": idle, "c": other}, rows)
    assert [row.split("|")[-2].strip() for row in page.splitlines() if "numpy |" in row] == ["A", "A", "B"]


def test_groups_and_names_choose_benchmarks_and_unknown_ones_are_refused():
    assert run.chosen(["landmarks", "fma_limit"]) == ["fma_limit", "landmarks"]
    assert set(run.chosen(["kernels"])) < set(run.BENCHMARKS)
    with pytest.raises(SystemExit, match="no such benchmark: fourrier"):
        run.chosen(["fourrier"])


@pytest.mark.parametrize("lanes", fma_limit.widths())
def test_the_limit_is_measured_by_fused_instructions_of_whole_vectors(lanes):
    (assembly,) = fma_limit.loop(3, 1, lanes).inspect_asm().values()
    register = {4: "xmm", 8: "ymm", 16: "zmm"}[lanes]
    fused = len(re.findall(rf"vfmadd\w+\s.*%{register}", assembly))
    if fused == 0 and lanes == 4:
        pytest.skip("this CPU has no FMA on x86's registers")
    assert fused == 3 * fma_limit.N_SUMS
