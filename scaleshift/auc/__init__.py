"""Which few features rank a rare class best?  Sparse linear rankings, and what their AUC is."""
