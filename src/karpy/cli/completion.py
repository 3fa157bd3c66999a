"""`karpy completion`: scripts for the completion of commands and options in shells."""

from typing import Annotated, Literal

from cyclopts import Parameter

from karpy.cli.main import whole_app
from karpy.cli.options import DONE, Injected


def completion(
    shell: Annotated[Literal["bash", "zsh", "fish"], Parameter(help="Whose script to print.")],
    /,
    *,
    terminal: Injected,
) -> int:
    """
    Print a script by which a shell completes commands, options and their values.

    For example:

        $ source <(karpy completion bash)                              in ~/.bashrc
        $ karpy completion zsh > ~/.zfunc/_karpy                       a folder of $fpath
        $ karpy completion fish > ~/.config/fish/completions/karpy.fish
    """
    terminal.answer_text(whole_app().generate_completion(shell=shell))
    return DONE
