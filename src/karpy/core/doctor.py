"""Whether a cluster is fit for Karpy, before and after its installation: judgements of facts."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from enum import Enum
from typing import Final

from msgspec import Struct

from karpy.core.rights import Right

OLDEST: Final = (1, 29)
NEWEST: Final = (1, 36)
"""The oldest and the newest version of Kubernetes that Karpy is known to work with."""
_SKEW_WARNING: Final = 5.0
_SKEW_ERROR: Final = 60.0
_LEASE_AGE_MAX: Final = 60.0
_ENOUGH_REPLICAS: Final = 2
_SHOWN: Final = 8
_LEASES: Final = "leases.coordination.k8s.io"
_NONE: Final = frozenset[str]()
_SOURCES: Final = {
    "definitions": frozenset({"customresourcedefinitions.apiextensions.k8s.io"}),
    "other autoscalers": frozenset({"daemonsets.apps", "deployments.apps"}),
    "replicas": frozenset({"deployments.apps", "nodes", "pods"}),
    "NodePools": frozenset({"nodepools.karpenter.sh"}),
    "node classes": frozenset(
        {
            "ec2nodeclasses.karpenter.k8s.aws",
            "kwoknodeclasses.karpenter.kwok.sh",
            "nodepools.karpenter.sh",
        }
    ),
    "workloads": frozenset(
        {"deployments.apps", "limitranges", "poddisruptionbudgets.policy", "statefulsets.apps"}
    ),
}
"""Check -> resources it reads; a check is left out if one of them could not be read."""
_KARPENTER: Final = "karpenter/controller"
"""Part of the name of every image of Karpenter's controller."""


class CheckResult(Enum):
    """How severe a judgement is."""

    GREEN = "green"
    YELLOW = "yellow"
    """It works, but could work better; or it could not be read."""
    RED = "red"
    """It does not work, or causes harm."""


class Judgement(Struct, frozen=True):
    """The result of one check."""

    check: str
    health: CheckResult
    text: str
    hint: str = ""
    """What to do; empty only if green."""
    objects: tuple[str, ...] = ()


class Definition(Struct, frozen=True):
    """A CustomResourceDefinition as it is in the cluster."""

    name: str
    is_there: bool = True
    is_served: bool = True
    """Whether the API server serves the version that Karpy uses."""
    missing: tuple[str, ...] = ()
    """Fields of Karpy's definition that the cluster's lacks: the API server drops them."""


class LeaseHolder(Struct, frozen=True):
    """The holder of the leader election lease of a Karpenter or Karpy."""

    namespace: str
    identity: str
    age_seconds: float
    """Seconds since the lease was renewed."""
    image: str = ""
    """Image of the pod that holds the lease; empty if the pod was not found."""

    @property
    def is_alive(self) -> bool:
        return self.age_seconds <= _LEASE_AGE_MAX


HANDLER: Final = "Node Termination Handler"


class OtherAutoscaler(Struct, frozen=True):
    """Another program that drains or starts nodes."""

    program: str
    where: str
    queue: str = ""
    """Name of the queue from which the program receives messages."""


class Replica(Struct, frozen=True):
    """A pod of the operator."""

    name: str
    node: str = ""
    is_ready: bool = False
    is_on_own_node: bool = False
    """Whether the pod runs on a node that the operator itself may remove."""


class CheckedWorkload(Struct, frozen=True):
    """A Deployment or StatefulSet."""

    name: str
    replicas: int
    has_budget: bool
    lacks_requests: bool
    """Whether a container requests no CPU or no memory, and no LimitRange sets a default."""


class Pool(Struct, frozen=True):
    """A NodePool."""

    name: str
    has_limits: bool
    node_class: str
    """Kind and name of its node class."""
    unready: str = ""
    """Why the NodePool is not ready; empty if it is ready."""


class CheckedNodeClass(Struct, frozen=True):
    """A node class."""

    name: str
    """Kind and name."""
    unready: tuple[str, ...] = ()
    """Why the node class is not ready; empty if it is ready."""
    is_known: bool = True
    """Whether its controller has set any condition."""


class RefusedCall(Struct, frozen=True):
    """A call that the cloud refused."""

    call: str
    problem: str
    hint: str


class CloudAccount(Struct, frozen=True):
    """What the cloud reports about the current credentials."""

    identity: str = ""
    region: str = ""
    refused: tuple[RefusedCall, ...] = ()
    queue: str = ""
    """Name of the interruption queue; empty if none is set."""
    is_queue_there: bool = False


class Unseen(Struct, frozen=True):
    """A resource that could not be read, and why."""

    what: str
    problem: str


class Facts(Struct, frozen=True, kw_only=True):
    """The facts about a cluster that `examine` judges."""

    namespace: str
    provider: str
    version: str = ""
    """Version of the API server, such as `v1.36.3`; empty if unknown."""
    local_time: datetime | None = None
    """Local time when `server_time` was read."""
    server_time: datetime | None = None
    """Time of the API server."""
    definitions: tuple[Definition, ...] = ()
    account_name: str = ""
    """The account whose rights were checked."""
    denied: tuple[Right, ...] = ()
    has_checked_rights: bool = True
    """Whether the rights could be checked."""
    holders: tuple[LeaseHolder, ...] = ()
    others: tuple[OtherAutoscaler, ...] = ()
    is_installed: bool = False
    """Whether the Deployment of the operator exists."""
    replicas: tuple[Replica, ...] = ()
    workloads: tuple[CheckedWorkload, ...] = ()
    pools: tuple[Pool, ...] = ()
    node_classes: tuple[CheckedNodeClass, ...] = ()
    cloud: CloudAccount | None = None
    """None if the cloud was not queried."""
    queue: str = ""
    unseen: tuple[Unseen, ...] = ()

    @property
    def sees_leases(self) -> bool:
        return _LEASES not in {each.what for each in self.unseen}


def examine(facts: Facts) -> tuple[Judgement, ...]:
    """Return the judgements of all facts that could be read, in the order in which to fix them."""
    unseen = {each.what for each in facts.unseen}
    return tuple(
        each for each in _judgements(facts) if not _SOURCES.get(each.check, _NONE) & unseen
    )


def _judgements(facts: Facts) -> tuple[Judgement, ...]:
    return (
        _version(facts),
        _clock(facts),
        *_definitions(facts),
        _rights(facts),
        *(_leader(facts) if facts.holders or facts.sees_leases else ()),
        *_others(facts),
        _replicas(facts),
        *_pools(facts),
        *_node_classes(facts),
        *_workloads(facts),
        *_cloud(facts),
        *_unseen(facts),
    )


def is_fit(judgements: Iterable[Judgement]) -> bool:
    """Say whether no judgement is red."""
    return all(each.health is not CheckResult.RED for each in judgements)


def _green(check: str, text: str) -> Judgement:
    return Judgement(check, CheckResult.GREEN, text)


def _yellow(check: str, text: str, hint: str, objects: Sequence[str] = ()) -> Judgement:
    return Judgement(check, CheckResult.YELLOW, text, hint, tuple(objects))


def _red(check: str, text: str, hint: str, objects: Sequence[str] = ()) -> Judgement:
    return Judgement(check, CheckResult.RED, text, hint, tuple(objects))


def _version(facts: Facts) -> Judgement:
    check = "Kubernetes"
    major, _, rest = facts.version.removeprefix("v").partition(".")
    minor = rest.partition(".")[0]
    if not (major.isdecimal() and minor.isdecimal()):
        return _yellow(check, "the API server does not say its version", "allow GET on /version")
    found = int(major), int(minor)
    if found < OLDEST:
        hint = f"upgrade the cluster to {_dotted(OLDEST)} or newer"
        return _red(check, f"{facts.version} is too old", hint)
    if found > NEWEST:
        hint = "look for a newer version of Karpy"
        return _yellow(check, f"{facts.version} is newer than this version knows", hint)
    return _green(check, facts.version)


def _dotted(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))


def _clock(facts: Facts) -> Judgement:
    check = "clock"
    if facts.local_time is None or facts.server_time is None:
        hint = "allow `create` on events, of which one is tried without being kept"
        return _yellow(check, "the API server does not say its time", hint)
    skew = (facts.local_time - facts.server_time).total_seconds()
    text = f"{abs(skew):.0f} s {'ahead of' if skew > 0 else 'behind'} the API server"
    hint = "have the clocks of both machines set by NTP"
    if abs(skew) > _SKEW_ERROR:
        return _red(check, text, hint)
    if abs(skew) > _SKEW_WARNING:
        return _yellow(check, text, hint)
    return _green(check, "as that of the API server")


def _definitions(facts: Facts) -> Iterator[Judgement]:
    check = "definitions"
    hint = "upgrade karpenter-crd by Helm, or run: karpy crds | kubectl apply --server-side -f -"
    gone = [each.name for each in facts.definitions if not each.is_there]
    old = [each.name for each in facts.definitions if each.is_there and not each.is_served]
    lacking = {each.name: each.missing for each in facts.definitions if each.missing}
    if gone:
        yield _red(check, "are missing", hint, gone)
    if old:
        yield _red(check, "are not served in the version that Karpy speaks", hint, old)
    if lacking:
        fields = [f"{name}: {', '.join(lacking[name][:_SHOWN])}" for name in sorted(lacking)]
        yield _yellow(check, "are older than Karpy, and drop fields", hint, fields)
    if not (gone or old or lacking):
        yield _green(check, f"all {len(facts.definitions)} are current")


def _rights(facts: Facts) -> Judgement:
    check = "rights"
    if not facts.has_checked_rights:
        hint = "run doctor as a user who may create subjectaccessreviews.authorization.k8s.io"
        return _yellow(check, f"of {facts.account_name} could not be asked about", hint)
    if facts.denied:
        text = f"{facts.account_name} lacks {len(facts.denied)}"
        hint = "upgrade karpenter by Helm, or run: kubectl apply -f deploy/rbac.yaml"
        return _red(check, text, hint, list(map(str, facts.denied)))
    return _green(check, f"{facts.account_name} may do all it needs to")


def _leader(facts: Facts) -> Iterator[Judgement]:
    check = "leader"
    alive = [each for each in facts.holders if each.is_alive]
    held = [f"{each.namespace}: {each.identity}" for each in alive]
    if len(alive) > 1:
        hint = "stop all operators but one: each launches nodes for the same pods"
        yield _red(check, "several operators lead, each by a lease of its own", hint, held)
        return
    strangers = [each for each in alive if _KARPENTER in each.image]
    if strangers:
        hint = "stop it once Karpy is installed; in the same namespace Karpy waits until then"
        yield _yellow(check, f"is another operator: {strangers[0].image}", hint, held)
    elif alive and alive[0].namespace != facts.namespace:
        hint = f"give its namespace: --namespace {alive[0].namespace}"
        yield _yellow(check, "is in another namespace", hint, held)
    elif alive:
        yield _green(check, alive[0].identity)
    elif facts.is_installed:
        hint = f"look at the logs: kubectl logs -n {facts.namespace} deployment/karpenter"
        yield _red(check, "there is none, though Karpy is installed", hint)
    else:
        yield _green(check, "none, and Karpy is not installed yet")


def _others(facts: Facts) -> Iterator[Judgement]:
    check = "other autoscalers"
    sharing = [each for each in facts.others if each.queue and each.queue == facts.queue]
    if sharing:
        hint = "remove it: each message of the queue reaches one of the two alone"
        text = f"take messages from the same queue `{facts.queue}`"
        yield _red(check, text, hint, [f"{each.program}, {each.where}" for each in sharing])
    handlers = [each for each in facts.others if each.program == HANDLER and each not in sharing]
    if handlers:
        hint = "remove it once Karpy has an interruption queue: both would drain the same nodes"
        shown = [f"{each.program}, {each.where}" for each in handlers]
        yield _yellow(check, "drain nodes", hint, shown)
    rest = [each for each in facts.others if each.program != HANDLER]
    if rest:
        hint = "scale it to 0 once its nodes have moved: both would start nodes for the same pods"
        yield _yellow(check, "run", hint, [f"{each.program}, {each.where}" for each in rest])
    if not facts.others:
        yield _green(check, "none found")


def _replicas(facts: Facts) -> Judgement:
    check = "replicas"
    if not facts.is_installed:
        hint = "install it: docs/guides/install.md"
        return _yellow(check, f"Karpy is not installed in {facts.namespace}", hint)
    own = [each for each in facts.replicas if each.is_on_own_node]
    if own:
        hint = (
            "keep it off nodes with the label karpenter.sh/nodepool, as the chart's affinity does"
        )
        shown = [f"{each.name} on {each.node}" for each in own]
        return _red(check, "run on nodes that Karpy may remove", hint, shown)
    ready = [each for each in facts.replicas if each.is_ready]
    if not ready:
        hint = f"see why: kubectl describe pods -n {facts.namespace}"
        return _red(check, "none is ready", hint, [each.name for each in facts.replicas])
    if len(ready) < _ENOUGH_REPLICAS:
        hint = "run two, on two nodes, so that one takes over from the other"
        return _yellow(check, "one is ready", hint, [each.name for each in ready])
    if len({each.node for each in ready}) == 1:
        hint = "spread them over nodes: podAntiAffinity by kubernetes.io/hostname"
        return _yellow(check, "all are on the same node", hint, [each.name for each in ready])
    return _green(check, f"{len(ready)} are ready, on nodes of their own")


def _pools(facts: Facts) -> Iterator[Judgement]:
    check = "NodePools"
    if not facts.pools:
        yield _yellow(check, "there is none, and nothing is launched", "apply a NodePool")
        return
    unready = [f"{each.name}: {each.unready}" for each in facts.pools if each.unready]
    if unready:
        hint = "look at its conditions: kubectl describe nodepool"
        yield _red(check, "are not ready, and launch nothing", hint, unready)
    free = [each.name for each in facts.pools if not each.has_limits]
    if free:
        hint = "set spec.limits: what pods ask for is the only bound of the bill"
        yield _yellow(check, "have no limits", hint, free)
    if not (unready or free):
        yield _green(check, f"{len(facts.pools)}, ready and limited")


def _node_classes(facts: Facts) -> Iterator[Judgement]:
    check = "node classes"
    used = {each.node_class for each in facts.pools}
    known = {each.name: each for each in facts.node_classes}
    gone = sorted(used - known.keys())
    if gone:
        yield _red(check, "are named by NodePools and are not there", "apply them", gone)
    bad = [each for each in facts.node_classes if each.unready]
    for health, affected in (
        (CheckResult.RED, [each for each in bad if each.name in used]),
        (CheckResult.YELLOW, [each for each in bad if each.name not in used]),
    ):
        if affected:
            shown = [f"{each.name}: {why}" for each in affected for why in each.unready]
            hint = "correct what the conditions name; for AWS the message has the call that failed"
            yield Judgement(check, health, "are not ready", hint, tuple(shown))
    silent = [each.name for each in facts.node_classes if not each.is_known]
    if silent and facts.is_installed:
        hint = f"see that Karpy runs with --provider {facts.provider}"
        yield _yellow(check, "have no conditions yet", hint, silent)
        return
    if not (gone or bad):
        yield _green(check, f"{len(facts.node_classes)}")


def _workloads(facts: Facts) -> Iterator[Judgement]:
    check = "workloads"
    bare = [
        each.name
        for each in facts.workloads
        if each.replicas >= _ENOUGH_REPLICAS and not each.has_budget
    ]
    if bare:
        hint = "give them a PodDisruptionBudget: without one all replicas may be evicted at once"
        yield _yellow(check, "have no PodDisruptionBudget", hint, bare)
    vague = [each.name for each in facts.workloads if each.lacks_requests]
    if vague:
        hint = "set requests of CPU and memory, or a LimitRange: nodes are chosen by them"
        yield _yellow(check, "ask for no CPU or no memory", hint, vague)
    if not (bare or vague):
        yield _green(check, f"{len(facts.workloads)}, with requests and budgets")


def _cloud(facts: Facts) -> Iterator[Judgement]:
    cloud = facts.cloud
    if cloud is None:
        return
    if cloud.identity:
        yield _green("AWS identity", f"{cloud.identity} in {cloud.region}")
    for each in cloud.refused:
        yield _red(f"AWS {each.call}", each.problem, each.hint)
    if not cloud.refused:
        yield _green("AWS permissions", "all calls that only read are allowed")
    check = "AWS queue"
    if cloud.queue and cloud.is_queue_there:
        yield _green(check, cloud.queue)
    elif cloud.identity and not cloud.queue:
        hint = "set settings.interruptionQueue: spot machines end with two minutes of notice"
        yield _yellow(check, "none is set, and interruptions come as a surprise", hint)


def _unseen(facts: Facts) -> Iterator[Judgement]:
    if facts.unseen:
        shown = [f"{each.what}: {each.problem}" for each in facts.unseen]
        hint = "run doctor as a user who may list them"
        yield _yellow("left out", "could not be read", hint, shown)
