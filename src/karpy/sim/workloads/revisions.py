"""ControllerRevisions: the template history of StatefulSets and DaemonSets."""

from typing import Final

from karpy.codec.fields import JsonObject
from karpy.errors import AlreadyExists
from karpy.model.kinds import CONTROLLER_REVISION
from karpy.sim.workloads.controller import Controller
from karpy.sim.workloads.owners import control_reference
from karpy.sim.workloads.templates import hash_of

REVISION_HASH: Final = "controller-revision-hash"
_USUAL_LIMIT: Final = 10
_NAME_MAX: Final = 223
_COLLISIONS_MAX: Final = 16


def template_of(revision: JsonObject) -> JsonObject:
    """Return the template of a revision."""
    template = revision["data"]["spec"]["template"]
    return {key: value for key, value in template.items() if key != "$patch"}


def name_of(revision: JsonObject) -> str:
    """Return the name of a revision."""
    name: str = revision["metadata"]["name"]
    return name


class RevisionController(Controller):
    """A controller that keeps the template history of its objects."""

    hash_label = "controller.kubernetes.io/hash"

    def revisions(self, obj: JsonObject) -> list[JsonObject]:
        """Return the revisions of an object, oldest first."""
        found = self.context.revisions.claimed(self.kind, obj, self.selector(obj))
        return sorted(found, key=_order)

    def latest(self, obj: JsonObject, revisions: list[JsonObject]) -> JsonObject:
        """
        Return the revision of the current template, created if it does not exist.

        An older revision with an equal template becomes the latest again: that is a rollback.
        """
        data = _data_of(obj["spec"]["template"])
        same = [each for each in revisions if each["data"] == data]
        if not same:
            number = revisions[-1]["revision"] + 1 if revisions else 1
            return self._record(obj, data, number)
        if same[-1] is revisions[-1]:
            return same[-1]
        number = revisions[-1]["revision"] + 1
        return self.store.replace(CONTROLLER_REVISION, {**same[-1], "revision": number})

    def truncate(self, obj: JsonObject, revisions: list[JsonObject], live: set[str]) -> None:
        """Delete the oldest revisions without pods beyond the history limit."""
        limit = obj["spec"].get("revisionHistoryLimit")
        past = [each for each in revisions if name_of(each) not in live]
        for each in past[: max(0, len(past) - (_USUAL_LIMIT if limit is None else limit))]:
            namespace = each["metadata"]["namespace"]
            self.store.delete(CONTROLLER_REVISION, name_of(each), namespace=namespace)

    def _record(self, obj: JsonObject, data: JsonObject, number: int) -> JsonObject:
        collisions = (obj.get("status") or {}).get("collisionCount") or 0
        for count in range(collisions, collisions + _COLLISIONS_MAX):
            draft = self._draft(obj, data, number, count)
            meta = draft["metadata"]
            try:
                return self.store.create(CONTROLLER_REVISION, draft)
            except AlreadyExists:
                found = self.store.get(CONTROLLER_REVISION, meta["name"], meta["namespace"])
                if found["data"] == data:
                    return found
        raise AlreadyExists(f"{CONTROLLER_REVISION} of {obj['metadata']['name']} keep colliding")

    def _draft(self, obj: JsonObject, data: JsonObject, number: int, count: int) -> JsonObject:
        meta = obj["metadata"]
        labels = (obj["spec"]["template"].get("metadata") or {}).get("labels") or {}
        name_hash = hash_of(data, count)
        draft: JsonObject = {
            "apiVersion": CONTROLLER_REVISION.api_version,
            "kind": CONTROLLER_REVISION.name,
            "metadata": {
                "name": f"{meta['name'][:_NAME_MAX]}-{name_hash}",
                "namespace": meta["namespace"],
                "labels": {**labels, self.hash_label: name_hash},
                "ownerReferences": [control_reference(self.kind, obj)],
            },
            "data": data,
            "revision": number,
        }
        if annotations := meta.get("annotations"):
            draft["metadata"]["annotations"] = annotations
        return draft


def _data_of(template: JsonObject) -> JsonObject:
    return {"spec": {"template": {**template, "$patch": "replace"}}}


def _order(revision: JsonObject) -> tuple[int, str, str]:
    meta = revision["metadata"]
    return revision.get("revision", 0), meta["creationTimestamp"], meta["name"]
