"""Random workloads."""

from dataclasses import dataclass

from karpy.codec.fields import JsonObject
from karpy.model.pods import ANY_ADDRESS
from tests.fidelity.noderules import random_node_affinity, random_selector, random_tolerations
from tests.fidelity.podrules import (
    random_pod_affinity,
    random_pod_anti_affinity,
    random_spreads,
)
from tests.fidelity.words import APPS, GPU, HIGH, HIGHER, NAMESPACES, TRACKS
from tests.fuzz.dice import Dice, Feature

_FIRST_PORTS = {"main": 8080, "first": 8081}
_ADDRESSES = ("", "", "10.0.0.1", "10.0.0.2", ANY_ADDRESS, "::")


@dataclass(frozen=True)
class Workload:
    """The common fields of the pods of a workload."""

    name: str
    namespace: str
    labels: dict[str, str]
    spec: JsonObject

    def pod(self, dice: Dice, number: int | str, **spec: object) -> JsonObject:
        """Draw one of its pods: they differ only in their version."""
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"{self.name}-{number}",
                "namespace": self.namespace,
                "labels": {**self.labels, "version": dice.one(["v1", "v1", "v2"])},
            },
            "spec": {**self.spec, **spec},
        }


def random_workload(dice: Dice, name: str, nodes: list[str]) -> Workload:
    """Draw the rules of a workload's pods on nodes and on each other."""
    app = dice.one(APPS)
    labels = {"app": app, "track": dice.one(TRACKS)}
    if dice.chance(0.2):
        labels["shade"] = "dark"
    spec: JsonObject = {
        "terminationGracePeriodSeconds": 30,
        "containers": [_random_container(dice, "main"), *_random_company(dice)],
    }
    parts = {
        "initContainers": _random_init_containers(dice),
        "nodeSelector": random_selector(dice),
        "affinity": _random_affinity(dice, app, nodes),
        "tolerations": random_tolerations(dice),
        "topologySpreadConstraints": random_spreads(dice, app),
    }
    spec |= {field: value for field, value in parts.items() if value}
    if dice.chance(0.2):
        spec["priorityClassName"] = dice.one([HIGH, HIGHER])
    if dice.has(Feature.PORTS, 0.15) and len(spec["containers"]) == 1:
        # With hostNetwork every container port must also be given as host port.
        spec["hostNetwork"] = True
        spec["containers"][0]["ports"] = [{"containerPort": 8080 + dice.number(0, 1)}]
        spec.pop("initContainers", None)
    is_abroad = dice.has(Feature.NAMESPACES, 0.7) or dice.chance(0.1)
    namespace = dice.one(list(NAMESPACES)) if is_abroad else next(iter(NAMESPACES))
    return Workload(f"{name}-{app}", namespace, labels, spec)


def _random_affinity(dice: Dice, app: str, nodes: list[str]) -> JsonObject:
    sides = {
        "nodeAffinity": random_node_affinity(dice, nodes),
        "podAffinity": random_pod_affinity(dice, app),
        "podAntiAffinity": random_pod_anti_affinity(dice, app),
    }
    return {side: value for side, value in sides.items() if value}


def _random_container(dice: Dice, name: str) -> JsonObject:
    container: JsonObject = {"name": name, "image": "registry.example/app:1"}
    requests = {}
    if dice.chance(0.9):
        requests["cpu"] = "9" if dice.chance(0.02) else dice.one(["50m", "100m", "250m", "1"])
    if dice.chance(0.7):
        requests["memory"] = dice.one(["64Mi", "256Mi", "1Gi"])
    if dice.chance(0.05):
        requests[GPU] = "1"
    if requests:
        limits = {GPU: "1"} if GPU in requests else {}
        container["resources"] = {"requests": requests, "limits": limits}
    if dice.has(Feature.PORTS):
        container["ports"] = _random_ports(dice, _FIRST_PORTS.get(name, 8083))
    return container


def _random_company(dice: Dice) -> list[JsonObject]:
    return [_random_container(dice, "second")] if dice.chance(0.1) else []


def _random_init_containers(dice: Dice) -> list[JsonObject]:
    if not (dice.chance(0.1) or dice.has(Feature.PORTS, 0.4)):
        return []
    first = _random_container(dice, "first")
    if dice.chance(0.6):
        first["restartPolicy"] = "Always"
    return [first, _random_container(dice, "then")] if dice.chance(0.3) else [first]


def _random_ports(dice: Dice, least: int) -> list[JsonObject]:
    ports = []
    for number in range(dice.number(1, 2)):
        port: JsonObject = {"containerPort": 80 + number, "hostPort": least + dice.number(0, 1)}
        if dice.chance(0.3):
            port["protocol"] = "UDP"
        if address := dice.one(_ADDRESSES):
            port["hostIP"] = address
        ports.append(port)
    return list({(each["hostPort"], each.get("protocol")): each for each in ports}.values())
