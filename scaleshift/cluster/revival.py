"""A job that has ended, at its walltime or with its node, is sent again: Dask alone does not."""

from __future__ import annotations

import asyncio
from typing import Any

from distributed.diagnostics.plugin import SchedulerPlugin
from tornado.ioloop import PeriodicCallback

SECONDS = 10  # between two looks


class Revival(SchedulerPlugin):
    """Keeps as many jobs as were asked for, or as adaptive scaling wants by now.

    Dask drops a job 15 s after its worker went (``distributed.deploy.lost-worker-timeout``), and sends none
    in its place. A job of several processes it does not drop: one whose workers were there, and of which
    none was at two looks on end, has ended; a nanny that starts a worker anew needs less. What could not be
    sent, since the batch system did not answer, is sent again too. A job that waits
    in the queue is left alone, and so is one that died before a worker came: sent again and again, a script
    that cannot work would fill the queue.

    Parameters
    ----------
    cluster : dask_jobqueue.JobQueueCluster
        Whose scheduler runs in this process.
    """

    def __init__(self, cluster: Any):
        self.cluster = cluster
        self.came: set[Any] = set()  # names of workers
        self.missed: set[Any] = set()  # jobs
        self.closing: set[asyncio.Future[None]] = set()  # asyncio forgets what nobody holds

    def add_worker(self, scheduler: Any, worker: str) -> None:
        """Remember who was there."""
        self.came.add(scheduler.workers[worker].name)

    def begin(self) -> None:
        """Look from now on, until the cluster closes."""
        cluster = self.cluster
        cluster.scheduler.add_plugin(self, name="scaleshift: jobs that have ended")
        looks = PeriodicCallback(self.look, SECONDS * 1000)
        cluster.periodic_callbacks["scaleshift: jobs that have ended"] = looks  # stops with the cluster
        cluster.loop.add_callback(looks.start)

    def look(self) -> None:
        """Send again what Dask has dropped, and what it does not see has ended."""
        cluster = self.cluster
        there = {worker.name for worker in cluster.scheduler.workers.values()}
        gone = {
            job for job in cluster.workers.keys() & cluster.worker_spec.keys() if self._is_gone(job, there)
        }
        ended = gone & self.missed
        self.missed = gone - ended
        for job in ended:
            self.came -= self._processes(job)  # the next of this name may wait in the queue
            closing = asyncio.ensure_future(cluster.workers.pop(job).close())
            self.closing.add(closing)
            closing.add_done_callback(self.closing.discard)
        if cluster.worker_spec.keys() - cluster.workers.keys():
            cluster.scale(jobs=len(cluster.worker_spec))  # as many as there should be

    def _is_gone(self, job: Any, there: set[Any]) -> bool:
        if self.cluster.workers[job].job_id is None:  # it could not be sent
            return True
        processes = self._processes(job)
        return bool(processes & self.came) and not processes & there

    def _processes(self, job: Any) -> set[Any]:
        """Names of the workers of a job of several processes."""
        return {f"{job}{suffix}" for suffix in self.cluster.worker_spec[job].get("group", [])}
