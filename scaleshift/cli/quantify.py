"""scaleshift quantify: class proportions of unlabelled samples from the labelled cells of others."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from scaleshift.cli import completing, html_page, options, planned, stopping, zarr_groups
from scaleshift.cli.choice import AUTO, OPTIONS, Wanted
from scaleshift.cli.helping import OneOf, Verb, in_section
from scaleshift.cli.opening import EVERY, Opening
from scaleshift.cli.origin import with_origin
from scaleshift.cli.output import gated_shares, parents_of
from scaleshift.cli.quantified import deliver
from scaleshift.cli.results import PROPORTIONS
from scaleshift.cli.unfinished import Unfinished
from scaleshift.doing import doing
from scaleshift.errors import DataError
from scaleshift.quantify import methods
from scaleshift.quantify.flags import codes

if TYPE_CHECKING:
    import xarray as xr

    from scaleshift.blocks.plan import Plan

ALARM = 3  # exit code: done, and a threshold was passed
OF_THE_PLAN = "of learning from the source; choosing a method (--method auto) and answering come on top"
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


@click.command(
    cls=Verb,
    examples="""
scaleshift quantify study.zarr --source "sample in (S01, S09)" --output results
scaleshift quantify study.zarr --source "day in (0, 7) and gated == true" --target "arm == drug"
scaleshift quantify study.zarr --source "gated == true" --target all
scaleshift quantify study.zarr --source "gated == true and sample != S3" --target "sample == S3"
scaleshift quantify study.zarr --source "sample == S01" --save-model gates
scaleshift quantify other.zarr --model gates
""",
)
@options.store
@in_section(
    "Which samples",
    click.option(
        "--source",
        shell_complete=completing.selection,
        help=f"Samples to learn from: {options.SELECTION}.",
    ),
    click.option(
        "--target",
        shell_complete=completing.selection,
        help='Samples to quantify: "sample == S3", or all. All others where left out.',
    ),
    options.markers,
    click.option(
        "--scaling",
        type=OneOf(["none", "robust", "z"]),
        help="Scale the markers of each sample by its own quantiles, or mean and deviation. Where left out: "
        "as the study, or the saved model, is scaled.",
    ),
    options.invalid,
)
@in_section(
    "How",
    click.option(
        "--method",
        type=OneOf([AUTO, *methods.available()]),
        default=AUTO,
        metavar="METHOD",
        help="auto: where 3 source samples or more have labels, the one that answers best for these (see "
        "scaleshift compare), else the default. soft: some cells may belong to no class of the source. "
        f"Methods: {', '.join(methods.available())}.",
    ),
    click.option(
        "--bandwidth",
        default="auto",
        callback=_bandwidth,
        help="Of the kernel, in the units of the markers, for methods that have one.",
    ),
    click.option(
        "--features",
        "n_features",
        type=click.IntRange(2, 100_000),
        help="Random Fourier features (1000 where left out), or landmarks (128), for methods that have some.",
    ),
    click.option(
        "--bootstrap",
        "n_bootstrap",
        type=click.IntRange(0),
        default=200,
        callback=_replicates,
        help="Replicates behind the intervals; 0: neither intervals nor a test of label shift.",
    ),
    click.option(
        "--level",
        type=click.FloatRange(0, 1, min_open=True, max_open=True),
        default=0.95,
        help="How often an interval should hold the proportion.",
    ),
    click.option(
        "--resample",
        type=OneOf(["cells", "samples"]),
        help="Whose differences the intervals take from the source: those of its cells, or of its samples. "
        "Where left out: samples if it has 5 or more, else cells.",
    ),
    click.option("--seed", default=0, help="Of the features and the intervals."),
)
@in_section(
    "Saved models",
    click.option("--save-model", type=click.Path(path_type=Path), help="Save what was learned there."),
    click.option(
        "--model",
        type=click.Path(path_type=Path),
        help="A saved model, in place of --source. Without --target it answers for all samples of STORE.",
    ),
)
@options.results(
    options.output_of(
        "report.html, proportions.csv, .png, .xlsx and .zarr, and gated.csv where targets have labels"
    ),
    options.as_json,
    options.quiet,
    click.option(
        "--alarm",
        default="",
        show_default=False,
        metavar="LETTERS",
        callback=_alarm,
        help="Exit with code 3 if a sample has one of these flags, such as SU (label shift rejected, "
        "unknown).",
    ),
)
@options.running(
    options.scheduler,
    click.option(
        "--resume",
        is_flag=True,
        help="Go on with an interrupted run, whose finished samples --output holds.",
    ),
    planned.option,
)
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
    plan_only: bool,
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

    A run that was interrupted goes on where it stopped: the same command with --resume.
    """
    unfinished = Unfinished(output, resume)
    stopping.goes_on(unfinished.way)
    _check_usage(context)
    wanted = Wanted(method, seed, settings, frozenset(options.passed(context, OPTIONS)))
    if model is None:
        wanted.check()
    options.refuse_inside(output, store)
    if output is not None:
        html_page.refuse_foreign(output)
        zarr_groups.refuse_foreign(output / PROPORTIONS)
    folder = options.folder_for(None if plan_only else output)
    with folder, options.computing(scheduler, quiet), unfinished.alone():
        if plan_only:
            if model is None and not as_json and not quiet:
                click.echo(OF_THE_PLAN, err=True)
            planned.end(context, _plan(store, source, target, model, wanted, markers, scaling), as_json)
        if model is not None:
            prediction = options.passed(context, OF_THE_PREDICTION)
            result = apply(store, model, target, unfinished, scaling=scaling, **prediction)
        else:
            study = Opening(store, markers, scaling)
            result = run(study, str(source), target, wanted, unfinished, save_model=save_model)
        with doing("counting gates"):
            gated = gated_shares(result, store)
    deliver(result, gated, output, as_json, quiet, parents_of(result, store))
    unfinished.end()
    if "S" in alarm and np.isnan(result["p_value"].values).all() and bool((result["n_cells"] > 0).any()):
        raise DataError(f"--alarm S: {_without_test(result, model)}, so there is no test of label shift")
    if set(alarm) & {code for flag in result["flag"].values for code in codes(flag)}:
        context.exit(ALARM)


def _check_usage(context: click.Context) -> None:
    """Refuse options that have no meaning together."""
    given = context.params
    if "S" in given["alarm"] and not given["n_bootstrap"]:
        raise click.UsageError("--alarm S is the test of label shift, which --bootstrap 0 leaves out")
    if given["resume"] and given["output"] is None:
        raise click.UsageError("--resume goes on with what --output holds: pass the --output of that run")
    if given["model"] is None:
        if given["source"] is None:
            raise click.UsageError("pass --source, the samples to learn from, or --model, a saved model")
        return
    flags = {parameter.name: parameter.opts[0] for parameter in context.command.params}
    for name in options.passed(context, (*OF_THE_FIT, "save_model")):
        raise click.UsageError(f"{flags[name]} does not go with --model, which has been fitted already")


def _without_test(result: xr.Dataset, model: Path | None) -> str:
    """Why there is no p-value."""
    if model is not None and result.attrs.get("resampled") == "none":
        return f"{model} was fitted without folds (n_bootstrap=0)"
    return f"the method is {result.attrs.get('method', 'one without')}"


def _plan(
    store: str,
    source: str | None,
    target: str | None,
    model: Path | None,
    wanted: Wanted,
    markers: list[str] | None,
    scaling: str | None,
) -> Plan:
    """What it would cost to learn from the source, or to answer with a saved model.

    Where the method is to be chosen, of the default one.
    """
    from scaleshift.blocks.plan import explain

    if model is None:
        study = Opening(store, markers, scaling)
        name = methods.default() if wanted.method == AUTO else wanted.method
        return explain(wanted.make(name), study.labelled(study.select(str(source), "--source")))
    fitted, study, targets = opened(store, model, target, scaling)
    return explain(fitted, study.cells(targets))


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
    labelled = study.labelled(sources)
    job = {**study.told, "sources": sources, "targets": targets, **wanted.told}
    unfinished.begin(job, wanted.seed, labelled)
    with doing("choosing a method"):
        name, why = unfinished.part("choice", lambda: tuple(wanted.choose(labelled)))
    with doing("learning from the source"):
        model = unfinished.part("model", lambda: wanted.fitted(name, labelled, unfinished.folder("fit")))
    if save_model is not None:
        model.save(save_model)
    cells = study.cells(targets)
    asked = {"source": source, "target": target or "all samples but those of the source"}
    with doing("answering"):
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
    fitted, study, targets = opened(store, model, target, scaling)
    for name in sorted(set(parameters) - set(fitted.get_params(deep=False))):
        raise click.UsageError(
            f"{OPTIONS[name]} does not go with {model}: a {type(fitted).__name__} has no {name}"
        )
    fitted.set_params(**parameters)
    job = {**study.told, "targets": targets, "model": str(model), "parameters": fitted.get_params()}
    unfinished.begin(job, fitted.seed_)
    cells, asked = study.cells(targets), {"model": str(model), "target": target or EVERY}
    with doing("answering"):
        found = fitted.predict(cells, checkpoint=unfinished.folder("samples"))
    return with_origin(found, store, study.manifest, cells, asked)


def opened(
    store: str, model: Path, target: str | None, scaling: str | None
) -> tuple[Any, Opening, list[Any]]:
    """A saved model, the study as it was for the model, and the samples that it answers for."""
    from scaleshift import persistence
    from scaleshift.slices.base import Slicer

    fitted = persistence.load(model)
    if not hasattr(fitted, "predict") or isinstance(fitted, Slicer):
        raise DataError(f"{model} holds a {type(fitted).__name__}: --model expects a saved quantifier")
    learned = None if fitted.treatment_ is None else fitted.treatment_["scaling"] or "none"
    study = Opening(store, fitted.markers_, scaling or learned)
    return fitted, study, list(study.manifest.samples) if target is None else study.select(target, "--target")
