"""Which mixtures does a fit climb from?  One for each number of components, as `init_params` says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scaleshift.blocks.block import Kept, Rows
from scaleshift.errors import DataError
from scaleshift.parameters import is_whole
from scaleshift.slices import sampling
from scaleshift.slices.mixtures import restarts, starts
from scaleshift.slices.mixtures.expectation import Fit, Settings
from scaleshift.slices.survey import Survey

if TYPE_CHECKING:
    from scaleshift.slices.base import Begun
    from scaleshift.slices.domino import DominoSlicer


def first_fits(
    slicer: DominoSlicer, begun: Begun, kept: Kept, settings: Settings, given_resp: bool
) -> list[Fit]:
    """Mixtures to start from: a pass over the kept rows, or over a sample of them.

    Raises
    ------
    DataError
        If rows are fewer than components.
    """
    rows, seen, preparation = begun.rows, begun.seen, begun.preparation
    kind, seed, sizes = preparation.kind, preparation.seed, slicer._sizes
    covariance_type = slicer.covariance_type
    init = slicer.init_params or ("confusion" if slicer.compat else None)
    _check_enough(seen, max(sizes))

    def made(start: starts.Start) -> Fit:
        d = preparation.projection.n_columns
        return starts.begin(kept, kind, start, covariance_type, d, settings.reg_covar)

    if given_resp:
        return [made(starts.Passed(sizes[0]))]
    if init == "confusion":
        return [made(_confusion(slicer, rows, size, seed)) for size in sizes]
    if init == "random":
        return [made(starts.Random(size, seed)) for size in sizes]
    sample = sampling.draw(kept, kind, seen, seed)
    if init is None:
        return restarts.fit_sample(sample, kind, sizes, covariance_type, settings, seed)
    return [made(starts.named(init, size, sample, seed)) for size in sizes]


def _check_enough(seen: Survey, n_components: int) -> None:
    if n_components > seen.n_fitted:
        n_held = seen.n_rows - seen.n_fitted
        more = f" ({n_held} more are held out)" if n_held else ""
        raise DataError(
            f"{seen.n_fitted} rows{more} are fewer than {n_components} components: set n_mixture_components "
            "below that, best to a tenth of the rows or less"
        )


def _confusion(slicer: DominoSlicer, rows: Rows, size: int, seed: int) -> starts.Confusion:
    drawn = slicer.random_state if is_whole(slicer.random_state) else seed % 2**32
    sequence = starts.sequence(rows, size, drawn) if slicer.compat else None
    return starts.Confusion(size, slicer.confusion_noise, seed, sequence)
