"""Which error is to be expected on a target, and between which bounds?  Of the losses of all replicates."""

from __future__ import annotations

import numpy as np

from scaleshift.error.family import Answer, Settings, Sums

FEWEST = 20  # replicates of which an interval is made


class Replicated:
    """Mean losses of one target by replicate, out of its sums."""

    def __init__(self, sums: Sums):
        self.sums, self.n = sums, float(sums["n"])

    def mean(self, name: str) -> np.ndarray:
        """(B,), NaN where there is none."""
        with np.errstate(invalid="ignore"):
            found: np.ndarray = self.sums[name] / self.n if self.n else np.full_like(self.sums[name], np.nan)
        return found


def standard_error(values: np.ndarray) -> float:
    """Monte-Carlo standard error of the mean of those that are there; infinite of fewer than two.

    Examples
    --------
    >>> standard_error(np.array([1.0, 3.0, np.nan])), standard_error(np.array([1.0]))
    (1.0, inf)
    """
    there = values[np.isfinite(values)]
    return float(there.std(ddof=1) / np.sqrt(len(there))) if len(there) > 1 else np.inf


def answers_of(
    sums: Sums, apparent: float, cv_error: float, settings: Settings, *, refits: bool
) -> dict[str, Answer]:
    """Errors of one target by each method that was asked for.

    Parameters
    ----------
    sums : dict
        Of `RefitFamily.target_sums`.
    apparent : float
        Mean loss of the model on the rows that it has learned from.
    cv_error : float
    settings : Settings
    refits : bool
        Whether there are replicates.

    Notes
    -----
    The interval asks how "direct" itself would vary from study to study. A study that begins with replicate b
    is taken to go on as replicate b' deviates from the model: what is found there is one draw, dir*, and the
    interval [dir^2 / q_hi, dir^2 / q_lo] of its quantiles. It costs no third fit, and is rough: one draw has
    the Monte-Carlo noise of a single refit, which makes it wide; estimators whose predictions jump (trees)
    deviate in logits as far as clipping lets them; a generator that is wrong makes it wrong. Numbers vary by
    the chi-square spread of their residuals' variance beside. That of "decomposed" has the same proportions.
    """
    found = {"cv": Answer(cv_error, reason="" if np.isfinite(cv_error) else "no folds")}
    if refits:
        found |= _of_replicates(Replicated(sums), apparent, settings.level)
    return {method: found[method] for method in settings.methods if method in found}


def _of_replicates(target: Replicated, apparent: float, level: float) -> dict[str, Answer]:
    if not target.n:
        none = Answer(np.nan, reason="no rows that are finite")
        return {"direct": none, "decomposed": none, "corrected": none}
    err, drawn, again = (target.mean(name) for name in ("integrated", "drawn", "again"))
    inside, inside_drawn, optimism = (
        target.mean(f"source_{name}") for name in ("integrated", "drawn", "optimism")
    )
    there = np.isfinite(err)
    if not there.any():
        none = Answer(np.nan, reason="no replicate that all batches have")
        return {"direct": none, "decomposed": none, "corrected": none}
    direct, direct_drawn = float(err[there].mean()), float(drawn[there].mean())
    decomposed = (err - inside + optimism)[there]
    decomposed_drawn = (drawn - inside_drawn + optimism)[there]
    low, high, mean = _ratios(again, direct, level)
    reason = "" if np.isfinite(low) else f"an interval needs {FEWEST} replicates"
    value = float(apparent + decomposed.mean())
    bounds = (value * low, value * high) if value > 0 else (np.nan, np.nan)
    of_direct, of_decomposed = standard_error(err), standard_error(decomposed)
    return {
        "direct": Answer(direct, direct_drawn, direct * low, direct * high, of_direct, reason),
        "decomposed": Answer(
            value, float(apparent + decomposed_drawn.mean()), *bounds, of_decomposed, reason
        ),
        "corrected": Answer(
            direct * mean, direct_drawn * mean, direct * low, direct * high, of_direct * mean, reason
        ),
    }


def _ratios(again: np.ndarray, direct: float, level: float) -> tuple[float, float, float]:
    """Bounds of the interval and the corrected error, each by `direct`."""
    there = again[np.isfinite(again)]
    if not there.size:
        return np.nan, np.nan, np.nan
    with np.errstate(divide="ignore", invalid="ignore"):
        corrected = float(direct / there.mean())
        if there.size < FEWEST:
            return np.nan, np.nan, corrected
        low, high = np.quantile(there, [(1 - level) / 2, (1 + level) / 2])
        return float(direct / high), float(direct / low), corrected
