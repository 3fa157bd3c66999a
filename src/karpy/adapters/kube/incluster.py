"""The service account that Kubernetes gives to a pod."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from karpy.adapters.kube.access import Access, Endpoint, User
from karpy.errors import CredentialsRefused

SERVICE_ACCOUNT_FOLDER: Final = "/var/run/secrets/kubernetes.io/serviceaccount"


def is_in_cluster(env: Mapping[str, str], folder: str = SERVICE_ACCOUNT_FOLDER) -> bool:
    """Say whether this process runs in a pod with a service account."""
    return bool(env.get("KUBERNETES_SERVICE_HOST")) and (Path(folder) / "token").exists()


def read_service_account(env: Mapping[str, str], folder: str = SERVICE_ACCOUNT_FOLDER) -> Access:
    """Read how to reach the cluster in which this pod runs."""
    host = env.get("KUBERNETES_SERVICE_HOST", "")
    port = env.get("KUBERNETES_SERVICE_PORT", "443")
    host = f"[{host}]" if ":" in host else host
    files = Path(folder)
    namespace = files / "namespace"
    return Access(
        endpoint=Endpoint(server=f"https://{host}:{port}", ca_pem=_read(files / "ca.crt")),
        user=User(token_file=str(files / "token")),
        namespace=_read(namespace).strip() if namespace.exists() else "default",
        source=folder,
    )


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CredentialsRefused(
            source=str(file),
            problem=f"it cannot be read: {error}",
            hint="set `automountServiceAccountToken: true` on the pod or its service account",
        ) from error
