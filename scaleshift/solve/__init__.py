"""Small dense problems on the driver; no Dask; imports nothing of ours."""
