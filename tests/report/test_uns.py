"""Results in AnnData's uns: written to .h5ad and .zarr, read again, and the same as before."""

import contextlib
import json
import warnings

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from every_kind import DATASETS, every, gates, plan

import scaleshift as ss
from scaleshift.report import from_uns, plot, table, text, to_uns

anndata = pytest.importorskip("anndata")


def through_file(uns, path):
    """What AnnData reads of what it has written."""
    adata = anndata.AnnData(np.zeros((2, 1)), uns=uns)
    if path.suffix == ".zarr":
        adata.write_zarr(path)
        return anndata.read_zarr(path).uns
    adata.write_h5ad(path)
    return anndata.read_h5ad(path).uns


@pytest.fixture(scope="module", params=[".h5ad", ".zarr"])
def came_back(request, tmp_path_factory):
    """Every dataset after it was in a file, by name, beside an odd one and a data frame."""
    results = {name: every()[name][1] for name in DATASETS} | {"odd": odd(), "frame": frame()}
    path = tmp_path_factory.mktemp("uns") / f"cells{request.param}"
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=FutureWarning)  # of anndata, about the layout it writes
        warnings.filterwarnings("ignore", category=UserWarning, module="anndata")
        return through_file({name: to_uns(result) for name, result in results.items()}, path)


def frame():
    """A comparison with gates of which some is not known."""
    return gates().assign(inside=pd.array([True, pd.NA, False, None, True, True], "boolean"))


def odd():
    """A result with all that stores do not like."""
    object_ = np.array([None, "a", 3, np.nan, pd.NA, pd.Timestamp("2026-01-02"), True], object)
    return xr.Dataset(
        {
            "proportion": (("sample", "label"), np.full((7, 2), np.nan)),
            "when": ("sample", np.array(["2026-01-01", "NaT"] + ["2025-05-05"] * 5, "M8[ns]")),
            "took": ("sample", np.array([1, 2, 3, 4, 5, 6, "NaT"], "m8[s]")),
            "a/b": ("sample", np.arange(7, dtype=np.int8)),
            "a_b": ("sample", np.arange(7, dtype=np.float32)),
            "A/B": ("sample", np.arange(7) > 3),
            "..": ((), 1.5),
            "scaleshift": ((), "text"),
            "nothing": ("empty", np.empty(0)),
            "no text": ("empty", np.empty(0, "<U3")),
            "x" * 300: ((), np.uint64(2**63)),
        },
        coords={
            "sample": ["S1", "", "NUL\0here", "half \ud800", "Käfig 🐛", "a/b", "$x$"],
            "label": [True, False],
            "donor": ("sample", object_),
        },
        attrs={
            "none": None,
            "nan": np.nan,
            "list": [1, None, "x"],
            "number": np.float64(0.5),
            "a/b": {"c": []},
        },
    ).assign_coords(text=("sample", np.array(list("abcdefg"), object)))


@pytest.mark.parametrize("name", DATASETS)
def test_every_kind_of_dataset_comes_back_as_it_was(name, came_back):
    _, result = every()[name]
    found = from_uns(came_back[name])
    xr.testing.assert_identical(found, result)
    assert {n: v.dtype for n, v in found.variables.items()} == {
        n: v.dtype for n, v in result.variables.items()
    }
    assert (list(found.data_vars), list(found.coords)) == (list(result.data_vars), list(result.coords))


@pytest.mark.parametrize("name", DATASETS)
def test_what_came_back_is_shown_as_before(name):
    _, result = every()[name]
    found = from_uns(to_uns(result))
    assert str(text(found, width=90)) == str(text(result, width=90))
    pd.testing.assert_frame_equal(table(found), table(result))
    if name != "replicates of a closed form":
        assert len(plot(found).axes) == len(plot(result).axes)


def test_a_comparison_with_gates_comes_back_as_a_data_frame(came_back):
    found = from_uns(came_back["frame"])
    pd.testing.assert_frame_equal(found, frame())
    assert "interval" in str(text(found, width=90))


def test_missing_mixed_and_empty_values_and_odd_names_come_back(came_back):
    result, found = odd(), from_uns(came_back["odd"])
    for name, variable in result.variables.items():
        assert found[name].dtype == variable.dtype, name
        assert found[name].dims == variable.dims, name
        kept, came = variable.values.ravel().tolist(), found[name].values.ravel().tolist()
        assert list(map(repr, came)) == list(map(repr, kept)), name
    assert list(map(repr, found.attrs.items())) == list(map(repr, {**result.attrs, "number": 0.5}.items()))


def test_arrays_lie_under_the_names_of_their_variables():
    _, result = every()["proportions"]
    stored = to_uns(result)
    np.testing.assert_array_equal(stored["proportion"], result["proportion"])
    assert stored["sample"].tolist() == result["sample"].values.tolist()
    assert {type(value) for value in stored.values()} <= {str, np.ndarray}
    assert not any("/" in key for key in to_uns(odd()))


def test_a_result_from_a_store_is_read(tmp_path):
    _, result = every()["proportions"]
    assert from_uns(to_uns(result.chunk())).identical(result)


def test_what_is_no_dataset_is_refused():
    with pytest.raises(ss.DataError, match=r"a result of explain is no dataset.*keep"):
        to_uns(plan())
    with pytest.raises(ss.DataError, match="this is no result"):
        to_uns(xr.Dataset())


@pytest.mark.parametrize("other", [{}, {"scaleshift": "{"}, {"scaleshift": "[]"}, 3, None, np.zeros(3)])
def test_what_to_uns_did_not_make_is_refused(other):
    with pytest.raises(ss.DataError, match=r"pass adata\.uns"):
        from_uns(other)


def test_a_part_that_is_missing_or_of_another_version_is_told():
    stored = to_uns(every()["roc"][1])
    with pytest.raises(ss.DataError, match="'bound' is missing"):
        from_uns({name: value for name, value in stored.items() if name != "bound"})
    with pytest.raises(ss.DataError, match=r"'auc' has 2 values, expected \[\]"):
        from_uns({**stored, "auc": np.zeros(2)})
    newer = json.loads(stored["scaleshift"]) | {"schema": "scaleshift.result/2"}
    with pytest.raises(ss.DataError, match=r"scaleshift.result/2.*update"):
        from_uns({**stored, "scaleshift": json.dumps(newer)})


OF_A_VARIABLE = {
    "dtype": ["|V8", "<U900000000", "nonsense", None, "<c16", "i4,O"],
    "shape": [None, [-1], [2**62, 2**62], "x"],
    "dims": [None, 7, ["a", "a"]],
    "form": [None, "json", "time"],
    "key": [None, [], "scaleshift"],
    "name": [None, [1]],
    "coordinate": [7],
}
OF_THE_HEADER = {"variables": [7, ["<script>", {}]], "attrs": [[1]], "frame": [["nothing"]]}


@pytest.mark.parametrize("key", [*OF_A_VARIABLE, *OF_THE_HEADER])
def test_a_forged_dictionary_is_read_or_refused_in_a_line(key):
    stored = to_uns(every()["proportions"][1])
    header = json.loads(stored["scaleshift"])
    for value in OF_THE_HEADER.get(key, []) + OF_A_VARIABLE.get(key, []):
        of_each = {"variables": [told | {key: value} for told in header["variables"]]}
        forged = header | (of_each if key in OF_A_VARIABLE else {key: value, "extension": 7})
        with contextlib.suppress(ss.DataError):
            assert from_uns(stored | {"scaleshift": json.dumps(forged)}) is not None


def test_a_type_that_would_fill_the_memory_is_refused():
    stored = to_uns(every()["proportions"][1])
    forged = stored["scaleshift"].replace('"<f8"', '"<U500000000"')
    with pytest.raises(ss.DataError, match="which none has"):
        from_uns(stored | {"scaleshift": forged})


@pytest.mark.parametrize("header", ["", "[", "[" * 200_000, "7", "null", '{"schema": []}', b"\xff", 7, None])
def test_what_has_no_header_is_no_result(header):
    with pytest.raises(ss.DataError):
        ss.report.from_uns({"scaleshift": header})
