"""An embedded cluster served over HTTP, for kubectl; needs the extra `embedded`."""

from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from karpy.adapters.apiserver.application import Report
from karpy.adapters.apiserver.server import ApiServer
from karpy.codec.fields import JsonObject
from karpy.model.kinds import Kind
from karpy.ports.discovery import Resource
from karpy.ports.objects import Objects, Removal
from karpy.sim.objects import EmbeddedObjects
from karpy.sim.store.registry import Served
from karpy.sim.store.store import Store
from karpy.sim.world import World
from karpy.wiring.resident import embedded_world

__all__ = ["ServedCluster", "StoreBackend", "embedded_world", "serve"]


class StoreBackend:
    """The embedded store as the API server serves it."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def resources(self) -> Sequence[Resource]:
        """Return every kind that is served."""
        return [_resource(each) for each in self._store.kinds]

    def acting_as(self, manager: str) -> Objects:
        """Return the objects as a user sees and writes them."""
        return EmbeddedObjects(self._store, manager=manager)

    async def read(self, kind: Kind, name: str, namespace: str, *, subresource: str) -> JsonObject:
        """Return a subresource of an object."""
        return self._store.get(kind, name, namespace, subresource=subresource)

    async def delete(
        self, kind: Kind, name: str, namespace: str, removal: Removal, *, is_dry_run: bool
    ) -> JsonObject | None:
        """Delete an object; return it if a finalizer or its grace period keeps it."""
        return self._store.delete(
            kind, name, namespace=namespace, removal=removal, dry_run=is_dry_run
        )


def _resource(served: Served) -> Resource:
    return Resource(
        served.kind,
        served.singular,
        served.short_names,
        served.categories,
        served.subresources,
        served.definition,
    )


class ServedCluster:
    """URL, credentials and kubeconfig of a served cluster."""

    def __init__(self, server: ApiServer, kubeconfig: Path) -> None:
        self.url = server.url
        self.token = server.token
        self.authority = server.authority
        self.kubeconfig = kubeconfig


@asynccontextmanager
async def serve(
    world: World,
    *,
    port: int = 0,
    token: str = "",
    kubeconfig: Path | None = None,
    report: Report | None = None,
) -> AsyncIterator[ServedCluster]:
    """
    Serve a cluster on loopback, and write a kubeconfig for it.

    Without a path, the kubeconfig is in a temporary folder that is deleted with the server.
    """
    backend = StoreBackend(world.store)
    with ExitStack() as stack:
        if kubeconfig is None:
            folder = stack.enter_context(TemporaryDirectory(prefix="karpy-cluster-"))
            kubeconfig = Path(folder, "kubeconfig")
        server = ApiServer(backend, world.clock, port=port, token=token, report=report)
        async with server:
            server.write_kubeconfig(kubeconfig)
            yield ServedCluster(server, kubeconfig)
