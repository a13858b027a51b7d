"""scaleshift slices: where does a trained model fail?  Rows with more errors than the rest, in words."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from scaleshift.cli import completing, html_page, options, planned, printing, stopping, trust, zarr_groups
from scaleshift.cli.helping import OneOf, Verb, in_section
from scaleshift.cli.html_page import PAGE
from scaleshift.cli.opening import reading
from scaleshift.cli.output import plain
from scaleshift.cli.results import SLICES as RESULT
from scaleshift.cli.slice_data import Asked, SliceData, read
from scaleshift.doing import doing

if TYPE_CHECKING:
    import xarray as xr

    from scaleshift.blocks.plan import Plan

DEFAULT_COMPONENTS = 25
METHODS = {"domino": "DominoSlicer", "spotlight": "SpotlightSlicer"}
TABLE, PICTURE, SLICER, MEMBERSHIPS = "slices.csv", "slices.png", "slicer", "memberships.zarr"


def _components(context: click.Context, parameter: click.Parameter, text: str) -> int | str:
    """The word "auto" or a whole number."""
    if text == "auto":
        return text
    if not text.isdecimal() or int(text) < 1:
        raise click.BadParameter(f"{text!r}: expected 'auto' or a whole number from 1")
    return int(text)


@click.command(
    cls=Verb,
    examples="""
scaleshift slices study.zarr --model classifier.skops --output results
scaleshift slices study.zarr --model m.onnx --select "sample != S01 and sample != S02"
scaleshift slices study.zarr --predictions predicted --select "day == 3"
scaleshift slices data.zarr --embeddings embedding --targets label --predictions probability
""",
)
@options.store
@in_section(
    "The model",
    click.option(
        "--model",
        type=click.Path(path_type=Path),
        help="The trained model: .onnx (extra onnx) or .skops (extra skops). It is run on the features, or "
        "on the columns that it names. Pickles can run any code: they are opened with --trust-pickle alone.",
    ),
    trust.of_models,
    click.option(
        "--predictions",
        metavar="COLUMN",
        shell_complete=completing.outcomes,
        help="In place of --model: a column of obs (predicted labels, or the probability of the second of "
        "two labels), a column of X (that probability), or columns A,B,... of X, one probability a label.",
    ),
)
@in_section(
    "Which rows",
    options.select("look at"),
    options.markers,
    click.option(
        "--embeddings", metavar="NAME", help="STORE is no study: its variable (row, d) of embeddings."
    ),
    click.option("--targets", metavar="NAME", help="With --embeddings: its variable (row) of true labels."),
    options.invalid,
)
@in_section(
    "How",
    click.option(
        "--method",
        type=OneOf(list(METHODS)),
        default="domino",
        help="domino: components of a mixture of embeddings, labels and predictions. spotlight: regions of "
        "high loss.",
    ),
    click.option("--slices", "n_slices", type=click.IntRange(1), default=5, help="How many."),
    click.option(
        "--components",
        default=str(DEFAULT_COMPONENTS),
        metavar="N|auto",
        callback=_components,
        help="Of domino's mixture; auto compares 5 to 40, in the same passes.",
    ),
    click.option("--seed", default=0, help="Of the start, and of the rows held out."),
)
@options.results(
    options.output_of(f"{PAGE}, {TABLE}, {PICTURE}, {RESULT} and the fitted {SLICER} (ss.load opens it)"),
    click.option(
        "--memberships",
        is_flag=True,
        help=f"Write {MEMBERSHIPS} too: how much each row belongs to each slice, (row, slice).",
    ),
    options.as_json,
    options.quiet,
)
@options.running(options.scheduler, stopping.checkpoint("the state of the fit"), planned.option)
@click.pass_context
def slices(
    context: click.Context,
    method: str,
    n_slices: int,
    components: int | str,
    seed: int,
    checkpoint: Path | None,
    output: Path | None,
    memberships: bool,
    plan_only: bool,
    as_json: bool,
    quiet: bool,
    scheduler: str,
    **given: Any,
) -> None:
    """Slices of STORE in which a trained model fails more often than elsewhere.

    STORE is a study with labels (scaleshift ingest, scaleshift label): its features are the embeddings, its
    labels the truth. Or any Zarr v3 group with arrays of embeddings, labels and predictions. A fifth of the
    rows has no say in what the slices are, and tells whether they are worse than the rest: "q" is the share
    of false discoveries to expect among the slices up to that q.

    Leave out the samples that the model was trained on, as the second line below does: a model fails less on
    what it has seen.
    """
    asked = Asked(**given)
    asked.check()
    if memberships and output is None:
        raise click.UsageError("--memberships goes with --output, where they are written")
    passed = components if options.passed(context, ["components"]) else None
    slicer = _slicer(method, n_slices, passed, seed, checkpoint)
    slicer.set_params(invalid=asked.invalid)
    options.refuse_inside(output, asked.store)
    options.make_folder(None if plan_only else output)
    _refuse_foreign(output, memberships)
    with options.computing(scheduler, quiet), reading(asked.store):
        data = read(asked)
        if plan_only:
            planned.end(context, _plan(slicer, data), as_json)
        with doing("finding slices"):
            slicer.fit(**data.arguments).set_params(checkpoint=None)  # what is written does not depend on it
        with doing("telling what they are"):
            result = _described(slicer, asked)
        left_out = printing.left_out(slicer.n_invalid_, "row")
        written = [] if output is None else write(slicer, data, result, output, memberships)
    deliver(result, [*data.remarks, *left_out, *written], as_json, quiet)


def _refuse_foreign(output: Path | None, memberships: bool) -> None:
    """Raise before a long fit where its results could not be written."""
    from scaleshift import persistence

    if output is None:
        return
    html_page.refuse_foreign(output)
    for name in (RESULT, *([MEMBERSHIPS] if memberships else [])):
        zarr_groups.refuse_foreign(output / name)
    if (output / SLICER).exists():
        persistence.load(output / SLICER)


def _plan(slicer: Any, data: SliceData) -> Plan:
    """What the fit would cost."""
    from scaleshift.blocks.plan import explain

    outcomes = {"pred_probs": data.pred_probs, "sample_weight": data.sample_weight}
    return explain(slicer, data.embeddings, data.targets, **outcomes)


def _slicer(
    method: str, n_slices: int, components: int | str | None, seed: int, checkpoint: Path | None
) -> Any:
    """The slicer of a name; `components` None where none were asked for."""
    from scaleshift import slices as package

    settings: dict[str, Any] = {"n_slices": n_slices, "random_state": seed, "checkpoint": checkpoint}
    if components is not None:
        if method != "domino":
            raise click.UsageError(f"--components does not go with --method {method}: it is for domino")
        if components != "auto" and int(components) < n_slices:
            raise click.UsageError(f"--components {components} are fewer than --slices {n_slices}")
        settings["n_mixture_components"] = components
    elif method == "domino" and n_slices > DEFAULT_COMPONENTS:
        raise click.UsageError(
            f"--slices {n_slices} are more than {DEFAULT_COMPONENTS} --components: raise these"
        )
    return getattr(package, METHODS[method])(**settings)


def _described(slicer: Any, asked: Asked) -> xr.Dataset:
    """What each slice is, and where the result comes from."""
    origin = {
        "study": asked.store,
        "model": None if asked.model is None else str(asked.model),
        "predictions": asked.predictions,
        "select": asked.select,
    }
    return slicer.describe().assign_attrs({name: text for name, text in origin.items() if text is not None})


def write(slicer: Any, data: SliceData, result: xr.Dataset, output: Path, memberships: bool) -> list[str]:
    """Write page, table, picture, result, slicer and memberships; the remarks returned say what was written.

    Memberships of an earlier run that this one does not write are removed: they would be taken for its own.
    """
    from scaleshift import report

    names, remarks = [PAGE, TABLE, PICTURE, RESULT, SLICER], []
    with html_page.after_all(output, result):
        report.slice_table(result, output / TABLE)
        report.slice_plot(result, output / PICTURE)
        zarr_groups.write(result, output / RESULT)
        slicer.save(output / SLICER)
        if memberships:
            zarr_groups.write(_memberships(slicer, data, result), output / MEMBERSHIPS)
            names.append(MEMBERSHIPS)
        elif zarr_groups.is_ours(output / MEMBERSHIPS):
            shutil.rmtree(output / MEMBERSHIPS)
            remarks.append(f"removed {output / MEMBERSHIPS}: an earlier run wrote it, this one has none")
    return [printing.wrote(output / name for name in names), *remarks]


def _memberships(slicer: Any, data: SliceData, result: xr.Dataset) -> xr.Dataset:
    """How much each row belongs to each slice, lazy, in regular chunks of rows."""
    import xarray as xr

    lazy = slicer.predict_proba(**data.known).astype(np.float32)
    # Zarr wants chunks of one size, and a selection of samples cuts them: memberships are regrouped, never X.
    lazy = lazy.rechunk({0: max(lazy.chunks[0])})
    attrs = {
        "long_name": "membership",
        "description": "how much the row belongs to the slice, from 0 to 1; NaN: left out",
    }
    return xr.Dataset(
        {"membership": (("row", "slice"), lazy, attrs)},
        coords={"slice": result["slice"].values},
        attrs={
            name: result.attrs[name]
            for name in (zarr_groups.OURS, "method", "seed", "study", "select")
            if name in result.attrs
        },
    )


def deliver(result: xr.Dataset, remarks: list[str], as_json: bool, quiet: bool) -> None:
    """Print a result, and what is to be said of it."""
    from scaleshift import report

    if as_json:
        click.echo(json.dumps(to_json(result), indent=2))
    else:
        printing.show(report.slice_text, result)
    printing.say(remarks, quiet)


def to_json(result: xr.Dataset) -> dict[str, Any]:
    """The result for machines, best slice first; NaN becomes null. Version 1 of the schema."""
    overall, found = {}, [{"slice": number} for number in result["slice"].values.tolist()]
    for name, variable in result.data_vars.items():
        if not variable.dims:
            overall[str(name)] = plain(variable.item())
            continue
        if variable.dims[0] != "slice":
            continue
        for entry, values in zip(found, variable.values.tolist(), strict=True):
            entry[str(name)] = plain(values)
        if variable.dims == ("slice", "feature"):
            features = result["feature"].values.tolist()
            for entry in found:
                entry[str(name)] = dict(zip(features, entry[str(name)], strict=True))
    attributes = {str(name): plain(value) for name, value in result.attrs.items()}
    if "parameters" in attributes:  # a dataset's attributes are text
        attributes["parameters"] = json.loads(attributes["parameters"])
    labels = {name: result[name].values.tolist() for name in ("label", "predicted") if name in result.coords}
    return {
        "schema": "scaleshift.slices/1",
        "attributes": attributes,
        "overall": overall,
        **labels,
        "slices": found,
    }
