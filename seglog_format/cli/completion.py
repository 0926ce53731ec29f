"""``seglog completion``: completion of commands and options, for a shell to load."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from seglog_format.cli.output import write_text

VARIABLE = "_SEGLOG_COMPLETE"
EPILOG = """\b
Examples:
  seglog completion bash > ~/.local/share/bash-completion/completions/seglog
  seglog completion zsh > ~/.zfunc/_seglog
  seglog completion fish > ~/.config/fish/completions/seglog.fish"""


@click.command(epilog=EPILOG)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(*, shell: str) -> int:
    """Print the completion of seglog for SHELL.

    Write the output once to the file that the shell reads, as below, and start a new shell. The completion asks seglog
    for commands and options, so it need not be written again for a newer version.
    """
    kind = get_completion_class(shell)
    if kind is None:
        msg = f"no completion for {shell}"
        raise click.UsageError(msg)
    context = click.get_current_context()
    write_text(kind(context.find_root().command, {}, "seglog", VARIABLE).source())
    return 0
