"""Signals that come while the command line is imported: silent at first, one line once a verb has begun."""

import os
import signal
import subprocess
import sys
import textwrap

import pytest

STOPPED = """
    import os, signal, sys

    # A process that a shell put into the background ignores interrupts, and so do its children.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    number, module = int(sys.argv.pop(1)), sys.argv.pop(1)

    class Name:
        def __set_name__(self, owner, name):
            os.kill(os.getpid(), number)

    class Finder:
        def find_spec(self, name, path=None, target=None):
            if name == module:
                type("Owner", (), {"name": Name()})  # older Pythons make a RuntimeError of what is raised

    sys.meta_path.insert(0, Finder())
    from scaleshift.__main__ import main
    main()
"""


def stopped(number, module):
    """Run a verb that gets a signal as a module is imported."""
    command = [sys.executable, "-c", textwrap.dedent(STOPPED), str(int(number)), module, "doctor"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.run(command, env=environment, capture_output=True, text=True)


@pytest.mark.parametrize("module", ["click", "scaleshift.cli.helping"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_before_any_verb_ends_the_process_silently(number, module):
    done = stopped(number, module)
    assert (done.returncode, done.stdout, done.stderr) == (-number, "", "")


@pytest.mark.parametrize(
    ("number", "told"), [(signal.SIGINT, (130, "interrupted\n")), (signal.SIGTERM, (143, "terminated\n"))]
)
def test_a_signal_as_a_verb_is_imported_is_told_in_one_line(number, told):
    done = stopped(number, "scaleshift.doctor")
    assert (done.returncode, done.stderr) == told


def test_a_library_that_is_imported_leaves_signals_alone():
    code = "import signal, scaleshift, scaleshift.__main__, scaleshift.cli; print(signal.getsignal(2))"
    command = [sys.executable, "-c", f"import signal; signal.signal(2, signal.default_int_handler); {code}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "default_int_handler" in done.stdout
