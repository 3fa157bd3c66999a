"""The output in the pages is the output of the program."""

import re
import shlex
from pathlib import Path
from typing import Final

import pytest

from tests.cli.conftest import Karpy
from tests.cli.manifests import pod
from tests.cli.nodemanifests import CLUSTER, NOW

DOCS: Final = Path(__file__).parents[2] / "docs"
OLD: Final = DOCS / "guides" / "old-manifests.md"
PAGES: Final = (
    DOCS / "cli.md",
    DOCS / "guides" / "choosing-instances.md",
    OLD,
    DOCS / "guides" / "why-is-my-pod-pending.md",
    DOCS / "guides" / "why-is-my-node-still-here.md",
)
CONSOLE: Final = re.compile(r"(?ms)^```console\n\$ (karpy [^\n]+)\n((?!\$ |```).+?)```$")
YAML: Final = re.compile(r"(?ms)^```yaml\n(.+?)```$")
SHOWN: Final = [match.groups() for page in PAGES for match in CONSOLE.finditer(page.read_text())]
QUIET: Final = " 2>/dev/null"
RESTORE: Final = """\
apiVersion: v1
kind: Pod
metadata: {name: restore, namespace: shop}
spec:
  containers: [{name: main, image: main, resources: {requests: {cpu: "1"}}}]
  volumes: [{name: data, persistentVolumeClaim: {claimName: backup}}]
"""


@pytest.mark.parametrize(("command", "expected"), SHOWN, ids=[command for command, _ in SHOWN])
def test_a_page_shows_what_the_program_prints(
    karpy: Karpy, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, command: str, expected: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("shop.yaml").write_text(karpy("demo", "--manifests").out)
    selector = '{"shop.example/workload-class": data}'
    Path("migration.yaml").write_text(pod("migration", selector=selector, memory="0"))
    Path("restore.yaml").write_text(RESTORE)
    Path("cluster.yaml").write_text(CLUSTER)
    Path("old.yaml").write_text(YAML.findall(OLD.read_text())[0])

    # Ages and windows depend on the time, which the commands in the pages do not set.
    now = NOW if "cluster.yaml" in command else ()
    run = karpy(*shlex.split(command.removesuffix(QUIET))[1:], *now)

    assert run.out + (run.err if QUIET not in command else "") == expected


def test_the_pages_show_something() -> None:
    assert len(SHOWN) == 14
