"""Tables of events: every row has one cell a name, and what stands in it is read or told by its line."""

import numpy as np
import pandas as pd
import pytest

from scaleshift.cells.files import describe, tables
from scaleshift.errors import DataError

VALUES = [[10.5, 20.5], [1.0, 2.0]]


def write(tmp_path, content, name="t.csv"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


def read(path, **options):
    (file,) = describe(path, **options)
    return file, file.reader.read(0, file.n_events)


def refused(path, **options):
    with pytest.raises(DataError) as caught:
        read(path, **options)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    return message


PLAIN = "CD3,CD4\n10.5,20.5\n1,2\n"


@pytest.mark.parametrize(
    "content",
    [
        PLAIN,
        PLAIN.replace("\n", "\r\n"),
        PLAIN.replace("\n", "\r"),
        PLAIN.rstrip("\n").replace("\n", "\r"),
        PLAIN.removesuffix("\n") + "\n\n \n",
        PLAIN.encode("utf-8-sig"),
        "\n\n" + PLAIN,
        PLAIN.replace("\n", ",\n"),
        "CD3,CD4\n10.5,20.5,\n1,2,\n",
        "CD3,CD4,\n10.5,20.5\n1,2\n",
        "CD3,CD4,,\n10.5,20.5\n1,2\n",
        "CD3,CD4\na,10.5,20.5\nb,1,2\n",
        '"CD3","CD4"\n"1",10.5,20.5\n"2",1,2\n',
        '"","CD3","CD4"\n"1",10.5,20.5\n"2",1,2\n',
        "sep=;\nCD3;CD4\n10,5;20,5\n1;2\n",
        "CD3\tCD4\n10,5\t20,5\n1\t2\n",
    ],
)
def test_tables_of_any_make_hold_the_same_events(tmp_path, content):
    file, events = read(write(tmp_path, content))
    assert file.channels == ("CD3", "CD4")
    assert events.tolist() == VALUES


def test_row_names_are_left_out_and_that_is_said(tmp_path):
    file, _ = read(write(tmp_path, "CD3,CD4\n1,10.5,20.5\n2,1,2\n"))
    assert [(p.level, p.text) for p in file.problems] == [
        ("note", "the first column has no name: taken for row names and left out")
    ]
    assert read(write(tmp_path, PLAIN))[0].problems == ()


@pytest.mark.parametrize(
    ("header", "names"),
    [
        ('"CD3, total","CD4"', ("CD3, total", "CD4")),
        ('"CD3, total";"CD4, naive"', ("CD3, total", "CD4, naive")),
        ("CD3, total;CD4, naive", ("CD3, total", "CD4, naive")),
        ('"say ""CD3""",CD4', ('say "CD3"', "CD4")),
        ('"two\nlines",CD4', ("two\nlines", "CD4")),
        ("Größe,µ", ("Größe", "µ")),
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "cp1252"])
def test_names_keep_delimiters_quotes_and_letters(tmp_path, header, names, encoding):
    rows = "10.5;20.5\n1;2\n" if ";" in header else "10.5,20.5\n1,2\n"
    file, events = read(write(tmp_path, f"{header}\n{rows}".encode(encoding)))
    assert file.channels == names
    assert events.tolist() == VALUES


def test_a_table_of_one_column_is_read(tmp_path):
    assert read(write(tmp_path, "CD3\n1.5\n\n2\n"))[1].tolist()[::2] == [[1.5], [2.0]]
    assert "line 2 has 2 cells, expected 1" in refused(write(tmp_path, "CD3\n1,5\n2,5\n"))


@pytest.mark.parametrize("at", [0, 3, 99, 150, tables.STEP - 1, tables.STEP, tables.STEP + 200])
@pytest.mark.parametrize(
    ("row", "found"), [("1,2,3,4", 4), ("1,2", 2), ("7", 1), ("", 1), ('"1,2",3,4,5', 4), ("1,2,3,", 4)]
)
def test_a_row_of_another_width_is_named_by_its_line(tmp_path, at, row, found):
    rows = ["1.0,2.0,3.0"] * (tables.STEP + 300)
    rows[at] = row
    path = write(tmp_path, "\n".join(["CD3,CD4,CD8", *rows]))
    told = f"line {at + 2} has {found} cell" if row else f"line {at + 2} is blank"
    assert told in refused(path)
    assert "expected 3" in refused(path)


def test_a_delimiter_within_quotes_parts_no_cells(tmp_path):
    rows = '10.5,"a, b",20.5\n1,5" tube,2\n'
    file, events = read(write(tmp_path, "CD3,note,CD4\n" + rows))
    assert events.tolist() == VALUES
    assert [p.text for p in file.problems] == ["columns of text are left out: note"]


def test_a_line_break_within_quotes_is_refused(tmp_path):
    refused(write(tmp_path, 'CD3,note\n1,"a\nb"\n2,c\n'))


def test_values_under_no_name_are_refused_wherever_they_stand(tmp_path):
    assert "line 3: column 3 has no name, but values" in refused(write(tmp_path, "CD3,CD4,\n1,2,\n3,4,5\n"))
    rows = ["1,2,"] * 500
    rows[400] = "1,2,x"
    assert "line 402: column 3 has no name" in refused(write(tmp_path, "\n".join(["CD3,CD4", *rows])))


@pytest.mark.parametrize("at", [5, 400])
def test_letters_of_another_encoding_spoil_no_number(tmp_path, at):
    rows = [f"{i},note" for i in range(500)]
    rows[at] = f"{at},Größe"
    content = ("CD3,text\n" + "\n".join(rows)).encode("latin-1")
    assert read(write(tmp_path, content))[1][:, 0].tolist() == list(range(500))
    rows[at] = "Größe,note"
    content = ("CD3,text\n" + "\n".join(rows)).encode("latin-1")
    if at > tables.PEEK:
        assert f"line {at + 2}, column 'CD3': 'Größe' is no number" in refused(write(tmp_path, content))


def test_samples_are_named_in_any_encoding(tmp_path):
    rows = ["1,Zürich"] * 200 + ["2,Genève"] * 200
    for encoding in ("utf-8", "latin-1"):
        (file,) = describe(write(tmp_path, ("CD3,site\n" + "\n".join(rows)).encode(encoding)), sample="site")
        assert [(g.sample, g.rows) for g in file.groups] == [
            ("Zürich", slice(0, 200)),
            ("Genève", slice(200, 400)),
        ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty"),
        ("\n\n", "is empty"),
        ("1,2\n3,4\n", "line 1 is numbers"),
        ("CD3,CD3\n1,2\n", "line 1: column 'CD3' stands twice"),
        ("\nsample,name\na,b\n", "no column holds numbers: is the delimiter"),
        ('CD3,CD4,name\n"1414,132","2,5",x\n', "'1414,132' has a decimal comma: save with ; between columns"),
        (PLAIN.encode("utf-16"), "UTF-16: save it as CSV in UTF-8"),
        (PLAIN.encode("utf-16-le"), "is no text"),
        (b"CD3,CD4\0\n1,2\n", "is no text"),
    ],
)
def test_what_is_no_table_of_events_is_told(tmp_path, content, message):
    assert message in refused(write(tmp_path, content))


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("1e999359190326", np.inf),
        ("-1e2147483648", -np.inf),
        ("1e4294967297", np.inf),
        ("1e400", np.inf),
        ("1.E+4294967297", np.inf),
        ("9" * 400, np.inf),
        ("1e39", np.inf),
        ("1e-999359190326", 0),
        ("1e-2000", 0),
        ("0e99999999999", 0),
        ("99999999999999999999999", 1e23),
        ("0." + "0" * 19 + "12", 1.2e-20),
        (" 7 ", 7),
        ("-Infinity", -np.inf),
        ("NA", np.nan),
        (" ", np.nan),
    ],
)
@pytest.mark.parametrize("at", [0, 150])
def test_numbers_of_any_size_are_taken_as_they_are(tmp_path, word, value, at):
    rows = ["1.5,2"] * 200
    rows[at] = f"{word},2"
    events = read(write(tmp_path, "CD3,CD4\n" + "\n".join(rows)))[1]
    np.testing.assert_array_equal(events[[at, at - 1]], np.float32([[value, 2], [1.5, 2]]))


@pytest.mark.parametrize("form", ["{:.6g}", "{:.9g}", "{!r}", "{:.20f}", "{:e}"])
def test_numbers_are_those_that_python_reads(tmp_path, form):
    rng = np.random.default_rng(0)
    values = rng.normal(size=2000) * 10.0 ** rng.integers(-25, 25, 2000)
    words = [form.format(float(value)) for value in values]
    events = read(write(tmp_path, "CD3\n" + "\n".join(words)))[1]
    np.testing.assert_array_equal(events[:, 0], np.array([float(word) for word in words], np.float32))


def test_names_that_look_like_large_numbers_end_no_process(tmp_path):
    rows = ["1,x1", "2,12e999359190326", "3,y2", "4,z3"]
    file, events = read(write(tmp_path, "CD3,id\n" + "\n".join(rows)))
    assert file.channels == ("CD3",)
    assert events[:, 0].tolist() == [1, 2, 3, 4]
    (file,) = describe(write(tmp_path, "CD3,id\n" + "\n".join(rows)), sample="id")
    assert [group.sample for group in file.groups] == ["x1", "12e999359190326", "y2", "z3"]


@pytest.mark.parametrize("word", ["-", '"1,234"', "0x10", "1_000", "True", "n.d."])
@pytest.mark.parametrize("at", [0, 57, 99, 100, 150])
def test_a_bad_word_among_numbers_takes_no_marker_out_of_the_study(tmp_path, word, at):
    rows = ["1,2,x"] * 200
    rows[at] = f"1,{word},y"
    said = word.strip('"')
    message = refused(write(tmp_path, "CD3,CD4,note\n" + "\n".join(rows)))
    assert f"line {at + 2}, column 'CD4': {said!r} is no number: mend it, leave the cell empty" in message


def test_the_line_of_a_bad_word_is_right_below_quotes_and_blank_lines(tmp_path):
    content = '\n"two\nlines";"CD4"\n1,5;"2"\n"3";4,5\n\n'
    assert "line 6, column 'CD4': '4.5' is no number, since decimals" in refused(
        write(tmp_path, content.replace('"3";4,5', '"3";4,5\n3;4.5'))
    )
    rows = ["1,5;2"] * 300
    rows[250] = "1.5;2"
    message = refused(write(tmp_path, "CD3;CD4\n" + "\n".join(rows)))
    assert "line 252, column 'CD3': '1.5' is no number" in message


def test_names_with_line_breaks_are_told_on_one_line(tmp_path):
    path = write(tmp_path, '"CD3\nFITC",CD4\n1,2\n')
    assert "has no column 'site'; known: CD3 FITC, CD4" in refused(path, sample="site")


def test_a_column_of_words_and_some_numbers_is_text(tmp_path):
    file, _ = read(write(tmp_path, "CD3,cluster,gate\n1,7,T\n2,none,T\n3,none,B\n"))
    assert file.channels == ("CD3",)
    (problem,) = file.problems
    assert problem.level == "warning"
    assert problem.text == "columns of text are left out: cluster, gate"
    assert problem.fix == "if cluster should be numbers, mend what is none in them"


def test_blanks_behind_delimiters_part_no_quotes_and_are_no_values(tmp_path):
    file, events = read(write(tmp_path, 'CD3, "CD4, total", note\n10.5, 20.5, "a, b"\n1, , c\n'))
    assert file.channels == ("CD3", "CD4, total")
    np.testing.assert_array_equal(events, [[10.5, 20.5], [1, np.nan]])


def test_any_rows_are_those_of_the_whole(tmp_path):
    values = np.random.default_rng(0).normal(size=(3 * tables.STEP + 17, 3)).astype(np.float32)
    path = str(tmp_path / "t.csv")
    pd.DataFrame(values, columns=["a", "b", "c"]).to_csv(path, index=False)
    (file,) = describe(path)
    assert file.n_events == len(values)
    edges = [0, 5, tables.STEP - 1, tables.STEP, 2 * tables.STEP + 3, len(values)]
    for first in edges:
        for stop in edges:
            np.testing.assert_array_equal(file.reader.read(first, stop), values[first:stop])


def test_a_file_that_changed_is_told(tmp_path):
    path = write(tmp_path, "CD3,CD4\n" + "1,2\n" * 1000)
    (file,) = describe(path)
    write(tmp_path, "CD3,CD4\n" + "1,2\n" * 10)
    with pytest.raises(DataError, match=r"t\.csv: .*has the file changed"):
        file.reader.read(0, 1000)
    (tmp_path / "t.csv").unlink()
    with pytest.raises(DataError, match=r"t\.csv: cannot be read"):
        file.reader.read(0, 1000)


def test_columns_with_a_decimal_comma_are_not_left_out_silently(tmp_path):
    rows = [f'{i},"{i},25","1;2",x' for i in range(8)]
    file, _ = read(write(tmp_path, "Time,CD3,list,name\n" + "\n".join(rows)))
    (problem,) = file.problems
    assert (problem.level, problem.text) == ("warning", "columns of text are left out: CD3, list, name")
    assert problem.fix == "'0,25' has a decimal comma: save with ; between columns"


def test_columns_of_text_may_tell_the_sample_where_none_is_named(tmp_path):
    content = "CD3,donor,site\n1,a,x\n2,b,y\n"
    (file,) = describe(write(tmp_path, content))
    assert file.problems[0].fix == "pass sample=NAME (--sample NAME) if one of them tells the sample"
    (file,) = describe(write(tmp_path, content), sample="donor")
    assert [(p.text, p.fix) for p in file.problems] == [("columns of text are left out: site", "")]


@pytest.mark.parametrize("content", ["CD3,donor\n", "CD3,donor", "CD3,donor\n\n\n"])
def test_a_header_without_rows_is_a_sample_of_no_cells_but_tells_no_samples(tmp_path, content):
    path = write(tmp_path, content)
    (file,) = describe(path)
    assert file.n_events == 0
    assert file.problems[0].text == "has a header and no rows: a sample without cells"
    assert "has a header and no rows" in refused(path, sample="donor")
