"""A table labels the events that it names, whatever its order, encoding and kind."""

import gzip
import os
import warnings

import anndata
import numpy as np
import pandas as pd
import pytest
from label_studies import COUNTS, EVENT_IN_FILE, EVENTS, FILE_OF, RNG, SAMPLES, N, X, labels_of, make_study

from scaleshift.cells import as_cells, label_cells, open_cells, write_cells
from scaleshift.cells.labels import tables as label_tables
from scaleshift.errors import DataError

LABELS = RNG.choice(["T cells", "B cells", "unknown", ""], N)
EXPECTED = [None if label in ("unknown", "") else label for label in LABELS]
TABLE = pd.DataFrame({"file": FILE_OF, "event": EVENT_IN_FILE, "label": LABELS})


@pytest.fixture
def path(tmp_path):
    return make_study(tmp_path / "study.zarr")


def write(table, path):
    if path.suffix == ".parquet":
        table.to_parquet(path)
    else:
        table.to_csv(path, index=False, sep="\t" if path.suffix == ".tsv" else ",")
    return path


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.parquet", "t.csv.gz"])
@pytest.mark.parametrize("rows", [7, 1_000_000])
def test_rows_in_any_order_and_pieces_label_their_events(path, tmp_path, monkeypatch, name, rows):
    monkeypatch.setattr(label_tables, "ROWS", rows)
    report = label_cells(path, write(TABLE.sample(frac=1, random_state=3), tmp_path / name))
    assert labels_of(path) == EXPECTED
    assert report["n_labelled"] == sum(label is not None for label in EXPECTED)


@pytest.mark.parametrize("form", ["/data/run 1/{}.fcs", "{}.fcs", "{}", "elsewhere/{}.fcs"])
def test_files_go_by_path_base_name_or_bare_name(path, form):
    names = [form.format(name.removesuffix(".fcs")) for name in FILE_OF]
    label_cells(path, TABLE[FILE_OF != "c.fcs"].assign(file=np.array(names)[FILE_OF != "c.fcs"]))
    assert labels_of(path)[:65] == EXPECTED[:65]


@pytest.mark.parametrize("form", ["day{}/a.fcs", "D:\\x\\day{}\\a", "/data/day{}/a.fcs"])
def test_files_of_one_name_go_by_their_folders(tmp_path, form):
    files = [{"path": f"/data/day{i}/a.fcs", "sample": s, "n_events": 2} for i, s in enumerate("vw", 1)]
    path = make_study(tmp_path / "study.zarr", x=X[:4], sample=list("vvww"), files=files)
    names = [form.format(2), form.format(1)]
    label_cells(path, pd.DataFrame({"file": names, "event": [1, 0], "label": ["T", "B"]}))
    assert labels_of(path) == ["B", None, None, "T"]
    with pytest.raises(DataError, match=r"2 files go by the name 'a.fcs' \(/data/day1/a.fcs, /data/day2/a"):
        label_cells(path, pd.DataFrame({"file": ["a.fcs"], "event": [0], "label": ["T"]}))


def test_the_sample_column_serves_where_there_is_no_file(path):
    label_cells(path, pd.DataFrame({"Sample": SAMPLES, "EVENT": EVENTS, "gate": LABELS}), column="gate")
    assert labels_of(path) == EXPECTED


def test_a_study_that_knows_no_files_takes_file_names_for_samples(tmp_path):
    path = make_study(tmp_path / "study.zarr", files=())
    names = [f"{sample}.fcs" for sample in SAMPLES]
    label_cells(path, pd.DataFrame({"file": names, "event": EVENTS, "label": LABELS}))
    assert labels_of(path) == EXPECTED


def test_rows_without_event_numbers_are_the_events_in_order(path, monkeypatch):
    monkeypatch.setattr(label_tables, "ROWS", 9)
    by_sample = pd.DataFrame({"sample": SAMPLES, "label": LABELS})
    shuffled_samples = by_sample.iloc[np.argsort(EVENTS, kind="stable")]  # S1 S2 S10 S1 S2 S10 ...
    label_cells(path, shuffled_samples)
    assert labels_of(path) == EXPECTED


@pytest.mark.parametrize("change", [lambda t: t[:-1], lambda t: pd.concat([t, t[-1:]])])
def test_rows_without_event_numbers_must_be_one_an_event(path, change):
    table = pd.DataFrame({"sample": SAMPLES, "label": LABELS})
    with pytest.raises(
        DataError, match=r"sample 'S10' has (54|56) rows and 55 events: without a column 'event'"
    ):
        label_cells(path, change(table))


def test_a_study_of_one_sample_needs_no_names(tmp_path):
    path = make_study(tmp_path / "study.zarr", sample=["only"] * N, files=())
    label_cells(path, pd.DataFrame({"label": LABELS}))
    assert labels_of(path) == EXPECTED
    label_cells(path, pd.DataFrame({"event": [5], "label": ["T"]}), first_event=0)
    assert labels_of(path) == [None] * 5 + ["T"] + [None] * (N - 6)


def test_several_samples_need_names(path):
    with pytest.raises(DataError, match=r"has no column 'file' or 'sample', and .*study.zarr has 3 samples"):
        label_cells(path, pd.DataFrame({"label": LABELS}))


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["1", "2", "1.0", ""], [1, 2, 1, None]),
        (["1.0", "10.0", "2.0", "NA"], [1, 10, 2, None]),
        (["3", "T", "3", "T"], ["3", "T", "3", "T"]),
        (["007", "7", "8", "8"], ["007", "7", "8", "8"]),
        (["0.5", "1e3", "0.5", "NaN"], [0.5, 1000.0, 0.5, None]),
        (["TRUE", "FALSE", "TRUE", "FALSE"], [True, False, True, False]),
        (["0", "0.0", "5", "Ungated"], [None, None, 5, None]),
        ([" a", "a ", "UNKNOWN", "Unlabeled"], ["a", "a", None, None]),
    ],
)
def test_words_of_a_csv_are_numbers_where_all_of_them_are(tmp_path, words, expected):
    path = make_study(tmp_path / "study.zarr", x=X[:4], sample=["s"] * 4, files=())
    pd.DataFrame({"event": range(4), "label": words}).to_csv(tmp_path / "t.csv", index=False)
    label_cells(path, tmp_path / "t.csv")
    assert labels_of(path) == expected
    assert [type(v) for v in labels_of(path)] == [type(v) for v in expected]


@pytest.mark.parametrize(
    "labels", [[7, 2, 7, 10], [True, False, True, False], ["7", "10", "2", "7"], [0.5, 2, 1, 1]]
)
@pytest.mark.parametrize("kind", ["frame", "parquet"])
def test_typed_columns_keep_their_type_and_labels_their_order(tmp_path, labels, kind):
    path = make_study(tmp_path / "study.zarr", x=X[:4], sample=["s"] * 4, files=())
    table = pd.DataFrame({"event": [3, 2, 1, 0], "label": labels})
    label_cells(path, table if kind == "frame" else write(table, tmp_path / "t.parquet"))
    assert labels_of(path) == labels[::-1]
    as_they_are = open_cells(path)["label"].values.tolist()
    assert as_they_are == as_cells(X[:4], label=labels)["label"].values.tolist()


def test_missing_values_of_typed_columns_are_unlabelled(tmp_path):
    path = make_study(tmp_path / "study.zarr", x=X[:4], sample=["s"] * 4, files=())
    table = pd.DataFrame({"event": range(4), "label": pd.array([3, None, 0, 4], "Int64")})
    label_cells(path, write(table, tmp_path / "t.parquet"))
    assert labels_of(path) == [3, None, None, 4]
    assert label_cells(path, table, unlabelled=["4"])["unlabelled_words"] == {"4": 1}
    assert labels_of(path) == [3, None, 0, None]


@pytest.mark.parametrize("encoding", ["latin-1", "utf-8", "utf-8-sig"])
def test_words_are_read_in_utf8_and_latin1(path, tmp_path, encoding):
    table = TABLE.rename(columns={"label": "Phänotyp"}).assign(Phänotyp=np.where(LABELS == "", "", "Größe µ"))
    table.to_csv(tmp_path / "t.csv", index=False, encoding=encoding, sep=";")
    label_cells(path, tmp_path / "t.csv", column="Phänotyp")
    assert labels_of(path) == [None if label == "" else "Größe µ" for label in LABELS]


def test_a_table_that_r_wrote_is_read(path, tmp_path):
    TABLE.assign(label=TABLE["label"].replace("", "NA")).to_csv(tmp_path / "t.csv", quoting=2)
    label_cells(path, tmp_path / "t.csv")
    assert labels_of(path) == EXPECTED


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1", "utf-16"])
@pytest.mark.parametrize(
    "head",
    ["sep=;\nfile;event;label\n", "\nfile;event;label\n", '"file";"event";"label"\n', "file;event;label;;\n"],
)
def test_tables_of_any_make_label_the_same_events(path, tmp_path, head, encoding):
    (tmp_path / "t.csv").write_bytes((head + "a1;2;Größe, T\na1;3;B\n").encode(encoding))
    label_cells(path, tmp_path / "t.csv", first_event=0)
    assert labels_of(path)[:4] == [None, None, "Größe, T", "B"]


def test_row_names_under_no_name_shift_no_column(path, tmp_path):
    (tmp_path / "t.csv").write_text('"event","file","label"\n"1",2,"a1","T"\n"2",3,"a1","B"\n')
    label_cells(path, tmp_path / "t.csv", first_event=0)
    assert labels_of(path)[:4] == [None, None, "T", "B"]


def test_unlabelled_words_are_told(path):
    report = label_cells(path, TABLE, unlabelled=["T CELLS"])
    assert report["unlabelled_words"]["T cells"] == (LABELS == "T cells").sum()
    assert set(labels_of(path)) == {"B cells", "unknown", None}
    assert any("'T cells'" in remark["text"] for remark in report["remarks"])


def test_events_may_count_from_one(path):
    report = label_cells(path, TABLE.assign(event=TABLE["event"] + 1), first_event=1)
    assert labels_of(path) == EXPECTED
    assert report["remarks"][0]["text"].startswith("taken as unlabelled")


def test_events_that_seem_to_count_from_one_are_told(path):
    from_one = TABLE.assign(event=TABLE["event"] + 1)
    before = labels_of(path)
    with pytest.raises(
        DataError, match=r"event 30 of file 'a1.fcs' has a label, .* 0 to 29; .*--first-event 1"
    ):
        label_cells(path, from_one, first_event=0)
    assert labels_of(path) == before
    with pytest.raises(DataError, match=r"event 0 of file .* numbered 1 to .*--first-event 0"):
        label_cells(path, TABLE, first_event=1)


@pytest.mark.parametrize("event", [-1, 31, 10**12])
def test_an_event_that_is_not_there_is_named(path, event):
    with pytest.raises(
        DataError,
        match=rf"t.csv: event {event} of file 'a1.fcs' .* 30 events, numbered 0 to 29 or 1 to 30: are",
    ):
        label_cells(
            path,
            write(pd.DataFrame({"file": ["a1"], "event": [event], "label": ["T"]}), path.parent / "t.csv"),
        )


@pytest.mark.parametrize("event", ["x", "", "1.5", "inf"])
def test_an_event_that_is_no_number_is_named(path, tmp_path, event):
    (tmp_path / "t.csv").write_text(f"file,event,label\na1,2,T\na1,{event},B\n")
    with pytest.raises(DataError, match=r"t.csv: row 2 has .* in the column 'event', expected the number"):
        label_cells(path, tmp_path / "t.csv")


@pytest.mark.parametrize("rows", [1, 1_000_000])
def test_an_event_with_two_labels_is_refused_and_one_said_twice_is_not(path, monkeypatch, rows):
    monkeypatch.setattr(label_tables, "ROWS", rows)
    twice = pd.DataFrame({"file": ["a2", "a1", "a2.fcs"], "event": [4, 4, 4], "label": ["T", "B", "T"]})
    assert label_cells(path, twice, first_event=0)["n_labelled"] == 2
    with pytest.raises(
        DataError, match=r"the table: event 4 of file 'a2.fcs' has two labels, '[TB]' and '[TB]'"
    ):
        label_cells(path, twice.assign(label=["T", "B", "B"]), first_event=0)


@pytest.mark.parametrize(
    ("table", "options", "message"),
    [
        (
            {"file": ["a3"], "event": [0], "label": ["T"]},
            {},
            r"file 'a3' is not in .*study.zarr; known: a1.fcs",
        ),
        ({"file": ["B.FCS"], "event": [0], "label": ["T"]}, {}, r"file 'B.FCS' .*; did you mean 'b.fcs'"),
        ({"sample": ["S3"], "event": [0], "label": ["T"]}, {}, r"sample 'S3' is not in .*; known: S1, S2"),
        (
            {"file": ["a1"], "event": [0], "labels": ["T"]},
            {},
            r"no column 'label'; did you mean 'labels'.*--column",
        ),
        ({"file": ["a1"], "event": [0], "label": ["T"]}, {"column": "gate"}, "no column 'gate'; known: file"),
        ({"file": ["a1", None], "event": [0, 1], "label": ["T", "B"]}, {}, "row 2 names no file"),
        ({"file": ["a1", "a1"], "event": [0, 1], "label": ["T", 2]}, {}, "labels mix int, str"),
        (
            {"file": ["a1"], "event": [0], "label": ["T"]},
            {"first_event": 2},
            "first_event is 2, expected 0 or 1",
        ),
        (
            {"file": ["a1"], "event": [0], "label": ["T"]},
            {"fcs": "x"},
            "fcs= goes with a FlowJo workspace, and",
        ),
        ({"file": ["a1"], "event": [0], "label": ["T"]}, {"unlabelled": "x"}, "unlabelled='x' is one word"),
    ],
)
def test_what_does_not_fit_is_named_and_changes_nothing(path, table, options, message):
    label_cells(path, TABLE)
    with pytest.raises(DataError, match=message):
        label_cells(path, pd.DataFrame(table), **options)
    assert labels_of(path) == EXPECTED


def test_two_files_of_one_name_are_told_apart_by_their_paths(tmp_path):
    files = [
        {"path": f"{run}/a.fcs", "sample": f"S{i}", "n_events": n}
        for run, i, n in [("x", 1, 40), ("y", 2, 25)]
    ]
    path = make_study(tmp_path / "study.zarr", files=tuple(files))
    with pytest.raises(DataError, match=r"2 files go by the name 'a' \(x/a.fcs, y/a.fcs\)"):
        label_cells(path, pd.DataFrame({"file": ["a"], "event": [1], "label": ["T"]}))
    label_cells(path, pd.DataFrame({"file": ["y/a.fcs"], "event": [1], "label": ["T"]}), first_event=0)
    assert np.flatnonzero(np.array(labels_of(path)) == "T").tolist() == [41]


def test_files_whose_events_do_not_add_up_are_not_used(tmp_path):
    files = ({"path": "a.fcs", "sample": "S1", "n_events": 39}, {"path": "b.fcs"}, "c.fcs")
    path = make_study(tmp_path / "study.zarr", files=files)
    with pytest.raises(DataError, match="file 'a' is not in"):
        label_cells(path, pd.DataFrame({"file": ["a"], "event": [1], "label": ["T"]}))


@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "t.h5ad", "t.csv.gz"])
@pytest.mark.parametrize(
    "content", [b"", b"\x00\x01\x02 no table\n\xff", gzip.compress(b"a,b\n1,2\n", mtime=0)]
)
def test_what_is_no_table_is_an_error_that_names_it(path, tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=rf"{name}"):
        label_cells(path, tmp_path / name)


def test_a_column_that_is_no_label_is_found_out(path):
    table = pd.DataFrame(
        {"event": np.arange(10_001) % 40, "sample": "S1", "label": [f"id{i}" for i in range(10_001)]}
    )
    with pytest.raises(DataError, match=r"more than 10000 different labels.*right column"):
        label_cells(path, table)


def write_anndata(adata, path, zarr_format):
    """Write as h5ad, or as Zarr of this format; anndata warns about the older one."""
    if not zarr_format:
        adata.write_h5ad(path)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with anndata.settings.override(zarr_write_format=zarr_format):
            adata.write_zarr(path)


@pytest.mark.parametrize(("name", "zarr_format"), [("t.h5ad", None), ("t.zarr", 2), ("t.zarr", 3)])
def test_the_obs_of_anndata_label_the_samples_in_order(path, tmp_path, name, zarr_format):
    samples = pd.Categorical(SAMPLES, [*COUNTS, "S4"])
    obs = pd.DataFrame({"sample": samples, "leiden": LABELS}, index=[f"c{i}" for i in range(N)])
    write_anndata(anndata.AnnData(X, obs), tmp_path / name, zarr_format)
    label_cells(path, tmp_path / name, column="leiden")
    assert labels_of(path) == EXPECTED
    with pytest.raises(DataError, match="has no column 'louvain'; known: sample, leiden"):
        label_cells(path, tmp_path / name, column="louvain")
    write_anndata(anndata.AnnData(X[5:], obs[5:]), tmp_path / f"less{name}", zarr_format)
    with pytest.raises(DataError, match="sample 'S1' has 35 rows and 40 events"):
        label_cells(path, tmp_path / f"less{name}", column="leiden")


def test_categories_that_no_event_has_are_no_labels(path):
    labels = pd.Categorical(["b", "a"], ["a", "b", "c", "0"])
    table = pd.DataFrame({"sample": "S1", "event": [0, 1], "label": labels})
    assert label_cells(path, table)["unlabelled_words"] == {}
    assert open_cells(path)["label"].values.tolist() == ["a", "b"]


def test_clusters_that_count_from_0_are_told(path):
    table = pd.DataFrame({"sample": "S1", "event": [0, 1], "leiden": ["0", "1"]})
    (_, remark, _) = label_cells(path, table, column="leiden")["remarks"]
    assert (remark["level"], remark["text"]) == ("warning", "taken as unlabelled: '0' (1 times)")
    assert "--unlabelled ''" in remark["fix"]
    label_cells(path, table, column="leiden", unlabelled=[])
    assert labels_of(path)[:3] == ["0", "1", None]


def test_one_study_labels_another(path, tmp_path):
    write_cells(as_cells(X, SAMPLES, LABELS, ["a", "b"]), tmp_path / "other.zarr")
    label_cells(path, tmp_path / "other.zarr")
    assert labels_of(path) == EXPECTED


def one_sample(tmp_path):
    return make_study(tmp_path / "study.zarr", sample=["only"] * N, files=())


@pytest.mark.parametrize("blocks", [16, 2**24])
def test_row_names_that_r_wrote_are_no_events(tmp_path, monkeypatch, blocks):
    monkeypatch.setattr(label_tables, "BLOCK", blocks)
    path = one_sample(tmp_path)
    rows = "".join(f"{100 + i}\t{i}\tT\n" for i in range(5))
    (tmp_path / "t.tsv").write_text("event\tlabel\n" + rows)
    label_cells(path, tmp_path / "t.tsv")
    assert labels_of(path)[:7] == ["T"] * 5 + [None] * 2


@pytest.mark.parametrize("blocks", [16, 2**24])
@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("a1.fcs,7,T,x", "line 9 has 4 cells, expected 3"),
        ("a1.fcs,7", "line 9 has 2 cells, expected 3"),
        ("", "line 9 is blank"),
        ("a1.fcs,7,T, cells", "line 9 has 4 cells, .* put text with a comma into quotes"),
    ],
)
def test_a_row_of_another_width_is_named_by_its_line(path, tmp_path, monkeypatch, row, message, blocks):
    monkeypatch.setattr(label_tables, "BLOCK", blocks)
    rows = [f"a1.fcs,{i},T" for i in range(20)]
    rows[7] = row
    (tmp_path / "t.csv").write_text("file,event,label\n" + "\n".join(rows) + "\n\n\n")
    with pytest.raises(DataError, match=rf"t\.csv: {message}"):
        label_cells(path, tmp_path / "t.csv")


@pytest.mark.parametrize("blocks", [16, 40, 2**24])
@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "utf-16"])
def test_labels_with_line_breaks_and_letters_of_any_kind_are_read_in_pieces(
    path, tmp_path, monkeypatch, blocks, encoding
):
    monkeypatch.setattr(label_tables, "BLOCK", blocks)
    rows = "".join(f'a1.fcs,{i},"große\nT, {i % 2}"\n' for i in range(20))
    (tmp_path / "t.csv").write_bytes(("file,event,label\n" + rows + "\n \n").encode(encoding))
    label_cells(path, tmp_path / "t.csv")
    assert labels_of(path)[:20] == ["große\nT, 0", "große\nT, 1"] * 10


@pytest.mark.parametrize("event", ["1e999359190326", "1e4294967297", "-1e99999999999", "x", ""])
def test_an_event_of_no_size_is_told_and_ends_no_process(path, tmp_path, event):
    (tmp_path / "t.csv").write_text(f"file,event,label\na1.fcs,1,12e999359190326\na1.fcs,{event},T\n")
    with pytest.raises(DataError, match=r"t.csv: row 2 has .* in the column 'event', expected the number"):
        label_cells(path, tmp_path / "t.csv")
    table = pd.DataFrame({"file": "a1.fcs", "event": ["1", event], "label": "T"})
    with pytest.raises(DataError, match=r"row 2 has .* in the column 'event', expected the number"):
        label_cells(path, table)


@pytest.mark.parametrize("name", ["t.xlsx", "t.csv"])
def test_a_sheet_of_excel_labels_events_whatever_it_is_called(path, tmp_path, name):
    TABLE.to_excel(tmp_path / "t.xlsx", index=False)
    (tmp_path / "t.xlsx").rename(tmp_path / name)
    label_cells(path, tmp_path / name)
    assert labels_of(path) == EXPECTED


def test_other_files_of_excel_are_refused_by_name(path, tmp_path):
    (tmp_path / "t.xls").write_bytes(b"\xd0\xcf\x11\xe0" + bytes(100))
    with pytest.raises(DataError, match=r"t\.xls: is an old or protected Excel file: save it as"):
        label_cells(path, tmp_path / "t.xls")
    (tmp_path / "t.xlsx").write_bytes(b"PK\x03\x04" + bytes(100))
    with pytest.raises(DataError, match=r"t\.xlsx: cannot be read as XLSX"):
        label_cells(path, tmp_path / "t.xlsx")


@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "t.h5ad", "t.csv.gz"])
def test_a_pipe_is_no_table(path, tmp_path, name):
    os.mkfifo(tmp_path / name)
    with pytest.raises(DataError, match=rf"{name}: is a pipe"):
        label_cells(path, tmp_path / name)


def test_a_column_that_stands_twice_is_refused(path, tmp_path):
    (tmp_path / "t.csv").write_text("file,event,label,label\na1.fcs,0,T,B\n")
    with pytest.raises(DataError, match=r"t\.csv has two columns 'label'"):
        label_cells(path, tmp_path / "t.csv")


def test_names_with_line_breaks_are_told_on_one_line(path, tmp_path):
    (tmp_path / "t.csv").write_text('file,"the\nevent","gate\n1"\na1.fcs,0,T\n')
    with pytest.raises(DataError, match="known: file, the event, gate 1; name the one") as caught:
        label_cells(path, tmp_path / "t.csv")
    assert "\n" not in str(caught.value)


def test_a_packed_table_that_is_cut_is_told(path, tmp_path):
    TABLE.to_csv(tmp_path / "t.csv.gz", index=False)
    content = (tmp_path / "t.csv.gz").read_bytes()
    (tmp_path / "t.csv.gz").write_bytes(content[: len(content) // 2])
    with pytest.raises(DataError, match=r"t\.csv\.gz cannot be read as a table \(Compressed file ended"):
        label_cells(path, tmp_path / "t.csv.gz")
