"""A roster that follows changes knows what one that starts anew finds out."""

from random import Random

import pytest

from karpy.codec.fields import JsonObject
from karpy.model.labels import HOSTNAME, ZONE
from karpy.sim.scheduler.kins import CHANGES_MAX
from karpy.sim.scheduler.nodes import NodeInfo, NodeTable
from karpy.sim.scheduler.podinfos import PodInfo, PodInfos
from karpy.sim.scheduler.roster import Roster
from karpy.sim.scheduler.standings import Standings
from karpy.sim.scheduler.surroundings import Surroundings
from karpy.sim.scheduler.terms import Spread
from karpy.sim.scheduler.trial import Trial, why_not
from karpy.sim.scheduler.wants import Wants
from tests.sim.scheduler.stage import node, pod

STEPS = 60
NAMESPACES: dict[str, dict[str, str]] = {"default": {}, "other": {"team": "x"}}


class _World:
    """Nodes and pods that change at random."""

    def __init__(self, seed: int) -> None:
        self.draw = Random(seed)
        self.infos = PodInfos()
        self.table = NodeTable()
        self.pods: dict[str, PodInfo] = {}
        self.names = [f"n{each}" for each in range(6)]
        self.serial = 0

    def surround(self, wants: Wants) -> Surroundings:
        return Surroundings(wants, self.table, NAMESPACES, _no_defaults)

    def roster(self, wants: Wants) -> Roster:
        """Make a roster that shares nothing with others."""
        return Roster(wants, self.table, self.surround, Standings(self.table))

    def change(self) -> None:
        match self.draw.randrange(8):
            case 0 | 1:
                name = self.draw.choice(self.names)
                self.table.describe(name, self._node(name))
            case 2:
                self.table.describe(self.draw.choice(self.names), None)
            case 3 if self.pods:
                gone = self.pods.pop(self.draw.choice(sorted(self.pods)))
                self.table.take(gone)
            case 4 if self.pods:
                self._end(self.draw.choice(sorted(self.pods)))
            case _:
                self._put()

    def pod(self) -> PodInfo:
        self.serial += 1
        draw = self.draw
        labels = {"app": draw.choice("ab")}
        spec: JsonObject = {}
        if draw.random() < 0.5:
            spec["affinity"] = self._affinity()
        if draw.random() < 0.5:
            spec["topologySpreadConstraints"] = [self._spread()]
        if draw.random() < 0.2:
            spec["tolerations"] = [{"operator": "Exists"}]
        made = pod(f"p{self.serial}", cpu=draw.choice(["100m", "1"]), labels=labels, **spec)
        made["metadata"]["namespace"] = draw.choice(sorted(NAMESPACES))
        made["metadata"]["uid"] = str(self.serial)
        return self.infos.read(made)

    def _put(self) -> None:
        new = self.pod()
        new.node = self.draw.choice(self.names)
        self.pods[new.key] = new
        self.table.put(new)

    def _end(self, key: str) -> None:
        known = self.pods[key]
        meta = {**known.obj["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}
        ending = PodInfo({**known.obj, "metadata": meta}, known.wants)
        ending.node = known.node
        self.table.take(known)
        self.table.put(ending)
        self.pods[key] = ending

    def _node(self, name: str) -> JsonObject:
        draw = self.draw
        taints = [{"key": "k", "effect": draw.choice(["NoSchedule", "PreferNoSchedule"])}]
        labels = {HOSTNAME: name if draw.random() < 0.8 else "n0"}
        spec = {"taints": taints if draw.random() < 0.3 else []}
        zone = draw.choice(["a", "b", ""])
        return node(name, cpu=draw.choice(["2", "4"]), zone=zone, labels=labels, spec=spec)

    def _affinity(self) -> JsonObject:
        draw = self.draw
        term: JsonObject = {
            "topologyKey": draw.choice([ZONE, HOSTNAME]),
            "labelSelector": {"matchLabels": {"app": draw.choice("ab")}},
        }
        if draw.random() < 0.3:
            term["namespaceSelector"] = {"matchLabels": {"team": "x"}}
        side = draw.choice(["podAffinity", "podAntiAffinity"])
        if draw.random() < 0.5:
            return {side: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        preference = [{"weight": draw.randint(1, 100), "podAffinityTerm": term}]
        return {side: {"preferredDuringSchedulingIgnoredDuringExecution": preference}}

    def _spread(self) -> JsonObject:
        draw = self.draw
        return {
            "maxSkew": 1,
            "topologyKey": draw.choice([ZONE, HOSTNAME]),
            "whenUnsatisfiable": draw.choice(["DoNotSchedule", "ScheduleAnyway"]),
            "labelSelector": {"matchLabels": {"app": draw.choice("ab")}},
            "nodeTaintsPolicy": draw.choice(["Honor", "Ignore"]),
        }


def _no_defaults(wants: Wants) -> tuple[Spread, ...]:
    del wants
    return ()


def _view(roster: Roster, table: NodeTable) -> tuple[str | None, dict[str, object]]:
    """Say which node is chosen, and what is said of each."""
    chosen = roster.choose()
    said: dict[str, object] = {each.name: why_not(roster, each, None) for each in table.walk()}
    return chosen.name if chosen else None, said


def _differences(seed: int) -> list[object]:
    world = _World(seed)
    asking = [world.pod().wants for _ in range(4)]
    shared = Standings(world.table)
    rosters = [Roster(wants, world.table, world.surround, shared) for wants in asking]
    found: list[object] = []
    for step in range(STEPS):
        world.change()
        # Not every reader looks every time, so that several changes come at once.
        for roster in rosters[: 1 + step % len(rosters)]:
            roster.refresh()
            known = _view(roster, world.table)
            anew = _view(world.roster(roster.wants), world.table)
            if known != anew:
                found.append((step, known, anew))
            fits = [name for name, refusal in known[1].items() if refusal is None]
            if (known[0] in fits) != bool(fits):
                found.append((step, known[0], fits))
    return found


@pytest.mark.parametrize("seed", range(40))
def test_an_updated_roster_equals_a_new_one(seed: int) -> None:
    assert _differences(seed) == []


@pytest.mark.parametrize("seed", range(20))
def test_a_trial_leaves_no_trace(seed: int) -> None:
    world = _World(seed)
    _change_often(world)
    asked = world.pod()
    roster = world.roster(asked.wants)
    before = _view(roster, world.table)

    _try_everywhere(world, roster)

    assert _view(roster, world.table) == before


def test_a_node_that_was_full_still_counts_its_pods() -> None:
    world = _World(0)
    world.table.describe("n1", node("n1", cpu="8"))
    world.table.describe("n2", node("n2", cpu="4"))
    spread = {
        "maxSkew": 1,
        "topologyKey": HOSTNAME,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    web = pod("web", cpu="1", labels={"app": "web"}, topologySpreadConstraints=[spread])
    first = _on(world, web, "n1")
    filler = _on(world, pod("filler", cpu="7"), "n1")
    _on(world, pod("other", cpu="2"), "n2")
    roster = world.roster(first.wants)

    world.table.take(filler)
    roster.refresh()

    chosen = roster.choose()
    assert chosen is not None
    assert chosen.name == "n2"


@pytest.mark.parametrize("times", [CHANGES_MAX // 8, CHANGES_MAX])
def test_a_roster_beyond_the_log_equals_a_new_one(times: int) -> None:
    world = _World(1)
    _change_often(world)
    roster = world.roster(world.pod().wants)
    guest = _on(world, pod("guest", cpu="1", labels={"app": "a"}), "n1")

    _come_and_go(world, guest, times)
    roster.refresh()

    assert _view(roster, world.table) == _view(world.roster(roster.wants), world.table)


def test_changes_are_not_remembered_for_ever() -> None:
    world = _World(1)
    guest = _on(world, pod("guest", cpu="1", labels={"app": "a"}), "n1")

    _come_and_go(world, guest, times=CHANGES_MAX)

    assert world.table.since(0) is None
    assert len(guest.wants.kin.changes) <= CHANGES_MAX + 1


def test_a_roster_forgets_the_kinds_of_pods_that_are_gone() -> None:
    world = _World(1)
    spread = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": "a"}},
    }
    web = pod("web", cpu="1", labels={"app": "a"}, topologySpreadConstraints=[spread])
    roster = world.roster(_on(world, web, "n1").wants)
    guest = _on(world, pod("guest", cpu="1", labels={"app": "a", "of": "yesterday"}), "n1")
    roster.refresh()
    assert guest.wants.kin in roster.surroundings.concerned

    world.table.take(guest)
    _on(world, pod("other", cpu="1", labels={"app": "a", "of": "today"}), "n1")
    roster.refresh()

    assert guest.wants.kin not in roster.surroundings.concerned


def _come_and_go(world: _World, guest: PodInfo, times: int) -> None:
    for _ in range(times):
        world.table.take(guest)
        world.table.put(guest)


def _on(world: _World, made: JsonObject, where: str) -> PodInfo:
    made["metadata"]["namespace"] = "default"
    info = world.infos.read(made)
    info.node = where
    world.table.put(info)
    return info


def _change_often(world: _World) -> None:
    for _ in range(STEPS):
        world.change()


def _try_everywhere(world: _World, roster: Roster) -> None:
    for each in list(world.table.walk()):
        _try(each, roster, world.pod())


def _try(where: NodeInfo, roster: Roster, guest: PodInfo) -> None:
    with Trial(roster, where, None) as trial:
        for there in list(where.pods.values()):
            trial.take(there)
        trial.put(guest)
        trial.refusal()
