"""scaleshift error: how wrong will a model be on samples whose outcomes are not known?"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from scaleshift.cli import (
    error_options,
    error_state,
    html_page,
    options,
    planned,
    printing,
    stopping,
    zarr_groups,
)
from scaleshift.cli.error_data import Asked, Cells, NoCells, Source, Targets
from scaleshift.cli.error_model import NAMES, open_named
from scaleshift.cli.helping import Verb
from scaleshift.cli.html_page import PAGE
from scaleshift.cli.opening import reading
from scaleshift.cli.output import plain
from scaleshift.cli.results import ERROR as RESULT
from scaleshift.doing import doing
from scaleshift.errors import DataError

if TYPE_CHECKING:
    import xarray as xr

    from scaleshift.blocks.plan import Plan
    from scaleshift.error.monitor import Monitor
    from scaleshift.error.prediction_error import PredictionError
    from scaleshift.error.watch import Watch

ALARM = 3  # exit code: done, and an alarm rang
TABLE, PICTURE, FITTED = "error.csv", "error.png", "fitted"
OF_MODEL = ("loss", "method", "generator", "alpha", "penalty", "scale", "cv", "n_bootstrap", "tol", "level")
OF_FIT = (
    *OF_MODEL,
    "model",
    "refit",
    "outcome",
    "source",
    "markers",
    "groups",
    "seed",
    *error_state.OF_TARGETS,
)  # as --state keeps them
OF_ALARM = ("above", "on", "n")
NOTHING_NEW = "no cells: the state is as it was, and its last answer is given again; no alarm is judged"
INDEPENDENT = (
    "cells are taken as independent of each other: --groups sample takes those of a sample as not independent"
)


@dataclass(frozen=True)
class Answer:
    """What was found, and what is to be said of it."""

    result: xr.Dataset
    monitor: Monitor  # also without --state, where nobody keeps it
    remarks: list[str]
    is_new: bool = True  # False: no cells came in, and it is the last answer again

    @property
    def watch(self) -> Watch | None:
        """The alarm."""
        return self.monitor.watch

    @property
    def targets(self) -> list[str]:
        """Names of those that were answered for."""
        return list(map(str, self.result["target"].values.tolist()))

    @property
    def ringing(self) -> list[str]:
        """Targets that ring."""
        return self.watch.ringing(self.targets) if self.watch is not None and self.is_new else []


@click.command(
    cls=Verb,
    examples="""
scaleshift error study.zarr --model multinomial --target "site == B" --output results
scaleshift error study.zarr --model ols --outcome viability --source "day == 0" --by-sample
scaleshift error study.zarr --model classifier.skops --target "batch == 7" --alarm-above 0.08

Every night, with that day's cells; exit code 3 after three nights above .08:

scaleshift error study.zarr --model logistic --state watched --alarm-above 0.08 --for 3 --forget 1
scaleshift error today.zarr --state watched
""",
)
@options.store
@error_options.of_cells
@error_options.of_model
@error_options.of_alarm
@options.results(
    options.output_of(f"{PAGE}, {TABLE}, {PICTURE}, {RESULT} and the {FITTED} model (ss.load opens it)"),
    options.as_json,
    options.quiet,
)
@options.running(
    options.scheduler,
    stopping.checkpoint("passes and, of model files, replicates that are done"),
    planned.option,
)
@click.pass_context
def error(context: click.Context, store: str, **given: Any) -> None:
    """The error to expect of a model on samples of STORE whose outcomes are not known.

    STORE is a study made by scaleshift ingest. The source samples have outcomes: labels, or a number a cell
    (--outcome). The model is learned from them, and its error on the target cells is told from these cells'
    markers alone. That holds where outcomes depend on the markers in the target as they do in the source,
    which nothing without outcomes can show.
    """
    asked = Asked(store, **{one.name: given[one.name] for one in fields(Asked) if one.name != "store"})
    output, state = given["output"], given["state"]
    _check_usage(context, store)
    options.make_folder(None if given["plan_only"] else output)
    _refuse_foreign(output)
    error_state.refuse_unwritable(state)
    with options.computing(given["scheduler"], given["quiet"]), reading(store):
        answer = answered(context, asked)
    if state is not None and answer.is_new:  # first of all: whoever runs this again gets the answer again
        error_state.write(answer.monitor, state)
    result = _described(answer, asked)
    written = [] if output is None else write(result, answer, output)
    deliver(
        replace(answer, result=result, remarks=[*answer.remarks, *written]), given["as_json"], given["quiet"]
    )
    if answer.ringing:
        context.exit(ALARM)


def _check_usage(context: click.Context, store: str) -> None:
    """Refuse options that have no meaning together."""
    given, passed = context.params, options.passed(context, (*OF_ALARM, "forget"))
    state = given["state"]
    if state is None:
        if given["n"] > 1:
            raise click.UsageError(f"--for {given['n']} counts updates, which --state DIR keeps: pass it too")
        if "forget" in passed:
            raise click.UsageError("--forget is of updates, which --state DIR keeps: pass it too")
        if given["above"] is None and passed:
            raise click.UsageError("--alarm-on and --for go with --alarm-above, the bound")
        if given["model"] is None:
            raise click.UsageError("pass --model: a name or a file of a model")
    elif state.resolve().is_relative_to(Path(store).resolve()):
        raise click.UsageError(f"--state {state} lies in STORE itself: choose a folder beside it")
    options.refuse_inside(given["output"], store)


def _refuse_foreign(output: Path | None) -> None:
    """Raise before a long fit where its results could not be written."""
    from scaleshift import persistence

    if output is None:
        return
    html_page.refuse_foreign(output)
    zarr_groups.refuse_foreign(output / RESULT)
    if (output / FITTED).exists():
        persistence.load(output / FITTED)


# The answer --------------------------------------------------------------------------------------------


def answered(context: click.Context, asked: Asked) -> Answer:
    """Fit where there is no state yet, add the targets, and judge the alarm."""
    given = context.params
    monitor = error_state.read(given["state"])
    if monitor is None:
        monitor, new, remarks = _fitted(context, asked)
    elif given["plan_only"]:
        raise click.UsageError(f"--plan is of a fit, and --state {given['state']} holds one: leave it out")
    else:
        flags = {parameter.name or "": parameter.opts[0] for parameter in context.command.params}
        error_state.check(monitor, options.passed(context, OF_FIT), flags, given["state"])
        error_state.trust(monitor, given["trust"], given["trust_pickle"])
        try:
            new, remarks = error_state.targets(monitor, asked), []
        except NoCells as told:
            return Answer(monitor.answer, monitor, [str(told), NOTHING_NEW], is_new=False)
    monitor.model.set_params(**options.passed(context, ("forget", "invalid")))
    with doing("predicting the error"):
        monitor, result = error_state.update(monitor, new, _watch(context, monitor.watch))
    remarks += new.remarks
    if monitor.watch is not None:
        remarks += _not_known(error_state.judged(result, monitor.watch.on), monitor.watch)
    return Answer(result, monitor, remarks)


def _fitted(context: click.Context, asked: Asked) -> tuple[Monitor, Targets, list[str]]:
    """A model that was fitted to the source, nothing added yet; the targets; and what is to be said."""
    given = context.params
    if given["model"] is None:
        raise click.UsageError(
            f"--state {given['state']} is not there yet: pass --model, what is to be fitted"
        )
    found = open_named(given["model"], given["trust"], given["refit"], given["trust_pickle"])
    if given["state"] is not None and found.is_refitted and not isinstance(found.model, str):
        raise click.UsageError(
            f"--state keeps no model that is refitted, and {found.name} is one: refits need the source each "
            "time; pass --refit never, for the model as it is, run without --state and go by the exit code, "
            f"or name a model: --model {', '.join(NAMES)}"
        )
    from scaleshift.error.monitor import Monitor
    from scaleshift.error.prediction_error import PredictionError  # after what is quick to refuse

    settings = {name: given[name] for name in (*OF_MODEL, "checkpoint", "forget", "invalid")}
    model = PredictionError(found.model, random_state=given["seed"], refit=found.refit, **settings)
    cells = Cells(asked, found)
    targets, source = cells.targets(), cells.source()
    if given["plan_only"]:
        planned.end(context, _plan(model, source, given["groups"]), given["as_json"])
    with doing("learning the model"):
        model.fit(source.cells, source.outcome, groups=given["groups"])
    remarks = [*found.remarks, *source.remarks]
    if len(source.samples) > 1 and given["groups"] is None:
        remarks.append(INDEPENDENT)
    remarks += printing.left_out(model.n_invalid_, "source cell")
    fitted = {name: given[name] for name in OF_FIT}
    return Monitor(model, None, fitted, cells.opening.manifest.study, source.samples), targets, remarks


def _plan(model: PredictionError, source: Source, groups: str | None) -> Plan:
    """What the fit would cost."""
    from scaleshift.blocks.plan import explain

    return explain(model, source.cells, source.outcome, groups=groups)


def _watch(context: click.Context, kept: Watch | None) -> Watch | None:
    """The alarm that was asked for, else the one that is kept."""
    from scaleshift.error.watch import Watch

    passed = options.passed(context, OF_ALARM)
    if kept is not None:
        return kept.judging(**passed)
    if context.params["above"] is None:
        if passed:
            raise click.UsageError("--alarm-on and --for go with --alarm-above, the bound")
        return None
    return Watch(*(context.params[name] for name in OF_ALARM))


def _not_known(values: dict[str, float], watch: Watch) -> list[str]:
    """What is to be said of targets that cannot ring."""
    names = [name for name, value in values.items() if np.isnan(value)]
    if not names:
        return []
    what = "the error is not known" if watch.on == "error" else "there is no interval (--alarm-on low)"
    return [f"{', '.join(names)}: {what}, which counts as not above {watch.above:g}"]


def _described(answer: Answer, asked: Asked) -> xr.Dataset:
    """The result, with where it comes from."""
    from scaleshift.cli.opening import Opening
    from scaleshift.cli.origin import transform_in_words

    model, fitted = answer.monitor.model, answer.monitor.fitted
    target = asked.target or "all samples but those of the source"
    known = "; cells whose outcome is known" if fitted.get("labelled_only") else ""
    features = [] if model.markers_ is None else list(model.markers_)
    origin = {
        "study": asked.store,
        "model": fitted["model"],
        "outcome": fitted["outcome"] or "label",
        "source": fitted["source"] or "all samples with outcomes that are not in the target",
        "target": target + known,
        "features": json.dumps(features, ensure_ascii=False),
        "transform": transform_in_words(Opening(asked.store).manifest.transform, features),
    }
    return answer.result.assign_attrs(origin)


# Delivery ----------------------------------------------------------------------------------------------


def write(result: xr.Dataset, answer: Answer, output: Path) -> list[str]:
    """Write page, table, picture, dataset and the model; the remarks returned say what was written.

    A model of an earlier run that this one does not write is removed: it would be taken for its own.
    """
    from scaleshift import persistence, report

    above = None if answer.watch is None else answer.watch.above
    names, remarks = [PAGE, TABLE, PICTURE, RESULT], []
    with html_page.after_all(output, result):
        report.error_table(result, output / TABLE)
        report.error_plot(result, output / PICTURE, above=above)
        zarr_groups.write(result, output / RESULT)
        try:
            answer.monitor.model.save(output / FITTED)
            names.append(FITTED)
        except DataError:
            remarks.append("what was learned of the model is not saved: refits need the source's cells")
            if persistence.kind_of(output / FITTED) is not None:
                shutil.rmtree(output / FITTED)
                remarks.append(f"removed {output / FITTED}: an earlier run wrote it, this one has none")
    return [printing.wrote(output / name for name in names), *remarks]


def deliver(answer: Answer, as_json: bool, quiet: bool) -> None:
    """Print a result, and what is to be said of it."""
    from scaleshift import report
    from scaleshift.report.names import printable

    if as_json:
        click.echo(json.dumps(to_json(answer), indent=2))
    else:
        printing.show(report.error_text, answer.result)
        for line in alarm_in_words(answer):
            click.echo(printable(line))
    printing.say(answer.remarks, quiet)


def alarm_in_words(answer: Answer) -> list[str]:
    """Which targets ring, and which are on the way there."""
    watch, ringing = answer.watch, answer.ringing
    if watch is None or not answer.is_new:
        return []
    what = f"{'the lower end of the interval' if watch.on == 'low' else 'the error'} is above {watch.above:g}"
    times = f" for {watch.n} updates or more" if watch.n > 1 else ""
    lines = [f"ALARM: {what}{times}: {', '.join(ringing)}"] if ringing else []
    near = {name: watch.consecutive.get(name, 0) for name in answer.targets if name not in ringing}
    told = [f"{name} ({n} of {watch.n} updates)" for name, n in near.items() if n]
    return [*lines, *([f"no alarm yet: {what}: {', '.join(told)}"] if told else [])]


def to_json(answer: Answer) -> dict[str, Any]:
    """The result for machines; NaN becomes null. Version 1 of the schema."""
    result, watch = answer.result, answer.watch
    attributes = {str(name): plain(value) for name, value in result.attrs.items()}
    for name in {"parameters", "features"} & set(attributes):  # a dataset's attributes are text
        attributes[name] = json.loads(attributes[name])
    consecutive = {} if watch is None else {name: watch.consecutive.get(name, 0) for name in answer.targets}
    return {
        "schema": "scaleshift.error/1",
        "attributes": attributes,
        "source": {str(name): plain(v.item()) for name, v in result.data_vars.items() if not v.dims},
        "methods": _entries(result, "method"),
        "targets": [
            {**of_target, "methods": _entries(result.isel(target=i), "method", of="target")}
            for i, of_target in enumerate(_entries(result, "target"))
        ],
        "alarm": {
            "above": None if watch is None else watch.above,
            "on": None if watch is None else watch.on,
            "for": None if watch is None else watch.n,
            "consecutive": consecutive,
            "ringing": bool(answer.ringing),
            "ringing_targets": answer.ringing,
        },
    }


def _entries(result: xr.Dataset, dimension: str, of: str | None = None) -> list[dict[str, Any]]:
    """What a result tells along a dimension; of a target taken out, only what is its own."""
    names = [
        str(name)
        for name, v in result.data_vars.items()
        if dimension in v.dims and set(v.dims) <= {dimension, "feature"} and (name in OWN or of is None)
    ]
    found = []
    for i, key in enumerate(result[dimension].values.tolist()):
        entry: dict[str, Any] = {dimension: key}
        for name in names:
            value = plain(result[name].isel({dimension: i}).values.tolist())
            many = "feature" in result[name].dims
            entry[name] = (
                dict(zip(map(str, result["feature"].values.tolist()), value, strict=True)) if many else value
            )
        found.append(entry)
    return found


OWN = ("error", "error_low", "error_high", "error_drawn", "mc_error", "reason")  # by target and method
