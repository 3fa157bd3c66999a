"""Malformed command lines, files and streams: each ends in its own error."""

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import IO, Final

import pytest

from karpy.cli.main import execute
from karpy.cli.terminal import Channel, Terminal

BIG: Final = "9" * 5000
LONG: Final = f"/{'x' * 5000}"
DEEP: Final = '{"a":' * 100_000 + "1" + "}" * 100_000
SERVER: Final = 'server: "http://127.0.0.1:1"'


def kubeconfig(cluster: str = SERVER, user: str = "") -> str:
    return (
        "current-context: a\n"
        "contexts: [{name: a, context: {cluster: a, user: a}}]\n"
        f"clusters: [{{name: a, cluster: {{{cluster}}}}}]\n"
        f"users: [{{name: a, user: {{{user}}}}}]\n"
    )


def pod(spec: str) -> str:
    return f'{{"apiVersion": "v1", "kind": "Pod", "metadata": {{"name": "a"}}, "spec": {spec}}}'


def run_program(*words: str, stdin: str = "") -> tuple[int, list[str], int]:
    """Run the program in this process; return exit code, error codes, and number of hints."""
    out, err = io.StringIO(), io.StringIO()
    channels = Channel(out, has_colour=False), Channel(err, has_colour=False)
    code = execute(words, Terminal(io.StringIO(stdin), *channels))
    codes = re.findall(r"\((KP\d{4})\)", err.getvalue())
    return code, codes, len(re.findall(r"^ *hint: \w", err.getvalue(), re.MULTILINE))


FILES: Final = [
    ("solve FILE", pod(f'{{"priority": {BIG}, "containers": []}}'), "KP1001"),
    ("convert FILE", pod(f'{{"priority": {BIG}, "containers": []}}'), "KP1001"),
    (
        "solve FILE",
        pod(f'{{"containers": [{{"resources": {{"requests": {{"cpu": "{BIG}"}}}}}}]}}'),
        "KP1001",
    ),
    ("solve FILE", DEEP, "KP1001"),
    ("convert FILE", "[" * 50_000, "KP1001"),
    ("solve FILE", "a: \0", "KP1001"),
    ("solve FILE", "!!python/object/apply:os.system [a]", "KP1001"),
    ("solve FILE", '{"a": "\\ud800"}', "KP1001"),
    ("convert FILE", '{"\\udfff": 1}', "KP1001"),
    ("solve FILE", "hello", "KP1001"),
    ("solve FILE", '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": ["a"]}}', "KP1001"),
    ("solve FILE", '{"apiVersion": 5, "kind": ["Pod"]}', "KP1001"),
    ("solve FILE", "", "KP1001"),
    ("solve GOOD --catalog FILE", DEEP, "KP1004"),
    ("solve GOOD --catalog FILE", f"[{BIG}]", "KP1004"),
    ("solve GOOD --catalog FILE", '[{"name": "\\ud800"}]', "KP1004"),
    ("bench FILE", DEEP, "KP1003"),
    ("bench FILE", f'{{"format": "karpbench/v1", "pods": [{BIG}]}}', "KP1003"),
    ("bench FILE", '{"format": "\\ud800"}', "KP1003"),
    ("bench FILE", "", "KP1003"),
    ("run --kubeconfig FILE", DEEP, "KP1007"),
    ("run --kubeconfig FILE", "a: " + "[" * 2000, "KP1007"),
    ("run --kubeconfig FILE", f"current-context: {BIG}", "KP1007"),
    ("run --kubeconfig FILE", "[]", "KP1007"),
    ("run --kubeconfig FILE", "current-context: [a]\ncontexts: 7", "KP1007"),
    ("run --kubeconfig FILE", "", "KP1007"),
    ("run --kubeconfig FILE", kubeconfig("server: 5"), "KP1007"),
    ("run --kubeconfig FILE", kubeconfig('server: "https://[::1"'), "KP1007"),
    ("run --kubeconfig FILE", kubeconfig(f'{SERVER}, certificate-authority: "a\\0b"'), "KP1007"),
    ("run --kubeconfig FILE", kubeconfig(f"{SERVER}, certificate-authority: {LONG}"), "KP1007"),
    ("cluster --kubeconfig FILE", DEEP, "KP1006"),
]
"""A command on a file, the content of the file, and the expected error."""


@pytest.mark.parametrize(("command", "text", "code"), FILES)
def test_a_file_that_cannot_be_read_has_an_error_of_its_own(
    tmp_path: Path, command: str, text: str, code: str
) -> None:
    named = {"FILE": tmp_path / "hostile.yaml", "GOOD": tmp_path / "good.json"}
    named["FILE"].write_text(text, encoding="utf-8")
    named["GOOD"].write_text(pod('{"containers": [{"name": "c"}]}'))

    exit_code, codes, hints = run_program(*(str(named.get(word, word)) for word in command.split()))

    assert (exit_code, set(codes)) == (1, {code})
    assert hints == len(codes)


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("solve PATH", "KP1002"),
        ("explain a PATH", "KP1002"),
        ("convert PATH", "KP1002"),
        ("replay PATH", "KP1002"),
        ("bench PATH", "KP1002"),
        ("run --kubeconfig PATH", "KP1011"),
        ("cluster --kubeconfig PATH", "KP1011"),
        ("controlplane up --kubeconfig PATH", "KP1011"),
        ("workload diverse-5 --out PATH", "KP1006"),
    ],
)
def test_a_path_that_is_too_long_has_an_error_of_its_own(command: str, code: str) -> None:
    assert run_program(*command.replace("PATH", LONG).split()) == (1, [code], 1)


@pytest.mark.parametrize("command", ["solve", "convert", "bench", "replay"])
def test_links_that_lead_back_to_themselves_are_named(tmp_path: Path, command: str) -> None:
    loop = tmp_path / "loop.json"
    loop.symlink_to(loop)

    assert run_program(command, str(loop)) == (1, ["KP1002"], 1)


@pytest.mark.parametrize("command", ["solve", "convert"])
def test_a_device_without_an_end_is_not_read(command: str) -> None:
    assert run_program(command, "/dev/zero") == (1, ["KP1002"], 1)


def test_a_name_that_is_no_text_is_refused(tmp_path: Path) -> None:
    old = tmp_path / "old.yaml"
    spec = {"provider": {"subnetSelector": {"a": "b"}, "securityGroupSelector": {"a": "b"}}}
    made = {"apiVersion": "karpenter.sh/v1alpha5", "kind": "Provisioner", "spec": spec}
    old.write_text(json.dumps({**made, "metadata": {"name": "a"}}))

    done = process("convert", old, "--role", "caf\udce9")

    assert (done.returncode, "KP9" in done.stderr) == (1, False)
    assert "is no text: it cannot be written as utf-8 (KP1012)" in done.stderr


def test_a_line_of_a_journal_that_nests_too_deeply_is_skipped(tmp_path: Path) -> None:
    journal = tmp_path / "decisions-000001.jsonl"
    journal.write_text(DEEP)
    out, err = io.StringIO(), io.StringIO()
    channels = Channel(out, has_colour=False), Channel(err, has_colour=False)

    code = execute(("replay", str(journal)), Terminal(io.StringIO(), *channels))

    assert code == 1
    assert err.getvalue() == f"note: {journal}:1 is skipped: it is nested too deeply\n"


@pytest.mark.parametrize(
    "command",
    ["errors", "crds", "--help", "solve --help", "--version", "demo --manifests", "workload"],
)
def test_a_full_disk_behind_stdout_is_named(command: str) -> None:
    with Path("/dev/full").open("w") as full:
        done = process(*command.split(), stdout=full)

    assert done.returncode == 1
    assert "No space left on device (KP1011)\n\nhint: make room on the disk" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_full_disk_behind_stderr_leaves_the_exit_code() -> None:
    with Path("/dev/full").open("w") as full:
        assert process("solve", "none.yaml", stderr=full.fileno()).returncode == 1


@pytest.mark.parametrize("token", [" ", "a\nb", "caf\u00e9", "\udcff"])
def test_a_token_that_no_request_can_carry_is_refused(token: str) -> None:
    assert run_program("cluster", "--token", token) == (1, ["KP1010"], 1)


@pytest.mark.parametrize("command", ["crds", "--help", "--version", "solve --help"])
def test_a_closed_stdout_is_no_error(command: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as gone:
        done = process(*command.split(), stdout=gone)

    assert (done.returncode, done.stderr) == (141, "")


def process(
    *words: str | Path, stdout: int | IO[str] = subprocess.PIPE, stderr: int = subprocess.PIPE
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "karpy", *words],
        stdout=stdout,
        stderr=stderr,
        encoding="utf-8",
        check=False,
        timeout=60,
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
    )
