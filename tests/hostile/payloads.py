"""Hostile bodies: objects, patches, definitions, and objects of those definitions."""

import json
from typing import Final

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
    TRIED,
    YAML,
    Row,
    Wire,
    config_map,
    deep,
    definition,
    deployment,
    dump,
    pod,
)

_DIGITS: Final = b"1" * 60_000
_PROTOBUF: Final = {"Content-Type": "application/vnd.kubernetes.protobuf"}
_REVIEWS: Final = "/apis/authentication.k8s.io/v1/tokenreviews"
_THINGS: Final = "/apis/hostile.example/v1/namespaces/default/bases"
LAUGHS: Final = b"\n".join(
    [b"a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    + [b"a%d: &a%d [%s]" % (n, n, b", ".join([b"*a%d" % (n - 1)] * 9)) for n in range(1, 10)]
)
MERGES: Final = b"\n".join(
    [b"a0: &a0 {k0: 1}"]
    + [b"a%d: &a%d {<<: [*a%d, *a%d], k%d: 1}" % (n, n, n - 1, n - 1, n) for n in range(1, 30)]
)
DOUBLING: Final = [
    {"op": "add", "path": "/x", "value": ["a" * 1000]},
    *({"op": "copy", "from": "/x", "path": "/x/-"} for _ in range(30)),
]
BASE: Final = definition(
    "bases",
    any={"x-kubernetes-preserve-unknown-fields": True},
    int={"type": "integer"},
    number={"type": "number"},
    text={"type": "string", "pattern": "^(a+)+$"},
    named={"type": "string", "pattern": "^(?P<first>a+)+$"},
    list={
        "type": "array",
        "maxItems": 150,
        "items": {"type": "string", "maxLength": 10},
        "x-kubernetes-validations": [{"rule": "self.all(x, self.exists_one(y, x == y))"}],
    },
    pattern={
        "type": "string",
        "maxLength": 100,
        "x-kubernetes-validations": [{"rule": "'a'.matches(self)"}],
    },
)
"""What is there before; it uses no more than a server allows."""


def _posted(name: str, body: bytes, status: int = 400, *, real: int = 0) -> Row:
    return Row(name, "POST", f"{CONFIG_MAPS}{TRIED}", status, body, JSON, real)


def _map(name: str, status: int = 400, **fields: object) -> Row:
    return _posted(name, dump({**config_map(), **fields}), status)


def _yaml(name: str, data: bytes, *, real: int = 0) -> Row:
    lines = [b"  " + line for line in data.splitlines()]
    body = b"\n".join([b"metadata: {name: a}", b"data:", *lines])
    return Row(name, "POST", f"{CONFIG_MAPS}{TRIED}", 400, body, YAML, real)


def _pod(name: str, obj: JsonObject, status: int = 400, *, real: int = 0) -> Row:
    return Row(name, "POST", f"{PODS}{TRIED}", status, dump(obj), JSON, real)


def _cpu(name: str, cpu: object, *, real: int = 0) -> Row:
    return _pod(f"a quantity: {name}", pod({"cpu": cpu}), real=real)


def _merged(name: str, body: bytes, status: int = 400, *, real: int = 0) -> Row:
    return Row(name, "PATCH", f"{CONFIG_MAPS}/base{TRIED}", status, body, MERGE, real)


def _strategic(name: str, body: bytes, status: int = 400, *, real: int = 0) -> Row:
    return Row(name, "PATCH", f"{PODS}/base{TRIED}", status, body, STRATEGIC, real)


def _operations(name: str, body: object, status: int = 422, *, real: int = 0) -> Row:
    sent = body if isinstance(body, bytes) else dump(body)
    return Row(name, "PATCH", f"{CONFIG_MAPS}/base{TRIED}", status, sent, OPERATIONS, real)


def _pattern(name: str, pattern: str, status: int = 422) -> Row:
    body = dump(definition(x={"type": "string", "pattern": pattern}))
    return Row(f"a pattern: {name}", "POST", f"{DEFINITIONS}{TRIED}", status, body)


def _thing(name: str, spec: bytes, status: int = 422, *, real: int = 0) -> Row:
    head = b'{"apiVersion": "hostile.example/v1", "kind": "Bases", "metadata": {"name": "a"}'
    body = head + b', "spec": ' + spec + b"}"
    return Row(f"a custom resource: {name}", "POST", f"{_THINGS}{TRIED}", status, body, JSON, real)


BODIES: Final = (
    _posted("nothing", b""),
    _posted("no JSON", b"hello"),
    _posted("null", b"null", real=422),
    _posted("a list", b"[]"),
    _posted("not UTF-8", b'{"metadata": {"name": "a"}, "data": {"a": "\xff"}}', real=201),
    _posted("half a surrogate", b'{"metadata": {"name": "a"}, "data": {"a": "\\ud800"}}', real=201),
    _posted("something behind it", dump(config_map()) + b"x"),
    _posted("deep objects", deep(20_000)),
    _posted("deep lists", b"[" * 100_000),
    _posted(
        "a deep unknown field", b'{"metadata": {"name": "a"}, "x": ' + deep(900) + b"}", real=201
    ),
    _posted("4 MB", dump(config_map(data={"a": "x" * 4_000_000})), 413),
    _posted("a name of 100 KB", dump(config_map("a" * 100_000)), 422),
    _posted("a name with NUL", dump(config_map("a\0")), 422),
    _posted("a name that is a number", b'{"metadata": {"name": 5}}'),
    _map("a generated name of 100 KB", 422, metadata={"generateName": "a" * 100_000}),
    _map("labels of 100 KB", 422, metadata={"name": "a", "labels": {"a" * 100_000: "b"}}),
    _map("labels in a list", metadata={"name": "a", "labels": [1]}),
    _map("a kind that is no text", kind={}, apiVersion=[]),
    _map("metadata that are text", metadata="x"),
    _map("a time of 60,000 digits", metadata={"name": "a", "creationTimestamp": "9" * 60_000}),
    Row("protobuf that is none", "POST", f"{CONFIG_MAPS}{TRIED}", 400, b"\xff" * 99, _PROTOBUF),
    Row(
        "protobuf: broken", "POST", f"{CONFIG_MAPS}{TRIED}", 400, b"k8s\0" + b"\xff" * 99, _PROTOBUF
    ),
    *(
        Row(f"replicas: {name}", "POST", f"{DEPLOYMENTS}{TRIED}", status, deployment(number))
        for name, number, status in (
            ("10^400", b"1" + b"0" * 400, 400),
            ("60,000 digits", _DIGITS, 400),
            ("1e9999", b"1e9999", 400),
            ("2^31", b"2147483648", 400),
            ("NaN", b"NaN", 400),
            ("1.5", b"1.5", 400),
            ("-1", b"-1", 422),
        )
    ),
    _cpu("30 KB", "1" * 30_000, real=201),
    _cpu("1e9999", "1e9999", real=201),
    _cpu("1e-9999", "1e-9999", real=201),
    _cpu("NaN", "NaN"),
    _cpu("a list", []),
    _cpu("digits of another script", "\u0661"),
    _pod("a grace period of 2^63", pod(terminationGracePeriodSeconds=2**63)),
    _pod("a priority of 2^31", pod(priority=2**31)),
    Row(
        "minAvailable: 60,000 digits",
        "POST",
        f"/apis/policy/v1/namespaces/default/poddisruptionbudgets{TRIED}",
        422,
        dump({"metadata": {"name": "a"}, "spec": {"minAvailable": "9" * 60_000 + "%"}}),
    ),
    Row(
        "delete: 60,000 digits",
        "DELETE",
        f"{PODS}/base{TRIED}",
        400,
        b'{"gracePeriodSeconds": %s}' % _DIGITS,
    ),
    Row("delete: no object", "DELETE", f"{PODS}/base{TRIED}", 400, b"5"),
    Row("delete: deep", "DELETE", f"{PODS}/base{TRIED}", 400, deep(20_000)),
    Row(
        "delete: a precondition",
        "DELETE",
        f"{PODS}/base{TRIED}",
        400,
        b'{"preconditions": {"uid": 5}}',
    ),
    Row("delete: a dry run", "DELETE", f"{PODS}/base", 422, b'{"dryRun": ["x"]}'),
    Row("a review: deep", "POST", _REVIEWS, 400, deep(20_000)),
    Row("a review: text", "POST", _REVIEWS, 400, b'{"spec": "x"}'),
    Row("a review: metadata", "POST", _REVIEWS, 400, b'{"metadata": "x"}'),
    Row(
        "a binding: a number",
        "POST",
        f"{PODS}/base/binding{TRIED}",
        400,
        b'{"target": {"name": 5}}',
    ),
)
YAMLS: Final = (
    _yaml("YAML: laughs", LAUGHS),
    _yaml("YAML: merges", MERGES),
    _yaml("YAML: a circle", b"a: &a [*a]"),
    _yaml("YAML: deep lists", b"a: " + b"[" * 20_000),
    _yaml("YAML: deep objects", b"a: " + b"{a: " * 20_000),
    _yaml("YAML: 60,000 digits", b"a: " + _DIGITS, real=201),
    _yaml("YAML: infinity", b"a: .inf"),
    _yaml("YAML: a tag", b"a: !!python/object/apply:os.system [id]"),
    _yaml("YAML: a time", b"a: !!timestamp x"),
    _yaml("YAML: a key of lists", b"a: {[1]: 3}"),
    _yaml("YAML: a key of nothing", b"~: c"),
    _yaml("YAML: not UTF-8", b"a: \xff\xfe"),
    _yaml("YAML: control characters", b"a: \x01"),
    Row("apply: laughs", "PATCH", f"{CONFIG_MAPS}/a{TRIED}&fieldManager=a", 400, LAUGHS, APPLY),
    Row("apply: merges", "PATCH", f"{CONFIG_MAPS}/a{TRIED}&fieldManager=a", 400, MERGES, APPLY),
    Row(
        "apply: deep",
        "PATCH",
        f"{CONFIG_MAPS}/a{TRIED}&fieldManager=a",
        400,
        b"a: " + b"[" * 20_000,
        APPLY,
    ),
    Row(
        "apply: not UTF-8",
        "PATCH",
        f"{CONFIG_MAPS}/a{TRIED}&fieldManager=a",
        400,
        b"a: \xff",
        APPLY,
    ),
)
PATCHES: Final = (
    _merged("merge: deep", deep(20_000)),
    _merged("merge: no JSON", b"x"),
    _merged("merge: metadata", b'{"metadata": "x"}', 422),
    _strategic("strategic: deep", deep(20_000)),
    _strategic("strategic: a directive", b'{"$patch": []}', real=500),
    _strategic(
        "strategic: an order of numbers", b'{"spec": {"$setElementOrder/containers": 5}}', real=500
    ),
    _strategic(
        "strategic: an order of lists",
        b'{"spec": {"$setElementOrder/containers": [{"name": []}]}}',
        real=200,
    ),
    _strategic("strategic: no name", b'{"spec": {"containers": [{"image": "x"}]}}', real=500),
    _strategic(
        "strategic: null", b'{"spec": {"containers": [null, {"$patch": "replace"}]}}', real=500
    ),
    _operations("operations: copies", DOUBLING),
    _operations(
        "operations: 10,001", [{"op": "test", "path": "/data/a", "value": "1"}] * 10_001, 413
    ),
    _operations("operations: no path", [{"op": "add", "path": "x", "value": 1}]),
    _operations(
        "operations: a path of 100,000", [{"op": "add", "path": "/a" * 100_000, "value": 1}]
    ),
    _operations(
        "operations: an index of 60,000 digits",
        [{"op": "add", "path": f"/metadata/ownerReferences/{'1' * 60_000}", "value": 1}],
    ),
    _operations("operations: nothing left", [{"op": "remove", "path": ""}]),
    _operations("operations: a number left", [{"op": "replace", "path": "", "value": 5}]),
    _operations("operations: into itself", [{"op": "move", "from": "/data", "path": "/data/x"}]),
    _operations(
        "operations: deep", b'[{"op": "add", "path": "/data", "value": ' + deep(20_000) + b"}]", 400
    ),
    _operations("operations: no list", b"{}", 400),
)
CUSTOM: Final = (
    _pattern("an open bracket", "("),
    _pattern("a look ahead", "(?=a)b"),
    _pattern("a reference back", r"(a)\1"),
    _pattern("a possessive", "a++"),
    _pattern("1,001 times", "a{1001}"),
    _pattern("100 million times", "((((a{100}){100}){100}){100})"),
    _pattern("a name, as Go has it", "(?P<x>a)", 201),
    _pattern("classes, as Go has them", r"^\A[[:alpha:]]\pL\z", 201),
    Row(
        "a definition of nothing",
        "POST",
        f"{DEFINITIONS}{TRIED}",
        422,
        dump({**definition(), "spec": {**definition()["spec"], "versions": [None]}}),
    ),
    _thing("deep", b'{"any": ' + deep(5000) + b"}", 400, real=201),
    _thing("10^400", b'{"int": 1' + b"0" * 400 + b"}", 400),
    _thing("60,000 digits", b'{"number": ' + _DIGITS + b"}", 400),
    _thing("1e9999", b'{"number": 1e9999}', 400),
    _thing("a text that is hard to match", b'{"text": "' + b"a" * 40_000 + b'!"}'),
    _thing("a text that is hard to match by name", b'{"named": "' + b"a" * 40_000 + b'!"}'),
    _thing("a pattern that is none", b'{"pattern": "("}'),
    _thing("a costly rule", dump({"list": [f"a{n}" for n in range(150)]}), real=201),
)


async def prepare(wire: Wire) -> None:
    """Make what the requests are about."""
    await wire.make(DEFINITIONS, BASE)
    await wire.make(CONFIG_MAPS, config_map("base", data={"a": "1"}))
    await wire.make("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
    await wire.make(
        "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
        {"metadata": {"name": "base"}, "spec": {"minAvailable": 1}},
    )
    await wire.make(PODS, {**pod(), "metadata": {"name": "base"}})
    await wire.make(DEPLOYMENTS, json.loads(deployment(b"0", "base")))
