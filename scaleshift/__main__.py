"""The command line: the script `scaleshift`, and python -m scaleshift."""

import signal


def main() -> None:
    """Run it. Ctrl-C while it is still being imported ends it without a word, as it ends any program."""
    ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if ours:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from scaleshift.cli import main as command

    if ours:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    command(prog_name="scaleshift")


if __name__ == "__main__":
    main()
