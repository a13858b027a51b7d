"""How a text table is written is told from its first lines, the same way for every reader."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaleshift.cells import text_tables
from scaleshift.cells.text_tables import Style, decode, layout_of, style_of
from scaleshift.cells.treatment.spillover_table import read_spillover
from scaleshift.errors import DataError


@pytest.mark.parametrize(
    ("text", "style"),
    [
        ("a,b\n1,2\n", (",", ".")),
        ("a;b\n1;2\n", (";", ".")),
        ("a\tb\n1\t2\n", ("\t", ".")),
        ("a;b\n1,5;2\n", (";", ",")),
        ("a\tb\n1,5\t2\n", ("\t", ",")),
        ("a;b\n1.5;x,y\n", (";", ".")),
        ("a;date\n1,5;03.05.2024\n", (";", ",")),
        ("sep=;\na,b;c\n", (";", ".")),
        ("sep=,\r\na;b,c;d\r\n", (",", ".")),
        ('"a,b,c";d\n1;2\n', (";", ".")),
        ("a, of b, of c;d\n1;2\n", (";", ".")),
        ("a;b,c\n1;2,3\n", (",", ".")),
        ("alone\n1\n", (",", ".")),
        ("", (",", ".")),
    ],
)
def test_the_delimiter_parts_names_and_rows_alike(text, style):
    assert style_of(text) == Style(*style)


def test_a_letter_that_is_cut_at_the_end_of_the_head_does_not_change_the_encoding(monkeypatch):
    content = "Größe,b\n1,2\nä".encode()
    monkeypatch.setattr(text_tables, "HEAD", len(content) - 1)
    assert layout_of(content[:-1], "a.csv").encoding == "utf-8"
    assert layout_of(content[:-1], "a.csv").names == ("Größe", "b")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252", "utf-16"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("before", ["", "sep=;\n", "\n\n"])
def test_rows_begin_behind_the_header(encoding, end, before):
    text = f"{before}Größe;b\n1;2\n".replace("\n", end)
    content = text.encode(encoding)
    layout = layout_of(content, "a.csv")
    assert layout.names == ("Größe", "b")
    assert content[layout.start :].decode(layout.encoding) == f"1;2{end}"
    assert layout.line == 2 + before.count("\n")


def test_a_header_without_an_end_is_refused(monkeypatch):
    monkeypatch.setattr(text_tables, "HEAD", 10)
    with pytest.raises(DataError, match=r"a\.csv: line 1 does not end within 10 bytes"):
        layout_of(b"a,b,c,d,e,", "a.csv")


@given(st.text(alphabet=st.characters(blacklist_categories=["Cs"]), max_size=50))
def test_utf_8_comes_back(text):
    if not text.startswith("\ufeff"):
        assert decode(text.encode(), "a.csv") == text


@given(st.binary(max_size=100))
def test_any_bytes_have_a_layout_or_one_of_our_errors(content):
    try:
        found = layout_of(content, "a.csv")
    except DataError as error:
        found = str(error)
    assert found.startswith("a.csv: ") if isinstance(found, str) else 0 < found.start <= len(content)


def test_a_spillover_matrix_may_have_decimal_commas_or_tell_its_delimiter(tmp_path):
    for text in ("A;B\n1;0,25\n0;1\n", "sep=;\nA;B\n1;0,25\n0;1\n", '"A"\t"B"\n1\t0,25\n0\t1\n'):
        (tmp_path / "m.csv").write_text(text)
        assert read_spillover(tmp_path / "m.csv").matrix.tolist() == [[1, 0.25], [0, 1]]
