"""The random acts of a story: changes by users, and failures."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from karpy.codec.fields import JsonObject
from karpy.errors import ClusterError, Invalid, MachineNotFound
from karpy.model.kinds import (
    DEPLOYMENT,
    DISRUPTION_BUDGET,
    JOB,
    NODE,
    NODE_CLAIM,
    NODE_POOL,
    POD,
    STATEFUL_SET,
    Kind,
)
from karpy.ports.objects import Patch, PatchType
from karpy.sim.cloud.market import Good
from karpy.sim.hazards import BROKEN
from karpy.sim.kubelets.behaviour import RUN
from karpy.sim.world import World
from tests.fuzz.dice import Dice
from tests.hostile.pods import hostile_pods
from tests.scenarios.manifests import pod_spec
from tests.swarm.clusters import (
    DEDICATED,
    TEAM,
    random_disruption,
    random_limits,
    random_pool,
)
from tests.swarm.troubles import CLOSED_POOL

Do = Callable[[World], str]
"""Changes a world; returns a description, empty if there was no object to change."""


@dataclass(frozen=True)
class Act:
    """A change at a second of the story."""

    second: float
    do: Do


def random_acts(dice: Dice, seconds: int) -> list[Act]:
    """Draw the acts of a period, in order."""
    makers = [*_PEOPLE * 2, *dice.some(_FATE, 0, 3)]
    acts = [
        Act(float(dice.number(0, seconds)), dice.one(makers)(dice))
        for _ in range(dice.number(2, 20))
    ]
    return sorted(acts, key=lambda each: each.second)


# --- people ----------------------------------------------------------------------------------


def _scale(dice: Dice) -> Do:
    which, replicas = dice.number(0, 99), dice.one([0, 1, 2, 3, 5, 8])

    def do(world: World) -> str:
        found = [(kind, each) for kind in (DEPLOYMENT, STATEFUL_SET) for each in _all(world, kind)]
        if not found:
            return ""
        kind, (name, namespace) = found[which % len(found)]
        body = {"spec": {"replicas": replicas}}
        world.store.patch(kind, name, Patch(PatchType.MERGE, body), namespace=namespace)
        return f"scale {name} to {replicas}"

    return do


def _delete(*kinds: Kind) -> Callable[[Dice], Do]:
    def make(dice: Dice) -> Do:
        kind, which = dice.one(kinds), dice.number(0, 99)

        def do(world: World) -> str:
            found = _all(world, kind)
            if not found:
                return ""
            name, namespace = found[which % len(found)]
            world.store.delete(kind, name, namespace=namespace)
            return f"delete {kind.name} {name}"

        return do

    return make


def _strip_claim(dice: Dice) -> Do:
    """Remove the finalizers of a claim and delete it, so that its machine has no claim."""
    which = dice.number(0, 99)

    def do(world: World) -> str:
        name = _pick([each for each, _ in _all(world, NODE_CLAIM)], which)
        if name:
            body = {"metadata": {"finalizers": None}}
            world.store.patch(NODE_CLAIM, name, Patch(PatchType.MERGE, body))
            if world.store.find(NODE_CLAIM, name) is not None:
                world.store.delete(NODE_CLAIM, name)
        return name and f"strip NodeClaim {name} of its finalizers, and delete it"

    return do


def _run_job(dice: Dice) -> Do:
    number, pods, seconds = dice.number(0, 9), dice.number(1, 4), dice.one(["20", "120"])
    spec = pod_spec(dice.one(["500m", "1", "3"]), restartPolicy="Never")
    template = {"metadata": {"annotations": {RUN: seconds}}, "spec": spec}
    job = {"parallelism": pods, "completions": pods, "template": template}

    def do(world: World) -> str:
        meta = {"name": f"job{number}", "namespace": "default"}
        if world.store.find(JOB, meta["name"], "default") is not None:
            return ""
        world.store.create(JOB, {"metadata": meta, "spec": job})
        return f"run {meta['name']}: {pods} pods of {seconds} s"

    return do


def _attack(dice: Dice) -> Do:
    """Create a pod that makes decisions slow, or that cannot be read."""
    made = dice.one(hostile_pods())

    def do(world: World) -> str:
        name = made["metadata"]["name"]
        if world.store.find(POD, name, "default") is not None:
            return ""
        world.store.create(POD, made)
        return f"create the hostile pod {name}"

    return do


def _edit_pool(dice: Dice) -> Do:
    edits = (_new_limits, _new_label, _new_taint, _new_replicas, _new_disruption)
    return _with_edit(dice, dice.one(edits)(dice))


def _roll(dice: Dice) -> Do:
    """Change a NodePool so that all its nodes drift."""
    return _with_edit(dice, _new_label(dice))


def _with_edit(dice: Dice, body: JsonObject) -> Do:
    which = dice.number(0, 99)

    def do(world: World) -> str:
        found = [each for each in _all(world, NODE_POOL) if each[0] != CLOSED_POOL]
        if not found:
            return ""
        name = found[which % len(found)][0]
        try:
            world.store.patch(NODE_POOL, name, Patch(PatchType.MERGE, body))
        except Invalid:
            # Static and dynamic NodePools allow different edits.
            return ""
        return f"edit NodePool {name}: {body}"

    return do


def _new_limits(dice: Dice) -> JsonObject:
    return {"spec": {"limits": {"cpu": None, "nodes": None, **random_limits(dice)}}}


def _new_label(dice: Dice) -> JsonObject:
    labels = {TEAM: dice.one(["red", "blue", "green"])}
    return {"spec": {"template": {"metadata": {"labels": labels}}}}


def _new_taint(dice: Dice) -> JsonObject:
    return {"spec": {"template": {"spec": {"taints": dice.one([[], [DEDICATED]])}}}}


def _new_disruption(dice: Dice) -> JsonObject:
    return {"spec": {"disruption": random_disruption(dice)}}


def _new_replicas(dice: Dice) -> JsonObject:
    return {"spec": {"replicas": dice.number(0, 4)}}


def _add_pool(dice: Dice) -> Do:
    made = random_pool(dice, f"late{dice.number(0, 2)}")

    def do(world: World) -> str:
        name = made["metadata"]["name"]
        if world.store.find(NODE_POOL, name) is not None:
            return ""
        world.store.create(NODE_POOL, made)
        return f"add NodePool {name}"

    return do


# --- fate ------------------------------------------------------------------------------------


def _lose(dice: Dice) -> Do:
    which = dice.number(0, 99)

    def do(world: World) -> str:
        name = _pick(world.kubelets.living(), which)
        if name:
            world.kubelets.lose(name)
        return name and f"lose the kubelet of {name}"

    return do


def _break(dice: Dice) -> Do:
    which = dice.number(0, 99)

    def do(world: World) -> str:
        name = _pick(world.kubelets.living(), which)
        if name:
            world.kubelets.trouble(name, BROKEN)
        return name and f"break {name}"

    return do


def _slow(dice: Dice) -> Do:
    which = dice.number(0, 99)

    def do(world: World) -> str:
        name = _pick(world.kubelets.living(), which)
        if name:
            world.kubelets.slow(name, 10.0)
        return name and f"slow {name}"

    return do


def _reboot(dice: Dice) -> Do:
    which = dice.number(0, 99)

    def do(world: World) -> str:
        name = _pick(world.kubelets.living(), which)
        if name:
            world.kubelets.reboot(name)
        return name and f"reboot {name}"

    return do


def _end_machine(dice: Dice) -> Do:
    which = dice.number(0, 99)

    def do(world: World) -> str:
        claims = [each.get("status", {}).get("providerID") for each in world.store.list(NODE_CLAIM)]
        machine = _pick([each for each in claims if each and world.cloud.has(each)], which)
        try:
            if machine:
                world.cloud.kill(machine)
        except MachineNotFound:
            return ""
        return machine and f"end the machine {machine}"

    return do


def _spoil(dice: Dice) -> Do:
    launches = dice.number(1, 2)

    def do(world: World) -> str:
        world.cloud.spoil(launches)
        return f"spoil {launches} launches"

    return do


def _sell_out(dice: Dice) -> Do:
    zone, capacity_type = dice.one(["", "test-zone-a", "test-zone-b"]), dice.one(["", "spot"])

    def do(world: World) -> str:
        for good in goods(world):
            if zone in {"", good.zone} and capacity_type in {"", good.capacity_type}:
                world.cloud.market.set_stock(good, 0)
        return f"sell out {zone or 'all zones'} {capacity_type}".rstrip()

    return do


_PEOPLE: tuple[Callable[[Dice], Do], ...] = (
    _scale,
    _scale,
    _scale,
    _edit_pool,
    _roll,
    _roll,
    _add_pool,
    _strip_claim,
    _run_job,
    _attack,
    _delete(NODE, NODE_CLAIM),
    _delete(NODE, NODE_CLAIM, NODE_POOL, DISRUPTION_BUDGET),
)
_FATE: tuple[Callable[[Dice], Do], ...] = (
    _lose,
    _break,
    _slow,
    _reboot,
    _end_machine,
    _spoil,
    _sell_out,
)


def calm_down(world: World) -> None:
    """End all failures, except for what was deleted."""
    for good in goods(world):
        world.cloud.market.set_stock(good, None)
    for node in world.store.list(NODE):
        name = node["metadata"]["name"]
        try:
            if world.kubelets.is_lost(name):
                world.kubelets.recover(name)
            world.kubelets.heal(name)
            world.kubelets.slow(name, 1.0)
        except (MachineNotFound, ClusterError):
            continue


def goods(world: World) -> list[Good]:
    """Return all goods of the cloud of a world."""
    return [
        Good(each.name, offering.zone, offering.capacity_type)
        for each in world.cloud.market.catalog().types
        for offering in each.offerings
    ]


def _all(world: World, kind: Kind) -> list[tuple[str, str]]:
    metas = [each["metadata"] for each in world.store.list(kind)]
    return [(each["name"], each.get("namespace", "")) for each in metas]


def _pick(names: Sequence[str], which: int) -> str:
    return names[which % len(names)] if names else ""
