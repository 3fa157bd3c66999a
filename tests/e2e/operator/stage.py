"""A real control plane with `karpy run`, and the actions of tests on them."""

import json
import os
import sys
from collections.abc import Callable
from http.client import HTTPConnection
from pathlib import Path
from time import monotonic, sleep
from typing import Final

from karpy.adapters.controlplane.bundles import TOOLS
from karpy.adapters.controlplane.operators import NAMESPACE, OperatorProcess
from karpy.adapters.controlplane.plane import ControlPlane
from karpy.adapters.controlplane.programs import require_programs
from karpy.codec.fields import JsonObject
from karpy.errors import ControlPlaneMissing
from karpy.model.kinds import Kind
from tests.charts.helm import CHART, Helm

SECONDS: Final = 120.0
"""A generous timeout, for busy machines."""
DEPLOY: Final = Path(__file__).parents[3] / "deploy"
ACCOUNT: Final = "karpy"
GATES: Final = (
    "StaticCapacity=true,NodeRepair=true,CapacityBuffer=true,SpotToSpotConsolidation=true"
)
_PAUSE: Final = 0.5
_LAST_CHARS: Final = 3000
_MADE_HERE: Final = (
    "capacitybuffers,podtemplates,deployments,statefulsets,daemonsets,limitranges,"
    "poddisruptionbudgets,pods,persistentvolumeclaims"
)


class Stage:
    """A cluster that tests read and change by kubectl."""

    def __init__(self, plane: ControlPlane, operator: OperatorProcess) -> None:
        self.plane = plane
        self.operator = operator

    def apply(self, kind: Kind, obj: JsonObject) -> None:
        """Apply an object as users do."""
        whole = {"apiVersion": kind.api_version, "kind": kind.name, **obj}
        self.plane.kubectl("apply", "-f", "-", stdin=json.dumps(whole))

    def all(self, what: str, *words: str) -> list[JsonObject]:
        """Return all objects of a kind."""
        items: list[JsonObject] = json.loads(self.plane.kubectl("get", what, "-o", "json", *words))[
            "items"
        ]
        return items

    def running(self, app: str) -> list[JsonObject]:
        """Return the pods of an app that run."""
        pods = self.all("pods", "-l", f"app={app}")
        return [each for each in pods if each["status"]["phase"] == "Running"]

    def scale(self, app: str, replicas: int) -> None:
        """Scale a Deployment."""
        self.plane.kubectl("scale", "deployment", app, f"--replicas={replicas}")

    def wait(self, holds: Callable[[], object], seconds: float = SECONDS) -> None:
        """Wait for a condition; fail with the end of the operator's log."""
        deadline = monotonic() + seconds
        while not holds():
            assert monotonic() < deadline, f"not in time; the log ends:\n{self._end_of_log()}"
            sleep(_PAUSE)

    def wait_for_pods(self, app: str, count: int) -> None:
        """Wait until a number of pods of an app run."""
        self.wait(lambda: len(self.running(app)) == count)

    def wait_for_nodes(self, count: int) -> None:
        """Wait for a number of nodes, and the same number of NodeClaims."""
        self.wait(lambda: len(self.all("nodes")) == len(self.all("nodeclaims")) == count)

    def wait_for_passes(self, count: int) -> None:
        """Wait until disruption has considered all nodes a number of times more."""
        before = self._passes()
        self.wait(lambda: self._passes() >= before + count)

    def events(self, reason: str) -> list[str]:
        """Return the messages of the events with a reason."""
        found = self.all("events.events.k8s.io", "-A", "--field-selector", f"reason={reason}")
        return [each["note"] for each in found]

    def counted(self, metric: str, **labels: str) -> float:
        """Return the sum of a metric of the operator over all series with some labels."""
        connection = HTTPConnection("127.0.0.1", self.operator.metrics_port, timeout=10)
        connection.request("GET", "/metrics")
        lines = connection.getresponse().read().decode().splitlines()
        connection.close()
        wanted = [f'{key}="{value}"' for key, value in labels.items()]
        return sum(
            float(line.rpartition(" ")[2])
            for line in lines
            if line.startswith(f"{metric}{{") and all(each in line for each in wanted)
        )

    def _passes(self) -> float:
        """Count passes; each evaluates drift for static and for dynamic NodePools."""
        metric = "karpenter_voluntary_disruption_decision_evaluation_duration_seconds_count"
        return self.counted(metric, reason="drifted", consolidation_type="") / 2

    def clear(self) -> None:
        """Delete all objects of a test, and wait until its nodes are gone."""
        self.plane.kubectl("delete", _MADE_HERE, "--all", "--wait=false")
        self.plane.kubectl("delete", "nodepools", "--all", "--wait=false")
        self.wait_for_nodes(0)
        self.plane.kubectl("delete", "persistentvolumes,storageclasses", "--all", "--wait=false")

    def _end_of_log(self) -> str:
        return self.operator.log.read_text(encoding="utf-8")[-_LAST_CHARS:]


def start_karpy(plane: ControlPlane, kubeconfig: Path, **settings: str) -> OperatorProcess:
    """Return a `karpy run` that acts as its own service account."""
    return OperatorProcess(
        plane,
        [sys.executable, "-m", "karpy", "run"],
        name="karpy",
        # Nominated nodes are not disrupted for twice the longest batch.
        settings={"FEATURE_GATES": GATES, "BATCH_MAX_DURATION": "5s", **settings},
        kubeconfig=kubeconfig,
    )


def install(plane: ControlPlane, folder: Path) -> Path:
    """Install CRDs, the account and its rights; return the account's kubeconfig."""
    plane.kubectl("create", "namespace", NAMESPACE)
    plane.kubectl("apply", "--server-side", "-f", str(DEPLOY / "crds"))
    plane.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
    _grant(plane)
    path = folder / "karpy-kubeconfig"
    plane.write_kubeconfig(path, plane.service_account_token(ACCOUNT, NAMESPACE))
    return path


def _grant(plane: ControlPlane) -> None:
    """Install account and roles by the chart, or by deploy/rbac.yaml without Helm."""
    try:
        program = require_programs(os.environ, TOOLS) / "helm"
    except ControlPlaneMissing:
        plane.kubectl("apply", "-f", str(DEPLOY / "rbac.yaml"))
        return
    helm = Helm(program, plane.home, plane.kubeconfig)
    values = f"settings.provider=kwok,fullnameOverride={ACCOUNT},replicas=0"
    helm("install", ACCOUNT, CHART, "--namespace", NAMESPACE, "--skip-crds", "--set", values)
