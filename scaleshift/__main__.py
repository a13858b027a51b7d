"""python -m scaleshift, and the command `scaleshift`: the command line.

Signals that come before a verb can tell how to go on end the process silently, as they do any program: the
command line takes a second to import.
"""

from __future__ import annotations

import signal


def main() -> None:
    """Run the command line."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # a shell may have it ignored
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # until `stopping.heard`, which takes both
    from scaleshift.cli import main as commands

    commands(prog_name="scaleshift")


if __name__ == "__main__":
    main()
