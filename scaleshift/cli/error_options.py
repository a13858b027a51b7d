"""What can be asked of an error's estimation and of its alarm?  Options of scaleshift error."""

from __future__ import annotations

from pathlib import Path

import click
import numpy as np

from scaleshift.cli import completing, options, trust
from scaleshift.cli.error_model import NAMES
from scaleshift.cli.helping import OneOf, in_section
from scaleshift.spelling import meant

METHODS = ["direct", "decomposed"]


def _methods(context: click.Context, parameter: click.Parameter, text: str) -> list[str]:
    """Names of methods; they are imported where others than the default ones are asked for."""
    found = options.names(text)
    if found == METHODS:
        return found
    from scaleshift.error.job import known_methods

    known = known_methods()
    if found == ["all"]:
        return list(known)
    strange = [name for name in found if name not in known]
    if strange or not found:
        named = repr(strange[0]) if strange else repr(text)
        hint = meant(strange[0], ["all", *known]) if strange else ""
        raise click.BadParameter(f"{named}: expected all, or some of {', '.join(known)} between commas{hint}")
    return list(dict.fromkeys(found))


def _folds(context: click.Context, parameter: click.Parameter, n: int) -> int | None:
    """From 2, or 0 for none."""
    if n == 1:
        raise click.BadParameter("1 fold leaves nothing to learn from: expected 0, or 2 and more")
    return n or None


def _finite(context: click.Context, parameter: click.Parameter, value: float | None) -> float | None:
    """A number that can be compared with."""
    if value is not None and not np.isfinite(value):
        raise click.BadParameter(f"{value}: expected a finite number, in the units of the error")
    return value


of_cells = options.all_of(
    in_section(
        "The model",
        click.option(
            "--model",
            metavar="NAME|FILE",
            shell_complete=completing.some_of(*NAMES),
            help=f"{', '.join(NAMES)}, or a model file: .skops (extra skops), whose estimator is refitted, "
            "or .onnx (extra onnx), which cannot be; with --trust-pickle a pickle too. Not needed once "
            "--state is there.",
        ),
        trust.of_models,
        click.option(
            "--refit",
            type=OneOf(["cold", "warm", "never"]),
            help="Of model files: fit replicates from the start, from the fitted model on, or not at all. "
            "Where left out: cold; never for .onnx.",
        ),
    ),
    in_section(
        "Which cells",
        click.option(
            "--outcome",
            metavar="NAME",
            shell_complete=completing.outcomes,
            help="What is predicted: a column of obs, a marker, which then is no feature, or a column of the "
            "sample sheet, whose number every cell of a sample has. Where left out: the labels.",
        ),
        click.option(
            "--source",
            shell_complete=completing.selection,
            help=f"Samples to learn from: {options.SELECTION}. Where left out: all that are not in --target "
            "and have a cell whose outcome is known.",
        ),
        click.option(
            "--target",
            shell_complete=completing.selection,
            help="Samples to predict. Where left out: all others.",
        ),
        click.option(
            "--by-sample",
            is_flag=True,
            help="Each target sample is a target of its own. A --state keeps this.",
        ),
        click.option(
            "--labelled-only",
            is_flag=True,
            help="Target cells whose outcome is known, and no others: what is expected and what is observed "
            "are of the same cells. A --state keeps this.",
        ),
        options.markers,
        click.option(
            "--groups",
            type=OneOf(["sample"]),
            help="Cells of a sample depend on each other: folds are of whole samples, and noise has a part "
            "that a sample shares.",
        ),
        options.invalid,
    ),
)

of_model = in_section(
    "How",
    click.option(
        "--loss",
        type=OneOf(["auto", "squared", "counting", "deviance", "brier"]),
        default="auto",
        help="What an error is: squared of numbers, the share of wrong labels (counting), others of labels.",
    ),
    click.option(
        "--method",
        default=",".join(METHODS),
        metavar="NAME,NAME,...|all",
        callback=_methods,
        help="How it is estimated; the first one is told first, and rings the alarm.",
    ),
    click.option(
        "--generator",
        type=OneOf(["auto", "plugin", "relaxed", "ols"]),
        default="auto",
        help="What outcomes are drawn from: the fit itself, its refit without penalty, least squares; auto "
        "goes from the first to the second as far as cross-validation says.",
    ),
    click.option(
        "--alpha",
        type=click.FloatRange(0),
        help="Weight of the penalty. Where left out: by cross-validation.",
    ),
    click.option("--penalty", type=OneOf(["l1", "l2"]), default="l2", help="Of logistic and multinomial."),
    click.option("--scale", is_flag=True, help="Penalise weights in units of each feature's spread."),
    click.option(
        "--cv",
        type=click.IntRange(0),
        default=5,
        callback=_folds,
        help="Folds of the cross-validation; 0: none.",
    ),
    click.option(
        "--bootstrap",
        "n_bootstrap",
        type=click.IntRange(2),
        default=200,
        help="Replicates. More of them leave those of fewer as they are.",
    ),
    click.option(
        "--tol",
        type=click.FloatRange(0, min_open=True),
        help="Of model files: refits end once the Monte-Carlo standard error of every target is below.",
    ),
    click.option(
        "--level",
        type=click.FloatRange(0, 1, min_open=True, max_open=True),
        default=0.95,
        help="How often an interval should hold the error.",
    ),
    click.option("--seed", default=0, help="Of folds and replicates."),
)

of_alarm = in_section(
    "Watching, with an alarm",
    click.option(
        "--alarm-above",
        "above",
        type=float,
        callback=_finite,
        help="Exit with code 3 if the error of a target is above, by the first method. Given once, it stays "
        "for later calls of a --state.",
    ),
    click.option(
        "--alarm-on",
        "on",
        type=OneOf(["error", "low"]),
        default="error",
        help="What has to be above: the estimate, or the lower end of its interval.",
    ),
    click.option(
        "--for",
        "n",
        type=click.IntRange(1),
        default=1,
        help="Ring only when it was above in so many consecutive updates of --state.",
    ),
    click.option(
        "--state",
        type=click.Path(file_okay=False, path_type=Path),
        help="Folder that keeps the fitted model and what the targets have told. Fitted where it is not "
        "there yet; later calls add the target cells of their STORE, without --model and --source.",
    ),
    click.option(
        "--forget",
        type=click.FloatRange(0, 1),
        default=0.0,
        help="With --state: share of the past that each update forgets. With 0 all cells since the start "
        "count, so that a bad night is diluted, and lingers; with 1 this update's cells alone: --forget 1 "
        "--for 3 rings after three bad nights in a row. Given once, it stays for later calls.",
    ),
)
