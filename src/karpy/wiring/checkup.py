"""The facts that `karpy doctor` judges, read from a cluster without changing it."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from karpy.codec.fields import Fields, JsonObject
from karpy.codec.labelselectors import Selector, selector_of
from karpy.codec.schemas.definitions import CUSTOM_KINDS, CustomKind
from karpy.core.doctor import (
    HANDLER,
    CheckedNodeClass,
    CheckedWorkload,
    Definition,
    Facts,
    LeaseHolder,
    OtherAutoscaler,
    Pool,
    Replica,
    Unseen,
)
from karpy.core.rights import Right, rights_of
from karpy.errors import ClusterError, Forbidden, NotFound
from karpy.model.kinds import (
    CUSTOM_RESOURCE,
    DAEMON_SET,
    DEPLOYMENT,
    DISRUPTION_BUDGET,
    EC2_NODE_CLASS,
    EVENTS_EVENT,
    KWOK_NODE_CLASS,
    LEASE,
    LIMIT_RANGE,
    NODE,
    NODE_POOL,
    POD,
    STATEFUL_SET,
    Kind,
)
from karpy.model.labels import NODE_POOL as NODE_POOL_LABEL
from karpy.model.settings import Options
from karpy.ports.clock import Clock
from karpy.ports.objects import EVERYTHING, Objects, Query

SELF_REVIEW: Final = Kind(
    "authentication.k8s.io", "v1", "SelfSubjectReview", "selfsubjectreviews", is_namespaced=False
)
OWN_RIGHTS: Final = Kind(
    "authorization.k8s.io",
    "v1",
    "SelfSubjectAccessReview",
    "selfsubjectaccessreviews",
    is_namespaced=False,
)
RIGHTS: Final = Kind(
    "authorization.k8s.io",
    "v1",
    "SubjectAccessReview",
    "subjectaccessreviews",
    is_namespaced=False,
)
NODE_CLASSES: Final = {"aws": EC2_NODE_CLASS, "kwok": KWOK_NODE_CLASS}
_LABEL: Final = "app.kubernetes.io/name"
_NAMES: Final = ("karpenter", "karpy")
_RESOURCES: Final = ("cpu", "memory")
_SERVICE_ACCOUNTS: Final = "system:serviceaccounts"


class NamedSettings(Struct, frozen=True):
    """The settings of the installation that the user names; empty ones are looked up."""

    namespace: str = "karpenter"
    provider: str = ""
    queue: str = ""
    cluster_name: str = ""


class ListedCluster(Struct, frozen=True):
    """The listed objects by kind, and the kinds that could not be listed."""

    objects: Mapping[Kind, Sequence[JsonObject]]
    unseen: tuple[Unseen, ...]

    def of(self, kind: Kind) -> Sequence[JsonObject]:
        return self.objects.get(kind, ())


async def check_up(
    objects: Objects, version: Callable[[], Awaitable[str]], clock: Clock, asked: NamedSettings
) -> Facts:
    """Read all facts of a cluster; raise ClusterError if its API server cannot be reached."""
    cluster = await _list_all(objects, asked.namespace)
    operator = _operator(cluster, asked.namespace)
    environ = _environ(operator)
    provider = asked.provider or environ.get("KARPY_PROVIDER") or _provider_of(environ)
    facts = Facts(
        namespace=asked.namespace,
        provider=provider,
        is_installed=operator is not None,
        definitions=tuple(_definitions(cluster, provider)),
        holders=tuple(_holders(cluster, clock.now())),
        others=tuple(_others(cluster)),
        replicas=tuple(_replicas(cluster, operator)),
        workloads=tuple(_workloads(cluster)),
        pools=tuple(map(_pool, cluster.of(NODE_POOL))),
        node_classes=tuple(_node_classes(cluster, provider)),
        queue=asked.queue or environ.get("INTERRUPTION_QUEUE", ""),
        unseen=cluster.unseen,
    )
    facts = replace(facts, version=await _version(version))
    ours, theirs = await _times(objects, clock)
    facts = replace(facts, local_time=ours, server_time=theirs)
    return await _with_rights(objects, operator, facts)


# --- listing --------------------------------------------------------------------------------------


async def _list_all(objects: Objects, namespace: str) -> ListedCluster:
    kinds = (
        CUSTOM_RESOURCE,
        DAEMON_SET,
        DEPLOYMENT,
        DISRUPTION_BUDGET,
        LIMIT_RANGE,
        NODE,
        NODE_POOL,
        POD,
        STATEFUL_SET,
        *NODE_CLASSES.values(),
    )
    lease = Query(fields=f"metadata.name={Options().lease_name}")
    queries = {**dict.fromkeys(kinds, EVERYTHING), LEASE: lease}
    found = await asyncio.gather(*(_list(objects, kind, queries[kind]) for kind in queries))
    listed = dict(zip(queries, found, strict=True))
    unseen = [each for each in found if isinstance(each, Unseen)]
    seen = {kind: each for kind, each in listed.items() if not isinstance(each, Unseen)}
    if LEASE not in seen:
        seen[LEASE] = await _own_lease(objects, namespace)
    return ListedCluster(seen, tuple(unseen))


async def _own_lease(objects: Objects, namespace: str) -> Sequence[JsonObject]:
    """Return the lease of the operator, if it exists and may be read."""
    try:
        return (await objects.get(LEASE, Options().lease_name, namespace),)
    except (NotFound, Forbidden):
        return ()


async def _list(objects: Objects, kind: Kind, query: Query) -> Sequence[JsonObject] | Unseen:
    try:
        page = await objects.list(kind, query)
    except NotFound:
        return ()
    except Forbidden as error:
        return Unseen(kind.resource, error.message)
    return page.items


# --- the operator ---------------------------------------------------------------------------------


def _operator(cluster: ListedCluster, namespace: str) -> JsonObject | None:
    """Return the Deployment of the operator, or None."""
    for each in cluster.of(DEPLOYMENT):
        meta = each["metadata"]
        names = {meta["name"], (meta.get("labels") or {}).get(_LABEL)}
        if meta.get("namespace") == namespace and names & set(_NAMES):
            return each
    return None


def _pod_of(obj: JsonObject) -> JsonObject:
    spec: JsonObject = obj["spec"]["template"].get("spec") or {}
    return spec


def _environ(operator: JsonObject | None) -> dict[str, str]:
    """Return the environment variables that the Deployment sets."""
    if operator is None:
        return {}
    containers = _pod_of(operator).get("containers") or ()
    return {
        each["name"]: str(each.get("value") or "")
        for container in containers[:1]
        for each in container.get("env") or ()
    }


def _provider_of(environ: Mapping[str, str]) -> str:
    """Guess the provider of an operator without KARPY_PROVIDER, such as Karpenter."""
    return "aws" if environ.get("CLUSTER_NAME") else Options().provider


def _replicas(cluster: ListedCluster, operator: JsonObject | None) -> Iterator[Replica]:
    if operator is None:
        return
    selector = selector_of(operator["spec"].get("selector"))
    own = {
        each["metadata"]["name"]
        for each in cluster.of(NODE)
        if NODE_POOL_LABEL in (each["metadata"].get("labels") or {})
    }
    for each in cluster.of(POD):
        meta = each["metadata"]
        is_ours = selector is not None and selector.matches(meta.get("labels"))
        if is_ours and meta.get("namespace") == operator["metadata"]["namespace"]:
            node = each["spec"].get("nodeName", "")
            yield Replica(meta["name"], node, _is_true(each, "Ready"), node in own)


def _holders(cluster: ListedCluster, now: datetime) -> Iterator[LeaseHolder]:
    images = {
        each["metadata"]["name"]: each["spec"]["containers"][0].get("image", "")
        for each in cluster.of(POD)
        if each["spec"].get("containers")
    }
    for each in cluster.of(LEASE):
        spec = each.get("spec") or {}
        renewed = Fields(spec).time("renewTime")
        identity = spec.get("holderIdentity") or ""
        if identity and renewed is not None:
            age = (now - renewed).total_seconds()
            image = images.get(identity.rpartition("_")[0], "")
            yield LeaseHolder(each["metadata"]["namespace"], identity, age, image)


# --- others ---------------------------------------------------------------------------------------


def _others(cluster: ListedCluster) -> Iterator[OtherAutoscaler]:
    for kind in (DEPLOYMENT, DAEMON_SET):
        for each in cluster.of(kind):
            if each["spec"].get("replicas") == 0:
                continue
            meta = each["metadata"]
            where = f"{kind.name} {meta.get('namespace')}/{meta['name']}"
            for container in _pod_of(each).get("containers") or ():
                yield from _programs(container, where)


def _programs(container: JsonObject, where: str) -> Iterator[OtherAutoscaler]:
    words = [*(container.get("command") or ()), *(container.get("args") or ())]
    names = [container.get("image", "").partition("@")[0].rpartition("/")[2], *words[:1]]
    if any("cluster-autoscaler" in each for each in names):
        yield OtherAutoscaler("Cluster Autoscaler", where)
    if any("node-termination-handler" in each for each in names):
        yield OtherAutoscaler(HANDLER, where, _queue_of(container, words))


def _queue_of(container: JsonObject, words: Sequence[str]) -> str:
    """Return the name of the queue, the last part of its URL."""
    urls = [each.get("value", "") for each in container.get("env") or () if _names_queue(each)]
    urls += [each.partition("=")[2] for each in words if each.startswith("--queue-url=")]
    return next((url.rpartition("/")[2] for url in urls if url), "")


def _names_queue(variable: JsonObject) -> bool:
    return variable.get("name") == "QUEUE_URL"


# --- definitions ----------------------------------------------------------------------------------


def _definitions(cluster: ListedCluster, provider: str) -> Iterator[Definition]:
    there = {each["metadata"]["name"]: each for each in cluster.of(CUSTOM_RESOURCE)}
    if any(each.what == CUSTOM_RESOURCE.resource for each in cluster.unseen):
        return
    for custom in CUSTOM_KINDS:
        if custom.kind in NODE_CLASSES.values() and custom.kind != NODE_CLASSES.get(provider):
            continue
        yield _definition(custom, there.get(custom.name))


def _definition(custom: CustomKind, found: JsonObject | None) -> Definition:
    if found is None:
        return Definition(custom.name, is_there=False)
    versions = found["spec"].get("versions") or ()
    named = [each for each in versions if each.get("name") == custom.kind.version]
    served = [each for each in named if each.get("served")]
    if not served:
        return Definition(custom.name, is_served=False)
    schema = (served[0].get("schema") or {}).get("openAPIV3Schema") or {}
    known = set(_fields(schema))
    return Definition(
        custom.name,
        missing=tuple(each for each in _fields(custom.schema()) if each not in known),
    )


def _fields(schema: JsonObject, path: str = "") -> Iterator[str]:
    """Return the path of every field of a schema."""
    for name, each in (schema.get("properties") or {}).items():
        yield f"{path}{name}"
        yield from _fields(each, f"{path}{name}.")
    for inner in ("items", "additionalProperties"):
        if isinstance(schema.get(inner), dict):
            yield from _fields(schema[inner], path)


# --- pools, classes, workloads --------------------------------------------------------------------


def _condition(obj: JsonObject, type_: str) -> JsonObject:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return next((each for each in conditions if each.get("type") == type_), {})


def _is_true(obj: JsonObject, type_: str) -> bool:
    return bool(_condition(obj, type_).get("status") == "True")


def _why(condition: JsonObject) -> str:
    reason = condition.get("message") or condition.get("reason") or "unknown"
    return f"{condition.get('type')}: {reason}"


def _pool(obj: JsonObject) -> Pool:
    ready = _condition(obj, "Ready")
    spec = obj.get("spec") or {}
    ref = spec["template"]["spec"]["nodeClassRef"]
    return Pool(
        obj["metadata"]["name"],
        bool(spec.get("limits")) or "replicas" in spec,
        f"{ref['kind']} {ref['name']}",
        _why(ready) if ready.get("status") == "False" else "",
    )


def _node_classes(cluster: ListedCluster, provider: str) -> Iterator[CheckedNodeClass]:
    for kind in NODE_CLASSES.values():
        # Only the operator of its provider writes conditions on a node class.
        is_ours = kind == NODE_CLASSES.get(provider) and provider == "aws"
        for each in cluster.of(kind):
            conditions = (each.get("status") or {}).get("conditions") or ()
            is_bad = _condition(each, "Ready").get("status") == "False"
            bad = [one for one in conditions if one.get("status") == "False"]
            detailed = [one for one in bad if one.get("type") != "Ready"] or bad
            yield CheckedNodeClass(
                f"{kind.name} {each['metadata']['name']}",
                tuple(map(_why, detailed)) if is_bad else (),
                bool(conditions) or not is_ours,
            )


def _workloads(cluster: ListedCluster) -> Iterator[CheckedWorkload]:
    selectors = [
        (each["metadata"].get("namespace", ""), selector_of(each["spec"].get("selector")))
        for each in cluster.of(DISRUPTION_BUDGET)
    ]
    defaults = dict[str, set[str]]()
    for each in cluster.of(LIMIT_RANGE):
        defaults.setdefault(each["metadata"]["namespace"], set()).update(_defaulted(each))
    for kind in (DEPLOYMENT, STATEFUL_SET):
        for each in cluster.of(kind):
            meta = each["metadata"]
            place = meta.get("namespace", "")
            labels = (each["spec"]["template"].get("metadata") or {}).get("labels") or {}
            replicas = each["spec"].get("replicas", 1)
            if replicas:
                yield CheckedWorkload(
                    f"{kind.name} {place}/{meta['name']}",
                    replicas,
                    any(where == place and _selects(each, labels) for where, each in selectors),
                    _lacks_requests(_pod_of(each), defaults.get(place, set())),
                )


def _selects(selector: Selector | None, labels: Mapping[str, str]) -> bool:
    return selector is not None and selector.matches(labels)


def _defaulted(limit_range: JsonObject) -> Iterator[str]:
    """Return the resources that a LimitRange sets on containers without requests."""
    for item in limit_range["spec"].get("limits") or ():
        if item.get("type") == "Container":
            yield from item.get("defaultRequest") or ()
            yield from item.get("default") or ()


def _lacks_requests(pod: JsonObject, defaulted: set[str]) -> bool:
    return any(
        not {*(amounts.get("requests") or ()), *(amounts.get("limits") or ()), *defaulted}
        >= set(_RESOURCES)
        for amounts in (each.get("resources") or {} for each in pod.get("containers") or ())
    )


# --- calls to the API server ----------------------------------------------------------------------


async def _version(version: Callable[[], Awaitable[str]]) -> str:
    try:
        return await version()
    except Forbidden:
        return ""


async def _times(objects: Objects, clock: Clock) -> tuple[datetime | None, datetime | None]:
    """Return our time and that of the API server, which dates a dry-run event."""
    place = "default"
    event = {
        "metadata": {"generateName": "karpy-doctor-", "namespace": place},
        "eventTime": clock.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "type": "Normal",
        "reason": "Checked",
        "action": "Check",
        "note": "What time is it?",
        "reportingController": "karpy-doctor",
        "reportingInstance": "karpy-doctor",
        "regarding": {"apiVersion": "v1", "kind": "Namespace", "name": place, "namespace": place},
    }
    before = clock.now()
    try:
        made = await objects.create(EVENTS_EVENT, event, dry_run=True)
    except ClusterError:
        return None, None
    after = clock.now()
    return before + (after - before) / 2, Fields(made["metadata"]).time("creationTimestamp")


async def _with_rights(objects: Objects, operator: JsonObject | None, facts: Facts) -> Facts:
    """Add the rights that the operator's account lacks; without an operator, the user's."""
    try:
        name, kind, subject = await _subject(objects, operator)
    except ClusterError as error:
        unseen = Unseen(SELF_REVIEW.resource, error.message)
        return replace(facts, has_checked_rights=False, unseen=(*facts.unseen, unseen))
    wanted = rights_of(facts.provider, facts.namespace)
    try:
        allowed = await asyncio.gather(
            *(_is_allowed(objects, kind, subject, each) for each in wanted)
        )
    except ClusterError:
        return replace(facts, has_checked_rights=False, account_name=name)
    denied = [right for right, may in zip(wanted, allowed, strict=True) if not may]
    return replace(facts, account_name=name, denied=tuple(denied))


async def _subject(objects: Objects, operator: JsonObject | None) -> tuple[str, Kind, JsonObject]:
    """Return the account to review, the kind of review, and the fields of its subject."""
    review = await objects.create(SELF_REVIEW, {"metadata": {}})
    me = review["status"]["userInfo"]["username"]
    if operator is None:
        return me, OWN_RIGHTS, {}
    place = operator["metadata"]["namespace"]
    account = _pod_of(operator).get("serviceAccountName") or "default"
    user = f"system:serviceaccount:{place}:{account}"
    if me == user:
        return me, OWN_RIGHTS, {}
    groups = ["system:authenticated", _SERVICE_ACCOUNTS, f"{_SERVICE_ACCOUNTS}:{place}"]
    return user, RIGHTS, {"user": user, "groups": groups}


async def _is_allowed(objects: Objects, kind: Kind, subject: JsonObject, right: Right) -> bool:
    resource, _, part = right.resource.partition("/")
    attributes = {
        "verb": right.verb,
        "group": right.group,
        "resource": resource,
        "subresource": part,
        "namespace": right.namespace,
        "name": right.name,
    }
    spec = {**subject, "resourceAttributes": {k: v for k, v in attributes.items() if v}}
    answer = await objects.create(kind, {"metadata": {}, "spec": spec})
    return bool(answer["status"].get("allowed"))
