"""A clock that tests set, and small objects to put into a store."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Final

from karpy.codec.fields import JsonObject
from karpy.model.kinds import NODE, Kind
from karpy.ports.objects import Patch, PatchType
from karpy.sim.store.store import Store

NOW: Final = "2026-01-01T12:00:00Z"
WIDGET: Final = Kind("example.com", "v1", "Widget", "widgets")


class SetClock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.moment = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)

    def now(self) -> datetime:
        return self.moment

    def forward(self, seconds: float) -> None:
        self.moment += timedelta(seconds=seconds)


def a_pod(name: str = "web", namespace: str = "default", **spec: object) -> JsonObject:
    return {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"containers": [{"name": "c", "image": "i:1"}], **spec},
    }


def a_deployment(name: str = "web", **spec: object) -> JsonObject:
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "c", "image": "i:1"}]},
            },
            **spec,
        },
    }


def labelled(obj: JsonObject, **labels: str) -> JsonObject:
    return {**obj, "metadata": {**obj["metadata"], "labels": labels}}


def with_meta(obj: JsonObject, **fields: object) -> JsonObject:
    return {**obj, "metadata": {**obj["metadata"], **fields}}


def with_spec(obj: JsonObject, **fields: object) -> JsonObject:
    return {**obj, "spec": {**obj["spec"], **fields}}


def merge_of(body: JsonObject) -> Patch:
    return Patch(PatchType.MERGE, body)


def binding_to(node: str, pod: str = "web") -> JsonObject:
    return {
        "metadata": {"name": pod, "namespace": "default"},
        "target": {"kind": "Node", "name": node},
    }


def a_definition(**version: object) -> JsonObject:
    return {
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"kind": "Widget", "plural": "widgets", "shortNames": ["wd"]},
            "versions": [{"name": "v1", "served": True, "storage": True, **version}],
        },
    }


def a_widget(name: str = "w", **spec: object) -> JsonObject:
    return {"metadata": {"name": name, "namespace": "default"}, "spec": spec}


def add_nodes(store: Store, numbers: Iterable[int]) -> None:
    for number in numbers:
        store.create(NODE, {"metadata": {"name": f"n{number}"}})
