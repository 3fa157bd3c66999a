"""The base class of controllers that create pods from a template."""

from collections.abc import Iterator

from karpy.codec.fields import JsonObject
from karpy.errors import ClusterError, NotFound
from karpy.model.kinds import POD
from karpy.sim.store.sharing import remembered_with
from karpy.sim.workloads.controller import Controller, WorkloadContext
from karpy.sim.workloads.owners import control_reference
from karpy.sim.workloads.templates import pod_of


class PodWriter(Controller):
    """Creates and deletes pods, and records events of both."""

    def __init__(self, context: WorkloadContext) -> None:
        super().__init__(context)
        self._drafts = remembered_with(self._draft_pod)
        self.follow(context.pods)

    def make_pod(
        self, owner: JsonObject, template: JsonObject, *, generate_name: str = ""
    ) -> JsonObject:
        """Create one pod from a template."""
        pod = pod_of(template, owner["metadata"]["namespace"], control_reference(self.kind, owner))
        if generate_name:
            pod["metadata"]["generateName"] = generate_name
        return self._add(owner, pod)

    def make_pods(
        self, owner: JsonObject, template: JsonObject, count: int
    ) -> Iterator[JsonObject]:
        """Create pods from a template; they share all that the store does not set per pod."""
        if count > 0:
            meta = owner["metadata"]
            pod = self._drafts(template, (meta["namespace"], meta["name"], meta["uid"]))
            yield from (self._add(owner, pod) for _ in range(count))

    def _draft_pod(self, template: JsonObject, owner: tuple[str, str, str]) -> JsonObject:
        namespace, name, uid = owner
        reference = control_reference(self.kind, {"metadata": {"name": name, "uid": uid}})
        return pod_of(template, namespace, reference)

    def _add(self, owner: JsonObject, pod: JsonObject) -> JsonObject:
        try:
            made = self.store.create(POD, pod)
        except ClusterError as error:
            self.record_warning(owner, "FailedCreate", f"Error creating: {error.message}")
            raise
        self.record_normal(owner, "SuccessfulCreate", f"Created pod: {made['metadata']['name']}")
        return made

    def drop_pod(self, owner: JsonObject, pod: JsonObject) -> JsonObject | None:
        """Delete a pod; return it while it terminates, None once it is gone."""
        meta = pod["metadata"]
        try:
            left = self.store.delete_pod(pod)
        except NotFound:
            return None
        except ClusterError as error:
            self.record_warning(owner, "FailedDelete", f"Error deleting: {error.message}")
            raise
        self.record_normal(owner, "SuccessfulDelete", f"Deleted pod: {meta['name']}")
        return left
