"""Objects joined to a cluster: nodes with their NodeClaims, workloads with their pods."""

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from karpy.codec.inventory import Inventory, Key
from karpy.codec.workloads import HASH_LABEL, Workload, claims_for, expand, replica_set
from karpy.model.labels import NAMESPACE_NAME
from karpy.model.nodes import Node, join_node
from karpy.model.pods import (
    DaemonKey,
    DaemonSet,
    Pod,
    PodController,
    daemon_pod_rank,
    daemon_set_of,
    with_requests_of,
)
from karpy.model.records import ClaimRecord, NodeRecord
from karpy.model.storage import PersistentVolumeClaim


class Population(Struct, frozen=True):
    """All pods, also those that workloads would create, with their claims and controllers."""

    pods: tuple[Pod, ...]
    claims: tuple[PersistentVolumeClaim, ...]
    controllers: tuple[PodController, ...]


def populate(inventory: Inventory) -> Population:
    """Return the pods of the input, and for workloads without pods those they would create."""
    pods = {pod.key: pod for pod in inventory.pods.values()}
    controllers = list(inventory.controllers.values())
    claims = list(inventory.new_claims)
    for workload in _without_pods(inventory):
        controller = replica_set(workload)
        controllers += [controller] if controller else []
        for created in expand(workload):
            pod = _renamed(created, workload) if created.key in pods else created
            pods[pod.key] = pod
            claims += claims_for(workload, pod)
    known = {claim.key for claim in inventory.volume_claims.values()}
    new = tuple(claim for claim in claims if claim.key not in known)
    return Population(
        tuple(pods.values()), (*inventory.volume_claims.values(), *new), tuple(controllers)
    )


def join_nodes(inventory: Inventory) -> tuple[Node, ...]:
    """Join each Node with its NodeClaim, matched by provider ID or by the node's name."""
    claims = list(inventory.node_claims.values())
    by_provider = {claim.provider_id: claim for claim in claims if claim.provider_id}
    by_node = {claim.node_name: claim for claim in claims if claim.node_name}
    limits = {key[2]: each for key, each in inventory.attach_limits.items()}
    nodes = []
    taken: set[str] = set()
    for node in inventory.nodes.values():
        claim = _claim_of(node, by_provider, by_node)
        if claim:
            taken.add(claim.name)
        nodes.append(join_node(node, claim, limits.get(node.name)))
    nodes += [join_node(None, claim) for claim in claims if claim.name not in taken]
    return tuple(nodes)


def join_daemons(inventory: Inventory) -> tuple[DaemonSet, ...]:
    """Return each DaemonSet with the requests of its active pod that ranks highest."""
    pods: dict[DaemonKey, Pod] = {}
    for pod in inventory.pods.values():
        owner = daemon_set_of(pod)
        if owner is not None and pod.is_active:
            pods[owner] = max(pods.get(owner, pod), pod, key=daemon_pod_rank)
    return tuple(
        with_requests_of(each, pods.get((each.namespace, each.pod.uid)))
        for each in inventory.daemons.values()
    )


def name_namespaces(
    given: Iterable[Mapping[str, str]], pods: Iterable[Pod]
) -> dict[str, Mapping[str, str]]:
    """Index namespaces by name; one that only pods mention has the label of its name alone."""
    namespaces = {labels[NAMESPACE_NAME]: labels for labels in given}
    for name in sorted({pod.namespace for pod in pods}):
        namespaces.setdefault(name, {NAMESPACE_NAME: name})
    return namespaces


def _renamed(pod: Pod, workload: Workload) -> Pod:
    """Rename a pod whose name a workload of the same name and another kind has taken."""
    return replace(pod, name=f"{pod.name}-{workload.kind.lower()}")


def _claim_of(
    node: NodeRecord, by_provider: Mapping[str, ClaimRecord], by_node: Mapping[str, ClaimRecord]
) -> ClaimRecord | None:
    found = by_provider.get(node.provider_id) if node.provider_id else None
    return found or by_node.get(node.name)


def _without_pods(inventory: Inventory) -> Iterator[Workload]:
    """Find the workloads without pods; the ReplicaSets of a given Deployment do not count."""
    workloads = inventory.workloads
    deployed = _deployments(workloads.values())
    with_pods = _owners_of(inventory.pods.values(), deployed)
    for key, workload in workloads.items():
        deployment = deployed.get((workload.namespace, workload.name), "")
        has_deployment = (
            workload.kind == "ReplicaSet"
            and ("Deployment", workload.namespace, deployment) in workloads
        )
        if not has_deployment and key not in with_pods:
            yield workload


def _deployments(workloads: Iterable[Workload]) -> dict[tuple[str, str], str]:
    """Map each ReplicaSet, by namespace and name, to the Deployment it belongs to."""
    return {
        (each.namespace, each.name): owner.name
        for each in workloads
        if each.kind == "ReplicaSet"
        for owner in each.owners
        if owner.kind == "Deployment"
    }


def _owners_of(pods: Iterable[Pod], deployed: Mapping[tuple[str, str], str]) -> set[Key]:
    """
    Find the workloads that pods belong to, directly or through a ReplicaSet.

    The Deployment of a ReplicaSet that is not given follows from its name, which ends in the hash
    in the label of its pods.
    """
    owners: set[Key] = set()
    for pod in pods:
        for owner in pod.owners:
            owners.add((owner.kind, pod.namespace, owner.name))
            if owner.kind == "ReplicaSet":
                ending = f"-{pod.labels.get(HASH_LABEL, '')}"
                named = owner.name.removesuffix(ending)
                name = deployed.get((pod.namespace, owner.name), named)
                owners.add(("Deployment", pod.namespace, name))
    return owners
