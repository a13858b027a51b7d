"""What is a figure that needs no pyplot, and that a notebook shows all the same?"""

from __future__ import annotations

import io
import warnings

from matplotlib.figure import Figure

DOTS = 90  # an inch: about as wide as a notebook's column, as a rule


class Picture(Figure):
    """A figure that is its own picture: IPython shows figures of pyplot alone.

    Examples
    --------
    >>> Picture(figsize=(1, 1))._repr_png_()[1:4]
    b'PNG'
    """

    def _repr_png_(self) -> bytes:
        content = io.BytesIO()
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Glyph")  # of scripts that the font lacks: they become boxes
            self.savefig(content, format="png", dpi=DOTS)
        return content.getvalue()
