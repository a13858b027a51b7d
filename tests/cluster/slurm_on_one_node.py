"""A SLURM of two virtual nodes on this machine, for tests: with folder, ports and state of its own."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

SBIN = "/usr/sbin:/sbin"
NEEDED = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "squeue", "scancel", "scontrol", "sinfo")
SECONDS = 60

# Two nodes on one machine, told apart by their ports. The GPUs are devices that everybody has.
CONFIGURATION = """\
ClusterName=scaleshift
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
# a requeued job waits until its old credential has expired, 120 s where nothing is said
AuthInfo=socket={folder}/munge.socket,cred_expire=5
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
ReturnToService=2
KillWait=30
JobRequeue=1
GresTypes=gpu
SlurmdParameters=config_overrides
NodeName=DEFAULT CPUs=4 RealMemory=8000 Gres=gpu:fake:2
NodeName=n[1-2] NodeHostname=localhost NodeAddr=127.0.0.1 Port=[{ports[1]},{ports[2]}]
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
DEVICES = "NodeName=n[1-2] Name=gpu Type=fake File=/dev/null,/dev/zero\n"


class Slurm:
    """A running SLURM; `environment` is that of its users' commands."""

    def __init__(self, folder: Path):
        self.folder = folder
        path = f"{os.environ['PATH']}:{SBIN}"
        self.environment = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf"), "PATH": path}
        self._daemons: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        """Start munged, slurmctld and two slurmd, and wait until both nodes are idle."""
        for name in ("state", "spool-n1", "spool-n2"):
            (self.folder / name).mkdir()
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        configuration = CONFIGURATION.format(folder=self.folder, ports=_free_ports(3))
        (self.folder / "slurm.conf").write_text(configuration)
        (self.folder / "gres.conf").write_text(DEVICES)
        munge = {"key-file": "munge.key", "socket": "munge.socket", "pid-file": "munged.pid"}
        munge |= {"log-file": "munged.log", "seed-file": "munged.seed"}
        files = [f"--{option}={self.folder / name}" for option, name in munge.items()]
        self._daemon("munged", "--foreground", "--force", "--num-threads=2", *files)
        self.until(lambda: (self.folder / "munge.socket").exists(), "munged has no socket")
        self._daemon("slurmctld", "-D", "-i")
        for node in ("n1", "n2"):
            self._daemon("slurmd", "-D", "-N", node)
        self.until(self._idle, "the nodes did not become idle")

    def _idle(self) -> bool:
        said = self.run("sinfo", "--noheader", "--Node", "--format=%T", check=False)
        return said.split() == ["idle", "idle"]

    def run(self, *command: str, check: bool = True, **options: object) -> str:
        """Output of one of the users' commands."""
        options = {"env": self.environment, "cwd": self.folder} | options
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, **options)
        if check and done.returncode:
            raise AssertionError(f"{command}: exit {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def processes(self, job: str) -> list[psutil.Process]:
        """Processes of a job that are left, found by their environment."""
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                environment = process.environ()
                ours = environment.get("SLURM_CONF") == self.environment["SLURM_CONF"]
                if ours and environment.get("SLURM_JOB_ID") == job:
                    found.append(process)
        return found

    def jobs(self) -> list[str]:
        """Ids of the jobs that wait or run."""
        return self.run("squeue", "--noheader", "--format=%i").split()

    def state(self, job: str) -> str:
        """RUNNING, COMPLETED, FAILED, CANCELLED, ..."""
        return self.field(job, "JobState")

    def field(self, job: str, name: str) -> str:
        """What scontrol says of a job."""
        said = self.run("scontrol", "show", "job", job)
        return next(word for word in said.split() if word.startswith(f"{name}=")).removeprefix(f"{name}=")

    def wait_for(self, job: str, *states: str, seconds: float = 180) -> None:
        """Wait until a job is in one of these states."""
        self.until(lambda: self.state(job) in states, f"job {job} is not {states}", seconds)

    def until(self, holds: Callable[[], object], complaint: str, seconds: float = SECONDS) -> None:
        """Wait until something holds; TimeoutError with all logs where it does not, or a daemon has ended."""
        end = time.monotonic() + seconds
        while not holds():
            dead = [daemon.args for daemon in self._daemons if daemon.poll() is not None]
            if dead or time.monotonic() > end:
                raise TimeoutError(f"{complaint}; ended: {dead}\n{self.logs()}")
            time.sleep(0.2)

    def logs(self) -> str:
        """The ends of all logs."""
        return "\n".join(f"-- {log.name}\n{log.read_text()[-2000:]}" for log in self.folder.glob("*.log"))

    def _daemon(self, *command: str) -> None:
        with open(self.folder / "daemons.log", "ab") as log:
            self._daemons.append(
                subprocess.Popen(
                    command, env=self.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
                )
            )

    def stop(self) -> None:
        """Cancel all jobs and end the daemons, the last one started first."""
        with contextlib.suppress(Exception):
            self.run("scancel", "--user=root", check=False)
            self.until(lambda: not self.jobs(), "jobs are left")
        for daemon in reversed(self._daemons):
            daemon.send_signal(signal.SIGTERM)
            try:
                daemon.wait(20)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()


def _free_ports(n: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(n)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


@contextlib.contextmanager
def slurm_on_one_node() -> Iterator[Slurm]:
    """A running SLURM; skips with a reason where there can be none."""
    lacking = [name for name in NEEDED if shutil.which(name, path=f"{os.environ['PATH']}:{SBIN}") is None]
    if lacking:
        pytest.skip(f"no {', '.join(lacking)}: apt-get install slurm-wlm munge")
    if os.geteuid() != 0:
        pytest.skip("SLURM's daemons start jobs as other users: run this test as root")
    # Not below pytest's folder: a socket's path must be short.
    folder = Path(tempfile.mkdtemp(prefix="scaleshift-slurm-"))
    folder.chmod(0o755)
    slurm = Slurm(folder)
    try:
        slurm.start()
        yield slurm
    finally:
        slurm.stop()
        shutil.rmtree(folder, ignore_errors=True)
