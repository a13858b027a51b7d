"""Hot kernels for GPUs: CUDA texts, compiled by NVRTC at their first call, and what feeds them.

Importing anything here imports no GPU package. `choice` says whether blocks on the host go to a GPU, `device`
is the one place that talks to CuPy, `grouped` sums by group piece by piece, and each kernel is a .cu text and
a module of the same name.
"""
