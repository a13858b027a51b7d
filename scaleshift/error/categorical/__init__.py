"""Logistic and multinomial regression: what error to expect of them on a shifted target."""

from scaleshift.error.categorical.learning import learn

__all__ = ["learn"]
