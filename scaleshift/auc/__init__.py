"""Which few features rank a rare class best?  Sparse linear rankings, and what their AUC is."""

from scaleshift.auc.online.fsauc import FSAUC
from scaleshift.auc.online.hsght import HSGHT
from scaleshift.auc.online.solam import SOLAM
from scaleshift.auc.online.spam import SPAM
from scaleshift.auc.online.stoiht import StoIHT

__all__ = ["FSAUC", "HSGHT", "SOLAM", "SPAM", "StoIHT"]
