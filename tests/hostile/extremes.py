"""Objects with extreme numbers, durations, quantities or times."""

from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any, Final, TypeAlias, TypeVar

from hypothesis import strategies as st

from karpy.codec.fields import FieldInvalid, Fields, JsonObject

T = TypeVar("T")
Path: TypeAlias = tuple[str | int, ...]
Extremes: TypeAlias = Mapping[Path, tuple[object, ...]]

INT64_MAX: Final = 2**63 - 1
NUMBERS: Final = (0, -1, 2**31 - 1, -(2**31), 2**31, INT64_MAX, -(2**63), 2**64 - 1, 10**400)
DURATIONS: Final = (
    *("0", "0s", "1ns", "-1h", "2562047h47m16s", "2562047h47m16.854775807s"),
    *("2562047h47m16.854775808s", "100000000h", "-100000000h", "9" * 50 + "h", "Never", "true"),
    *("9" * 300, "9" * 300 + "h", "1h" * 3000, ""),
)
QUANTITIES: Final = (
    *("0", "1n", "-1", "9223372036854775807", "9223372036854775807k", "8Ei", "1e999999999"),
    *("1e-999999999", "9" * 30_000, "0." + "0" * 250 + "1", "inf", "", INT64_MAX, 10**400, 1e308),
)
MOMENTS: Final = (
    *("0001-01-01T00:00:00Z", "0001-01-01T00:00:00+14:00", "1969-12-31T23:59:59Z"),
    *("9999-12-31T23:59:59Z", "9999-12-31T23:59:59-14:00", "9" * 3000),
)
TEXTS: Final = ("-5", "0" * 5000 + "5", "9" * 5000, str(INT64_MAX), "abc", "")
"""Extreme values of numbers that are written as text."""
PERCENTS: Final = ("0", "101%", "9" * 18, "9" * 5000, "9" * 5000 + "%")
SCHEDULES: Final = (
    *("@every 100000000h", "@every 1ns", "0 0 31 2 *", "*," * 5000 + "* * * * *", "9" * 5000),
)
PRICES: Final = ("0", "9" * 60, "9" * 5000, "0." + "0" * 50 + "1")
CHANGES: Final = ("+" + "9" * 50, "-" + "9" * 5000, "+" + "9" * 50 + "%", "-100%")

_META: Final[Extremes] = {
    ("metadata", "generation"): NUMBERS,
    ("metadata", "resourceVersion"): TEXTS,
    ("metadata", "creationTimestamp"): MOMENTS,
    ("metadata", "deletionTimestamp"): MOMENTS,
    ("metadata", "deletionGracePeriodSeconds"): NUMBERS,
    ("metadata", "labels", "size"): TEXTS,
}
_OWN: Final = "karpenter.sh/"
_POOL: Final = f"{_OWN}nodepool"
_SPREAD: Final[JsonObject] = {
    "topologyKey": "topology.kubernetes.io/zone",
    "whenUnsatisfiable": "ScheduleAnyway",
    "maxSkew": 1,
    "labelSelector": {},
}
_TEMPLATE: Final[JsonObject] = {
    "containers": [
        {"name": name, "resources": {"requests": {"cpu": "1"}, "limits": {}}, "ports": [{}]}
        for name in ("main", "beside")
    ],
    "initContainers": [{"name": "first", "resources": {"requests": {}}, "restartPolicy": "Always"}],
    "nodeSelector": {_POOL: "hostile"},
    "tolerations": [{"operator": "Exists", "effect": "NoExecute"}],
    "topologySpreadConstraints": [_SPREAD],
    "overhead": {},
    "affinity": {
        "nodeAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {
                    "preference": {
                        "matchExpressions": [{"key": "size", "operator": "Gt", "values": ["1"]}]
                    },
                    "weight": 1,
                }
            ]
        }
    },
}
_PREFERRED: Final[Path] = (
    *("affinity", "nodeAffinity", "preferredDuringSchedulingIgnoredDuringExecution", 0),
)
_TEMPLATES: Final[Extremes] = {
    ("containers", 0, "resources", "requests", "cpu"): QUANTITIES,
    ("containers", 1, "resources", "requests", "cpu"): QUANTITIES,
    ("containers", 0, "resources", "requests", "example.com/stars"): QUANTITIES,
    ("containers", 1, "resources", "limits", "example.com/stars"): QUANTITIES,
    ("containers", 0, "ports", 0, "hostPort"): NUMBERS,
    ("initContainers", 0, "resources", "requests", "memory"): QUANTITIES,
    ("overhead", "memory"): QUANTITIES,
    ("tolerations", 0, "tolerationSeconds"): NUMBERS,
    ("topologySpreadConstraints", 0, "maxSkew"): NUMBERS,
    ("topologySpreadConstraints", 0, "minDomains"): NUMBERS,
    (*_PREFERRED, "weight"): NUMBERS,
    (*_PREFERRED, "preference", "matchExpressions", 0, "values", 0): TEXTS,
    ("priority",): NUMBERS,
    ("terminationGracePeriodSeconds",): NUMBERS,
    ("activeDeadlineSeconds",): NUMBERS,
}


def read_or_none(read: Callable[[Fields], T], obj: JsonObject) -> T | None:
    """Read an object; None if it is set aside."""
    try:
        return read(Fields(obj))
    except FieldInvalid:
        return None


@st.composite
def altered(draw: st.DrawFn, base: JsonObject, extremes: Extremes) -> JsonObject:
    """Give an object in which one to four fields have an extreme value."""
    paths = st.lists(st.sampled_from(sorted(extremes, key=str)), min_size=1, max_size=4)
    made = deepcopy(base)
    for path in draw(paths):
        _put(made, path, draw(st.sampled_from(extremes[path])))
    return made


def pods(node: str = "") -> st.SearchStrategy[JsonObject]:
    """Give a pod for hostile nodes alone: one that waits, or one that is bound to a node."""
    annotations = f"{_OWN}do-not-disrupt", f"{_OWN}disruption-cost"
    said = ("PodScheduled", "Ready") if node else ()
    waiting = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    base = {
        "metadata": {**_meta("hostile"), "namespace": "hostile", "annotations": {}},
        "spec": {**_TEMPLATE, **({"nodeName": node} if node else {})},
        "status": {
            "phase": "Running" if node else "Pending",
            "startTime": "2026-01-01T00:00:00Z",
            "conditions": _conditions(*said) if node else [waiting],
        },
    }
    extremes = {
        **_META,
        **{("spec", *path): values for path, values in _TEMPLATES.items()},
        ("metadata", "annotations", annotations[0]): DURATIONS,
        ("metadata", "annotations", annotations[1]): TEXTS,
        ("metadata", "annotations", "controller.kubernetes.io/pod-deletion-cost"): TEXTS,
        ("status", "startTime"): MOMENTS,
        ("status", "conditions", 0, "lastTransitionTime"): MOMENTS,
    }
    return altered(base, extremes)


def nodes() -> st.SearchStrategy[JsonObject]:
    """Give a Node that has registered and is broken."""
    meta = _meta("hostile")
    yes = {f"{_OWN}registered": "true", f"{_OWN}initialized": "true"}
    gate = {"key": f"{_OWN}unregistered", "effect": "NoSchedule", "value": "1"}
    base = {
        "metadata": {**meta, "labels": {**meta["labels"], **yes}},
        "spec": {"providerID": "kwok://hostile", "taints": [gate]},
        "status": {
            "capacity": {"cpu": "4", "memory": "8Gi", "pods": "10"},
            "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"},
            "conditions": _conditions("Ready", "Slow", status="False"),
        },
    }
    extremes = {
        **_META,
        ("spec", "taints", 0, "value"): TEXTS,
        ("status", "capacity", "cpu"): QUANTITIES,
        ("status", "allocatable", "memory"): QUANTITIES,
        ("status", "allocatable", "example.com/stars"): QUANTITIES,
        **_of_conditions(2),
    }
    return altered(base, extremes)


def node_claims() -> st.SearchStrategy[JsonObject]:
    """Give a NodeClaim with a machine."""
    said = ("Launched", "Registered", "Initialized", "Consolidatable", "Rebooting")
    base = {
        "metadata": {
            **_meta("hostile-claim"),
            "annotations": {},
            "finalizers": [f"{_OWN}termination"],
        },
        "spec": {
            "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "d"},
            "requirements": [{"key": "size", "operator": "Gt", "values": ["1"]}],
            "resources": {"requests": {"cpu": "1"}},
        },
        "status": {
            "providerID": "kwok://hostile",
            "nodeName": "hostile",
            "capacity": {"cpu": "4", "memory": "8Gi", "pods": "10"},
            "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"},
            "conditions": _conditions(*said),
        },
    }
    annotations = ("metadata", "annotations")
    extremes = {
        **_META,
        (*annotations, f"{_OWN}nodeclaim-termination-timestamp"): MOMENTS,
        (*annotations, f"{_OWN}reboot-grace-period"): DURATIONS,
        ("spec", "expireAfter"): DURATIONS,
        ("spec", "terminationGracePeriod"): DURATIONS,
        ("spec", "requirements", 0, "values", 0): TEXTS,
        ("spec", "requirements", 0, "minValues"): NUMBERS,
        ("spec", "resources", "requests", "cpu"): QUANTITIES,
        ("status", "lastPodEventTime"): MOMENTS,
        ("status", "capacity", "cpu"): QUANTITIES,
        **_of_conditions(len(said)),
    }
    return altered(base, extremes)


def node_pools() -> st.SearchStrategy[JsonObject]:
    """Give a NodePool."""
    base = {
        "metadata": _meta("hostile"),
        "spec": {
            "limits": {"cpu": "1000"},
            "disruption": {"budgets": [{"nodes": "100%"}]},
            "template": {"spec": {"requirements": [{"key": "size", "operator": "Exists"}]}},
        },
        "status": {"conditions": _conditions("Ready"), "resources": {}},
    }
    inner = ("spec", "template", "spec")
    extremes = {
        **_META,
        ("spec", "replicas"): NUMBERS,
        ("spec", "weight"): NUMBERS,
        ("spec", "limits", "cpu"): QUANTITIES,
        ("spec", "limits", "nodes"): QUANTITIES,
        ("spec", "disruption", "consolidateAfter"): DURATIONS,
        ("spec", "disruption", "budgets", 0, "nodes"): PERCENTS,
        ("spec", "disruption", "budgets", 0, "schedule"): SCHEDULES,
        ("spec", "disruption", "budgets", 0, "duration"): DURATIONS,
        (*inner, "expireAfter"): DURATIONS,
        (*inner, "terminationGracePeriod"): DURATIONS,
        (*inner, "requirements", 0, "minValues"): NUMBERS,
        ("status", "nodes"): NUMBERS,
        ("status", "resources", "cpu"): QUANTITIES,
        ("status", "nodeClassObservedGeneration"): NUMBERS,
        **_of_conditions(1),
    }
    return altered(base, extremes)


def overlays() -> st.SearchStrategy[JsonObject]:
    """Give a NodeOverlay for the hostile pool alone."""
    pool = {"key": _POOL, "operator": "In", "values": ["hostile"]}
    base = {"metadata": _meta("hostile"), "spec": {"requirements": [pool], "capacity": {}}}
    extremes = {
        **_META,
        ("spec", "weight"): NUMBERS,
        ("spec", "capacity", "example.com/stars"): QUANTITIES,
        ("spec", "price"): PRICES,
        ("spec", "priceAdjustment"): CHANGES,
    }
    return altered(base, extremes)


def daemon_sets() -> st.SearchStrategy[JsonObject]:
    """Give a DaemonSet for hostile nodes alone."""
    template = {"metadata": {"labels": {}}, "spec": _TEMPLATE}
    base = {
        "metadata": {**_meta("hostile"), "namespace": "hostile"},
        "spec": {"template": template},
    }
    inner = {("spec", "template", "spec", *path): values for path, values in _TEMPLATES.items()}
    return altered(base, {**_META, **inner})


def pod_budgets() -> st.SearchStrategy[JsonObject]:
    """Give a PodDisruptionBudget for hostile pods."""
    base = {
        "metadata": {**_meta("hostile"), "namespace": "hostile"},
        "spec": {"selector": {}},
        "status": {"disruptionsAllowed": 1},
    }
    extremes = {
        **_META,
        ("spec", "minAvailable"): (*PERCENTS, *NUMBERS),
        ("spec", "maxUnavailable"): (*PERCENTS, *NUMBERS),
        ("status", "disruptionsAllowed"): NUMBERS,
    }
    return altered(base, extremes)


def buffers() -> st.SearchStrategy[JsonObject]:
    """Give a CapacityBuffer that is ready."""
    base = {
        "metadata": {**_meta("hostile"), "namespace": "hostile"},
        "spec": {
            "scalableRef": {"apiGroup": "apps", "kind": "Deployment", "name": "web"},
            "limits": {},
        },
        "status": {"replicas": 1, "conditions": _conditions("ReadyForProvisioning")},
    }
    extremes = {
        **_META,
        ("spec", "replicas"): NUMBERS,
        ("spec", "percentage"): NUMBERS,
        ("spec", "limits", "cpu"): QUANTITIES,
        ("status", "replicas"): NUMBERS,
        ("status", "podTemplateGeneration"): NUMBERS,
        **_of_conditions(1),
    }
    return altered(base, extremes)


def _meta(name: str) -> JsonObject:
    return {
        "name": name,
        "uid": f"uid-{name}",
        "resourceVersion": "1",
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "labels": {_POOL: "hostile", "size": "5"},
    }


def _conditions(*types: str, status: str = "True") -> list[JsonObject]:
    since = "2026-01-01T00:00:00Z"
    return [
        {"type": each, "status": status, "lastTransitionTime": since, "reason": each}
        for each in types
    ]


def _of_conditions(count: int) -> Extremes:
    extremes: dict[Path, tuple[object, ...]] = {}
    for each in range(count):
        extremes["status", "conditions", each, "lastTransitionTime"] = MOMENTS
        extremes["status", "conditions", each, "observedGeneration"] = NUMBERS
    return extremes


def _put(obj: JsonObject, path: Path, value: object) -> None:
    *above, last = path
    place: Any = obj
    for key in above:
        place = place[key]
    place[last] = value
