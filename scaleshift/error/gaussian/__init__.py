"""How wrong will a linear model be?  From sums: one pass over the source, one over each target."""

from scaleshift.error.gaussian.family import GaussianFamily
from scaleshift.error.gaussian.learning import learn

__all__ = ["GaussianFamily", "learn"]
