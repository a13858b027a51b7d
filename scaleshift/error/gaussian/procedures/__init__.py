"""How are weights learned from moments?  One file a procedure, registered here once."""

from __future__ import annotations

from scaleshift.error.gaussian.procedures.base import Procedure
from scaleshift.error.gaussian.procedures.lasso import Lasso
from scaleshift.error.gaussian.procedures.least_squares import LeastSquares
from scaleshift.error.gaussian.procedures.ridge import Ridge

PROCEDURES: dict[str, Procedure] = {"ols": LeastSquares(), "ridge": Ridge(), "lasso": Lasso()}

__all__ = ["PROCEDURES", "Procedure"]
