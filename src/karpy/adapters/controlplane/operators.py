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
"""Where an operator believes to run; its lease is there."""
_SECONDS_TO_START: Final = 60.0
_SECONDS_TO_END: Final = 30.0
_SECONDS_BETWEEN_LOOKS: Final = 0.1
_LAST_LINES: Final = 15
_METRICS: Final = "metrics"
_HEALTH: Final = "health"


class Plane(Protocol):
    """What an operator needs of a control plane."""

    @property
    def home(self) -> Path:
        """Where it keeps its files."""

    @property
    def kubeconfig(self) -> Path:
        """The kubeconfig of a user who may do everything."""

    def log(self, program: str) -> Path:
        """Name the log of a program."""

    def spawn(
        self, name: str, argv: Sequence[str | Path], environ: Mapping[str, str] | None = None
    ) -> Process:
        """Start a program that never outlives it."""


class Operator:
    """
    A process that knows Karpenter's environment variables, for as long as it is entered.

    `settings` are more of these variables. The lease is not asked for unless they say so. Its log
    is that of the control plane named `name`; a later operator of that name goes on writing there.
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
        """The process, or 0 while there is none."""
        return self._process.pid if self._process else 0

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def log(self) -> Path:
        """Where it writes."""
        return self._plane.log(self._name)

    @property
    def metrics_port(self) -> int:
        """Where `/metrics` is served."""
        return self._ports[_METRICS]

    def start(self) -> None:
        """Start it and wait until it is ready; raise ControlPlaneMissing if it does not get so."""
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
        """Ask it to end and wait for that, or kill it as a crash would."""
        if self._process is not None:
            end(self._process, patience_seconds=0 if is_killed else _SECONDS_TO_END)

    def _environ(self) -> dict[str, str]:
        return {
            # A stranger's variables must not set anything.
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
        said = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        last = "\n".join(said[-_LAST_LINES:])
        return ControlPlaneMissing(
            what=self._name,
            problem=f"`{self._argv[0]}` {problem}; the end of {self.log}:\n{last}",
            hint="look at the log; `karpenter` needs its CRDs to be there before it starts",
        )
