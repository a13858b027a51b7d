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
    **options
        As `distributed.Client` takes them.
    """

    def __init__(self, cluster: Any, **options: Any):
        self._started = cluster
        try:
            super().__init__(cluster, **options)
        except BaseException:  # an interrupt too: jobs must not outlive it
            cluster.close()
            raise

    def close(self, *args: Any, **kwargs: Any) -> Any:
        """Close the client, then the cluster, whatever the client says; that one once.

        Python closes a client again as it collects it, where a cluster of Dask may wait for a loop that has ended.
        """
        started, self._started = self._started, None
        try:
            return super().close(*args, **kwargs)
        finally:
            if started is not None:
                started.close()
