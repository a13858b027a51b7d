"""Arithmetic of one block of rows: arrays in, class sums out; knows no Dask and no xarray.

`dispatch` is the way in: it picks the implementation that serves the block at hand. `reference` says what
is right, `cpu` holds the numba kernels.
"""
