"""The ReplicaSets of a Deployment: created, scaled, annotated and deleted."""

from typing import Final

from karpy.codec.fields import JsonObject
from karpy.errors import AlreadyExists, ClusterError
from karpy.model.kinds import REPLICA_SET
from karpy.sim.workloads.conditions import find_condition, put_condition
from karpy.sim.workloads.controller import Controller
from karpy.sim.workloads.owners import control_reference, is_controlled_by, is_deleting
from karpy.sim.workloads.progress import PROGRESSING, RolloutReplicaSets, condition
from karpy.sim.workloads.replicas import (
    REVISION,
    age_order,
    annotations_of,
    counted,
    revision_of,
    rollout_notes,
    size,
    size_notes,
    total_size,
)
from karpy.sim.workloads.strategies import deadline, history, is_rolling, surge, wanted
from karpy.sim.workloads.templates import (
    TEMPLATE_HASH,
    content_of,
    hash_of,
    is_same_template,
    with_label,
)

_NAME_MAX: Final = 253
_COLLISIONS_MAX: Final = 16
_PATIENCE: Final = "minReadySeconds"


def fleet_of(deployment: JsonObject, sets: list[JsonObject]) -> RolloutReplicaSets:
    """Return the ReplicaSets of a Deployment, with the one of its current template apart."""
    ordered = sorted(sets, key=age_order)
    wanted_content = content_of(deployment["spec"]["template"])
    contents = [content_of(each["spec"]["template"]) for each in ordered]
    if wanted_content not in contents:
        return RolloutReplicaSets(None, ordered)
    # Of several ReplicaSets with the same template the oldest is the new one.
    new = ordered.pop(contents.index(wanted_content))
    return RolloutReplicaSets(new, ordered)


def grown(deployment: JsonObject, fleet: RolloutReplicaSets, present: int) -> int:
    """Return the size to which the new ReplicaSet may grow within the surge."""
    total = wanted(deployment)
    if not is_rolling(deployment):
        return total
    room = total + surge(deployment) - total_size(fleet.live)
    return present if room <= 0 else present + min(room, total - present)


class FleetController(Controller):
    """Creates, scales and deletes the ReplicaSets of Deployments."""

    def renew(self, obj: JsonObject, fleet: RolloutReplicaSets) -> JsonObject:
        """Update the annotations of the new ReplicaSet, and the revision of the Deployment."""
        new = fleet.new
        assert new is not None
        next_revision = max(map(revision_of, fleet.old), default=0) + 1
        notes = rollout_notes(obj, new, next_revision)
        if notes != annotations_of(new) or _patience(obj) != _patience(new):
            meta = {**new["metadata"], "annotations": notes}
            spec = {key: value for key, value in new["spec"].items() if key != _PATIENCE}
            spec.update(_patience(obj))
            changed = self.store.replace(REPLICA_SET, {**new, "metadata": meta, "spec": spec})
            fleet.replace(new, changed)
            new = changed
        status = obj.get("status") or {}
        if deadline(obj) is not None and find_condition(status, PROGRESSING) is None:
            message = f'Found new replica set "{new["metadata"]["name"]}"'
            what = condition(PROGRESSING, "True", "FoundNewReplicaSet", message)
            status = put_condition(status, what, self.now_text())
        return self.note(obj, annotations_of(new).get(REVISION, ""), status)

    def note(self, obj: JsonObject, revision: str, status: JsonObject) -> JsonObject:
        """Write the revision and the status of a Deployment."""
        notes = annotations_of(obj)
        if notes.get(REVISION) == revision:
            return self.write_status(obj, status) if status else obj
        meta = {**obj["metadata"], "annotations": {**notes, REVISION: revision}}
        return self.write({**obj, "metadata": meta, "status": status}, subresource="status")

    def scale(
        self, obj: JsonObject, fleet: RolloutReplicaSets, replica_set: JsonObject, number: int
    ) -> None:
        """Scale a ReplicaSet, and write the size of the Deployment into its annotations."""
        was = size(replica_set)
        present = annotations_of(replica_set)
        notes = {**present, **size_notes(wanted(obj), surge(obj))}
        if was == number and notes == present:
            return
        meta = {**replica_set["metadata"], "annotations": notes}
        spec = {**replica_set["spec"], "replicas": number}
        changed = self.store.replace(REPLICA_SET, {**replica_set, "metadata": meta, "spec": spec})
        fleet.replace(replica_set, changed)
        if was != number:
            self._record_scaling(obj, changed, was)

    def make(self, obj: JsonObject, fleet: RolloutReplicaSets) -> JsonObject:
        """Create the ReplicaSet of a Deployment's template; return the changed Deployment."""
        for _ in range(_COLLISIONS_MAX):
            draft = self._draft(obj, fleet)
            name = draft["metadata"]["name"]
            try:
                made = self.store.create(REPLICA_SET, draft)
            except AlreadyExists:
                found = self.store.get(REPLICA_SET, name, draft["metadata"]["namespace"])
                if self._is_own(obj, found):
                    fleet.new = found
                    return self.renew(obj, fleet)
                obj = self._avoid_collision(obj)
                continue
            except ClusterError as error:
                self._report_failure(
                    obj, f'Failed to create new replica set "{name}": {error.message}'
                )
                raise
            fleet.new = made
            return self._report_creation(obj, made)
        return obj

    def clean_up(self, obj: JsonObject, fleet: RolloutReplicaSets) -> None:
        """Delete the oldest ReplicaSets beyond the revision history limit."""
        limit = history(obj)
        if limit is None:
            return
        present = [each for each in fleet.old if not is_deleting(each)]
        surplus = len(present) - limit
        if surplus <= 0:
            return
        present.sort(key=lambda each: (revision_of(each), *age_order(each)))
        for each in present[:surplus]:
            if not _is_idle(each):
                continue
            meta = each["metadata"]
            self.store.delete(REPLICA_SET, meta["name"], namespace=meta["namespace"])
            fleet.drop(each)

    def _draft(self, obj: JsonObject, fleet: RolloutReplicaSets) -> JsonObject:
        spec, meta = obj["spec"], obj["metadata"]
        name_hash = hash_of(spec["template"], (obj.get("status") or {}).get("collisionCount"))
        template = with_label(spec["template"], TEMPLATE_HASH, name_hash)
        selector = spec["selector"]
        labels = {**(selector.get("matchLabels") or {}), TEMPLATE_HASH: name_hash}
        revision = max(map(revision_of, fleet.old), default=0) + 1
        notes = {**rollout_notes(obj, None, revision), **size_notes(wanted(obj), surge(obj))}
        return {
            "apiVersion": REPLICA_SET.api_version,
            "kind": REPLICA_SET.name,
            "metadata": {
                "name": f"{meta['name'][: _NAME_MAX - 1 - len(name_hash)]}-{name_hash}",
                "namespace": meta["namespace"],
                "labels": template["metadata"]["labels"],
                "annotations": notes,
                "ownerReferences": [control_reference(self.kind, obj)],
            },
            "spec": {
                "replicas": grown(obj, fleet, 0),
                **_patience(obj),
                "selector": {**selector, "matchLabels": labels},
                "template": template,
            },
        }

    def _is_own(self, obj: JsonObject, found: JsonObject) -> bool:
        template = found["spec"]["template"]
        return is_controlled_by(found, obj["metadata"]["uid"]) and is_same_template(
            template, obj["spec"]["template"]
        )

    def _avoid_collision(self, obj: JsonObject) -> JsonObject:
        status = obj.get("status") or {}
        count = status.get("collisionCount", 0) + 1
        return self.write_status(obj, {**status, "collisionCount": count})

    def _report_creation(self, obj: JsonObject, made: JsonObject) -> JsonObject:
        name = made["metadata"]["name"]
        if size(made):
            self._record_scaling(obj, made, 0)
        status = obj.get("status") or {}
        if deadline(obj) is not None:
            message = f'Created new replica set "{name}"'
            what = condition(PROGRESSING, "True", "NewReplicaSetCreated", message)
            status = put_condition(status, what, self.now_text())
        return self.note(obj, annotations_of(made)[REVISION], status)

    def _report_failure(self, obj: JsonObject, message: str) -> None:
        if deadline(obj) is not None:
            what = condition(PROGRESSING, "False", "ReplicaSetCreateError", message)
            self.write_status(obj, put_condition(obj.get("status") or {}, what, self.now_text()))
        self.record_warning(obj, "ReplicaSetCreateError", message)

    def _record_scaling(self, obj: JsonObject, replica_set: JsonObject, was: int) -> None:
        number, name = size(replica_set), replica_set["metadata"]["name"]
        way = "up" if was < number else "down"
        message = f"Scaled {way} replica set {name} from {was} to {number}"
        self.record_normal(obj, "ScalingReplicaSet", message)


def _is_idle(replica_set: JsonObject) -> bool:
    meta, status = replica_set["metadata"], replica_set.get("status") or {}
    return (
        not size(replica_set)
        and not counted((replica_set,), "replicas")
        and status.get("observedGeneration", 0) >= meta.get("generation", 0)
    )


def _patience(obj: JsonObject) -> JsonObject:
    seconds = obj["spec"].get(_PATIENCE)
    return {_PATIENCE: seconds} if seconds else {}
