"""Scripts for completion list the existing commands; bash runs its script."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import Karpy

ASK = """
source "$1"; shift
complete=$(complete -p karpy | sed 's/.*-F \\([^ ]*\\).*/\\1/')
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}
$complete karpy "${COMP_WORDS[$COMP_CWORD]}" "${COMP_WORDS[$(($COMP_CWORD - 1))]}"
echo "${COMPREPLY[@]}"
"""


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("karpy ex", "explain"),
        ("karpy top --so", "--sort"),
        ("karpy top --sort z", "zone"),
        ("karpy solve --output j", "json"),
    ],
)
def test_bash_completes_commands_options_and_values(
    karpy: Karpy, tmp_path: Path, words: str, completed: str
) -> None:
    bash = shutil.which("bash")
    assert bash is not None
    script = tmp_path / "karpy.bash"
    script.write_text(karpy("completion", "bash").out)

    asked = [bash, "-c", ASK, "ask", str(script), *words.split()]
    done = subprocess.run(asked, capture_output=True, text=True, check=True)

    assert completed in done.stdout.split()


@pytest.mark.parametrize(
    ("shell", "first"), [("zsh", r"#compdef karpy"), ("fish", r"complete .*karpy")]
)
def test_other_shells_get_a_script_that_knows_all_commands(
    karpy: Karpy, shell: str, first: str
) -> None:
    run = karpy("completion", shell)

    assert (run.code, run.err) == (0, "")
    assert re.search(first, run.out)
    assert all(each in run.out for each in ("explain", "controlplane", "--label-columns"))
