"""Programs end with their owner, however that ends."""

import signal
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import Final

import pytest

from karpy.adapters.controlplane.guard import Guard, end
from tests.controlplane.waiting import is_alive, wait_until

OWNER: Final = dedent(
    """\
    import sys, time
    from pathlib import Path
    from karpy.adapters.controlplane.guard import Guard

    home = Path(sys.argv[1])
    with Guard(home) as guard:
        child = guard.spawn(["sh", "-c", "sleep 600 & echo $!; wait"], log=home / "log")
        print(child.pid, flush=True)
        time.sleep(600)
    """
)


def sleeper(guard: Guard, home: Path) -> subprocess.Popen[bytes]:
    return guard.spawn(["sleep", "600"], log=home / "log")


def test_programs_end_with_the_block(tmp_path: Path) -> None:
    with Guard() as guard:
        first, second = sleeper(guard, tmp_path), sleeper(guard, tmp_path)

    assert (first.returncode, second.returncode) == (-signal.SIGKILL, -signal.SIGKILL)


def test_programs_end_when_the_block_fails(tmp_path: Path) -> None:
    processes: list[subprocess.Popen[bytes]] = []

    def fail() -> None:
        with Guard() as guard:
            processes.append(sleeper(guard, tmp_path))
            raise LookupError

    with pytest.raises(LookupError):
        fail()

    assert [process.returncode for process in processes] == [-signal.SIGKILL]


def test_with_patience_a_program_is_asked_to_end(tmp_path: Path) -> None:
    with Guard(patience_seconds=10) as guard:
        process = sleeper(guard, tmp_path)

    assert process.returncode == -signal.SIGTERM


def test_patience_has_an_end(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with Guard(patience_seconds=0.2) as guard:
        process = guard.spawn(["sh", "-c", "trap '' TERM; echo on; sleep 600"], log=log)
        wait_until(lambda: log.read_text() == "on\n")

    assert process.returncode == -signal.SIGKILL


def test_a_single_program_can_be_ended(tmp_path: Path) -> None:
    with Guard() as guard:
        process = sleeper(guard, tmp_path)

        end(process, patience_seconds=10)

        assert process.returncode == -signal.SIGTERM


def test_what_a_program_says_is_added_to_its_log(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("before\n")

    with Guard() as guard:
        guard.spawn(["sh", "-c", "echo out; echo err >&2; pwd"], log=log, folder=tmp_path).wait()

    assert log.read_text() == f"before\nout\nerr\n{tmp_path}\n"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_nothing_survives_an_owner_that_is_ended(tmp_path: Path, number: signal.Signals) -> None:
    """A test runner that is killed must leave no process behind."""
    with owner(tmp_path) as process:
        child = pid_of_child(process)
        wait_until((tmp_path / "log").read_text)
        grandchild = int((tmp_path / "log").read_text())

        process.send_signal(number)

    wait_until(lambda: not is_alive(child) and not is_alive(grandchild))
    assert not is_alive(child)
    assert not is_alive(grandchild)


def test_the_folder_of_a_killed_owner_is_removed(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    with owner(home) as process:
        pid_of_child(process)

        process.kill()

    wait_until(lambda: not home.exists())
    assert not home.exists()


def test_a_fork_of_the_owner_does_not_keep_programs_alive(tmp_path: Path) -> None:
    """It holds a copy of the pipe that the watcher listens to, and may live on."""
    fork = "import os; os.fork() or (time.sleep(8), os._exit(0)); print(child.pid"
    with owner(tmp_path, OWNER.replace("print(child.pid", fork)) as process:
        child = pid_of_child(process)

        process.kill()

        wait_until(lambda: not is_alive(child), seconds=5)
        assert not is_alive(child)


def owner(home: Path, code: str = OWNER) -> subprocess.Popen[bytes]:
    """Start a process that owns others; leaving the block waits for its end."""
    return subprocess.Popen(
        [sys.executable, "-c", code, home], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )


def pid_of_child(process: subprocess.Popen[bytes]) -> int:
    assert process.stdout is not None
    return int(process.stdout.readline())
