"""Small problems with a planted slice, for the tests of slicers."""

import dask.array as da
import numpy as np

from scaleshift.slices import synthetic

FIT, _ = synthetic.make("rare", 100, n=1_500, d=6)
X, Y, P = FIT["X"], FIT["y"], FIT["pred_probs"]
LOSS = -np.log(P[np.arange(len(Y)), Y])


def lazy(values, chunk):
    """As a Dask array of so many rows a chunk; None leaves it in memory."""
    return values if chunk is None else da.from_array(values, chunks=(chunk, *values.shape[1:]))
