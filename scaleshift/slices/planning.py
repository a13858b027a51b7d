"""What will a fit of slices cost?  The passes that every slicer makes, told before they run."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from scaleshift.blocks import states
from scaleshift.blocks.block import Rows
from scaleshift.blocks.plan import Plan
from scaleshift.blocks.planner import PlannedKept, Planner
from scaleshift.slices import survey
from scaleshift.slices.describing.profile import merge_profiles, profile_leaf
from scaleshift.slices.inputs import Given
from scaleshift.slices.outcomes import learn_kind
from scaleshift.slices.prepared import Preparation, prepare, strata_of
from scaleshift.slices.projection import Projection

if TYPE_CHECKING:
    from scaleshift.slices.base import Slicer, Slices


@dataclass(frozen=True)
class PlannedFit:
    """A fit of which the first passes are told: survey and preparation."""

    planner: Planner
    rows: Rows
    preparation: Preparation
    kept: PlannedKept

    @property
    def n_columns(self) -> int:
        """Of the prepared embeddings."""
        return self.preparation.projection.n_columns

    @property
    def n_timed(self) -> int:
        """Rows of the block that is timed."""
        return max(len(self.kept.prepared.result.x), 1)

    def sample(self, n_rows: int, columns: tuple[str, ...]) -> None:
        """A pass that draws a sample."""
        kind = self.preparation.kind
        n_strata = survey.n_strata(kind)
        self.planner.on_kept(
            "sample",
            self.kept,
            states.smallest,
            n=np.full(n_strata, n_rows // n_strata),
            by=functools.partial(strata_of, kind=kind),
            seed=0,
            stream="slices",
            columns=columns,
        )

    def end(self, slices: Slices) -> Plan:
        """The last pass, that of the profile, and the whole plan."""
        told = {"slices": slices, "preparation": self.preparation, "shift": None}
        self.planner.merged("profile", self.rows, profile_leaf, merge_profiles, **told)
        return self.planner.plan()


def begin(slicer: Slicer, found: Given, way_out: str) -> PlannedFit:
    """The first passes of a fit; their preparation costs what the real one will."""
    kind = learn_kind(found)
    rows = kind.rows(found, slicer.invalid)
    planner = Planner(f"{type(slicer).__name__}.fit", rows, way_out)
    n, d, holdout = slicer._n_components, rows.n_markers, slicer._holdout
    looked = {"kind": kind, "products": n is not None, "holdout": holdout}
    planner.merged("survey", rows, survey.look, survey.merge, **looked)
    # Directions are not known before the survey.
    projection = Projection(np.zeros(d), None if n is None else np.eye(min(n, d), d))
    preparation = Preparation(kind, projection, slicer._dtype, 0, holdout)
    kept = planner.keep("preparation", rows, prepare, preparation.row_bytes, preparation=preparation)
    return PlannedFit(planner, rows, preparation, kept)
