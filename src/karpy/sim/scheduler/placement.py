"""The scheduling decision for one pod: a node, or why there is none."""

from collections.abc import Iterable

from msgspec import Struct

from karpy.ports.clock import Clock
from karpy.sim.scheduler.nodes import NodeInfo, NodeTable
from karpy.sim.scheduler.podinfos import PodInfo
from karpy.sim.scheduler.preemption import NEVER, Preemption, PreemptionAttempt, PreemptionCandidate
from karpy.sim.scheduler.refusals import CONTRADICTION, NO_NODES, Diagnosis, SchedulerRefusal
from karpy.sim.scheduler.roster import Roster, Rosters, Shortlist
from karpy.sim.scheduler.tracker import Tracker
from karpy.sim.scheduler.trial import Trial, why_not
from karpy.sim.scheduler.volumes import VolumeCheck, VolumePlan, has_claims
from karpy.sim.store.store import Store

_NO_CLAIMS = "no new claims to deallocate, preemption: "
"""The message of the PostFilter plugins: that of DynamicResources comes first."""
_NOT_ASKED = "not found"
"""Their message, a quirk of kube-scheduler, if no filter ran."""


class Placed(Struct, frozen=True):
    """The node chosen for a pod."""

    node: NodeInfo
    plan: VolumePlan | None = None
    """The bindings and provisions of its volumes; None if it has no claims."""


class Failed(Struct, frozen=True):
    """A pod that fits on no node."""

    message: str
    plugins: frozenset[str] = frozenset()
    nominated: str | None = ""
    """The nominated node to write; None leaves it unchanged."""
    candidate: PreemptionCandidate | None = None
    """The node and the victims of the preemption."""


class Placement:
    """Decides where pods go."""

    def __init__(
        self, store: Store, clock: Clock, table: NodeTable, rosters: Rosters, tracker: Tracker
    ) -> None:
        self._store = store
        self._clock = clock
        self._table = table
        self._rosters = rosters
        self._tracker = tracker
        self._preemption = Preemption(store, table, tracker.rivals)
        self._failures: dict[tuple[object, int, bool], tuple[int, Failed]] = {}
        """The latest failure of pods like this, with the number of changes at that time."""

    def decide(self, pod: PodInfo) -> Placed | Failed:
        """Find a node for a pod, or the reasons why there is none."""
        if not self._table.count:
            return Failed(NO_NODES)
        only = pod.wants.choice.only
        if only is not None and not only:
            return self._at_once(CONTRADICTION)
        check = None
        if pod.volumes and has_claims(pod):
            check = VolumeCheck(self._store, self._table, pod)
        hopeless = check.why_hopeless() if check is not None else None
        if hopeless is not None:
            return self._at_once(hopeless)
        known = self._known_failure(pod, check)
        if known is not None:
            return known
        roster = self._rosters.of(pod.wants)
        node = self._choose(pod, roster, check)
        if node is not None:
            return Placed(node, check.plan(node) if check is not None else None)
        return self._fail(pod, roster) if check is None else self._explain(pod, roster, check)

    def forget(self) -> None:
        """Drop all caches after a change that they do not follow."""
        self._failures.clear()
        self._rosters.forget()

    def _known_failure(self, pod: PodInfo, check: VolumeCheck | None) -> Failed | None:
        if not self._failures or check is not None or self._tracker.nominees or pod.nominated():
            return None
        known = self._failures.get((pod.wants.serial, pod.priority, _never_preempts(pod)))
        if known is None:
            return None
        if known[0] != self._table.position:
            self._failures.clear()
            return None
        return known[1]

    def _fail(self, pod: PodInfo, roster: Roster | Shortlist) -> Failed:
        """Explain why there is no node, shared by all pods with the same explanation."""
        own = pod.wants.serial, pod.priority, _never_preempts(pod)
        key: tuple[object, int, bool] = own
        if not (pod.nominated() or self._tracker.nominees or roster.surroundings.is_demanding):
            # Only the rules on nodes matter: workloads with equal demands share the explanation.
            key = pod.wants.demands, *own[1:]
        position = self._table.position
        known = self._failures.get(key)
        if known is not None and known[0] == position:
            failed = known[1]
        else:
            failed = self._explain(pod, roster, None)
        if failed.candidate is None:
            self._failures[own] = self._failures[key] = (position, failed)
        return failed

    def _choose(
        self, pod: PodInfo, roster: Roster | Shortlist, check: VolumeCheck | None
    ) -> NodeInfo | None:
        if nominated := pod.nominated():
            node = self._table.find(nominated)
            if node is not None and self._refusal(pod, roster, check, node) is None:
                return node
        is_free = not self._tracker.nominees or not self._tracker.contested(pod)
        if is_free and check is None and isinstance(roster, Roster):
            return roster.choose()
        nodes = [
            node for node in self._eligible(pod) if self._refusal(pod, roster, check, node) is None
        ]
        return roster.choose(nodes)

    def _eligible(self, pod: PodInfo) -> Iterable[NodeInfo]:
        only = pod.wants.choice.only
        if only is None:
            return self._table.walk()
        return [node for name in sorted(only) if (node := self._table.find(name)) is not None]

    def _refusal(
        self,
        pod: PodInfo,
        roster: Roster | Shortlist,
        check: VolumeCheck | None,
        node: NodeInfo,
    ) -> SchedulerRefusal | None:
        """Filter a node with the pods nominated to it placed on it, then without them."""
        rivals = list(self._tracker.rivals(pod, node.name))
        if rivals:
            with Trial(roster, node, check) as trial:
                for rival in rivals:
                    trial.put(rival)
                refusal = trial.refusal()
            if refusal is not None:
                return refusal
        return why_not(roster, node, check)

    def _at_once(self, refusal: SchedulerRefusal) -> Failed:
        diagnosis = Diagnosis(self._table.count, {}, refusal)
        return Failed(diagnosis.text(_NOT_ASKED), diagnosis.plugins, nominated=None)

    def _explain(
        self, pod: PodInfo, roster: Roster | Shortlist, check: VolumeCheck | None
    ) -> Failed:
        refusals = {}
        for node in self._eligible(pod):
            refusal = self._refusal(pod, roster, check, node)
            assert refusal is not None
            refusals[node.name] = refusal
        diagnosis = Diagnosis(self._table.count, refusals)
        attempt = PreemptionAttempt(pod, roster, check, diagnosis)
        ineligible = self._preemption.why_ineligible(attempt)
        if ineligible:
            message = diagnosis.text(_NO_CLAIMS + ineligible)
            return Failed(message, diagnosis.plugins, nominated=None)
        found = self._preemption.find(attempt, self._clock.now())
        if isinstance(found, PreemptionCandidate):
            return Failed(diagnosis.text(""), diagnosis.plugins, found.node.name, found)
        return Failed(diagnosis.text(_NO_CLAIMS + found), diagnosis.plugins)


def _never_preempts(pod: PodInfo) -> bool:
    return bool(pod.obj["spec"].get("preemptionPolicy") == NEVER)
