"""scaleshift completion: let the shell complete verbs, options, and names of a study."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from scaleshift.cli import COMPLETING, completing
from scaleshift.cli.helping import OneOf, Verb

NAME = "scaleshift"
INSTALL = {  # for good: to where the shell looks for such a script
    "bash": "scaleshift completion bash > ~/.local/share/bash-completion/completions/scaleshift",
    "zsh": "scaleshift completion zsh > ~/.zfunc/_scaleshift",
    "fish": "scaleshift completion fish > ~/.config/fish/completions/scaleshift.fish",
}


@click.command(cls=Verb, examples="\n".join(["source <(scaleshift completion bash)", *INSTALL.values()]))
@click.argument("shell", type=OneOf(list(INSTALL)))
def completion(shell: str) -> None:
    """Print the script by which a shell completes scaleshift: bash, zsh or fish.

    Verbs, options and their choices, paths; and, behind the STORE, its samples and their columns in --source,
    --target and --select, its labels, and its markers. The first of the examples is for this shell alone; the
    others are for good, from the next shell on; make the folder if it is not there. For that bash needs the
    package bash-completion, and zsh in ~/.zshrc: fpath+=~/.zfunc; autoload -Uz compinit; compinit
    """
    completing.register()
    found = get_completion_class(shell)
    assert found is not None
    script = found(click.get_current_context().find_root().command, {}, NAME, COMPLETING).source()
    first, rest = script.split("\n", 1)
    told = f"# {INSTALL[shell]}"
    # zsh reads what a file completes from its first line
    click.echo(f"{first}\n{told}\n{rest}" if first.startswith("#compdef") else f"{told}\n{script}")
