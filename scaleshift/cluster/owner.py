"""A client that ends what was started for it."""

from __future__ import annotations

from typing import Any

from distributed import Client


class Owner(Client):
    """A `distributed.Client` of a cluster that was started for it: one ends with the other.

    Parameters
    ----------
    cluster : distributed.deploy.Cluster or dask_jobqueue.runner.BaseRunner
        Closed after the client.
    folder : tempfile.TemporaryDirectory, optional
        Removed after the cluster.
    **options
        As `distributed.Client` takes them.
    """

    def __init__(self, cluster: Any, folder: Any = None, **options: Any):
        self._started, self._folder = cluster, folder
        try:
            super().__init__(cluster, **options)
        except BaseException:  # an interrupt too: jobs must not outlive it
            self._end()
            raise

    def close(self, *args: Any, **kwargs: Any) -> Any:
        """Close the client, then the cluster, whatever the client says; that one once.

        Python closes a client again as it collects it, when the loop that a cluster waits for may have ended.
        """
        try:
            return super().close(*args, **kwargs)
        finally:
            self._end()

    def _end(self) -> None:
        started, self._started = self._started, None
        folder, self._folder = self._folder, None
        try:
            if started is not None:
                started.close()
        finally:
            if folder is not None:
                folder.cleanup()
