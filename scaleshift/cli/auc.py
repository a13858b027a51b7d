"""scaleshift auc: which few features rank the cells of one label above all others, and how well?"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from scaleshift.cli import completing, html_page, options, planned, printing, stopping, zarr_groups
from scaleshift.cli.auc_data import Asked, AucData, read
from scaleshift.cli.helping import OneOf, Verb, in_section
from scaleshift.cli.html_page import PAGE
from scaleshift.cli.opening import reading
from scaleshift.cli.output import plain
from scaleshift.cli.results import FEATURES, PATH
from scaleshift.doing import doing

if TYPE_CHECKING:
    import xarray as xr

    from scaleshift.blocks.plan import Plan

TABLE, PATH_TABLE, PICTURE = "features.csv", "path.csv", "auc.png"
MODEL = "ranking"

SAME_SAMPLES = "held-out cells are of the same samples: --by-sample tells of samples not seen"


def _sizes(context: click.Context, parameter: click.Parameter, text: str | None) -> int | list[int] | None:
    """A whole number, or several between commas to choose from."""
    if text is None:
        return None
    given = options.names(text)
    if not given or not all(one.isdecimal() and int(one) for one in given):
        raise click.BadParameter(f"{text!r}: expected a whole number from 1, or several with commas between")
    return int(given[0]) if len(given) == 1 else [int(one) for one in given]


def _folds(context: click.Context, parameter: click.Parameter, n: int) -> int | None:
    """From 2, or 0 for none."""
    if n == 1:
        raise click.BadParameter("1 fold leaves nothing to learn from: expected 0, or 2 and more")
    return n or None


def _solver(context: click.Context, parameter: click.Parameter, name: str) -> str:
    """A known name; solvers are imported where one is asked for, since that takes a second."""
    if name != "auto":
        from scaleshift.auc.solvers import SOLVERS
        from scaleshift.spelling import meant

        if name not in SOLVERS:
            known = ["auto", *SOLVERS]
            raise click.BadParameter(f"{name!r}: expected one of {', '.join(known)}{meant(name, known)}")
    return name


@click.command(
    cls=Verb,
    examples="""
scaleshift auc study.zarr --positive NK --output results
scaleshift auc study.zarr --positive pDC --against-unlabelled --selection one_se
scaleshift auc study.zarr --positive "CD8 T" --negative "CD4 T" --select "day == 3" --features 5
""",
)
@options.store
@in_section(
    "Which cells",
    click.option(
        "--positive",
        required=True,
        metavar="LABEL",
        shell_complete=completing.labels,
        help="The label whose cells are to rank highest.",
    ),
    click.option(
        "--negative",
        multiple=True,
        metavar="LABEL,LABEL",
        shell_complete=completing.label_list,
        help="Labels that they are to rank above; can be repeated. Where left out: all others.",
    ),
    click.option(
        "--against-unlabelled",
        is_flag=True,
        help="Cells without a label are negatives too, such as those outside a rare gate; in samples in "
        "which no cell has a label they are not. Where left out: they are not learned from.",
    ),
    options.select("learn from"),
    options.markers,
    options.invalid,
)
@in_section(
    "How",
    click.option(
        "--features",
        "k",
        metavar="N|N,N,...",
        callback=_sizes,
        help="How many features, or some numbers to choose from by cross-validation. Where left out: up to "
        "100.",
    ),
    click.option(
        "--selection",
        type=OneOf(["best", "one_se"]),
        default="best",
        help="best: as many features as rank held-out cells best. one_se: the fewest within a standard error "
        "of that.",
    ),
    click.option(
        "--solver",
        default="auto",
        metavar="NAME",
        callback=_solver,
        shell_complete=completing.some_of("auto", "moments", "stream", "screen", "sht"),
        help="auto: moments or stream, by the number of features. moments: covariances of all features, in "
        "one pass. stream: of the most promising, for thousands of features. screen: each feature by itself, "
        "what the others are to be measured by. sht: stochastic hard thresholding, as published.",
    ),
    click.option(
        "--cv",
        type=click.IntRange(0),
        default=5,
        callback=_folds,
        help="Folds of the cross-validation; 0: none, neither a held-out AUC nor stability.",
    ),
    click.option(
        "--by-sample",
        is_flag=True,
        help="Folds and halves are of whole samples: the held-out AUC is that of samples not seen, and "
        "stability that of other samples. Needs several with both kinds of cells.",
    ),
    click.option("--seed", default=0, help="Of the folds, and of the halves behind stability."),
)
@options.results(
    options.output_of(
        f"{PAGE}, {TABLE}, {PATH_TABLE}, {PICTURE}, {FEATURES}, {PATH} and the fitted {MODEL} (ss.load "
        "opens it)"
    ),
    options.as_json,
    options.quiet,
)
@options.running(options.scheduler, stopping.checkpoint("the state of the fit"), planned.option)
@click.pass_context
def auc(
    context: click.Context,
    store: str,
    positive: str,
    negative: Sequence[str],
    against_unlabelled: bool,
    select: str | None,
    markers: list[str] | None,
    by_sample: bool,
    seed: int,
    output: Path | None,
    plan_only: bool,
    as_json: bool,
    quiet: bool,
    scheduler: str,
    **settings: Any,
) -> None:
    """The few features of STORE that rank the cells of one label above all others.

    STORE is a study with labels (scaleshift ingest, scaleshift label). The ranking is a weighted sum of the
    features; its AUC is the probability that a positive cell stands above a negative one, and is told of
    cells that had no say in it: of the same samples, or of others (--by-sample).
    """
    from scaleshift.auc.sparse_auc import SparseAUC

    asked = Asked(store, positive, negative, against_unlabelled, select, markers)
    if settings["cv"] is None and settings["k"] is None:
        raise click.UsageError("--cv 0 leaves nothing to choose the number of features by: pass --features N")
    options.refuse_inside(output, store)
    options.make_folder(None if plan_only else output)
    _refuse_foreign(output)
    with options.computing(scheduler, quiet), reading(store):
        data = read(asked)
        model = SparseAUC(random_state=seed, pos_label=data.positive, **settings)
        if plan_only:
            planned.end(context, _plan(model, data, by_sample), as_json)
        with doing("learning the ranking"):
            model.fit(data.cells, groups="sample" if by_sample else None)
        result, path_ = _described(model, asked, data)
    written = [] if output is None else write(model, result, path_, output)
    deliver(
        result, path_, [*data.remarks, *_of_fit(model, data, settings, by_sample), *written], as_json, quiet
    )


def _refuse_foreign(output: Path | None) -> None:
    """Raise before a long fit where its results could not be written."""
    from scaleshift import persistence

    if output is None:
        return
    html_page.refuse_foreign(output)
    for name in (FEATURES, PATH):
        zarr_groups.refuse_foreign(output / name)
    if (output / MODEL).exists():
        persistence.load(output / MODEL)


def _plan(model: Any, data: AucData, by_sample: bool) -> Plan:
    """What the fit would cost."""
    from scaleshift.blocks.plan import explain

    return explain(model, data.cells, groups="sample" if by_sample else None)


def _of_fit(model: Any, data: AucData, settings: dict[str, Any], by_sample: bool) -> list[str]:
    """What is to be said of what was done otherwise than asked."""
    remarks = printing.left_out(model.n_invalid_, "cell")
    if data.cells.sizes["sample"] > 1 and settings["cv"] is not None and not by_sample:
        remarks.append(SAME_SAMPLES)
    if settings["k"] is not None and np.max(settings["k"]) > model.n_features_in_:
        remarks.append(f"--features {np.max(settings['k'])}: the study has {model.n_features_in_}")
    if settings["cv"] is not None and model.n_folds_ < settings["cv"]:
        many = "samples" if by_sample else "positive cells"
        remarks.append(f"--cv {settings['cv']}: {model.n_folds_} folds, as many as there are {many}")
    return remarks


def _described(model: Any, asked: Asked, data: AucData) -> tuple[xr.Dataset, xr.Dataset]:
    """Features and path, and where they come from."""
    from scaleshift.cli.opening import Opening
    from scaleshift.cli.origin import transform_in_words

    features = data.cells["marker"].values.tolist()
    origin = {
        "study": asked.store,
        "positive": str(data.positive),
        "negative": data.negatives,
        "select": asked.select,
        "transform": transform_in_words(Opening(asked.store).manifest.transform, features),
        "solver": model.solver_,
    }
    known = {name: text for name, text in origin.items() if text is not None}
    return model.describe().assign_attrs(known), model.path_.assign_attrs(known)


def write(model: Any, result: xr.Dataset, path_: xr.Dataset, output: Path) -> list[str]:
    """Write page, tables, picture, datasets and the model; the remark returned says what was written."""
    from scaleshift import report

    with html_page.after_all(output, result, path_):
        report.auc_table(result, output / TABLE)
        report.auc_path_table(path_, output / PATH_TABLE)
        report.auc_plot(result, path_, output / PICTURE)
        zarr_groups.write(result, output / FEATURES)
        zarr_groups.write(path_, output / PATH)
        model.save(output / MODEL)
    names = (PAGE, TABLE, PATH_TABLE, PICTURE, FEATURES, PATH, MODEL)
    return [printing.wrote(output / name for name in names)]


def deliver(result: xr.Dataset, path_: xr.Dataset, remarks: list[str], as_json: bool, quiet: bool) -> None:
    """Print a result, and what is to be said of it."""
    from scaleshift import report

    if as_json:
        click.echo(json.dumps(to_json(result, path_), indent=2))
    else:
        printing.show(report.auc_text, result, path_)
    printing.say(remarks, quiet)


def to_json(result: xr.Dataset, path_: xr.Dataset) -> dict[str, Any]:
    """The result for machines, features of the ranking first; NaN becomes null. Version 1 of the schema."""
    from scaleshift import report

    ranking = {str(n): plain(v.item()) for n, v in result.data_vars.items() if not v.dims}
    attributes = {str(name): plain(value) for name, value in result.attrs.items()}
    attributes["parameters"] = json.loads(attributes["parameters"])  # a dataset's attributes are text
    names, path = path_["feature"].values.tolist(), []
    rows = report.auc_path_table(path_).drop(columns="features").to_dict("records")
    for row, coef in zip(rows, path_["coef"].transpose("k", "feature").values, strict=True):
        weights = {names[i]: float(coef[i]) for i in np.flatnonzero(coef).tolist()}
        path.append({**{str(name): plain(value) for name, value in row.items()}, "coef": weights})
    features = report.auc_table(result).to_dict("records")
    return {
        "schema": "scaleshift.auc/1",
        "attributes": attributes,
        "ranking": ranking,
        "features": [{str(name): plain(value) for name, value in row.items()} for row in features],
        "path": path,
    }
