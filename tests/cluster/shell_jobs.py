"""A batch system of two shell scripts, for dask-jobqueue: jobs are process groups of this machine."""

from pathlib import Path

from dask_jobqueue.core import Job, JobQueueCluster

SUBMIT = """#!/bin/sh
cp "$1" "$1.job"
setsid sh "$1.job" >>"{folder}/log" 2>&1 &
echo $!
"""
CANCEL = """#!/bin/sh
kill -TERM -- "-$1"
"""


class ShellJob(Job):
    config_name = "local"

    def __init__(self, scheduler=None, name=None, walltime=None, **options):
        super().__init__(scheduler=scheduler, name=name, shebang="#!/bin/sh", **options)
        self.job_header = ""


class ShellCluster(JobQueueCluster):
    job_cls = ShellJob


def install(folder: Path) -> None:
    """Write the scripts, and let jobs be sent by them."""
    for name, text in (("submit", SUBMIT), ("cancel", CANCEL)):
        (folder / name).write_text(text.format(folder=folder))
        (folder / name).chmod(0o755)
    ShellJob.submit_command = str(folder / "submit")
    ShellJob.cancel_command = str(folder / "cancel")
