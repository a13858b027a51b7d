"""A child process that is killed at its n-th change of a file: for scripts that tests run."""

import os
import signal
import sys

CHANGES = ("os.rename", "os.remove", "os.rmdir", "shutil.rmtree")


def survives(work, step=None, within=""):
    """Whether a child does its work; it dies before change number `step` of a path with `within` in it.

    zarr's own thread, and Dask's, start with their first use, in the child.
    """
    child = os.fork()
    if child == 0:
        if step is not None:
            _die_at(step, within)
        work()
        os._exit(0)
    return os.waitpid(child, 0)[1] == 0


def _die_at(step, within):
    left = step

    def hook(event, arguments):
        nonlocal left
        if event in CHANGES and within in str(arguments[0]):
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)
