"""Random requests: valid ones with a few faults."""

import json
from collections.abc import Callable
from copy import deepcopy
from typing import Any, Final, TypeAlias
from urllib.parse import urlencode

from hypothesis import strategies as st

from karpy.codec.fields import JsonObject
from tests.hostile.requests import (
    APPLY,
    CONFIG_MAPS,
    DEFINITIONS,
    DEPLOYMENTS,
    JSON,
    MERGE,
    OPERATIONS,
    PODS,
    STRATEGIC,
    YAML,
    Row,
    config_map,
    definition,
    deployment,
    pod,
)

Draw: TypeAlias = Callable[[st.SearchStrategy[Any]], Any]

_POOLS: Final = "/apis/karpenter.sh/v1/nodepools"
_BUDGETS: Final = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
_THINGS: Final = "/apis/hostile.example/v1/namespaces/default/bases"
_OBJECTS: Final[dict[str, JsonObject]] = {
    CONFIG_MAPS: config_map("base", data={"a": "1"}),
    PODS: {
        **pod({"cpu": "1", "memory": "1Gi"}),
        "metadata": {"name": "base", "labels": {"a": "b"}},
    },
    DEPLOYMENTS: json.loads(deployment(b"0", "base")),
    DEFINITIONS: definition(x={"type": "string", "pattern": "a", "items": {"type": "integer"}}),
    _POOLS: {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "base"},
        "spec": {
            "weight": 1,
            "limits": {"cpu": "1"},
            "disruption": {"consolidateAfter": "30s", "budgets": [{"nodes": "10%"}]},
            "template": {
                "spec": {
                    "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "K", "name": "a"},
                    "requirements": [{"key": "a", "operator": "In", "values": ["b"]}],
                    "expireAfter": "720h",
                }
            },
        },
    },
    _BUDGETS: {
        "metadata": {"name": "base"},
        "spec": {"minAvailable": "1%", "selector": {"matchLabels": {"a": "b"}}},
    },
    _THINGS: {
        "apiVersion": "hostile.example/v1",
        "kind": "Bases",
        "metadata": {"name": "base"},
        "spec": {"any": {"a": [1]}, "int": 1, "number": 1.5, "text": "a", "list": ["a"]},
    },
}
_WHOLE: Final = (JSON, JSON, JSON, YAML, {"Content-Type": "text/plain"})
_PATCHES: Final = (MERGE, STRATEGIC, OPERATIONS, APPLY)
_ASKED: Final[tuple[tuple[str, str, tuple[dict[str, str], ...]], ...]] = (
    ("GET", "", _WHOLE),
    ("GET", "/base", _WHOLE),
    ("POST", "", _WHOLE),
    ("POST", "", _WHOLE),
    ("POST", "/base/eviction", _WHOLE),
    ("PUT", "/base", _WHOLE),
    ("PUT", "/base/status", _WHOLE),
    ("PATCH", "/base", _PATCHES),
    ("PATCH", "/base", _PATCHES),
    ("PATCH", "/base", _PATCHES),
    ("PATCH", "/base/status", _PATCHES),
    ("PATCH", "/base/scale", _PATCHES),
    ("DELETE", "/base", _WHOLE),
    ("OPTIONS", "/%00", _WHOLE),
)
_PARAMETERS: Final = (
    "limit",
    "continue",
    "labelSelector",
    "fieldSelector",
    "resourceVersion",
    "resourceVersionMatch",
    "timeoutSeconds",
    "sendInitialEvents",
    "dryRun",
    "fieldManager",
    "fieldValidation",
    "force",
    "gracePeriodSeconds",
    "propagationPolicy",
    "orphanDependents",
    "pretty",
    "includeObject",
)
_VALUES: Final = (
    *("", "0", "1", "-1", "abc", "1e400", "9" * 30, "\0", "\u0661", "(", "a=b", "a in (b)", "a>1"),
    *("true", "All", "Strict", "Exact", "NotOlderThan", "Orphan", "Foreground", "metadata.name=a"),
    *("metadata.name=\\", "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiJhIn0", "x" * 10_000),
)
_ACCEPTED: Final = (
    *("application/json", "application/json", "application/yaml", "*/*", "x"),
    "application/json;as=Table;v=v1;g=meta.k8s.io",
    "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,*/*",
)
_WRONG: Final[tuple[Any, ...]] = (
    *(None, True, 0, -1, 1.5, 2**31, 2**63 - 1, 2**63, -(2**63), 10**30, 10**300, 1e308),
    *(
        "",
        "a",
        "A_b",
        "\0",
        "\u0661%",
        "1e9999",
        "1e60",
        "-1",
        "(",
        "9" * 5000,
        "100000000h",
        "../..",
    ),
    *([], {}, [None], [[]], [{}], {"a": None}, {"": ""}, [1, "a"], {"$patch": "replace"}),
    *(
        {"$patch": []},
        {"$retainKeys": [{}]},
        {"f:x": 5},
        "2026-01-01T00:00:00Z",
        "9999-12-31T23:59:59Z",
    ),
)
_KEYS: Final = (
    *("managedFields", "ownerReferences", "finalizers", "generateName", "creationTimestamp"),
    *("deletionTimestamp", "generation", "namespace", "uid", "annotations", "status", "spec"),
    *("terminationGracePeriodSeconds", "activeDeadlineSeconds", "tolerations", "affinity"),
    *("strategy", "minReadySeconds", "subresources", "pattern", "$setElementOrder/containers"),
)
_PATHS: Final = (
    "",
    "/",
    "/data",
    "/data/a",
    "/spec/containers/0",
    "/spec/containers/-",
    "/metadata",
    "/x/y",
    "~",
)
_NAMES: Final = ("add", "remove", "replace", "test", "copy", "move", "frob")


@st.composite
def drafts(draw: Draw) -> Row:
    """Draw a request that changes nothing of importance."""
    place = draw(st.sampled_from(sorted(_OBJECTS)))
    method, suffix, forms = draw(st.sampled_from(_ASKED))
    form = draw(st.sampled_from(forms))
    pairs = draw(
        st.lists(st.tuples(st.sampled_from(_PARAMETERS), st.sampled_from(_VALUES)), max_size=2)
    )
    query = urlencode([*pairs, ("dryRun", "All"), ("fieldManager", "a")])
    target = f"{place}{suffix}?{query}"
    headers = {**form, "Accept": draw(st.sampled_from(_ACCEPTED))}
    return Row("", method, target, 0, _body(draw, place, form), headers)


def _body(draw: Draw, place: str, form: object) -> bytes:
    if form is OPERATIONS:
        body: Any = draw(st.lists(_operations(), max_size=4))
    else:
        body = json.loads(json.dumps(_OBJECTS[place]))
        for _ in range(draw(st.integers(0, 3))):
            _spoil(draw, body)
    sent = json.dumps(body).encode()
    spoiled: bytes = draw(
        st.sampled_from((sent, sent, sent, sent, sent[:-1], sent + b"]", b"", b"\xff"))
    )
    return spoiled


def _operations() -> st.SearchStrategy[JsonObject]:
    return st.fixed_dictionaries(
        {"op": st.sampled_from(_NAMES), "path": st.sampled_from(_PATHS)},
        optional={"from": st.sampled_from(_PATHS), "value": st.sampled_from(_WRONG)},
    )


def _spoil(draw: Draw, obj: JsonObject) -> None:
    """Add a fault to an object, at any depth."""
    part: Any = obj
    while True:
        keys = sorted(part) if isinstance(part, dict) else list(range(len(part)))
        if isinstance(part, dict) and draw(st.integers(0, 4)) == 0:
            part[draw(st.sampled_from(_KEYS))] = deepcopy(draw(st.sampled_from(_WRONG)))
            return
        if not keys:
            return
        key = draw(st.sampled_from(keys))
        if not isinstance(part[key], dict | list) or draw(st.integers(0, 3)) == 0:
            part[key] = deepcopy(draw(st.sampled_from(_WRONG)))
            return
        part = part[key]
