"""Protobuf as Go programs send it; the tests encode the messages themselves."""

import pytest

from karpy.adapters.apiserver.protobuf import PROTOBUF, Malformed, read_envelope
from karpy.codec.fields import JsonObject
from tests.adapters.apiserver.stranger import CONFIG_MAPS, Stranger


def varint(value: int) -> bytes:
    value %= 2**64
    if value < 128:
        return bytes([value])
    return bytes([value % 128 + 128]) + varint(value // 128)


def message(*fields: tuple[int, object]) -> bytes:
    return b"".join(written(number, value) for number, value in fields)


def written(number: int, value: object) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    assert isinstance(data, bytes)
    return varint(number << 3 | 2) + varint(len(data)) + data


def envelope(version: str, kind: str, raw: bytes) -> bytes:
    return b"k8s\x00" + message((1, message((1, version), (2, kind))), (2, raw))


def read(type_: str, raw: bytes) -> JsonObject:
    return read_envelope(envelope("", "", raw), lambda _version, _kind: type_)


def test_an_envelope_says_what_it_holds() -> None:
    body = envelope("apps/v1", "Deployment", message((1, message((1, "web")))))

    found = read_envelope(body, lambda _version, kind: f"apps.v1.{kind}")

    assert found == {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}}


def test_zero_values_are_left_out() -> None:
    raw = message((1, message((1, "a"), (2, ""), (7, 0), (8, b""))), (2, b""), (3, b""))

    assert read("core.v1.Pod", raw) == {"metadata": {"name": "a"}}


def test_zero_is_kept_for_pointers() -> None:
    assert read("apps.v1.DeploymentSpec", message((1, 0))) == {"replicas": 0}


def test_required_fields_may_be_zero() -> None:
    assert read("scheduling.v1.PriorityClass", message((2, 0))) == {"value": 0}


def test_numbers_may_be_negative() -> None:
    assert read("scheduling.v1.PriorityClass", message((2, -7))) == {"value": -7}


def test_lists_and_maps_grow_item_by_item() -> None:
    raw = message(
        (11, message((1, "app"), (2, "web"))),
        (11, message((1, "empty"))),
        (14, "one"),
        (14, "two"),
    )

    assert read("meta.v1.ObjectMeta", raw) == {
        "labels": {"app": "web", "empty": ""},
        "finalizers": ["one", "two"],
    }


def test_a_list_within_a_map_is_a_message() -> None:
    raw = message((5, message((1, "k"), (2, message((1, "x"), (1, "y"))))))

    assert read("authorization.v1.SubjectAccessReviewSpec", raw) == {"extra": {"k": ["x", "y"]}}


@pytest.mark.parametrize(
    ("type_", "raw", "found"),
    [
        (
            "core.v1.ResourceRequirements",
            message((1, message((1, "cpu"), (2, message((1, "500m")))))),
            {"limits": {"cpu": "500m"}},
        ),
        ("core.v1.HTTPGetAction", message((2, message((1, 0), (2, 80)))), {"port": 80}),
        (
            "core.v1.HTTPGetAction",
            message((2, message((1, 1), (2, 0), (3, "http")))),
            {"port": "http"},
        ),
        (
            "meta.v1.ObjectMeta",
            message((9, message((1, 1_700_000_000), (2, 0)))),
            {"deletionTimestamp": "2023-11-14T22:13:20Z"},
        ),
        (
            "coordination.v1.LeaseSpec",
            message((4, message((1, 1_700_000_000), (2, 5000)))),
            {"renewTime": "2023-11-14T22:13:20.000005Z"},
        ),
        (
            "core.v1.Secret",
            message((2, message((1, "k"), (2, b"\x00\xff")))),
            {"data": {"k": "AP8="}},
        ),
        ("core.v1.ConfigMap", message((4, 1)), {"immutable": True}),
        (
            "core.v1.Volume",
            message((1, "v"), (2, message((2, b"")))),
            {"name": "v", "emptyDir": {}},
        ),
        (
            "apps.v1.ControllerRevision",
            message((2, message((1, b'{"a":1}'))), (3, 4)),
            {"data": {"a": 1}, "revision": 4},
        ),
        ("core.v1.ConfigMap", message((99, "new"), (98, 5)), {}),
    ],
)
def test_values_have_their_own_forms(type_: str, raw: bytes, found: JsonObject) -> None:
    assert read(type_, raw) == found


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b"k8s\x00\x0a\xff",
        b"k8s\x00\x0a",
        b"k8s\x00" + b"\xff" * 20,
        b"k8s\x00\x0b",
        envelope("v1", "ConfigMap", message((1, 5))),
        envelope("v1", "ConfigMap", message((4, "text"))),
    ],
)
def test_bytes_that_are_no_message_are_refused(body: bytes) -> None:
    with pytest.raises(Malformed):
        read_envelope(body, lambda _version, _kind: "core.v1.ConfigMap")


async def test_a_body_may_be_protobuf(client: Stranger) -> None:
    meta = message((1, "a"), (2, ""), (3, ""))
    raw = message((1, meta), (2, message((1, "k"), (2, "v"))))

    reply = await client.ask(
        "POST",
        CONFIG_MAPS,
        data=envelope("v1", "ConfigMap", raw),
        headers={"Content-Type": PROTOBUF},
    )

    assert (reply.status, reply.body["data"]) == (201, {"k": "v"})


async def test_delete_options_may_be_protobuf(client: Stranger) -> None:
    await client.post(CONFIG_MAPS, {"metadata": {"name": "a"}})
    options = message((2, message((1, "another"))))

    reply = await client.ask(
        "DELETE",
        f"{CONFIG_MAPS}/a",
        data=envelope("v1", "DeleteOptions", options),
        headers={"Content-Type": PROTOBUF},
    )

    assert (reply.status, reply.body["reason"]) == (409, "Conflict")


@pytest.mark.parametrize("data", [b"k8s\x00\x0a\xff", envelope("v1", "Pod", b"\xff")])
async def test_malformed_protobuf_is_a_bad_request(client: Stranger, data: bytes) -> None:
    reply = await client.ask("POST", CONFIG_MAPS, data=data, headers={"Content-Type": PROTOBUF})

    assert (reply.status, reply.body["reason"]) == (400, "BadRequest")
