"""The scheduling rules of pods, from plain objects: selectors, affinity, spread, ports, volumes."""

from ipaddress import ip_address
from typing import Final

from msgspec.structs import replace

from karpy.codec.constraints import (
    check_label,
    read_affinity_terms,
    read_node_terms,
    read_preferred_affinity_terms,
    read_preferred_node_terms,
    read_spreads,
    read_tolerations,
)
from karpy.codec.fields import Fields
from karpy.model.pods import ANY_ADDRESS, HostPort, PodRules, PodVolume
from karpy.model.requirements import Requirement, one_of

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PROTOCOLS: Final = frozenset({"TCP", "UDP", "SCTP"})
_PORT_MAX: Final = 65535


def read_rules(spec: Fields, ports: tuple[HostPort, ...] = ()) -> PodRules:
    """Read all fields of a pod's spec that scheduling depends on, except its requests."""
    rules = PodRules(
        node_selector=_read_node_selector(spec) if "nodeSelector" in spec else (),
        tolerations=read_tolerations(spec),
        spreads=read_spreads(spec, "topologySpreadConstraints"),
        ports=ports,
        volumes=read_volumes(spec),
        claims_devices=bool(spec.items("resourceClaims")),
    )
    return _with_affinity(rules, spec.child("affinity")) if "affinity" in spec else rules


def _with_affinity(rules: PodRules, affinity: Fields) -> PodRules:
    node, near, away = (
        affinity.child(key) for key in ("nodeAffinity", "podAffinity", "podAntiAffinity")
    )
    return replace(
        rules,
        required_node_terms=read_node_terms(node.child(_REQUIRED), "nodeSelectorTerms"),
        preferred_node_terms=read_preferred_node_terms(node),
        affinity=read_affinity_terms(near),
        preferred_affinity=read_preferred_affinity_terms(near),
        anti_affinity=read_affinity_terms(away),
        preferred_anti_affinity=read_preferred_affinity_terms(away),
    )


def _read_node_selector(spec: Fields) -> tuple[Requirement, ...]:
    selector = spec.child("nodeSelector")
    names = sorted(spec.labels("nodeSelector"))
    return tuple(one_of(name, check_label(selector, name)) for name in names)


def read_volumes(spec: Fields) -> tuple[PodVolume, ...]:
    """Read the volumes of a pod that have a PersistentVolumeClaim, given or ephemeral."""
    volumes = []
    for each in spec.children("volumes"):
        if "persistentVolumeClaim" in each:
            claim = each.child("persistentVolumeClaim").needed("claimName")
            volumes.append(PodVolume(each.needed("name"), claim))
        elif "ephemeral" in each:
            volumes.append(PodVolume(each.needed("name")))
    return tuple(volumes)


def read_ports(spec: Fields) -> tuple[HostPort, ...]:
    """Read the host ports of containers; with `hostNetwork`, every container port is one."""
    is_host = spec.flag("hostNetwork")
    ports = []
    for container in spec.children("containers"):
        if "ports" not in container:
            continue
        for each in container.children("ports"):
            number = each.number("hostPort") or (each.number("containerPort") if is_host else 0)
            if number:
                ports.append(_read_port(each, number))
    return tuple(ports)


def _read_port(fields: Fields, number: int) -> HostPort:
    if not 1 <= number <= _PORT_MAX:
        fields.fail("hostPort", f"is {number}", "write a port from 1 to 65535")
    address = fields.text("hostIP") or ANY_ADDRESS
    try:
        ip_address(address)
    except ValueError:
        fields.fail("hostIP", f"is `{address}`, which is no address", "write an IP address")
    return HostPort(number, fields.choice("protocol", _PROTOCOLS, "TCP"), address)
