"""Checkpoints that are damaged, foreign, or cannot be written: an error says what to do; nothing is lost."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap

import numpy as np
import pytest

import scaleshift as ss
from scaleshift import checkpoint
from scaleshift.checkpoint import Checkpoint
from scaleshift.errors import DataError

RNG = np.random.default_rng(0)
Y = RNG.integers(0, 2, 300)
X = RNG.normal(size=(300, 3)) + Y[:, None]
TO_DO = "choose another path; or, if it is a checkpoint that was damaged, delete it to begin anew"


def fit(path, x=X):
    return ss.SparseAUC(k=2, solver="moments", n_halves=0, random_state=0, checkpoint=path).fit(x, Y)


def state(number, size=1_000):
    return Checkpoint("of a test", 0, {"a": np.full(size, number), "b": np.full(size, number)})


def largest(path):
    return max((file for file in path.rglob("c/*") if file.is_file()), key=lambda file: file.stat().st_size)


def truncated(path):
    file = largest(path)
    file.write_bytes(file.read_bytes()[:-9])


def without_an_array(path):
    shutil.rmtree(largest(path).parents[1])


def with_half_a_record(path):
    text = (path / "zarr.json").read_text()
    (path / "zarr.json").write_text(text[: len(text) // 2])


def of_a_newer_format(path):
    root = json.loads((path / "zarr.json").read_text())
    root["attributes"]["scaleshift"]["format"] += 1
    (path / "zarr.json").write_text(json.dumps(root))


def a_file(path):
    shutil.rmtree(path)
    path.write_text("of something else")


def without_a_record(path):
    (path / "zarr.json").unlink()


@pytest.mark.parametrize(
    "harm", [truncated, without_an_array, with_half_a_record, of_a_newer_format, a_file, without_a_record]
)
def test_a_damaged_part_is_named_with_the_way_out_and_left_as_it_is(tmp_path, harm):
    path = tmp_path / "state"
    expected = fit(path)
    part = path / "moments"
    harm(part)
    before = sorted(p.name for p in part.rglob("*"))
    with pytest.raises(DataError, match="cannot be read") as told:
        fit(path)
    assert str(part) in str(told.value)
    assert TO_DO in str(told.value)
    assert sorted(p.name for p in part.rglob("*")) == before  # no silent beginning anew
    part.unlink() if part.is_file() else shutil.rmtree(part)  # as it says
    np.testing.assert_array_equal(fit(path).coef_, expected.coef_)


def test_a_checkpoint_of_another_version_is_refused(tmp_path):
    checkpoint.write(tmp_path / "state", Checkpoint("of a test", 0, {}, version="0.0.1"))
    with pytest.raises(DataError, match=r"is of scaleshift 0\.0\.1, and this is .*: go on with that one, or"):
        checkpoint.read(tmp_path / "state")


def test_other_data_and_other_things_are_refused(tmp_path):
    fit(tmp_path / "state")
    with pytest.raises(DataError, match="is of other data or parameters: choose another path, or delete it"):
        fit(tmp_path / "state", X + 1)
    (tmp_path / "other").mkdir()
    fit(None).save(tmp_path / "other" / "job")
    with pytest.raises(DataError, match="holds a SparseAUC: choose another path"):
        fit(tmp_path / "other")


# Writing -----------------------------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 256 kB."""
    path = tmp_path / "small"
    path.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(path)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("needs to be allowed to mount a tmpfs")
    yield path
    subprocess.run(["umount", str(path)], check=True)


def test_a_full_disk_leaves_the_earlier_state(small_disk):
    path = small_disk / "state"
    checkpoint.write(path, state(1))
    for _ in range(2):  # what the first attempt has written is gone
        with pytest.raises(DataError, match=r"cannot be written \(No space left on device\): choose another"):
            checkpoint.write(path, state(2, 30_000))
        assert checkpoint.read(path).state["a"][0] == 1
    checkpoint.write(path, state(3))
    assert checkpoint.read(path).state["b"][-1] == 3
    assert len(list(path.iterdir())) == 2


def test_a_file_that_may_not_grow_leaves_the_earlier_state(tmp_path):
    checkpoint.write(tmp_path / "state", state(1))
    script = f"""
        import resource, signal
        import numpy as np
        from scaleshift import checkpoint
        from scaleshift.errors import DataError
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
        try:
            checkpoint.write({str(tmp_path / "state")!r}, checkpoint.Checkpoint("", 0, np.zeros(50_000)))
        except DataError as error:
            print(error)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True)
    assert "cannot be written (File too large): choose another path" in done.stdout, done.stderr
    assert checkpoint.read(tmp_path / "state").state["a"][0] == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="needs to be another user")
def test_folders_of_other_users_are_named():
    script = """
        import os, sys
        from scaleshift import checkpoint
        folder = sys.argv[1]
        checkpoint.write(folder + "/state", checkpoint.Checkpoint("", 0, {"a": 1}))
        os.chmod(folder, 0o755)
        for mode in (0o755, 0o700):
            os.chmod(folder + "/state", mode)
            os.seteuid(65534)
            for act in (lambda: checkpoint.read(folder + "/state"),
                        lambda: checkpoint.write(folder + "/state", checkpoint.Checkpoint("", 0, {}))):
                try:
                    print("done", getattr(act(), "state", None))
                except checkpoint.DataError as error:
                    print(error)
            os.seteuid(0)
        print(checkpoint.read(folder + "/state").state)
    """
    with tempfile.TemporaryDirectory() as folder:  # pytest's own is shut to others
        command = [sys.executable, "-c", textwrap.dedent(script), folder]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    read, not_written, not_read, neither, still = done.stdout.splitlines()
    assert read == "done {'a': 1}"
    assert "cannot be written (Permission denied)" in not_written
    assert "cannot be read (" in not_read
    assert "checkpoint=" in neither
    assert still == "{'a': 1}"


def test_a_place_without_folders_is_named():
    with pytest.raises(DataError, match=r"checkpoint='/proc/none/state' cannot be written \("):
        checkpoint.write("/proc/none/state", state(1))


# Two writers -------------------------------------------------------------------------------------------

WRITING = """
    import sys
    import numpy as np
    from scaleshift import checkpoint
    for number in range(int(sys.argv[2]), int(sys.argv[2]) + 40):
        parts = {name: np.full(1_000, number) for name in "ab"}
        checkpoint.write(sys.argv[1], checkpoint.Checkpoint("of a test", 0, parts))
"""


def test_two_writers_never_make_a_mixture(tmp_path):
    """As a job that is not dead yet, beside the one that has taken its place."""
    path = tmp_path / "state"
    command = [sys.executable, "-c", textwrap.dedent(WRITING), str(path)]
    seen = set()
    with contextlib.ExitStack() as stack:
        writers = [
            stack.enter_context(subprocess.Popen([*command, str(first)], stderr=subprocess.PIPE))
            for first in (0, 1_000)
        ]
        while any(writer.poll() is None for writer in writers):
            found = checkpoint.read(path)
            if found is not None:
                (number,) = {*found.state["a"], *found.state["b"]}
                seen.add(int(number))
        assert [writer.returncode for writer in writers] == [0, 0], [w.stderr.read() for w in writers]
    assert len(seen) > 10
    assert {number // 1_000 for number in seen} == {0, 1}
    last = int(checkpoint.read(path).state["a"][0])
    assert last in (39, 1_039)
    checkpoint.write(path, state(7))
    assert len(list(path.iterdir())) == 2  # what the two have left is gone


def test_a_writer_that_is_slow_to_commit_survives_a_quicker_one(tmp_path):
    """The worst moment: its arrays are in place, and another writer cleans up before its record is."""
    script = """
        import sys
        import numpy as np
        from scaleshift import checkpoint
        path, quicker = sys.argv[1], []
        def write(number):
            parts = {name: np.full(1_000, number) for name in "ab"}
            checkpoint.write(path, checkpoint.Checkpoint("of a test", 0, parts))
        def hook(event, arguments):
            if event == "os.rename" and str(arguments[1]) == path + "/zarr.json" and not quicker:
                quicker.append(1)
                write(2)
        write(0)
        sys.addaudithook(hook)
        write(1)
        print(len(quicker), checkpoint.read(path).state["a"][0], checkpoint.read(path).state["b"][-1])
    """
    command = [sys.executable, "-c", textwrap.dedent(script), str(tmp_path / "state")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == "1 1 1\n", done.stderr


def test_all_of_a_state_is_on_the_disk_before_it_counts(tmp_path):
    """The order of system calls: every file and folder is synced before the rename, the folder after it."""
    script = """
        import os, sys
        import numpy as np
        from scaleshift import checkpoint
        calls = []
        sync, rename, replace = os.fsync, os.rename, os.replace
        def path_of(handle):
            return os.readlink(f"/proc/self/fd/{handle}")
        os.fsync = lambda handle: (calls.append(("sync", path_of(handle))), sync(handle))
        def moved(move):
            def act(a, b):
                if "scaleshift" not in str(sys._getframe(1).f_globals["__name__"]):
                    return move(a, b)
                walked = [(folder, name) for folder, _, names in os.walk(a) for name in (*names, "")]
                for path in [os.path.join(*pair) for pair in walked] or [str(a)]:
                    assert ("sync", os.path.realpath(path)) in calls, path
                calls.append(("move", str(b)))
                return move(a, b)
            return act
        os.rename, os.replace = moved(rename), moved(replace)
        for number in range(2):
            checkpoint.write(sys.argv[1], checkpoint.Checkpoint("", 0, {"a": np.full(10, number)}))
            folder = os.path.dirname(sys.argv[1]) if number == 0 else sys.argv[1]
            assert calls[-1] == ("sync", folder), calls[-1]
            print(sum(call[0] == "move" for call in calls))
    """
    command = [sys.executable, "-c", textwrap.dedent(script), str(tmp_path / "state")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["1", "3"], done.stderr
