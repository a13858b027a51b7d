"""python -m scaleshift: the command line."""

from scaleshift.cli import main

if __name__ == "__main__":
    main(prog_name="scaleshift")
