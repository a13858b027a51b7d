"""How do I show a result to somebody who has no Python?  As one HTML page that needs nothing else."""

from scaleshift.report.pages.page import page

__all__ = ["page"]
