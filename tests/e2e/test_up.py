"""`karpy controlplane up` starts a control plane, and removes it completely."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.controlplane.waiting import is_alive, wait_until


@contextmanager
def up(*words: str) -> Iterator[subprocess.Popen[str]]:
    """Run the command until the block ends, at the latest."""
    process = subprocess.Popen(
        [sys.executable, "-m", "karpy", "controlplane", "up", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def first_lines(process: subprocess.Popen[str]) -> str:
    """Read the lines that are printed once the control plane is up."""
    assert process.stdout is not None
    return "".join(process.stdout.readline() for _ in range(7))


def home_of(text: str) -> Path:
    found = re.search(r"logs +(/\S+)", text)
    assert found is not None
    return Path(found[1])


def processes_of(home: Path, program: str = "") -> list[int]:
    """List the processes whose arguments name a folder, all or those of a program."""
    done = subprocess.run(
        ["/usr/bin/env", "ps", "-ww", "-eo", "pid=,args="],
        capture_output=True,
        text=True,
        check=True,
    )
    lines = [line.split(maxsplit=1) for line in done.stdout.splitlines()]
    return [
        int(pid)
        for pid, *args in lines
        if args and str(home) in args[0] and args[0].partition(" ")[0].endswith(program)
    ]


def test_the_usage_is_printed(programs: Path, tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"

    with up("--kubeconfig", str(kubeconfig), "--no-kwok") as process:
        text = first_lines(process)
        asked = subprocess.run(
            [programs / "kubectl", "get", "namespaces", "-o", "name"],
            env={**os.environ, "KUBECONFIG": str(kubeconfig), "HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )

    assert f"export KUBECONFIG={kubeconfig}\n" in text
    assert "namespace/default\n" in asked.stdout


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 0), (signal.SIGTERM, -signal.SIGTERM), (signal.SIGKILL, -signal.SIGKILL)],
)
def test_no_process_is_left_after_any_end(number: signal.Signals, code: int) -> None:
    with up() as process:
        home = home_of(first_lines(process))
        running = processes_of(home)

        process.send_signal(number)

        process.wait(30)

    wait_until(lambda: not home.exists() and not any(map(is_alive, running)))
    assert process.returncode == code
    assert len(running) >= 5
    assert [pid for pid in running if is_alive(pid)] == []
    assert not home.exists()


@pytest.mark.usefixtures("programs")
def test_a_program_that_ends_ends_everything_but_the_logs() -> None:
    with up() as process:
        home = home_of(first_lines(process))
        (scheduler,) = processes_of(home, "/kube-scheduler")

        os.kill(scheduler, signal.SIGKILL)

        _, said = process.communicate(timeout=30)

    logs = sorted(path.name for path in home.glob("*.log"))
    shutil.rmtree(home)
    assert process.returncode == 1
    assert "kube-scheduler ended with code -9" in said
    assert logs == [
        "etcd.log",
        "kube-apiserver.log",
        "kube-controller-manager.log",
        "kube-scheduler.log",
        "kwok.log",
    ]
