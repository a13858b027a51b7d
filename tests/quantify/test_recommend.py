"""The rule that a recommendation follows, on errors made up for it."""

import numpy as np

from scaleshift.quantify import methods as registry
from scaleshift.quantify.recommend import recommend
from scaleshift.quantify.trials import CLASS_OUT, SAMPLE_OUT, SAMPLE_OUT_UNGATED

UNITS = [f"S{i}" for i in range(4)]


def advised(known, ungated_error=None, class_out=None, share=0.2):
    """What is recommended for errors by method and sample."""
    names = list(known)
    errors, setting, unit = [np.array(list(known.values()))], [SAMPLE_OUT] * 4, list(UNITS)
    if ungated_error is not None:
        errors.append(np.array([ungated_error[name] for name in names]))
        setting, unit = setting + [SAMPLE_OUT_UNGATED] * 4, unit + UNITS
    if class_out is not None:
        errors.append(np.array([[class_out[name]] for name in names]))
        setting, unit = [*setting, CLASS_OUT], [*unit, "a"]
    return recommend(names, np.hstack(errors), np.array(setting), np.array(unit), share)


def test_methods_within_a_standard_error_of_paired_differences_are_equal():
    noise = np.array([0.0, 0.02, 0.0, -0.005])
    base = np.array([0.1, 0.2, 0.3, 0.4])  # samples differ much more than methods do
    close = advised({"first": base + noise, "second": base})
    assert close.method == "first"
    assert "within noise" in close.reason
    assert advised({"first": base + 0.02 + noise, "second": base}).method == "second"
    named = advised({"first": base + noise, "second": base, registry.default(): base + noise[::-1]})
    assert named.method == registry.default()
    assert named.reason.startswith("the default of the methods within noise")


def test_ungated_cells_count_for_half():
    known = {"one": [0.0] * 4, "other": [0.1] * 4}
    assert advised(known).method == "one"
    found = advised(known, {"one": [0.3] * 4, "other": [0.1] * 4})
    assert found.method == "other"
    np.testing.assert_allclose(found.score, [0.15, 0.1])


def test_a_method_that_is_much_worse_where_a_class_is_left_out_is_left_aside():
    known = {"closed": [0.01] * 4, "open": [0.05] * 4}
    found = advised(known, class_out={"closed": 0.5, "open": 0.1})
    assert found.method == "open"
    assert (
        "left aside as much worse where a class is left out (least error 10.0 %): closed (50.0 %)"
        in found.reason
    )
    assert advised(known, class_out={"closed": 0.5, "open": 0.1}, share=0.0).method == "closed"
    assert advised(known, class_out={"closed": 0.15, "open": 0.1}).method == "closed"
    assert advised(known, class_out={"closed": np.nan, "open": 0.1}).method == "open"


def test_a_method_without_an_answer_is_never_recommended():
    found = advised({"fails": [0.0, np.nan, 0.0, 0.0], "answers": [0.5] * 4})
    assert found.method == "answers"
    assert advised({"fails": [np.nan] * 4}).method == ""
