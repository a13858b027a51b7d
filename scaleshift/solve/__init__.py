"""Small dense problems on the driver: knows no Dask, and of ours only how kernels are compiled."""
