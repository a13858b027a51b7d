"""scaleshift quantify: class proportions of unlabelled samples from the labelled cells of others."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np
import pandas as pd
import xarray as xr
from click.core import ParameterSource
from rich.console import Console

from scaleshift.cli import options
from scaleshift.cli.choice import AUTO, OPTIONS, Wanted
from scaleshift.cli.opening import EVERY, Opening
from scaleshift.cli.origin import with_origin
from scaleshift.cli.output import beside_gates, gated_shares, parents_of, plain, write
from scaleshift.cli.unfinished import Unfinished
from scaleshift.errors import DataError
from scaleshift.quantify.flags import codes
from scaleshift.quantify.methods import available

MIN_WIDTH = 60
ALARM = 3  # exit code: done, and a threshold was passed
OF_THE_PREDICTION = ("n_bootstrap", "level", "resample", "invalid")
OF_THE_FIT = ("source", "method", "bandwidth", "n_features", "seed", "markers")  # a saved model has its own


def _bandwidth(context: click.Context, parameter: click.Parameter, text: str) -> float | str:
    """The word "auto" or a positive number; anything else is wrong usage."""
    if text == "auto":
        return text
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise click.BadParameter(f"{text!r}: expected 'auto' or a positive number")
    return number


def _replicates(context: click.Context, parameter: click.Parameter, n: int) -> int:
    """0 or from 2; a single replicate has no spread."""
    if n == 1:
        raise click.BadParameter("1 replicate has no spread: expected 0, or 2 and more")
    return n


def _alarm(context: click.Context, parameter: click.Parameter, letters: str) -> str:
    """Letters of flags; an unknown one would never ring."""
    from scaleshift.quantify.flags import REASONS

    letters = "".join(letter for letter in letters.upper() if letter not in " ,")
    unknown = set(letters) - set(REASONS)
    if unknown:
        known = ", ".join(f"{code} ({reason.phrase})" for code, reason in REASONS.items())
        raise click.BadParameter(f"no flag has the letter {', '.join(sorted(unknown))}; there are {known}")
    return letters


@click.command()
@click.argument("store")
@click.option("--source", help='Samples to learn from: "sample in (S1, S2)", "day == 3 and arm != control".')
@click.option(
    "--model",
    type=click.Path(path_type=Path),
    help="A saved model, in place of --source. Without --target it answers for all samples of STORE.",
)
@click.option("--save-model", type=click.Path(path_type=Path), help="Save what was learned there.")
@click.option("--target", help='Samples to quantify: "sample == S3", or all. All others where left out.')
@click.option(
    "--method",
    type=click.Choice([AUTO, *available()]),
    default=AUTO,
    show_default=True,
    help="auto: where 3 source samples or more have labels, the one that answers best for these (see "
    "scaleshift compare), else the default. soft: some cells may belong to no class of the source.",
)
@click.option(
    "--bandwidth",
    default="auto",
    show_default=True,
    callback=_bandwidth,
    help="Of the kernel, in the units of the markers, for methods that have one.",
)
@click.option(
    "--features",
    "n_features",
    type=click.IntRange(2, 100_000),
    help="Random Fourier features (1000 where left out), or landmarks (128), for methods that have some.",
)
@click.option(
    "--bootstrap",
    "n_bootstrap",
    type=click.IntRange(0),
    default=200,
    show_default=True,
    callback=_replicates,
    help="Replicates behind the intervals; 0: neither intervals nor a test of label shift.",
)
@click.option(
    "--level",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.95,
    show_default=True,
    help="How often an interval should hold the proportion.",
)
@click.option(
    "--resample",
    type=click.Choice(["cells", "samples"]),
    help="Whose differences the intervals take from the source: those of its cells, or of its samples. Where "
    "left out: samples if it has 5 or more, else cells.",
)
@click.option(
    "--invalid",
    type=click.Choice(["raise", "drop"]),
    default="raise",
    show_default=True,
    help="What to do with cells that hold NaN or infinite values.",
)
@options.markers
@click.option(
    "--scaling",
    type=click.Choice(["none", "robust", "z"]),
    help="Scale the markers of each sample by its own quantiles, or mean and deviation. Where left out: as "
    "the study, or the saved model, is scaled.",
)
@click.option("--seed", default=0, show_default=True, help="Of the features and the intervals.")
@click.option(
    "--alarm",
    default="",
    metavar="LETTERS",
    callback=_alarm,
    help="Exit with code 3 if a sample has one of these flags, such as SU (label shift rejected, unknown).",
)
@click.option(
    "--resume", is_flag=True, help="Go on with an interrupted run, whose finished samples --output holds."
)
@options.all_of(options.output, options.as_json, options.quiet, options.scheduler)
@click.pass_context
def quantify(
    context: click.Context,
    store: str,
    source: str | None,
    model: Path | None,
    save_model: Path | None,
    target: str | None,
    alarm: str,
    markers: list[str] | None,
    scaling: str | None,
    resume: bool,
    output: Path | None,
    as_json: bool,
    quiet: bool,
    scheduler: str,
    method: str,
    seed: int,
    **settings: Any,
) -> None:
    """Class proportions of the samples of STORE.

    STORE is a study made by scaleshift ingest, with labels by scaleshift label. The labelled cells of the
    source samples are learned from; cells without a label are left out. Samples are selected by name or by
    any column of their metadata: ==, !=, in (a, b), joined by "and".

    \b
    scaleshift quantify study.zarr --source "sample in (S01, S09)" --output results
    scaleshift quantify study.zarr --source "gated == true and day in (0, 7)" --target "arm == treated"
    scaleshift quantify study.zarr --source "gated == true" --target all
    scaleshift quantify study.zarr --source "gated == true and sample != S3" --target "sample == S3"
    scaleshift quantify study.zarr --source "sample == S01" --save-model gates
    scaleshift quantify other.zarr --model gates

    A run that was interrupted goes on where it stopped: the same command with --resume.
    """
    _one_way_to_learn(context, source, model)
    if "S" in alarm and not settings["n_bootstrap"]:
        raise click.UsageError("--alarm S is the test of label shift, which --bootstrap 0 leaves out")
    if resume and output is None:
        raise click.UsageError("--resume goes on with what --output holds: pass the --output of that run")
    wanted = Wanted(method, seed, settings, frozenset(_given(context, tuple(OPTIONS))))
    if model is None:
        wanted.check()
    options.make_folder(output)
    unfinished = Unfinished(output, resume)
    with options.computing(scheduler, quiet):
        if model is not None:
            prediction = _given(context, OF_THE_PREDICTION)
            result = apply(store, model, target, unfinished, scaling=scaling, **prediction)
        else:
            study = Opening(store, markers, scaling)
            result = run(study, str(source), target, wanted, unfinished, save_model=save_model)
        gated = gated_shares(result, store)
    deliver(result, gated, output, as_json, quiet, parents_of(result, store))
    unfinished.end()
    if "S" in alarm and np.isnan(result["p_value"].values).all() and bool((result["n_cells"] > 0).any()):
        raise DataError(f"--alarm S: {_without_test(result, model)}, so there is no test of label shift")
    if set(alarm) & {code for flag in result["flag"].values for code in codes(flag)}:
        context.exit(ALARM)


def _one_way_to_learn(context: click.Context, source: str | None, model: Path | None) -> None:
    """Refuse options that have no meaning together."""
    if model is None:
        if source is None:
            raise click.UsageError("pass --source, the samples to learn from, or --model, a saved model")
        return
    fit_only = {parameter.name: parameter.opts[0] for parameter in context.command.params}
    for name in (*OF_THE_FIT, "save_model"):
        if context.get_parameter_source(name) is not ParameterSource.DEFAULT:
            raise click.UsageError(
                f"{fit_only[name]} does not go with --model, which has been fitted already"
            )


def _given(context: click.Context, names: Sequence[str]) -> dict[str, Any]:
    """Those of the options that were passed: a saved model keeps its own settings for the others."""
    default = ParameterSource.DEFAULT
    return {name: context.params[name] for name in names if context.get_parameter_source(name) is not default}


def _without_test(result: xr.Dataset, model: Path | None) -> str:
    """Why there is no p-value."""
    if model is not None and result.attrs.get("resampled") == "none":
        return f"{model} was fitted without folds (n_bootstrap=0)"
    return f"the method is {result.attrs.get('method', 'one without')}"


def run(
    study: Opening,
    source: str,
    target: str | None,
    wanted: Wanted,
    unfinished: Unfinished | None = None,
    *,
    save_model: Path | None = None,
) -> xr.Dataset:
    """Fit on the source samples of a study and predict its target samples."""
    unfinished = unfinished or Unfinished(None, resume=False)
    sources = study.select(source, "--source")
    others = [name for name in study.manifest.samples if name not in sources]
    targets = others if target is None else study.select(target, "--target")
    if not targets:
        raise click.UsageError("--source selects every sample: none is left to quantify; pass --target all")
    unfinished.begin({**study.told, "sources": sources, "targets": targets, **wanted.told}, wanted.seed)
    labelled = study.labelled(sources)
    name, why = unfinished.part("choice", lambda: tuple(wanted.choose(labelled)))
    model = unfinished.part("model", lambda: wanted.make(name).fit(labelled))
    if save_model is not None:
        model.save(save_model)
    cells = study.cells(targets)
    asked = {"source": source, "target": target or "all samples but those of the source"}
    found = model.predict(cells, checkpoint=unfinished.folder("samples"))
    result = with_origin(found, study.store, study.manifest, cells, asked)
    return result.assign_attrs(choice=f"{name}, {why}") if why else result


def apply(
    store: str,
    model: Path,
    target: str | None,
    unfinished: Unfinished,
    scaling: str | None = None,
    **parameters: Any,
) -> xr.Dataset:
    """Predict the target samples of a store with a saved model, some of its parameters changed."""
    from scaleshift import persistence
    from scaleshift.slices.base import Slicer

    fitted = persistence.load(model)
    if not hasattr(fitted, "predict") or isinstance(fitted, Slicer):
        raise DataError(f"{model} holds a {type(fitted).__name__}: --model expects a saved quantifier")
    for name in sorted(set(parameters) - set(fitted.get_params(deep=False))):
        raise click.UsageError(
            f"{OPTIONS[name]} does not go with {model}: a {type(fitted).__name__} has no {name}"
        )
    learned = None if fitted.treatment_ is None else fitted.treatment_["scaling"] or "none"
    study = Opening(store, fitted.markers_, scaling or learned)
    targets = list(study.manifest.samples) if target is None else study.select(target, "--target")
    fitted.set_params(**parameters)
    job = {**study.told, "targets": targets, "model": str(model), "parameters": fitted.get_params()}
    unfinished.begin(job, fitted.seed_)
    cells, asked = study.cells(targets), {"model": str(model), "target": target or EVERY}
    found = fitted.predict(cells, checkpoint=unfinished.folder("samples"))
    return with_origin(found, store, study.manifest, cells, asked)


def deliver(
    result: xr.Dataset,
    gated: pd.DataFrame | None,
    output: Path | None,
    as_json: bool,
    quiet: bool,
    parents: Mapping[Any, Any] | None = None,
) -> None:
    """Print a result, and write it where --output says."""
    from scaleshift import report
    from scaleshift.report.table import printable

    # Written first: nobody may be reading what is printed.
    remarks = [f"method: {result.attrs['choice']}"] if "choice" in result.attrs else []
    remarks += [] if output is None else write(result, output, gated, parents)
    if as_json:
        click.echo(json.dumps(to_json(result), indent=2))
    else:
        width = max(Console().width, MIN_WIDTH)  # a narrower terminal wraps lines, but no number is cut
        Console(width=width).print(report.text(result, width=width))
        remarks += [] if gated is None else [beside_gates(result, gated)]
    for remark in [] if quiet else remarks:
        click.echo(printable(remark), err=True)  # names come from files


def to_json(result: xr.Dataset) -> dict[str, Any]:
    """The result for machines; NaN becomes null. Version 1 of the schema."""
    from scaleshift.report.about import LISTS
    from scaleshift.report.metadata import sample_columns

    columns = {str(name): variable.values.tolist() for name, variable in result.data_vars.items()}
    scalars = {name: columns.pop(name) for name in list(columns) if not result[name].dims}
    labels = result["label"].values.tolist()
    by_label = [name for name in columns if "label" in result[name].dims]
    described = {name: values.tolist() for name, values in sample_columns(result, ()).items()}
    samples = []
    for i, sample in enumerate(result["sample"].values.tolist()):
        metadata = {name: plain(values[i]) for name, values in described.items()}
        rest = {name: plain(values[i]) for name, values in columns.items() if name not in by_label}
        shares = [
            {"label": label, **{name: plain(columns[name][i][j]) for name in by_label}}
            for j, label in enumerate(labels)
        ]
        flags = {"flag_codes": codes(rest["flag"])}
        samples.append({"sample": sample, "metadata": metadata, **rest, **flags, "labels": shares})
    attributes = {str(k): plain(v) for k, v in {**result.attrs, **scalars}.items()}
    for name in {"parameters", *LISTS} & set(attributes):  # a dataset's attributes are text
        attributes[name] = json.loads(attributes[name])
    return {"schema": "scaleshift.quantify/1", "attributes": attributes, "samples": samples}
