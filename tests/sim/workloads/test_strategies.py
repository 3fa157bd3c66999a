import pytest

from karpy.codec.fields import JsonObject
from karpy.sim.workloads.proportions import new_sizes
from karpy.sim.workloads.replicas import MAX, rollout_notes
from karpy.sim.workloads.shares import share
from karpy.sim.workloads.strategies import deadline, history, surge, unavailable
from karpy.sim.workloads.templates import hash_of, is_same_template, with_label


@pytest.mark.parametrize(
    ("value", "total", "up", "down"),
    [
        (3, 10, 3, 3),
        (0, 10, 0, 0),
        ("25%", 10, 3, 2),
        ("0%", 10, 0, 0),
        ("100%", 7, 7, 7),
        ("1%", 1, 1, 0),
        ("50%", 0, 0, 0),
        (None, 10, 0, 0),
        ("many", 10, 0, 0),
        ("x%", 10, 0, 0),
    ],
)
def test_a_share_is_rounded_one_way_or_the_other(
    value: int | str | None, total: int, up: int, down: int
) -> None:
    assert share(value, total, is_rounded_up=True) == up
    assert share(value, total, is_rounded_up=False) == down


def _deployment(replicas: int, surge: int | str = 0, **spec: object) -> JsonObject:
    rolling = {"maxSurge": surge, "maxUnavailable": spec.pop("unavailable", 1)}
    strategy = {"type": "RollingUpdate", "rollingUpdate": rolling}
    return {
        "metadata": {"name": "web"},
        "spec": {"replicas": replicas, "strategy": strategy, **spec},
    }


@pytest.mark.parametrize(
    ("deployment", "expected"),
    [
        ({"spec": {"replicas": 10}}, (3, 2)),
        ({"spec": {}}, (1, 0)),
        (_deployment(0), (0, 0)),
        (_deployment(2, unavailable=5), (0, 2)),
        (_deployment(3, "0%", unavailable="10%"), (0, 1)),
        ({"spec": {"replicas": 4, "strategy": {"type": "Recreate"}}}, (0, 0)),
    ],
)
def test_a_deployment_has_limits_of_surge_and_unavailable_pods(
    deployment: JsonObject, expected: tuple[int, int]
) -> None:
    assert (surge(deployment), unavailable(deployment)) == expected


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, (600, 10)),
        ({"progressDeadlineSeconds": 5, "revisionHistoryLimit": 0}, (5, 0)),
        ({"progressDeadlineSeconds": 2**31 - 1, "revisionHistoryLimit": 2**31 - 1}, (None, None)),
    ],
)
def test_limits_may_be_absent(spec: JsonObject, expected: tuple[int | None, int | None]) -> None:
    deployment = {"spec": spec}

    assert (deadline(deployment), history(deployment)) == expected


def _set(name: str, replicas: int, most: int = 0, created: str = "1") -> JsonObject:
    annotations = {MAX: str(most)} if most else {}
    meta = {"name": name, "creationTimestamp": created, "annotations": annotations}
    return {"metadata": meta, "spec": {"replicas": replicas}}


@pytest.mark.parametrize(
    ("deployment", "sets", "expected"),
    [
        (_deployment(15, 3), [_set("a", 8, 13), _set("b", 5, 13)], {"a": 11, "b": 7}),
        (_deployment(5, 3), [_set("a", 8, 13), _set("b", 5, 13)], {"a": 5, "b": 3}),
        (_deployment(0, 3), [_set("a", 8, 13), _set("b", 5, 13)], {"a": 0, "b": 0}),
        (_deployment(10), [_set("a", 5, 10), _set("b", 5, 10)], {"a": 5, "b": 5}),
        (
            _deployment(11),
            [_set("a", 5, 10, "1"), _set("b", 5, 10, "2")],
            {"a": 5, "b": 6},
        ),
        (
            _deployment(9),
            [_set("a", 5, 10, "1"), _set("b", 5, 10, "2")],
            {"a": 4, "b": 5},
        ),
        (_deployment(6), [_set("a", 2), _set("b", 1)], {"a": 5, "b": 1}),
    ],
    ids=["up", "down", "to nothing", "as before", "new first", "old first", "unknown before"],
)
def test_a_new_size_is_spread_in_proportion(
    deployment: JsonObject, sets: list[JsonObject], expected: dict[str, int]
) -> None:
    sizes = {each["metadata"]["name"]: number for each, number in new_sizes(deployment, sets)}

    assert sizes == expected


def test_a_hash_is_short_and_stands_for_its_content() -> None:
    one, other = {"a": 1, "b": 2}, {"b": 2, "a": 1}

    assert hash_of(one) == hash_of(other)
    assert hash_of(one) != hash_of({"a": 2})
    assert hash_of(one) != hash_of(one, 1) != hash_of(one, 2)
    assert set(hash_of(one)) <= set("bcdfghjklmnpqrstvwxz2456789")


def test_the_hash_in_a_template_does_not_make_it_another() -> None:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": []}}
    hashed = with_label(template, "pod-template-hash", "x")

    assert is_same_template(template, hashed)
    assert not is_same_template(template, with_label(template, "app", "api"))
    assert not is_same_template(template, {**template, "spec": {"containers": [1]}})
    assert is_same_template(template, {**template, "spec": {"containers": []}})


def test_the_history_of_revisions_does_not_grow_for_ever() -> None:
    long = ",".join(str(number) for number in range(500, 1000))
    notes = {
        "deployment.kubernetes.io/revision": "1000",
        "deployment.kubernetes.io/revision-history": long,
    }

    kept = rollout_notes({"metadata": {}}, {"metadata": {"annotations": notes}}, 1001)

    history_note = kept["deployment.kubernetes.io/revision-history"]
    assert len(history_note) <= 2000
    assert history_note.endswith(",999,1000")
