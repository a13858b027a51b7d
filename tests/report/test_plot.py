import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from scaleshift.errors import DataError
from scaleshift.report import plot

SIGNATURE = b"\x89PNG\r\n\x1a\n"


def bars(figure):
    """(start, end) by drawn kind and sample, shape (n_kinds, n_samples, 2)."""
    kinds = figure.axes[0].collections
    return np.array(
        [[[box.vertices[0, 0], box.vertices[1, 0]] for box in kind.get_paths()] for kind in kinds]
    )


def legend(figure):
    return [entry.get_text() for entry in figure.legends[0].get_texts()]


def marks(figure, mark):
    """Numbers of the samples that have this text beside or on their bar."""
    return [text.get_position()[1] for text in figure.axes[0].texts if text.get_text() == mark]


def random_result(make_result, n_samples, n_labels):
    shares = np.random.default_rng(0).dirichlet(np.ones(n_labels + 1), n_samples)[:, :-1]
    names = [f"S{i}" for i in range(n_samples)]
    return make_result(shares, names, [f"label {i}" for i in range(n_labels)], flags=["flag"] * n_samples)


def test_shares_and_unknown_fill_the_bar(result):
    drawn = bars(plot(result))
    np.testing.assert_allclose(drawn[:, 0], [[0, 0.25], [0.25, 0.75], [0.75, 1]])
    np.testing.assert_allclose(drawn[:, 2], [[0, 0.1], [0.1, 0.5], [0.5, 1]])


def test_the_first_sample_stands_at_the_top(result):
    axes = plot(result).axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["S1", "S2", "S3"]
    assert axes.yaxis_inverted()


def test_a_sample_without_an_estimate_is_empty_and_says_so(result):
    figure = plot(result)
    np.testing.assert_array_equal(bars(figure)[:, 1], 0)
    assert marks(figure, "no estimate") == [1]


def test_flagged_samples_are_marked(result):
    figure = plot(result)
    assert marks(figure, "!") == [1, 2]
    assert legend(figure) == ["B", "T", "unknown", "flagged"]


def test_without_flags_and_unknown_neither_is_drawn(make_result):
    figure = plot(make_result([[0.25, 0.75]], ["S1"], ["B", "T"], unknown=[np.nan]))
    assert marks(figure, "!") == []
    assert legend(figure) == ["B", "T"]


def test_negative_shares_go_to_the_left_of_zero(make_result):
    figure = plot(make_result([[-0.2, 0.7, 0.5]], ["S1"], ["B", "T", "M"], unknown=[np.nan]))
    np.testing.assert_allclose(bars(figure)[:, 0], [[0, -0.2], [0, 0.7], [0.7, 1.2]])
    np.testing.assert_allclose(figure.axes[0].get_xlim(), [-0.2, 1.2])


def test_thirty_labels_look_different_and_unknown_is_grey_with_a_hatch(make_result):
    *labels, unknown = plot(random_result(make_result, 2, 30)).axes[0].collections
    looks = {(tuple(label.get_facecolor()[0]), label.get_hatch()) for label in labels}
    assert len(looks) == 30
    red, green, blue, _ = unknown.get_facecolor()[0]
    assert red == green == blue
    assert unknown.get_hatch()
    assert all(len(set(to_rgb(label.get_facecolor()[0]))) > 1 for label in labels)


@pytest.mark.parametrize(("n_samples", "n_labels"), [(0, 2), (1, 1), (1, 30), (8, 4), (61, 12), (200, 5)])
def test_everything_drawn_lies_inside_the_figure(make_result, n_samples, n_labels):
    figure = plot(random_result(make_result, n_samples, n_labels))
    figure.draw_without_rendering()
    box = figure.get_tightbbox()
    assert box.x0 > -0.01
    assert box.y0 > -0.01
    assert box.x1 < figure.get_figwidth() + 0.01
    assert box.y1 < figure.get_figheight() + 0.01
    bars_box, legend_box = figure.axes[0].get_window_extent(), figure.legends[0].get_window_extent()
    assert legend_box.x0 > bars_box.x1
    assert bars_box.width > 4 * figure.dpi


@pytest.mark.parametrize("n_samples", [8, 60, 61, 130, 200, 1000])
def test_sample_names_do_not_overlap(make_result, n_samples):
    figure = plot(random_result(make_result, n_samples, 2))
    figure.draw_without_rendering()
    boxes = [label.get_window_extent() for label in figure.axes[0].get_yticklabels()]
    assert all(upper.y0 > lower.y1 - 1 for upper, lower in pairwise(boxes))


def test_the_figure_grows_with_the_samples_and_stays_drawable(make_result):
    heights = [plot(random_result(make_result, n, 2)).get_figheight() for n in (1, 20, 60, 200, 5000)]
    assert heights == sorted(heights)
    assert heights[0] < 3
    assert heights[-1] * 150 <= 4_000  # dots: what a screen and a page can still show


def test_marks_of_many_samples_do_not_cover_each_other(make_result):
    for n, edge in ((20, 0.4), (2_000, 0.0)):
        figure = plot(random_result(make_result, n, 2))
        figure.draw_without_rendering()
        axes = figure.axes[0]
        step = axes.get_window_extent().height / n * 72 / figure.dpi  # points
        assert all(mark.get_size() <= max(step * 1.1, 1) for mark in axes.texts)
        assert {float(kind.get_linewidth()[0]) for kind in axes.collections} == {edge}


def test_names_are_drawn_as_they_are(make_result):
    result = make_result([[0.5, 0.5]], ["$S^"], ["_hidden", "$x$ [red]"])
    figure = plot(result)
    figure.draw_without_rendering()
    assert legend(figure)[:2] == ["_hidden", "$x$ [red]"]
    texts = [*figure.legends[0].get_texts(), *figure.axes[0].get_yticklabels()]
    assert not any(text.get_parse_math() for text in texts)


def test_long_names_keep_their_start_and_their_end(make_result):
    name = "study_2024_" + "x" * 100 + "_day7"
    shown = plot(make_result([[0.5, 0.5]], [name], ["B", "T"])).axes[0].get_yticklabels()[0].get_text()
    assert len(shown) == 40
    assert shown.startswith("study_2024_")
    assert shown.endswith("_day7")


@pytest.mark.parametrize("labels", [[2, 10], [False, True]])
def test_int_and_bool_labels_are_named(make_result, labels):
    assert legend(plot(make_result([[0.5, 0.5]], ["S1"], labels)))[:2] == [str(label) for label in labels]


def test_the_png_is_written_whole_and_alone(result, tmp_path):
    target = tmp_path / "proportions.png"
    target.write_text("old")
    plot(result, target)
    assert target.read_bytes().startswith(SIGNATURE)
    assert list(tmp_path.iterdir()) == [target]


def test_another_suffix_than_png_is_refused(result, tmp_path):
    with pytest.raises(DataError, match=r"only \.png is written so far"):
        plot(result, tmp_path / "proportions.pdf")


def test_what_is_no_result_is_refused(result):
    with pytest.raises(DataError, match="no result of predict"):
        plot(result[["proportion"]])


def test_plotting_leaves_pyplot_alone():
    code = (
        "import sys, xarray as xr; from scaleshift.report import plot; "
        "plot(xr.Dataset({'proportion': (('sample', 'label'), [[1.0]]), 'unknown': ('sample', [0.0]), "
        "'flag': ('sample', [''])}, coords={'sample': ['S'], 'label': ['B']})); "
        "print('matplotlib.pyplot' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
