"""
Build the image itself and run it as a kubelet would: `python -m tests.image.container`.

No registry is needed: `mmdebstrap` makes the base of Debian's packages, `buildah` does what the
Dockerfile says on top of it. Both come from Debian, and need root.
"""

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic, sleep
from typing import Any, Final

from karpy import __version__
from karpy.adapters.controlplane.loopback import free_ports, is_healthy
from tests.image.__main__ import faults
from tests.tidy.repository import ROOT

_TOOLS: Final = ("buildah", "mmdebstrap", "unshare", "setpriv", "chroot")
_SUITE: Final = "trixie"
"""The Debian of python:3.13-slim; its own Python is 3.13, too."""
_PACKAGES: Final = ("ca-certificates", "python-is-python3", "python3", "python3-venv")
_BASE: Final = "localhost/karpy-base"
_IMAGE: Final = "localhost/karpy"
_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# Where a machine trusts an authority of its own, pip has to trust it as well.
_TRUST: Final = Path("/etc/ssl/certs")
_COMPILERS: Final = ("cc", "c++", "gcc", "g++", "clang", "tcc", "ld", "make", "go", "rustc")
_LEFT: Final = ("src", "wheel", "build")
_SECONDS: Final = 60.0

_BOX: Final = """
root=$1; given=$2; user=$3; shift 3
mount --bind "$root" "$root"
mount -o remount,bind,ro "$root"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount --bind -o ro "$given" "$root/mnt"
exec setpriv --no-new-privs chroot --userspec="$user" "$root" env -i "$@"
"""
"""A read-only root, a process tree of its own, no way to more rights, and not even a /tmp."""


class Store:
    """Images and containers below a folder, apart from all others of this machine."""

    def __init__(self, folder: Path) -> None:
        self._words = ["--root", str(folder / "store"), "--runroot", str(folder / "run")]

    def do(self, *words: str) -> str:
        """Have buildah do something, and return what it says on stdout."""
        done = subprocess.run(
            [_tool("buildah"), *self._words, *words],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    def build(self, folder: Path) -> None:
        """Make the base, then the image."""
        root = folder / "root.tar"
        include = f"--include={','.join(_PACKAGES)}"
        subprocess.run(
            [_tool("mmdebstrap"), "--quiet", "--variant=apt", include, _SUITE, root], check=True
        )
        name = self.do("from", "scratch")
        self.do("add", "--quiet", name, str(root), "/")
        self.do("config", "--env", f"PATH={_PATH}", name)
        self.do("commit", "--quiet", name, _BASE)
        self.do("rm", name)
        words = ["--isolation", "chroot", "--volume", f"{_TRUST}:{_TRUST}:ro", "--quiet"]
        self.do("bud", *words, "--build-arg", f"BASE={_BASE}", "--tag", _IMAGE, ".")

    @contextmanager
    def mounted(self) -> Iterator[Path]:
        """Have the file system of the image in a folder."""
        name = self.do("from", "--pull-never", _IMAGE)
        try:
            yield Path(self.do("mount", name))
        finally:
            self.do("umount", "--all")
            self.do("rm", "--all")

    def config(self) -> dict[str, Any]:
        """Return what the image says about how it is run."""
        found: dict[str, Any] = json.loads(self.do("inspect", "--type", "image", _IMAGE))
        config: dict[str, Any] = found["OCIv1"]["config"]
        return config

    def packed(self, folder: Path) -> int:
        """Say how many bytes a node pulls."""
        archive = folder / "image.tar"
        self.do("push", "--quiet", _IMAGE, f"oci-archive:{archive}")
        return archive.stat().st_size


class Box:
    """Runs the image as the chart has it run: its user, a read-only root, no privilege."""

    def __init__(self, root: Path, config: dict[str, Any], given: Path) -> None:
        self._root = root
        self._config = config
        self._given = given

    def start(
        self, *words: str, environ: Iterable[str] = (), stderr: int | None = None
    ) -> subprocess.Popen[str]:
        """Run the entry point as the first process of its tree."""
        apart = f"{_tool('unshare')} --mount --pid --fork --kill-child sh -ec".split()
        given = [_BOX, "box", str(self._root), str(self._given), str(self._config["User"])]
        program = [*self._config["Env"], *environ, *self._config["Entrypoint"], *words]
        return subprocess.Popen(
            [*apart, *given, *program], stdout=subprocess.PIPE, stderr=stderr, text=True
        )

    def run(self, *words: str) -> str:
        """Run the entry point to its end, and return its answer."""
        with self.start(*words, stderr=subprocess.PIPE) as process:
            answer, problems = process.communicate(timeout=_SECONDS)
        assert process.returncode == 0, problems
        return answer


def _tool(name: str) -> str:
    path = shutil.which(name)
    assert path is not None, name
    return path


def main() -> None:
    """Build, look inside, run, and say what it costs."""
    if missing := [each for each in _TOOLS if shutil.which(each) is None]:
        print(f"skipped: the image is not built without {', '.join(missing)}")
        print("hint: as root: apt-get install buildah mmdebstrap")
        return
    if os.getuid() != 0:
        print("skipped: the image is built and run by root alone")
        return
    with TemporaryDirectory(prefix="karpy-image-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        store = Store(folder)
        store.build(folder)
        with store.mounted() as root:
            _check_files(root)
            given = folder / "given"
            given.mkdir()
            config = store.config()
            assert config["Labels"]["org.opencontainers.image.version"] == __version__
            box = Box(root, config, given)
            seconds = _check_program(box)
            ready = _check_operator(box, given)
            size = _bytes(root)
        packed = store.packed(folder)
    print(
        f"image: {size >> 20} MB, {packed >> 20} MB to pull; "
        f"`karpy --version` in {seconds:.1f} s, `karpy run` is ready in {ready:.1f} s"
    )


def _check_files(root: Path) -> None:
    """See that nothing is in the image that builds, or that others may change."""
    found = list(faults(root / "opt" / "karpy"))
    places = [root / each[1:] for each in (*_PATH.split(":"), "/opt/karpy/bin")]
    compilers = (place / each for place in places for each in _COMPILERS)
    found += [f"{each} is in the image" for each in compilers if each.exists()]
    found += [f"/{each} is left in the image" for each in _LEFT if (root / each).exists()]
    if found:
        sys.exit("\n".join(found))


def _bytes(root: Path) -> int:
    return sum(
        each.lstat().st_size for each in root.rglob("*") if stat.S_ISREG(each.lstat().st_mode)
    )


def _check_program(box: Box) -> float:
    """See that the program answers, and how long it takes to."""
    seconds = min(_time_version(box) for _ in range(3))
    assert json.loads(box.run("demo", "--speed", "20", "--output", "json"))["isComplete"]
    return seconds


def _time_version(box: Box) -> float:
    start = monotonic()
    assert box.run("--version").startswith("karpy ")
    return monotonic() - start


def _check_operator(box: Box, given: Path) -> float:
    """Have the operator in the image serve a cluster, and end it as a kubelet does."""
    kubeconfig = given / "kubeconfig"
    command = [
        sys.executable,
        "-m",
        "karpy",
        "cluster",
        "--examples",
        "--kubeconfig",
        str(kubeconfig),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as cluster:
        try:
            assert cluster.stdout is not None
            cluster.stdout.readline()
            kubeconfig.chmod(0o644)
            return _serve(box)
        finally:
            cluster.terminate()


def _serve(box: Box) -> float:
    ports = free_ports(("METRICS_PORT", "HEALTH_PROBE_PORT"))
    environ = ["KUBECONFIG=/mnt/kubeconfig", *(f"{name}={port}" for name, port in ports.items())]
    start = monotonic()
    with box.start("run", environ=environ) as process:
        while not is_healthy(ports["HEALTH_PROBE_PORT"], "/readyz"):
            assert process.poll() is None, process.communicate()
            assert monotonic() - start < _SECONDS, "the operator does not get ready"
            sleep(0.05)
        seconds = monotonic() - start
        assert process.stdout is not None
        for line in process.stdout:
            if "registered" in line:
                break
        end(process)
        process.communicate(timeout=_SECONDS)
    assert process.returncode == 0, process.returncode
    return seconds


def end(process: subprocess.Popen[str]) -> None:
    """Send SIGTERM to the first process of a box, which ignores what it has no handler for."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="utf-8")
    (first,) = map(int, children.split())
    os.kill(first, signal.SIGTERM)


if __name__ == "__main__":
    main()
