import io
import math
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from scaleshift.errors import DataError
from scaleshift.report import table, text

COLUMNS = [
    "sample",
    "label",
    "proportion",
    "proportion_low",
    "proportion_high",
    "proportion_known",
    "count",
    "unknown",
    "unknown_low",
    "unknown_high",
    "distance",
    "misfit",
    "p_value",
    "n_cells",
    "n_invalid",
    "flag",
    "day",  # of the sample
]


def test_the_caption_says_what_an_unknown_share_is_compared_with(result):
    assert "unknown up to 3.0 may be how samples differ" in printed(result, 60)
    hard = result.assign(unknown_baseline=np.nan)
    assert "how samples differ" not in printed(hard, 120)


def printed(result, width):
    console = Console(width=width, file=io.StringIO())
    console.print(text(result, width=width))
    return console.file.getvalue()


def headings(result, **options):
    return [column.header.plain for column in text(result, **options).renderables[0].columns]


def legend_of(result, width=80):
    """Lines below the caption, blanks between words made one."""
    lines = [" ".join(line.split()) for line in printed(result, width).splitlines()]
    return lines[next(i for i, line in enumerate(lines) if line.startswith("unknown up to 3.0 may be")) + 1 :]


def flagged(make_result, *flags, samples=None):
    names = samples or [f"S{i:02d}" for i in range(1, len(flags) + 1)]
    return make_result(np.full((len(flags), 2), 0.5), names, ["B", "T"], flags=flags)


def test_the_table_has_one_row_a_sample_and_label_in_order(result):
    rows = table(result)
    assert rows.columns.tolist() == COLUMNS
    assert rows["sample"].tolist() == ["S1", "S1", "S2", "S2", "S3", "S3"]
    assert rows["label"].tolist() == ["B", "T"] * 3
    assert rows["proportion"].tolist()[:2] == [0.25, 0.5]
    assert rows["unknown"].tolist()[:2] == [0.25, 0.25]
    assert rows["proportion_known"].tolist()[1] == pytest.approx(2 / 3)
    assert rows["flag"].tolist() == ["", "", "no cells", "no cells"] + ["unknown population"] * 2
    assert rows["n_cells"].dtype.kind == "i"


def test_what_belongs_to_a_sample_stands_in_all_its_rows(result):
    first = table(result).query("sample == 'S1'")
    assert first["unknown_low"].tolist() == [0.24] * 2
    assert first["unknown_high"].tolist() == [0.26] * 2
    assert first["misfit"].tolist() == [0.1] * 2
    assert first["p_value"].tolist() == [0.5] * 2


def test_what_was_not_computed_stays_nan(result):
    missing = table(result).query("sample == 'S2'")
    assert missing[["proportion", "proportion_low", "unknown", "distance"]].isna().all(axis=None)
    assert missing["n_cells"].tolist() == [1000, 1000]


@pytest.mark.parametrize(("labels", "kind"), [([2, 10], int), ([False, True], bool), (["2", "10"], str)])
def test_labels_keep_their_type(make_result, labels, kind):
    found = table(make_result([[0.25, 0.75]], ["S1"], labels))["label"].tolist()
    assert found == labels
    assert all(type(label) is kind for label in found)


def test_a_transposed_result_gives_the_same_table(result):
    pd.testing.assert_frame_equal(table(result.transpose("label", "sample")), table(result))


def test_the_csv_reads_back_as_the_table(result, tmp_path):
    rows = table(result, tmp_path / "proportions.csv")
    back = pd.read_csv(tmp_path / "proportions.csv", keep_default_na=False, na_values={"proportion": [""]})
    assert back.columns.tolist() == COLUMNS
    assert back["flag"].tolist() == rows["flag"].tolist()
    np.testing.assert_array_equal(back["proportion"], rows["proportion"])


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", '=HYPERLINK("http://x","y")'])
def test_a_name_never_becomes_a_formula_in_the_csv(make_result, tmp_path, name):
    result = make_result([[0.25, 0.75]], [name], [name, "T"], flags=[name])
    rows = table(result, tmp_path / "proportions.csv")
    assert rows.loc[0, ["sample", "label", "flag"]].tolist() == [name] * 3
    back = pd.read_csv(tmp_path / "proportions.csv")
    assert back.loc[0, ["sample", "label", "flag"]].tolist() == ["'" + name] * 3
    assert back["label"].tolist()[1] == "T"


def test_what_describes_samples_stands_in_all_their_rows_behind_the_numbers(result, tmp_path):
    told = {"donor": ["=1+1", None, "D3"], "flag_of": [1, 2, 3], "=n": [0.5, np.nan, 1]}
    described = result.drop_vars("day").assign_coords({k: ("sample", v) for k, v in told.items()})
    rows = table(described, tmp_path / "p.csv", parents={"B": "lymphocytes", "T": "lymphocytes"})
    assert rows.columns.tolist()[-4:] == ["flag", "donor", "flag_of", "=n"]
    assert rows["flag_of"].tolist() == [1] * 3 + [2] * 3 + [3] * 3
    back = pd.read_csv(tmp_path / "p.csv")
    assert back["donor"].tolist()[:3] == ["'=1+1"] * 3
    assert back.columns[-1] == "'=n"  # headings are no formulas either
    assert back["donor"].isna().tolist()[3:6] == [True] * 3


def test_a_description_called_like_a_column_makes_way(result):
    times = np.array(["2024-03-01"] * 3, "datetime64[D]").astype("datetime64[ns]")
    described = result.assign_coords(parent=("sample", times), gated=("sample", [True, False, True]))
    gated = pd.DataFrame({"sample": ["S1"], "label": ["B"], "gated": [0.3]})
    rows = table(described, gated=gated, parents={"B": "T"})
    assert rows["gated"].tolist()[0] == 0.3
    assert rows["sample_gated"].tolist()[0] is True
    assert rows["parent"].tolist()[0] == "T"
    assert rows["sample_parent"].tolist()[0].startswith("2024-03-01")


def test_a_negative_number_is_no_formula(make_result, tmp_path):
    table(make_result([[0.25, 0.75]], ["S1"], [-1, 1]), tmp_path / "proportions.csv")
    assert pd.read_csv(tmp_path / "proportions.csv")["label"].tolist() == [-1, 1]


def test_writing_replaces_an_old_file_and_leaves_nothing_else(result, tmp_path):
    target = tmp_path / "proportions.csv"
    target.write_text("old")
    table(result, str(target))
    assert target.read_text().startswith("sample,label,")
    assert list(tmp_path.iterdir()) == [target]


def test_a_write_that_fails_keeps_the_old_file(result, tmp_path):
    target = tmp_path / "proportions.csv"
    target.write_text("old")

    class Unnamed:
        def __str__(self):
            raise RuntimeError("I have no name")

    with pytest.raises(RuntimeError):
        table(result.assign_coords(donor=("sample", [Unnamed()] * 3)), target)
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_half_a_character_is_a_question_mark_in_the_file(result, tmp_path):
    table(result.assign_coords(sample=["S1", "S2", "S\udcff"]), tmp_path / "proportions.csv")
    assert "S?," in (tmp_path / "proportions.csv").read_text()


@pytest.mark.parametrize("name", ["proportions.ods", "proportions", "proportions.csv.gz"])
def test_another_suffix_than_csv_and_xlsx_is_refused(result, tmp_path, name):
    with pytest.raises(DataError, match=r"only \.csv or \.xlsx is written so far"):
        table(result, tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_missing_folder_is_named(result, tmp_path):
    with pytest.raises(DataError, match=r"there is no folder .*nowhere; create it"):
        table(result, tmp_path / "nowhere" / "proportions.csv")


def test_what_is_no_result_is_refused_by_what_it_lacks(result):
    with pytest.raises(DataError, match=r"no result of predict.*expected.*distance"):
        table(result.drop_vars("distance"))
    with pytest.raises(DataError, match="no result of predict"):
        text(result.isel(sample=0))


def test_labels_are_columns_where_they_fit(result):
    lines = printed(result, 80).splitlines()
    assert [cell.strip() for cell in lines[1].strip("┃").split("┃")] == [
        "sample",
        "B",
        "T",
        "unknown",
        "flag",
    ]
    assert "noise of cells alone, not of samples" in printed(result, 80)
    assert "noise of cells, and of the source's samples" in printed(
        result.assign_attrs(resampled="samples"), 80
    )
    assert cells_of(result, 80) == [
        ["S1", "25.0 ±5.0", "50.0 ±5.0", "25.0 ±1.0", ""],
        ["S2", "-", "-", "-", "E"],
        ["S3", "10.0 ±5.0", "40.0 ±5.0", "50.0 ±1.0", "?"],
    ]


def cells_of(result, width):
    lines = printed(result, width).splitlines()[3:6]
    return [[cell.strip() for cell in line.strip("│").split("│")] for line in lines]


def test_intervals_are_left_out_where_there_is_no_room_or_none(result):
    shares = [
        ["S1", "25.0", "50.0", "25.0", ""],
        ["S2", "-", "-", "-", "E"],
        ["S3", "10.0", "40.0", "50.0", "?"],
    ]
    assert cells_of(result, 50) == shares
    nothing = {name: result[name] * np.nan for name in result if str(name).endswith(("_low", "_high"))}
    assert cells_of(result.assign(nothing), 80) == shares
    for without in (printed(result, 50), printed(result.assign(nothing), 80)):
        assert "±" not in without
    assert "no room for them" in printed(result, 50)
    assert "interval" not in printed(result.assign(nothing), 80)


def test_an_interval_that_is_cut_shows_its_farther_end(result):
    ends = {"unknown_low": result["unknown"] - 0.01, "unknown_high": result["unknown"] + 0.03}
    assert cells_of(result.assign(ends), 80)[0][3] == "25.0 ±3.0"


def test_labels_are_rows_where_columns_do_not_fit(make_result):
    labels = [f"population{i:02d}" for i in range(30)]
    result = make_result(np.full((2, 30), 1 / 40), ["S1", "S2"], labels, flags=["", "few cells"])
    lines = printed(result, 100).splitlines()
    rows = [[cell.strip() for cell in line.strip("│").split("│")] for line in lines if line.startswith("│")]
    assert len(rows) == 60
    assert rows[0] == ["S1", "population00", "2.5", "-2.5 to 7.5", "25.0", ""]
    assert rows[1][0] == rows[1][4] == ""
    assert rows[30][0] == "S2"
    assert rows[30][5] == "F"
    assert len(printed(result, 600).splitlines()) == 6 + 3 + 3  # table, captions, legend


def test_the_terminal_decides_the_width_unless_it_is_given(result, monkeypatch):
    headers = {}
    for columns in ("30", "120"):
        monkeypatch.setenv("COLUMNS", columns)
        headers[columns] = headings(result)
    assert "interval" in headers["30"]
    assert headers["120"] == ["sample", "B", "T", "unknown", "flag"]


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_no_number_is_cut_at_any_width(make_result, width):
    labels = ["CD4 T cells", "CD8_Tcells", "Monocytes", "natural-killer cells", "B"]
    result = make_result(
        [[0.1234, 0.2345, 0.3456, 0.0, 0.0001]], ["a sample"], labels, flags=["a flag of quite some length"]
    )
    shown = printed(result, width)
    assert max(map(len, shown.splitlines())) <= width
    assert "…" not in shown
    assert all(number in shown for number in ("12.3", "23.4", "34.6", "0.0", "29.6"))
    assert "interval" not in shown or "7.3 to 17.3" in shown or "12.3 ±5.0" in shown or "no room" in shown


def test_a_long_heading_breaks_between_words(make_result):
    result = make_result([[0.5, 0.5]], ["S1"], ["Effector_Memory CD4", "T"])
    assert headings(result, width=80)[1] == "Effector_\nMemory CD4"


def test_a_share_that_rounds_to_zero_has_no_sign(make_result):
    assert "-0.0" not in printed(make_result([[-1e-9, 1.0]], ["S1"], ["B", "T"]), 80)


@pytest.mark.parametrize("width", [70, 120])
def test_markup_in_names_is_shown_and_not_obeyed(make_result, width):
    result = make_result(np.full((1, 8), 0.1), ["[red]S"], ["[b]x", ":cat:", *"abcdef"], flags=["[/]"])
    shown = printed(result, width)
    assert all(name in shown for name in ("[red]S", "[b]x", ":cat:", "[/]"))


def test_control_characters_in_names_do_not_reach_the_terminal(make_result):
    shown = printed(make_result([[0.5, 0.5]], ["a\x1b[31m\nb"], ["B", "T"]), 80)
    assert "\x1b" not in shown
    assert "a\N{REPLACEMENT CHARACTER}[31m\N{REPLACEMENT CHARACTER}b" in shown


def test_int_and_bool_labels_are_shown(make_result):
    assert "True" in printed(make_result([[0.5, 0.5]], ["S1"], [False, True]), 80)
    assert "10" in printed(make_result([[0.5, 0.5]], ["S1"], [2, 10]), 80)


def test_the_unknown_share_of_a_hard_method_is_a_dash(make_result):
    result = make_result([[0.25, 0.75]], ["S1"], ["B", "T"], unknown=[math.nan])
    assert "│       - │" in printed(result, 80)


def test_flags_are_letters_in_the_table_and_words_below(make_result):
    result = flagged(make_result, "", "label shift rejected: p < 0.005; unknown above baseline: 10.7 %")
    assert "│ S U  │" in printed(result, 60)
    assert legend_of(result, 100) == [
        "S02 S label shift rejected: p < 0.005; U unknown above baseline: 10.7 %",
        "S no mixture of the source's classes looks like the sample: its intervals do not hold",
        "U more cells unlike every class than samples of known classes show",
    ]


def test_a_result_without_flags_has_no_legend(make_result):
    assert legend_of(flagged(make_result, "", "")) == []


def test_a_result_without_samples_is_an_empty_table(make_result):
    assert legend_of(flagged(make_result)) == []


def test_samples_with_the_same_reasons_share_a_line(make_result):
    result = flagged(make_result, "few cells: 12", "", "few cells: 12", "few cells: 13")
    assert legend_of(result)[:2] == ["S01, S03 F few cells: 12", "S04 F few cells: 13"]


def test_of_many_samples_with_the_same_reasons_two_are_named(make_result):
    assert legend_of(flagged(make_result, "", *["no cells"] * 14))[0] == "S02, S03 and 12 more E no cells"


def test_of_hundreds_of_reasons_twenty_are_printed_and_the_csv_has_the_rest(make_result):
    lines = legend_of(flagged(make_result, "", *[f"few cells: {i}" for i in range(480)]))
    assert len(lines) == 22
    assert lines[19] == "S21 F few cells: 19"
    assert lines[20] == "and 460 more: see the CSV"
    assert lines[21].startswith("F under 50 cells")


def test_a_reason_of_every_sample_stands_once(make_result):
    source = "not in the source: NK; few source cells: B (12)"
    lines = legend_of(flagged(make_result, source, f"{source}; no cells", f"{source}; not in the source: T"))
    assert lines[:3] == [
        "all samples A not in the source: NK; C few source cells: B (12)",
        "S02 E no cells",
        "S03 A not in the source: T",
    ]
    assert [line[0] for line in lines[3:]] == ["E", "A", "C"]


def test_the_only_sample_goes_by_its_name(make_result):
    assert legend_of(flagged(make_result, "no cells"))[0] == "S01 E no cells"


def test_a_letter_stands_once_a_sample(make_result):
    result = flagged(make_result, "not in the source: NK; not in the source: T", "")
    assert "│ A    │" in printed(result, 80)
    assert "A not in the source: NK; A not in the source: T" in legend_of(result)[0]


def test_a_reason_that_is_not_known_keeps_its_words(make_result):
    assert legend_of(flagged(make_result, "", "three odd cells")) == ["S02 ? three odd cells"]


def test_the_legend_wraps_beside_long_names(make_result):
    result = flagged(make_result, "few cells: 12", "", samples=["a_file_of_a_patient_" * 3, "S2"])
    assert max(map(len, printed(result, 60).splitlines())) <= 60
    assert legend_of(result, 60)[0] == "a_file_of_a_patient_a_fi F few cells: 12"


def test_the_csv_keeps_the_words(make_result, tmp_path):
    table(flagged(make_result, "few cells: 12"), tmp_path / "p.csv")
    assert pd.read_csv(tmp_path / "p.csv")["flag"].tolist() == ["few cells: 12"] * 2


def test_importing_the_reports_leaves_matplotlib_alone():
    code = "import scaleshift.report, sys; print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
