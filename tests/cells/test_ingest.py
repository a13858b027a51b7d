"""Files of any kind become one study, whatever the chunks; what is wrong is said before."""

import json
import zlib
from pathlib import Path

import anndata
import numpy as np
import pandas as pd
import pytest
from fcs_bytes import fcs_bytes

import scaleshift as ss
from scaleshift.cells.intake.plan import Options, plan_study
from scaleshift.cells.manifest import read_manifest
from scaleshift.cells.treatment.compensation import Spillover
from scaleshift.errors import DataError

CHANNELS = ["Time", "FSC-A", "FITC-A", "PE-A", "APC-A"]
MARKERS = ["", "", "CD3", "CD4", "CD8"]
SIZES = {"s1": 70, "s2": 0, "s3": 55, "s10": 130}


def events(name: str, n: int) -> np.ndarray:
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    return rng.gamma(2, 500, (n, len(CHANNELS))).astype(np.float32)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Four files, their channels in different orders."""
    folder = tmp_path / "fcs"
    folder.mkdir()
    for i, (name, n) in enumerate(SIZES.items()):
        order = np.roll(np.arange(len(CHANNELS)), i)
        content = fcs_bytes(
            events(name, n)[:, order], [CHANNELS[c] for c in order], [MARKERS[c] for c in order]
        )
        (folder / f"{name}.fcs").write_bytes(content)
    return folder


def expected(names=SIZES) -> np.ndarray:
    return np.concatenate([events(name, SIZES[name]) for name in names])


@pytest.mark.parametrize("chunk_cells", [7, 64, 1000])
def test_channels_are_aligned_by_name_whatever_the_chunks(folder, tmp_path, chunk_cells):
    report = ss.ingest(folder, tmp_path / "s.zarr", transform="none", chunk_cells=chunk_cells)
    cells = ss.open_cells(tmp_path / "s.zarr", markers="all")
    assert sorted(cells["marker"].values) == sorted(["Time", "FSC-A", "CD3", "CD4", "CD8"])
    order = [["Time", "FSC-A", "CD3", "CD4", "CD8"].index(m) for m in cells["marker"].values]
    np.testing.assert_array_equal(cells["X"].values, expected()[:, order])
    assert cells["sample"].values.tolist() == ["s1", "s2", "s3", "s10"]
    assert np.bincount(cells["sample_code"].values, minlength=4).tolist() == list(SIZES.values())
    assert report.features == ("CD3", "CD4", "CD8")


def test_time_and_scatter_are_kept_but_are_no_features(folder, tmp_path):
    ss.ingest(folder, tmp_path / "s.zarr")
    cells = ss.open_cells(tmp_path / "s.zarr")
    assert cells["marker"].values.tolist() == ["CD3", "CD4", "CD8"]
    assert cells["channel"].values.tolist() == ["FITC-A", "PE-A", "APC-A"]
    np.testing.assert_allclose(cells["X"].values, np.arcsinh(expected()[:, 2:] / 150), rtol=1e-6)


def test_checksums_are_those_of_the_stored_rows(folder, tmp_path):
    ss.ingest(folder, tmp_path / "s.zarr", chunk_cells=40)
    manifest = read_manifest(tmp_path / "s.zarr")
    X = ss.open_cells(tmp_path / "s.zarr", markers="all")["X"].values
    for first, n, checksum in zip(manifest.offsets, manifest.counts, manifest.checksums, strict=True):
        assert checksum == f"{zlib.crc32(X[first : first + n].tobytes()):08x}"


def test_anndata_reads_the_study(folder, tmp_path):
    ss.ingest(folder, tmp_path / "s.zarr", transform="none", chunk_cells=64)
    with pytest.warns(anndata.ImplicitModificationWarning, match="str index"):
        adata = anndata.read_zarr(tmp_path / "s.zarr")
    cells = ss.open_cells(tmp_path / "s.zarr", markers="all")
    np.testing.assert_array_equal(adata.X, cells["X"].values)
    assert adata.var["feature"].tolist() == cells["feature"].values.tolist()
    assert json.loads(adata.uns["import"])["n_cells"] == sum(SIZES.values())


def test_a_sheet_names_samples_and_their_metadata(folder, tmp_path):
    sheet = pd.DataFrame(
        {
            "file_name": ["s3.fcs", "s1.fcs"],
            "sample_id": ["three", "one"],
            "day": ["3", "1"],
            "arm": ["a", "b"],
        }
    )
    report = ss.ingest(folder, tmp_path / "s.zarr", meta=sheet)
    cells = ss.open_cells(tmp_path / "s.zarr")
    assert cells["sample"].values.tolist() == ["three", "one"]
    assert cells["day"].values.tolist() == [3, 1]
    assert len(report.left_out) == 2


def test_a_sheet_cannot_shadow_what_a_study_knows_of_its_markers(folder, tmp_path):
    sheet = pd.DataFrame(
        {
            "file": ["s1.fcs", "s3.fcs"],
            "feature": ["x", "y"],
            "channel": [1, 2],
            "kind": ["a", "b"],
            "marker_class": ["p", "q"],
        }
    )
    panel = pd.DataFrame({"fcs_colname": ["FITC-A"], "antigen": ["CD3"], "marker_class": ["type"]})
    report = ss.ingest(folder, tmp_path / "s.zarr", meta=sheet, panel=panel, scaling="z")
    assert sum("the study has its own" in str(problem) for problem in report.problems) == 4
    cells = ss.open_cells(tmp_path / "s.zarr", markers="all")
    ss.write_cells(cells, tmp_path / "copy.zarr")
    for path in ("s.zarr", "copy.zarr"):
        opened = ss.open_cells(tmp_path / path)
        assert opened["marker"].values.tolist() == ["CD3", "CD4", "CD8"]  # Time and scatter are no features
        assert opened["channel"].values.tolist() == ["FITC-A", "PE-A", "APC-A"]
        assert opened["marker_class"].values.tolist() == ["type", "", ""]
        assert opened["feature_"].values.tolist() == ["x", "y"]
        assert opened["kind_"].dims == ("sample",)


def test_files_of_one_sample_follow_each_other(folder, tmp_path):
    sheet = pd.DataFrame({"file_name": ["s3.fcs", "s10.fcs", "s1.fcs"], "sample_id": ["a", "b", "a"]})
    ss.ingest(folder, tmp_path / "s.zarr", meta=sheet, transform="none", chunk_cells=32)
    cells = ss.open_cells(tmp_path / "s.zarr", markers=["CD3"])
    assert cells["sample"].values.tolist() == ["a", "b"]
    np.testing.assert_array_equal(cells["X"].values[:, 0], expected(["s3", "s1", "s10"])[:, 2])


def test_compensation_by_the_files_own_matrices(tmp_path):
    raw, text = events("x", 300), "2,FITC-A,PE-A,1,0.2,0.05,1"
    content = fcs_bytes(raw, CHANNELS, MARKERS, keywords={"$SPILLOVER": text})
    (tmp_path / "x.fcs").write_bytes(content)
    report = ss.ingest(tmp_path / "x.fcs", tmp_path / "s.zarr", transform="none", chunk_cells=100)
    X = ss.open_cells(tmp_path / "s.zarr")["X"].values
    wanted = raw[:, 2:].astype(float)
    wanted[:, :2] = wanted[:, :2] @ np.linalg.inv([[1, 0.2], [0.05, 1]])
    np.testing.assert_allclose(X, wanted, rtol=1e-6)
    assert report.compensation == "spillover"
    stored = json.loads(str(ss.cells.manifest.open_study(str(tmp_path / "s.zarr"))[0]["uns/spillover"][()]))
    (matrix,) = (Spillover.from_json(value) for value in stored.values())
    assert matrix.matrix.tolist() == [[1, 0.2], [0.05, 1]]


@pytest.mark.parametrize("transform", ["none", "arcsinh:150", "logicle"])
@pytest.mark.parametrize("scaling", [None, "robust"])
def test_a_sample_comes_back_as_its_files_had_it(tmp_path, transform, scaling):
    swapped = ["Time", "FSC-A", "PE-A", "FITC-A", "APC-A"]  # CD3 on PE in the second file
    for i, (channels, text) in enumerate(
        ((CHANNELS, "2,FITC-A,PE-A,1,0.2,0.05,1"), (swapped, "2,PE-A,APC-A,1,0.1,0.3,1"))
    ):
        content = fcs_bytes(events(f"x{i}", 90), channels, MARKERS, keywords={"$SPILLOVER": text})
        (tmp_path / f"x{i}.fcs").write_bytes(content)
    sheet = pd.DataFrame({"file_name": ["x1.fcs", "x0.fcs"], "sample_id": ["one", "one"]})
    ss.ingest(tmp_path, tmp_path / "s.zarr", meta=sheet, transform=transform, scaling=scaling, chunk_cells=50)
    more = ss.open_cells(tmp_path / "s.zarr", markers="all").compute()
    more["sample_code"].attrs.pop("categories")
    ss.append_cells(more.assign_coords(sample=["extra"]), tmp_path / "s.zarr")
    with pytest.raises(DataError, match="sample 'extra' was appended"):
        ss.cells.raw_events(tmp_path / "s.zarr", "extra")
    back = ss.cells.raw_events(tmp_path / "s.zarr", "one")
    names = ["Time", "FSC-A", "CD3", "CD4", "CD8"]
    wanted = np.concatenate([events("x1", 90), events("x0", 90)])
    np.testing.assert_allclose(back[names].to_numpy(), wanted, rtol=2e-4, atol=0.5)


def test_a_compensated_file_is_not_compensated_again(tmp_path):
    names = ["Time", "Comp-FITC-A", "Comp-PE-A"]
    raw = events("x", 20)[:, :3]
    content = fcs_bytes(raw, names, keywords={"$SPILLOVER": "2,FITC-A,PE-A,1,0.2,0.05,1"})
    (tmp_path / "x.fcs").write_bytes(content)
    report = ss.ingest(tmp_path / "x.fcs", tmp_path / "s.zarr", transform="none")
    assert "compensated already" in str(report.problems)
    np.testing.assert_array_equal(ss.open_cells(tmp_path / "s.zarr")["X"].values, raw[:, 1:])


@pytest.mark.parametrize("method", ["robust", "z"])
def test_each_sample_is_scaled_by_itself_and_can_be_brought_back(folder, tmp_path, method):
    ss.ingest(folder, tmp_path / "plain.zarr", chunk_cells=50)
    ss.ingest(folder, tmp_path / "s.zarr", scaling=method, chunk_cells=50)
    plain, scaled = ss.open_cells(tmp_path / "plain.zarr"), ss.open_cells(tmp_path / "s.zarr")
    code = scaled["sample_code"].values
    back = scaled["X"].values * scaled["scaling_scale"].values[code] + scaled["scaling_location"].values[code]
    np.testing.assert_allclose(back, plain["X"].values, rtol=1e-4, atol=1e-5)
    first = scaled["X"].values[code == 0]
    same = ss.cells.scale(plain, method)
    np.testing.assert_allclose(scaled["scaling_scale"].values, same["scaling_scale"].values, rtol=1e-9)
    np.testing.assert_allclose(scaled["X"].values, same["X"].values, rtol=1e-5, atol=1e-6)
    if method == "z":
        np.testing.assert_allclose(first.mean(axis=0), 0, atol=1e-5)
    else:
        np.testing.assert_allclose(np.quantile(first, [0.01, 0.99], axis=0), [[0] * 3, [1] * 3], atol=1e-5)


def test_several_data_sets_are_samples_of_their_own_if_split(tmp_path):
    first, second = events("a", 10), events("b", 20)
    content = fcs_bytes(first, CHANNELS, following=fcs_bytes(second, CHANNELS))
    (tmp_path / "x.fcs").write_bytes(content)
    with pytest.raises(DataError, match=r"x\.fcs: holds 2 data sets of 10, 20 events"):
        ss.ingest(tmp_path / "x.fcs", tmp_path / "s.zarr")
    ss.ingest(tmp_path / "x.fcs", tmp_path / "s.zarr", data_sets="split", transform="none")
    cells = ss.open_cells(tmp_path / "s.zarr", markers="all")
    np.testing.assert_array_equal(cells["X"].values, np.concatenate([first, second]))
    assert np.bincount(cells["sample_code"].values).tolist() == [10, 20]
    assert cells["sample"].values.tolist() == ["x", "x_2"]
    sheet = pd.DataFrame({"file_name": ["x.fcs"], "sample_id": ["one"], "day": ["3"]})
    ss.ingest(tmp_path / "x.fcs", tmp_path / "m.zarr", data_sets="split", meta=sheet)
    cells = ss.open_cells(tmp_path / "m.zarr")
    assert cells["sample"].values.tolist() == ["one", "one_2"]
    assert cells["day"].values.tolist() == [3, 3]


class TestFormats:
    """The same cells from CSV, parquet, h5ad and AnnData Zarr."""

    names = ("CD3", "CD4", "CD8")

    def frame(self) -> pd.DataFrame:
        frame = pd.DataFrame(events("t", 40_000)[:, :3], columns=list(self.names))
        frame["sample"] = np.repeat(["b", "a"], [25_000, 15_000])
        return frame

    def check(self, path: Path, tmp_path: Path, **options) -> None:
        frame = self.frame()
        ss.ingest(path, tmp_path / "s.zarr", transform="none", chunk_cells=9_000, **options)
        cells = ss.open_cells(tmp_path / "s.zarr")
        wanted = pd.concat([frame[frame["sample"] == "a"], frame[frame["sample"] == "b"]])
        np.testing.assert_allclose(cells["X"].values, wanted[list(self.names)].to_numpy(), rtol=1e-6)
        assert cells["sample"].values.tolist() == ["a", "b"]

    @pytest.mark.parametrize(("delimiter", "decimal"), [(",", "."), (";", ","), ("\t", ".")])
    def test_csv(self, tmp_path, delimiter, decimal):
        self.frame().to_csv(tmp_path / "t.csv", sep=delimiter, decimal=decimal, index=False)
        self.check(tmp_path / "t.csv", tmp_path, sample="sample")

    def test_parquet(self, tmp_path):
        self.frame().to_parquet(tmp_path / "t.parquet", row_group_size=7_000)
        self.check(tmp_path / "t.parquet", tmp_path, sample="sample")

    @pytest.mark.parametrize("sparse", [False, True])
    @pytest.mark.parametrize("suffix", [".h5ad", ".zarr"])
    @pytest.mark.filterwarnings("ignore:Writing zarr v2 data")
    def test_anndata_with_its_samples_in_any_order(self, tmp_path, suffix, sparse):
        from scipy.sparse import csr_matrix

        frame = self.frame()
        order = np.random.default_rng(0).permutation(len(frame))
        order = order[np.argsort(order % 1000, kind="stable")]
        frame = frame.iloc[order]
        values = frame[list(self.names)].to_numpy()
        obs = pd.DataFrame({"sample": frame["sample"].to_numpy(), "arm": frame["sample"].to_numpy() == "a"})
        obs["cell"] = np.arange(len(obs))
        obs.index = obs.index.astype(str)
        var = pd.DataFrame(index=list(self.names))
        adata = anndata.AnnData(csr_matrix(values) if sparse else values, obs, var)
        path = tmp_path / f"t{suffix}"
        adata.write_h5ad(path) if suffix == ".h5ad" else adata.write_zarr(path)
        ss.ingest(path, tmp_path / "s.zarr", transform="none", chunk_cells=9_000)
        cells = ss.open_cells(tmp_path / "s.zarr")
        wanted = np.concatenate([values[obs["sample"] == name] for name in ("a", "b")])
        np.testing.assert_array_equal(cells["X"].values, wanted)
        assert cells["arm"].values.tolist() == [True, False]
        assert "cell" not in cells.coords

    def test_a_sheet_tells_more_of_files_with_samples_of_their_own(self, tmp_path):
        (tmp_path / "x.csv").write_text("CD3,who\n1,a\n2,b\n")
        (tmp_path / "y.csv").write_text("CD3,who\n3,c\n")
        (tmp_path / "z.csv").write_text("CD3,who\n4,b\n5,d\n")
        sheet = pd.DataFrame(
            {"file_name": ["z.csv", "y.csv", "x.csv"], "sample_id": ["z", "third", "x"], "day": [3, 2, 1]}
        )
        report = ss.ingest(tmp_path, tmp_path / "s.zarr", meta=sheet, sample="who")
        cells = ss.open_cells(tmp_path / "s.zarr")
        assert cells["sample"].values.tolist() == ["b", "d", "third", "a"]
        assert cells["X"].values.ravel().tolist() == [4, 2, 5, 3, 1]
        assert cells["day"].values.tolist() == [3, 3, 2, 1]
        assert sum("they become one sample" in str(problem) for problem in report.problems) == 1

    def test_a_sheet_without_files_tells_of_the_samples_in_a_table(self, tmp_path):
        (tmp_path / "x.csv").write_text("CD3,who\n1,a\n2,b\n")
        (tmp_path / "y.csv").write_text("CD3,who\n3,c\n4,b\n5,Gro\u0308ße\n")
        sheet = pd.DataFrame(
            {"sample_id": ["b", "Gr\u00f6ße", "a"], "gated": [True, None, False], "day": [1, 2, 3]}
        )
        report = ss.ingest(tmp_path, tmp_path / "s.zarr", meta=sheet, sample="who")
        cells = ss.open_cells(tmp_path / "s.zarr")
        assert cells["sample"].values.tolist() == ["a", "b", "Gro\u0308ße"]
        assert cells["day"].values.tolist() == [3, 1, 2]
        assert cells["X"].values.ravel().tolist() == [1, 2, 4, 5]
        (problem,) = [p for p in report.problems if "no row" in p.text]
        assert str(problem).startswith(f"{tmp_path}/y.csv: sample c has no row in table and is left out; add")

    def test_rows_of_samples_that_no_file_has_are_errors(self, tmp_path):
        (tmp_path / "t.csv").write_text("CD3,who\n1,Pat1\n2,Pat2\n")
        sheet = pd.DataFrame({"sample_id": ["Pat_1", "Pat2", "Pat7"], "day": [1, 2, 3]})
        plan = ss.cells.check(tmp_path / "t.csv", meta=sheet, sample="who")
        assert plan.counts == {"Pat2": 1}
        assert [problem.text for problem in plan.errors] == [
            "no file has the sample 'Pat_1'; did you mean 'Pat1'?",
            "no file has the sample 'Pat7'; known: Pat1",
        ]

    def test_a_sheet_without_files_needs_files_that_tell_their_samples(self, tmp_path):
        (tmp_path / "t.csv").write_text("CD3,who\n1,a\n2,b\n")
        sheet = pd.DataFrame({"sample_id": ["a", "b"], "day": [1, 2]})
        with pytest.raises(DataError, match=r"call it file_name; or, .* sample=\.\.\. \(--sample\)"):
            ss.cells.check(tmp_path / "t.csv", meta=sheet)
        named = sheet.assign(file_name="t.csv")
        with pytest.raises(DataError, match=r"delete one; or, .* take out the column file_name"):
            ss.cells.check(tmp_path / "t.csv", meta=named, sample="who")

    def test_a_bad_number_is_named_by_line_and_column(self, tmp_path):
        rows = [f"{i},{i}" for i in range(300)]
        rows[250] = "250,n.d."
        (tmp_path / "t.csv").write_text("\n".join(["CD3,CD4", *rows]))
        with pytest.raises(DataError, match=r"t\.csv: line 252, column 'CD4': 'n\.d\.' is no number"):
            ss.ingest(tmp_path / "t.csv", tmp_path / "s.zarr")

    def test_rows_of_a_sample_that_are_apart_are_refused(self, tmp_path):
        (tmp_path / "t.csv").write_text("CD3,file\n1,a\n2,b\n3,a\n")
        with pytest.raises(DataError, match="rows of file 'a' do not stand together"):
            ss.ingest(tmp_path / "t.csv", tmp_path / "s.zarr", sample="file")


class TestResuming:
    def killed(self, folder, store, after: int) -> None:
        """An import that stops after some chunks."""
        from scaleshift.cells.intake import assembly

        plan = plan_study(folder, Options())
        written = 0

        def stop(group, manifest):
            nonlocal written
            assembly_commit(group, manifest)
            written += 1
            if written == after:
                raise KeyboardInterrupt

        assembly_commit = assembly.commit
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(assembly, "commit", stop)
            patch.setattr(assembly, "CHUNKS_PER_THREAD", 1)
            with pytest.raises(KeyboardInterrupt):
                assembly.assemble(plan, str(store), labels=None, chunk_cells=16, resume=False)

    @pytest.mark.parametrize("after", [1, 2, 4])
    def test_goes_on_where_it_stopped(self, folder, tmp_path, after):
        whole, parts = tmp_path / "whole.zarr", tmp_path / "parts.zarr"
        ss.ingest(folder, whole, chunk_cells=16)
        self.killed(folder, parts, after)
        seen = read_manifest(parts)
        assert seen.n_cells < sum(SIZES.values())
        report = ss.ingest(folder, parts, chunk_cells=16, resume=True)
        first, second = read_manifest(whole), read_manifest(parts)
        assert second.checksums == first.checksums
        assert second.files == first.files
        assert second.counts == first.counts
        assert report.n_cells == sum(SIZES.values())
        np.testing.assert_array_equal(
            ss.open_cells(whole, markers="all")["X"].values, ss.open_cells(parts, markers="all")["X"].values
        )

    def test_what_was_half_written_is_swept_away(self, folder, tmp_path):
        store = tmp_path / "s.zarr"
        self.killed(folder, store, 1)
        half = store / "X" / "c" / f"5.{'0' * 32}.partial"  # as Zarr names it until a chunk is written
        half.parent.mkdir(parents=True, exist_ok=True)
        half.write_bytes(b"half a chunk")
        ss.ingest(folder, store, chunk_cells=16, resume=True)
        assert not list(store.rglob("*.partial"))

    def test_labels_and_rows_of_committed_samples_stay(self, folder, tmp_path):
        store = tmp_path / "s.zarr"
        self.killed(folder, store, 5)
        before = read_manifest(store)
        assert 0 < before.n_cells < sum(SIZES.values())
        labels = pd.DataFrame({"sample": "s1", "event": range(SIZES["s1"]), "label": "T"})
        ss.label_cells(store, labels)
        with pytest.warns(UserWarning, match="holds 3 of 4 samples"):
            x = ss.open_cells(store, markers="all")["X"].values
        ss.ingest(folder, store, chunk_cells=16, resume=True)
        cells = ss.open_cells(store, markers="all")
        assert np.bincount(cells["label_code"].values + 1).tolist() == [sum(SIZES.values()) - 70, 70]
        np.testing.assert_array_equal(cells["X"].values[: len(x)], x)

    def test_an_unfinished_study_says_so_and_takes_no_other_samples(self, folder, tmp_path):
        store = tmp_path / "s.zarr"
        self.killed(folder, store, 5)
        with pytest.warns(
            UserWarning, match=r"s\.zarr holds 3 of 4 samples: its import is under way, or was"
        ):
            more = ss.open_cells(store, samples=["s1"], markers="all").compute()
        more["sample_code"].attrs.pop("categories")
        with pytest.raises(DataError, match="not finished: go on with it first"):
            ss.append_cells(more.assign_coords(sample=["extra"]), store)
        ss.ingest(folder, store, chunk_cells=16, resume=True)
        ss.append_cells(more.assign_coords(sample=["extra"]), store)

    def test_files_that_changed_since_are_another_import(self, folder, tmp_path):
        self.killed(folder, tmp_path / "s.zarr", 1)
        changed = fcs_bytes(events("s10", 130) + 1, np.roll(CHANNELS, -3), np.roll(MARKERS, -3))
        assert len(changed) == (folder / "s10.fcs").stat().st_size  # the same header, other events
        (folder / "s10.fcs").write_bytes(changed)
        with pytest.raises(DataError, match="import of other files"):
            ss.ingest(folder, tmp_path / "s.zarr", chunk_cells=16, resume=True)

    def test_other_features_are_another_import(self, folder, tmp_path):
        self.killed(folder, tmp_path / "s.zarr", 1)
        with pytest.raises(DataError, match="done otherwise"):
            ss.ingest(folder, tmp_path / "s.zarr", chunk_cells=16, markers=["CD3"], resume=True)

    def test_another_import_is_refused(self, folder, tmp_path):
        self.killed(folder, tmp_path / "s.zarr", 1)
        with pytest.raises(DataError, match="an import of other files, or of these done otherwise"):
            ss.ingest(folder, tmp_path / "s.zarr", chunk_cells=16, transform="none", resume=True)

    def test_a_store_that_exists_is_not_touched(self, folder, tmp_path):
        ss.ingest(folder, tmp_path / "s.zarr")
        with pytest.raises(DataError, match="exists already"):
            ss.ingest(folder, tmp_path / "s.zarr")

    def test_a_finished_import_has_nothing_left_to_do(self, folder, tmp_path):
        ss.ingest(folder, tmp_path / "s.zarr", chunk_cells=16)
        before = {path: path.stat().st_mtime_ns for path in (tmp_path / "s.zarr" / "X").rglob("*")}
        ss.ingest(folder, tmp_path / "s.zarr", chunk_cells=16, resume=True)
        assert {path: path.stat().st_mtime_ns for path in (tmp_path / "s.zarr" / "X").rglob("*")} == before


class TestProblems:
    def test_all_are_said_before_anything_is_written(self, folder, tmp_path):
        (folder / "broken.fcs").write_bytes(b"PK nothing")
        (folder / "short.fcs").write_bytes(fcs_bytes(events("s", 100), CHANNELS, MARKERS)[:-500])
        (folder / "four.fcs").write_bytes(fcs_bytes(events("f", 10)[:, :4], CHANNELS[:4], MARKERS[:4]))
        with pytest.raises(DataError) as caught:
            ss.ingest(folder, tmp_path / "s.zarr")
        message = str(caught.value)
        assert message.startswith("3 problems to mend:")
        for name in ("broken.fcs", "short.fcs", "four.fcs"):
            assert name in message
        assert "CD8" in message
        assert not (tmp_path / "s.zarr").exists()
        report = ss.ingest(folder, tmp_path / "s.zarr", errors="skip")
        assert report.samples == ("s1", "s2", "s3", "s10")
        assert len(report.left_out) == 3

    def test_the_row_of_an_unreadable_file_is_given_to_no_other(self, folder, tmp_path):
        for day, cut in (("day1", -10), ("day2", None)):
            (folder / day).mkdir()
            (folder / day / "x.fcs").write_bytes(fcs_bytes(events(day, 9), CHANNELS, MARKERS)[:cut])
        sheet = pd.DataFrame({"file_name": ["day1/x.fcs", "s1.fcs"], "sample_id": ["first", "other"]})
        paths = [*folder.glob("*.fcs"), *folder.glob("*/x.fcs")]
        report = ss.ingest(paths, tmp_path / "s.zarr", meta=sheet, errors="skip")
        assert report.samples == ("other",)

    def test_files_that_the_sheet_leaves_out_are_in_nobodys_way(self, folder, tmp_path):
        (folder / "broken.fcs").write_bytes(b"PK nothing")
        (folder / "other.fcs").write_bytes(fcs_bytes(events("o", 9)[:, :2], ["Time", "V450-A"], ["", "CD99"]))
        sheet = pd.DataFrame({"file_name": ["s1.fcs", "s3.fcs"]})
        report = ss.ingest(folder, tmp_path / "s.zarr", meta=sheet)
        assert report.samples == ("s1", "s3")
        assert report.features == ("CD3", "CD4", "CD8")
        assert len(report.left_out) == 4

    def test_tables_stay_as_they_are(self, tmp_path):
        (tmp_path / "t.csv").write_text("FITC-A,PE-A\n1,2\n3,4\n")
        report = ss.ingest(tmp_path / "t.csv", tmp_path / "s.zarr")
        assert ss.open_cells(tmp_path / "s.zarr")["X"].values.tolist() == [[1, 2], [3, 4]]
        assert "stay as they are" in report.said[0]

    def test_errors_of_the_study_cannot_be_skipped(self, folder, tmp_path):
        (tmp_path / "t.fcs").write_bytes(fcs_bytes(events("t", 9)[:, :2], CHANNELS[:2]))
        with pytest.raises(DataError, match="no marker to learn from"):
            ss.ingest(tmp_path / "t.fcs", tmp_path / "s.zarr", errors="skip")

    def test_a_matrix_that_cannot_be_inverted_is_told_before_with_its_file(self, tmp_path):
        singular = {"$SPILLOVER": "2,FITC-A,PE-A,1,1,1,1"}
        content = fcs_bytes(events("x", 9), CHANNELS, MARKERS, keywords=singular)
        (tmp_path / "x.fcs").write_bytes(content)
        with pytest.raises(DataError, match=r"x\.fcs.*cannot be inverted"):
            ss.ingest(tmp_path / "x.fcs", tmp_path / "s.zarr")
        assert not (tmp_path / "s.zarr").exists()

    def test_features_are_transformed_whatever_they_are_called(self, tmp_path):
        channels = ["FSC-A", "FITC-A", "APC-Cy7-A"]
        content = fcs_bytes(events("x", 50)[:, :3], channels, ["", "CD3", "Live/Dead"])
        (tmp_path / "x.fcs").write_bytes(content)
        chosen = ["CD3", "Live/Dead", "FSC-A"]
        report = ss.ingest(tmp_path / "x.fcs", tmp_path / "s.zarr", markers=chosen)
        names = {name: done["name"] for name, done in report.transform["markers"].items()}
        assert names == {"FSC-A": "none", "CD3": "arcsinh", "Live/Dead": "arcsinh"}
        (warning,) = (p for p in report.problems if p.level == "warning")
        assert "FSC-A: features that are not transformed" in str(warning)

    def test_markers_that_all_files_have(self, folder, tmp_path):
        (folder / "four.fcs").write_bytes(fcs_bytes(events("f", 10)[:, :4], CHANNELS[:4], MARKERS[:4]))
        report = ss.ingest(folder, tmp_path / "s.zarr", markers="common")
        assert report.features == ("CD3", "CD4")
        assert "four" in report.samples

    def test_invalid_values_are_counted_by_file_and_marker(self, folder, tmp_path):
        values = events("n", 50)
        values[3, 2], values[7, 2], values[5, 4] = np.nan, np.inf, -np.inf
        (folder / "n.fcs").write_bytes(fcs_bytes(values, CHANNELS, MARKERS))
        report = ss.ingest(folder, tmp_path / "s.zarr", chunk_cells=32)
        (entry,) = (file for file in report.files if file["sample"] == "n")
        assert entry["invalid"] == {"CD3": 2, "CD8": 1}

    @pytest.mark.parametrize(
        "option", [{"scaling": "x"}, {"errors": "ignore"}, {"duplicates": "no"}, {"data_sets": "all"}]
    )
    def test_unknown_words_are_refused(self, folder, tmp_path, option):
        with pytest.raises(DataError, match="expected"):
            ss.ingest(folder, tmp_path / "s.zarr", **option)

    def test_files_in_folders_by_a_pattern(self, folder, tmp_path):
        plan = ss.check(str(tmp_path / "**" / "*.fcs"))
        assert plan.counts == SIZES

    def test_nothing_to_read(self, tmp_path):
        with pytest.raises(DataError, match="holds no FCS"):
            ss.ingest(tmp_path, tmp_path / "s.zarr")
        with pytest.raises(DataError, match=r"missing\.fcs: no such file"):
            ss.ingest(tmp_path / "missing.fcs", tmp_path / "s.zarr")


def test_a_file_whose_name_is_no_text_is_told_and_left_out(folder, tmp_path):
    import os

    name = os.fsencode(folder) + b"/\xff.fcs"
    with open(name, "wb") as file:
        file.write(fcs_bytes(events("s1", 9), CHANNELS, MARKERS))
    with pytest.raises(DataError, match=r"udcff\.fcs': has a name that is no valid UTF-8; rename it"):
        ss.ingest(folder, tmp_path / "s.zarr")
    report = ss.ingest(folder, tmp_path / "s.zarr", errors="skip")
    assert report.samples == ("s1", "s2", "s3", "s10")
    assert report.to_json().encode()
