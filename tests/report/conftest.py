"""A result as a quantifier's predict returns it, made by hand."""

import numpy as np
import pytest
import xarray as xr


def _result(shares, samples, labels, unknown=None, flags=None):
    shares = np.asarray(shares, dtype=float).reshape(len(samples), len(labels))
    unknown = 1 - shares.sum(axis=1) if unknown is None else np.asarray(unknown, dtype=float)
    flags = np.array([""] * len(samples) if flags is None else flags, dtype=str)
    n_cells = np.full(len(samples), 1000)
    cell, sample = ("sample", "label"), "sample"
    return xr.Dataset(
        {
            "proportion": (cell, shares),
            "proportion_low": (cell, shares - 0.05),
            "proportion_high": (cell, shares + 0.05),
            "proportion_known": (cell, shares / (1 - unknown[:, None])),
            "weight": (cell, shares),
            "count": (cell, shares * n_cells[:, None]),
            "unknown": (sample, unknown),
            "unknown_low": (sample, unknown - 0.01),
            "unknown_high": (sample, unknown + 0.01),
            "distance": (sample, np.where(np.isnan(unknown), np.nan, 0.02)),
            "misfit": (sample, np.full(len(samples), 0.1)),
            "p_value": (sample, np.full(len(samples), 0.5)),
            "n_cells": (sample, n_cells),
            "n_invalid": (sample, np.zeros(len(samples), dtype=int)),
            "flag": (sample, flags),
            "unknown_baseline": 0.03,
        },
        coords={
            "sample": list(samples),
            "label": np.asarray(labels),
            "day": ("sample", np.arange(len(samples))),
        },
    )


@pytest.fixture
def make_result():
    """Build a result from shares (n_samples, n_labels); the rest of a row is unknown."""
    return _result


@pytest.fixture
def result():
    """Three samples, two labels; S2 has no estimate, S3 has a flag."""
    return _result(
        [[0.25, 0.5], [np.nan, np.nan], [0.1, 0.4]],
        ["S1", "S2", "S3"],
        ["B", "T"],
        flags=["", "no cells", "unknown population"],
    )
