"""A running control plane: etcd, kube-apiserver, kube-scheduler, controllers, KWOK."""

import shutil
import subprocess
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import mkdtemp
from time import monotonic, sleep
from types import TracebackType
from typing import Final, Self

from msgspec import Struct

from karpy.adapters.controlplane.bundles import source
from karpy.adapters.controlplane.commands import COMMANDS, PORTS, USERS, Layout, audit_policy
from karpy.adapters.controlplane.credentials import (
    ADMIN,
    authority_of,
    make_signing_key,
    make_tokens,
    tokens_file,
    write_kubeconfig,
)
from karpy.adapters.controlplane.guard import Guard, Process, end
from karpy.adapters.controlplane.loopback import free_ports, is_healthy, post_json
from karpy.adapters.controlplane.programs import find_program
from karpy.errors import BadRequest, ControlPlaneMissing

_API_SERVER: Final = "kube-apiserver"
_KWOK: Final = "kwok"
_COMPACTED: Final = b64encode(b"compact_rev_key").decode()
_SECONDS_TO_START: Final = 90.0
_SECONDS_TO_END: Final = 15.0
_SECONDS_BETWEEN_LOOKS: Final = 0.05
_SECONDS_BETWEEN_CHECKS: Final = 1.0
_LAST_LINES: Final = 15


class Answer(Struct, frozen=True):
    """The output and exit code of kubectl."""

    code: int
    out: str
    err: str


class ControlPlane:
    """
    A Kubernetes without machines, on free ports of loopback; it runs while the context is open.

    RBAC is on. `users` are names with their groups; `token_of` returns the token of each, also of
    `admin` and of the programs. Requests of the user `audited` are logged in `audit_log`. With
    KWOK, a node with the annotation `kwok.x-k8s.io/node: fake` is ready at once, and so are the
    pods bound to it.

    Files are kept in `home`, or in a temporary folder that is removed at the end. If the control
    plane does not start, its logs are kept, and the error names them. None of its processes
    outlives this process. Methods block: in a program with an event loop, call them from a thread.
    """

    def __init__(
        self,
        programs: Path,
        home: Path | None = None,
        *,
        has_kwok: bool = True,
        users: Mapping[str, Sequence[str]] | None = None,
        audited: str = "",
    ) -> None:
        self._programs = programs
        self._home_given = home
        self._names = [name for name in COMMANDS if has_kwok or name != _KWOK]
        self._users = {**USERS, **(users or {})}
        self._tokens = make_tokens(self._users)
        self._audited = audited
        self._processes: dict[str, Process] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            home = stack.enter_context(self._home())
            self._layout = Layout(home, free_ports(PORTS), self._audited)
            owned = () if self._home_given else (home,)
            self._guard = stack.enter_context(Guard(*owned))
            self._start()
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    @property
    def home(self) -> Path:
        """The folder of logs, tokens and kubeconfigs."""
        return self._layout.home

    @property
    def server(self) -> str:
        """The address of the API server."""
        return self._layout.server

    @property
    def authority(self) -> str:
        """The authority of the API server's certificate, as PEM."""
        return self._authority()

    @property
    def kubeconfig(self) -> Path:
        """The kubeconfig of a cluster admin."""
        return self._layout.kubeconfig(ADMIN)

    @property
    def audit_log(self) -> Path:
        """The log of the requests of the user `audited`, one JSON object per line."""
        return self._layout.audit_log

    def log(self, program: str) -> Path:
        """Return the path of a program's log."""
        return self._layout.log(program)

    def token_of(self, user: str = ADMIN) -> str:
        """Return the token of a user: `admin`, one of `users`, or a program."""
        return self._tokens[user]

    def service_account_token(self, name: str, namespace: str = "default") -> str:
        """Return a new token of a service account; create the account if it is missing."""
        where = ("--namespace", namespace)
        found = self.try_kubectl("get", "serviceaccount", name, *where)
        if found.code:
            self.kubectl("create", "serviceaccount", name, *where)
        return self.kubectl("create", "token", name, *where).strip()

    def write_kubeconfig(self, path: Path, token: str = "") -> None:
        """Write a kubeconfig with a token, by default the admin's."""
        write_kubeconfig(
            path,
            server=self.server,
            authority=self.authority,
            token=token or self.token_of(),
        )

    def kubectl(self, *words: str, stdin: str = "", token: str = "") -> str:
        """Run kubectl and return what it prints; raise BadRequest if it fails."""
        answer = self.try_kubectl(*words, stdin=stdin, token=token)
        if answer.code:
            raise BadRequest(f"`kubectl {' '.join(words)}` failed: {answer.err.strip()}")
        return answer.out

    def try_kubectl(self, *words: str, stdin: str = "", token: str = "") -> Answer:
        """Run kubectl with a token, by default the admin's; return its output and exit code."""
        with self._kubeconfig_of(token) as kubeconfig:
            done = subprocess.run(
                [
                    find_program(self._programs, "kubectl"),
                    f"--kubeconfig={kubeconfig}",
                    # kubectl caches discovery by port, which another cluster may have used before.
                    f"--cache-dir={self.home / 'kubectl'}",
                    *words,
                ],
                input=stdin,
                capture_output=True,
                encoding="utf-8",
                check=False,
            )
        return Answer(done.returncode, done.stdout, done.stderr)

    def spawn(
        self, name: str, argv: Sequence[str | Path], environ: Mapping[str, str] | None = None
    ) -> Process:
        """Start a program with a log in `home`; it never outlives the control plane."""
        return self._guard.spawn(argv, log=self.log(name), environ=environ)

    def pid_of(self, program: str = _API_SERVER) -> int:
        """Return the process id of a program."""
        return self._processes[program].pid

    def halt(self, program: str = _API_SERVER, *, is_killed: bool = False) -> None:
        """End a program as a crash or an upgrade would; `resume` starts it again."""
        end(self._processes.pop(program), patience_seconds=0 if is_killed else _SECONDS_TO_END)

    def resume(self, program: str = _API_SERVER) -> None:
        """Start a halted program again, on the same port and with the same data."""
        self._spawn(program)
        self._wait_for(program)
        self.restart_ended()

    def restart_ended(self) -> list[str]:
        """
        Start programs again that have ended by themselves; return their names.

        Some programs of Kubernetes exit when the API server stops at the wrong moment; in other
        clusters the kubelet restarts them.
        """
        dead = [name for name, process in self._processes.items() if process.poll() is not None]
        for name in dead:
            self._spawn(name)
        for name in dead:
            self._wait_for(name)
        return dead

    def restart(self, program: str = _API_SERVER) -> None:
        """Halt and resume a program."""
        self.halt(program)
        self.resume(program)

    def wait(self) -> None:
        """Wait forever; raise ControlPlaneMissing once a program ends by itself."""
        while True:
            self._check_alive()
            sleep(_SECONDS_BETWEEN_CHECKS)

    def compact(self) -> None:
        """
        Compact etcd, so that a watch that resumes from an old version must list again.

        The API server does the same every five minutes, and records the compacted revision under
        a key of its own. Its watch cache follows within 15 seconds, or at once after a restart.
        """
        port = self._layout.ports["etcd"]
        revision = post_json(port, "/v3/kv/range", {"key": _COMPACTED})["header"]["revision"]
        value = b64encode(str(revision).encode()).decode()
        post_json(port, "/v3/kv/put", {"key": _COMPACTED, "value": value})
        post_json(port, "/v3/kv/compaction", {"revision": revision, "physical": True})

    @contextmanager
    def _home(self) -> Iterator[Path]:
        home = self._home_given or Path(mkdtemp(prefix="karpy-controlplane-"))
        home.mkdir(parents=True, exist_ok=True)
        is_kept = self._home_given is not None
        try:
            yield home
        except ControlPlaneMissing:
            is_kept = True
            raise
        finally:
            shutil.rmtree(home / "etcd" if is_kept else home, ignore_errors=True)

    @contextmanager
    def _kubeconfig_of(self, token: str) -> Iterator[Path]:
        if not token:
            yield self.kubeconfig
            return
        folder = Path(mkdtemp(prefix="kubectl-", dir=self.home))
        try:
            self.write_kubeconfig(folder / "kubeconfig", token)
            yield folder / "kubeconfig"
        finally:
            shutil.rmtree(folder)

    def _start(self) -> None:
        layout = self._layout
        layout.tokens.touch(mode=0o600)
        layout.tokens.write_text(tokens_file(self._users, self._tokens), encoding="utf-8")
        layout.signing_key.touch(mode=0o600)
        layout.signing_key.write_text(make_signing_key(), encoding="ascii")
        layout.stages.write_text(source("stages.yaml"), encoding="utf-8")
        layout.audit_policy.write_text(audit_policy(layout.audited), encoding="utf-8")
        first, second, *others = self._names
        for name in (first, second):
            self._spawn(name)
        self._wait_for(second)
        layout.authority.write_text(self._authority(), encoding="ascii")
        for user in USERS:
            self.write_kubeconfig(layout.kubeconfig(user), self._tokens[user])
        for name in others:
            self._spawn(name)
        for name in others:
            self._wait_for(name)

    def _spawn(self, name: str) -> None:
        program = str(find_program(self._programs, name))
        argv = [program, *COMMANDS[name].flags(self._layout)]
        self._processes[name] = self._guard.spawn(argv, log=self._layout.log(name))

    def _wait_for(self, name: str) -> None:
        """Wait until a program is ready; raise ControlPlaneMissing if it ends or takes too long."""
        deadline = monotonic() + _SECONDS_TO_START
        while not self._is_ready(name):
            if self._processes[name].poll() is not None:
                self._check_alive()
            if monotonic() > deadline:
                raise self._why_not(name, f"is not ready after {_SECONDS_TO_START:.0f} s")
            sleep(_SECONDS_BETWEEN_LOOKS)

    def _check_alive(self) -> None:
        for name, process in self._processes.items():
            if process.poll() is not None:
                raise self._why_not(name, f"ended with code {process.returncode}")

    def _is_ready(self, name: str) -> bool:
        authority = self._authority()
        if not authority:
            return False
        speaks_tls = name.startswith("kube-")
        port = self._layout.ports[name]
        return is_healthy(port, COMMANDS[name].health, authority if speaks_tls else "")

    def _authority(self) -> str:
        """Read the authority of the API server; empty until the server has written it."""
        chain = self._layout.certificates / "apiserver.crt"
        return authority_of(chain.read_text(encoding="ascii")) if chain.exists() else ""

    def _why_not(self, name: str, problem: str) -> ControlPlaneMissing:
        log = self._layout.log(name)
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
        last = "\n".join(lines[-_LAST_LINES:])
        return ControlPlaneMissing(
            problem=f"{name} {problem}; the end of {log}:\n{last}",
            hint=f"look at the logs in {self.home}; "
            "if the programs are broken, build them anew: see docs/guides/control-plane.md",
        )
