"""How wrong will any estimator be on a target?  It is refitted to outcomes that a generator draws."""

from __future__ import annotations

from scaleshift.error.refits.learning import learn

__all__ = ["learn"]
