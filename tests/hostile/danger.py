"""Runs the command line on something hostile, and looks at what it did besides."""

import json
import os
import pickle
import re
import resource
import subprocess
import sys
import time
from pathlib import Path

from click.testing import CliRunner

from scaleshift.cli import main

GIGABYTES = 6  # of addresses beyond those in use: numba's and BLAS's are among them
SECONDS = 20
CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
#: Of a verb that is run by itself, with less memory than the machine has
ALONE = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (6 * 2**30, 6 * 2**30))
from scaleshift.cli import main
main(sys.argv[1:], prog_name="scaleshift")
"""


class Evil:
    """Leaves a file behind when it is unpickled."""

    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return (Path.touch, (self.marker,))


def pickled(folder):
    """A pickle that leaves the canary."""
    return pickle.dumps(Evil(folder / "canary"))


class Danger:
    """A folder with a secret in it, and below it the one that is worked in."""

    def __init__(self, root, monkeypatch):
        self.root, self.work, self.output = root, root / "work", root / "work" / "output"
        self.work.mkdir()
        (root / "secret.txt").write_text("root:x:0:0:the secret\n")
        (root / "keep").mkdir()
        (root / "keep" / "mine.txt").write_text("mine")
        monkeypatch.chdir(self.work)

    def around(self):
        """Everything that is there, but what may be written: name to what stands under it."""
        found = {}
        for folder, folders, files in os.walk(self.root):
            folders[:] = [name for name in folders if Path(folder, name) != self.output]
            for name in (*folders, *files):
                path = Path(folder, name)
                info = path.lstat()
                is_file = path.is_file() and not path.is_symlink() and info.st_size < 10**7
                found[str(path)] = path.read_bytes() if is_file else (info.st_mode, info.st_size)
        return found

    def run(self, *arguments, codes=(1, 2), names=None, errors=True):
        """Run a verb in this process; give what the user saw, and check that nothing else came of it."""
        arguments, before = list(map(str, arguments)), self.around()
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        limits = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (used + GIGABYTES * 2**30, limits[1]))
        start = time.process_time()
        try:
            found = CliRunner().invoke(main, arguments)
        finally:
            resource.setrlimit(resource.RLIMIT_AS, limits)
        seconds = time.process_time() - start
        assert found.exception is None or isinstance(found.exception, SystemExit), repr(found.exception)
        assert seconds < SECONDS
        self.check(found.exit_code, found.stdout, found.stderr, before, codes, names, errors)
        return found.stdout + found.stderr

    def alone(self, *arguments, codes=(1, 2), names=None):
        """The same in a process of its own, whose memory has an end."""
        before = self.around()
        command = [sys.executable, "-W", "error", "-c", ALONE, *map(str, arguments)]
        found = subprocess.run(command, capture_output=True, timeout=240, check=False)
        self.check(found.returncode, found.stdout.decode(), found.stderr.decode(), before, codes, names)
        return (found.stdout + found.stderr).decode()

    def check(self, code, out, err, before, codes, names, errors=True):
        text = out + err
        assert code in codes, (code, text)
        assert "Traceback" not in text
        assert not CONTROL.search(text), CONTROL.findall(text)
        assert "the secret" not in text
        assert not (self.root / "canary").exists()
        after = self.around()
        assert {name for name in after if after[name] != before.get(name)} == set()
        assert set(before) <= set(after)
        if code in (1, 2) and errors:
            told = [line for line in err.splitlines() if line.startswith("Error: ")]
            assert len(told) == 1, text
            if names is not None:
                assert names in " ".join(err.split()), err


def edit(path, **changes):
    """Change metadata of a node."""
    found = json.loads((path / "zarr.json").read_text())
    (path / "zarr.json").write_text(json.dumps(found | changes))


def chunk_of(path, name="X"):
    return next(file for file in sorted((path / name / "c").rglob("*")) if file.is_file())
