"""An operator that runs beside a control plane: Karpenter, or a replacement of it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from time import monotonic, sleep
from types import TracebackType
from typing import Final, Protocol, Self

from karpy.adapters.controlplane.guard import Process, end
from karpy.adapters.controlplane.loopback import free_ports, is_healthy
from karpy.errors import ControlPlaneMissing

NAMESPACE: Final = "karpenter"
"""The namespace that the operator is configured with; its lease is there."""
_SECONDS_TO_START: Final = 60.0
_SECONDS_TO_END: Final = 30.0
_SECONDS_BETWEEN_LOOKS: Final = 0.1
_LAST_LINES: Final = 15
_METRICS: Final = "metrics"
_HEALTH: Final = "health"


class Plane(Protocol):
    """The part of a control plane that an operator needs."""

    @property
    def home(self) -> Path:
        """The folder of the control plane's files."""

    @property
    def kubeconfig(self) -> Path:
        """The kubeconfig of a cluster admin."""

    def log(self, program: str) -> Path:
        """Return the path of a program's log."""

    def spawn(
        self, name: str, argv: Sequence[str | Path], environ: Mapping[str, str] | None = None
    ) -> Process:
        """Start a program that never outlives the control plane."""


class OperatorProcess:
    """
    A process configured by Karpenter's environment variables; it runs while the context is open.

    `settings` are further variables. Leader election is off unless they turn it on. The log is the
    control plane's log `name`; a later operator with the same name appends to it.
    """

    def __init__(
        self,
        plane: Plane,
        argv: Sequence[str | Path],
        *,
        name: str = "operator",
        settings: Mapping[str, str] | None = None,
        kubeconfig: Path | None = None,
    ) -> None:
        self._plane = plane
        self._argv = argv
        self._name = name
        self._settings = settings or {}
        self._kubeconfig = kubeconfig or plane.kubeconfig
        self._process: Process | None = None
        self._ports = free_ports((_METRICS, _HEALTH))

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        """The id of the process; 0 while it does not run."""
        return self._process.pid if self._process else 0

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def log(self) -> Path:
        """The path of the log."""
        return self._plane.log(self._name)

    @property
    def metrics_port(self) -> int:
        """The port of `/metrics`."""
        return self._ports[_METRICS]

    def start(self) -> None:
        """Start the operator and wait until it is ready; raise ControlPlaneMissing if it fails."""
        self._process = self._plane.spawn(self._name, self._argv, self._environ())
        deadline = monotonic() + _SECONDS_TO_START
        while not is_healthy(self._ports[_HEALTH], "/readyz"):
            if not self.is_running:
                raise self._why_not(f"ended with code {self._process.returncode}")
            if monotonic() > deadline:
                self.stop(is_killed=True)
                raise self._why_not(f"is not ready after {_SECONDS_TO_START:.0f} s")
            sleep(_SECONDS_BETWEEN_LOOKS)

    def stop(self, *, is_killed: bool = False) -> None:
        """Send SIGTERM to the operator and wait for its end, or kill it as a crash would."""
        if self._process is not None:
            end(self._process, patience_seconds=0 if is_killed else _SECONDS_TO_END)

    def _environ(self) -> dict[str, str]:
        return {
            # Variables of the caller's environment must not configure the operator.
            "HOME": str(self._plane.home),
            "KUBECONFIG": str(self._kubeconfig),
            "SYSTEM_NAMESPACE": NAMESPACE,
            "LEADER_ELECTION_NAMESPACE": NAMESPACE,
            "DISABLE_LEADER_ELECTION": "true",
            "KARPENTER_SERVICE": "karpenter",
            "METRICS_PORT": str(self._ports[_METRICS]),
            "HEALTH_PROBE_PORT": str(self._ports[_HEALTH]),
            "KUBE_CLIENT_QPS": "200",
            "KUBE_CLIENT_BURST": "300",
            "LOG_LEVEL": "info",
            **self._settings,
        }

    def _why_not(self, problem: str) -> ControlPlaneMissing:
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        last = "\n".join(lines[-_LAST_LINES:])
        return ControlPlaneMissing(
            what=self._name,
            problem=f"`{self._argv[0]}` {problem}; the end of {self.log}:\n{last}",
            hint="look at the log; `karpenter` needs its CRDs to be there before it starts",
        )
