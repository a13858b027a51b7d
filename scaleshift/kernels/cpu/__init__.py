"""Hot kernels for numpy blocks, compiled by numba at their first call and never before."""
