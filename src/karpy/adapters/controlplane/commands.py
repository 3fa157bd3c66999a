"""How each program of a control plane is started."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct

_REQUESTS_PER_SECOND: Final = "3000"
"""Clients of a throwaway cluster need not be polite to it."""
_ETCD_BYTES_MAX: Final = 4 << 30
ETCD_PEERS: Final = "etcd-peers"


class Layout(Struct, frozen=True):
    """Where everything of one control plane is."""

    home: Path
    ports: Mapping[str, int]
    """By the name of the program; etcd has a second one for its peers."""
    audited: str = ""
    """The user whose requests the API server writes down; empty for none."""

    @property
    def server(self) -> str:
        return f"https://127.0.0.1:{self.ports['kube-apiserver']}"

    @property
    def etcd(self) -> str:
        return f"http://127.0.0.1:{self.ports['etcd']}"

    @property
    def certificates(self) -> Path:
        """Where kube-apiserver keeps the certificate it makes for itself."""
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
"""Who the programs are to the API server, with their groups; RBAC knows the two of `system:`."""


def etcd_flags(layout: Layout) -> list[str]:
    """Start a store that forgets everything in the end, so it need not wait for the disk."""
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
    """Start an API server with RBAC that knows its users by token."""
    return [
        f"--etcd-servers={layout.etcd}",
        f"--cert-dir={layout.certificates}",
        f"--secure-port={layout.ports['kube-apiserver']}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        # Endpoints must not be on loopback, and no client finds this one by its Service.
        "--endpoint-reconciler-type=none",
        "--authorization-mode=RBAC",
        f"--token-auth-file={layout.tokens}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={layout.signing_key}",
        f"--service-account-signing-key-file={layout.signing_key}",
        "--service-cluster-ip-range=10.0.0.0/16",
        # Pods here have no containers that could use a token; without it, a pod can be made in a
        # namespace right away, and stays as it was written.
        "--disable-admission-plugins=ServiceAccount",
        "--max-requests-inflight=3000",
        "--max-mutating-requests-inflight=1500",
        *(_audit_flags(layout) if layout.audited else ()),
    ]


def audit_policy(user: str) -> str:
    """Have the requests of one user written down, without what they carry."""
    rules = [{"level": "Metadata", "users": [user]}, {"level": "None"}]
    return json.dumps({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": rules})


def _audit_flags(layout: Layout) -> list[str]:
    return [
        f"--audit-policy-file={layout.audit_policy}",
        f"--audit-log-path={layout.audit_log}",
        "--audit-log-mode=blocking",
    ]


def scheduler_flags(layout: Layout) -> list[str]:
    """Start a scheduler with its usual settings."""
    return _client_flags(layout, "kube-scheduler")


def controllers_flags(layout: Layout) -> list[str]:
    """Start all controllers, each with the rights of its own service account."""
    return [
        *_client_flags(layout, "kube-controller-manager"),
        "--use-service-account-credentials=true",
        f"--service-account-private-key-file={layout.signing_key}",
        f"--root-ca-file={layout.authority}",
        "--concurrent-replicaset-syncs=20",
        "--concurrent-deployment-syncs=20",
    ]


def kwok_flags(layout: Layout) -> list[str]:
    """Start kubelets without machines, for nodes that carry KWOK's annotation."""
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


class Command(Struct, frozen=True):
    """How to start a program, and where it says that it is ready."""

    flags: Callable[[Layout], list[str]]
    health: str


COMMANDS: Final[Mapping[str, Command]] = {
    "etcd": Command(etcd_flags, "/readyz"),
    "kube-apiserver": Command(apiserver_flags, "/readyz"),
    "kube-scheduler": Command(scheduler_flags, "/readyz"),
    "kube-controller-manager": Command(controllers_flags, "/healthz"),
    "kwok": Command(kwok_flags, "/readyz"),
}
"""The programs that run, in the order they are started."""
PORTS: Final = (*COMMANDS, ETCD_PEERS)
