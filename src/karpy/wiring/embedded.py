"""The face of an embedded cluster towards kubectl; needs the extra `embedded`."""

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
    """What the embedded store gives to be served."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def resources(self) -> Sequence[Resource]:
        """List every kind that is served."""
        return [_resource(each) for each in self._store.kinds]

    def acting_as(self, manager: str) -> Objects:
        """Return the objects as a user sees and writes them."""
        return EmbeddedObjects(self._store, manager=manager)

    async def read(self, kind: Kind, name: str, namespace: str, *, subresource: str) -> JsonObject:
        """Return what a subresource shows of an object."""
        return self._store.get(kind, name, namespace, subresource=subresource)

    async def delete(
        self, kind: Kind, name: str, namespace: str, removal: Removal, *, is_dry_run: bool
    ) -> JsonObject | None:
        """Delete an object; return it as long as something holds it."""
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
    """Where an embedded cluster is to be found."""

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

    Without a place for it, the kubeconfig is in a folder of its own that goes with the server.
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
