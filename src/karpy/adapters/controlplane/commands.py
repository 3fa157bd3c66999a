"""The command line of each program of a control plane."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct

_REQUESTS_PER_SECOND: Final = "3000"
"""A client-side limit that a throwaway cluster never reaches."""
_ETCD_BYTES_MAX: Final = 4 << 30
ETCD_PEERS: Final = "etcd-peers"


class Layout(Struct, frozen=True):
    """Ports and files of one control plane."""

    home: Path
    ports: Mapping[str, int]
    """The port of each program by name; etcd has a second port for peers."""
    audited: str = ""
    """The user whose requests are written to the audit log; empty for none."""

    @property
    def server(self) -> str:
        return f"https://127.0.0.1:{self.ports['kube-apiserver']}"

    @property
    def etcd(self) -> str:
        return f"http://127.0.0.1:{self.ports['etcd']}"

    @property
    def certificates(self) -> Path:
        """The folder of the certificate that kube-apiserver makes for itself."""
        return self.home / "certificates"

    @property
    def signing_key(self) -> Path:
        return self.home / "service-accounts.key"

    @property
    def tokens(self) -> Path:
        return self.home / "tokens.csv"

    @property
    def authority(self) -> Path:
        return self.home / "authority.crt"

    @property
    def stages(self) -> Path:
        return self.home / "stages.yaml"

    @property
    def audit_policy(self) -> Path:
        return self.home / "audit.yaml"

    @property
    def audit_log(self) -> Path:
        return self.home / "audit.log"

    @property
    def data(self) -> Path:
        return self.home / "etcd"

    def log(self, program: str) -> Path:
        return self.home / f"{program}.log"

    def kubeconfig(self, user: str) -> Path:
        return self.home / f"{user.removeprefix('system:')}.kubeconfig"


USERS: Final[Mapping[str, tuple[str, ...]]] = {
    "admin": ("system:masters",),
    "system:kube-scheduler": (),
    "system:kube-controller-manager": (),
    "kwok": ("system:masters",),
}
"""The users of the programs, with their groups; RBAC has default roles for the `system:` users."""


def etcd_flags(layout: Layout) -> list[str]:
    """Return the flags of an etcd that does not wait for the disk: its data is thrown away."""
    return [
        f"--data-dir={layout.data}",
        f"--listen-client-urls={layout.etcd}",
        f"--advertise-client-urls={layout.etcd}",
        f"--listen-peer-urls=http://127.0.0.1:{layout.ports[ETCD_PEERS]}",
        "--unsafe-no-fsync",
        "--log-level=error",
        f"--quota-backend-bytes={_ETCD_BYTES_MAX}",
    ]


def apiserver_flags(layout: Layout) -> list[str]:
    """Return the flags of an API server with RBAC and a file of tokens."""
    return [
        f"--etcd-servers={layout.etcd}",
        f"--cert-dir={layout.certificates}",
        f"--secure-port={layout.ports['kube-apiserver']}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        # Endpoints must not be on loopback, and no client uses the Service `kubernetes` here.
        "--endpoint-reconciler-type=none",
        "--authorization-mode=RBAC",
        f"--token-auth-file={layout.tokens}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={layout.signing_key}",
        f"--service-account-signing-key-file={layout.signing_key}",
        "--service-cluster-ip-range=10.0.0.0/16",
        # Pods have no containers that could use a token; without this plugin a pod can be created
        # in a new namespace at once, and its spec stays as written.
        "--disable-admission-plugins=ServiceAccount",
        "--max-requests-inflight=3000",
        "--max-mutating-requests-inflight=1500",
        *(_audit_flags(layout) if layout.audited else ()),
    ]


def audit_policy(user: str) -> str:
    """Return a policy that logs the requests of one user, without their bodies."""
    rules = [{"level": "Metadata", "users": [user]}, {"level": "None"}]
    return json.dumps({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": rules})


def _audit_flags(layout: Layout) -> list[str]:
    return [
        f"--audit-policy-file={layout.audit_policy}",
        f"--audit-log-path={layout.audit_log}",
        "--audit-log-mode=blocking",
    ]


def scheduler_flags(layout: Layout) -> list[str]:
    """Return the flags of kube-scheduler, with default settings."""
    return _client_flags(layout, "kube-scheduler")


def controllers_flags(layout: Layout) -> list[str]:
    """Return the flags of kube-controller-manager; each controller uses its service account."""
    return [
        *_client_flags(layout, "kube-controller-manager"),
        "--use-service-account-credentials=true",
        f"--service-account-private-key-file={layout.signing_key}",
        f"--root-ca-file={layout.authority}",
        "--concurrent-replicaset-syncs=20",
        "--concurrent-deployment-syncs=20",
    ]


def kwok_flags(layout: Layout) -> list[str]:
    """Return the flags of KWOK, which plays the kubelet of nodes with its annotation."""
    return [
        f"--kubeconfig={layout.kubeconfig('kwok')}",
        f"--config={layout.stages}",
        f"--server-address=127.0.0.1:{layout.ports['kwok']}",
        "--manage-all-nodes=false",
        "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
        "--node-lease-duration-seconds=40",
    ]


def _client_flags(layout: Layout, program: str) -> list[str]:
    return [
        f"--kubeconfig={layout.kubeconfig(f'system:{program}')}",
        f"--kube-api-qps={_REQUESTS_PER_SECOND}",
        f"--kube-api-burst={_REQUESTS_PER_SECOND}",
        "--leader-elect=false",
        "--bind-address=127.0.0.1",
        f"--secure-port={layout.ports[program]}",
        f"--tls-cert-file={layout.certificates / 'apiserver.crt'}",
        f"--tls-private-key-file={layout.certificates / 'apiserver.key'}",
    ]


class ProgramCommand(Struct, frozen=True):
    """The flags of a program, and the path of its readiness endpoint."""

    flags: Callable[[Layout], list[str]]
    health: str


COMMANDS: Final[Mapping[str, ProgramCommand]] = {
    "etcd": ProgramCommand(etcd_flags, "/readyz"),
    "kube-apiserver": ProgramCommand(apiserver_flags, "/readyz"),
    "kube-scheduler": ProgramCommand(scheduler_flags, "/readyz"),
    "kube-controller-manager": ProgramCommand(controllers_flags, "/healthz"),
    "kwok": ProgramCommand(kwok_flags, "/readyz"),
}
"""The programs in the order of their start."""
PORTS: Final = (*COMMANDS, ETCD_PEERS)
