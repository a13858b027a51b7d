"""Which engine learns which model?  Imported where one is asked for."""

from __future__ import annotations

import importlib

from scaleshift.error.family import Family, Job, Learn

ENGINES = {
    "ols": "scaleshift.error.gaussian",
    "ridge": "scaleshift.error.gaussian",
    "lasso": "scaleshift.error.gaussian",
    "logistic": "scaleshift.error.categorical",
    "multinomial": "scaleshift.error.categorical",
}
ANY = "scaleshift.error.refits"


def learn(job: Job) -> Family:
    """What is learned from the source."""
    model = job.settings.model
    engine: Learn = importlib.import_module(ENGINES[model] if isinstance(model, str) else ANY).learn
    return engine(job)
