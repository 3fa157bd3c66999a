import pytest

from karpy.codec.fields import JsonObject
from karpy.errors import BadRequest, Conflict, Invalid, NotFound
from karpy.model.kinds import CONFIG_MAP, CUSTOM_RESOURCE, DEPLOYMENT, POD
from karpy.ports.objects import Patch, PatchType
from karpy.sim.store.ownership import ApplyConflict
from karpy.sim.store.store import Store
from tests.sim.store.worlds import (
    NOW,
    WIDGET,
    SetClock,
    a_definition,
    a_deployment,
    a_pod,
    labelled,
    merge_of,
    with_meta,
    with_spec,
)


def applied(
    store: Store, config: JsonObject, manager: str = "me", *, is_forced: bool = False
) -> JsonObject:
    patch = Patch(PatchType.APPLY, config, manager, is_forced)
    return store.patch(DEPLOYMENT, "web", patch, namespace="default")


def map_of(store: Store, data: JsonObject, manager: str, *, is_forced: bool = False) -> JsonObject:
    patch = Patch(PatchType.APPLY, {"data": data}, manager, is_forced)
    result: JsonObject = store.patch(CONFIG_MAP, "c", patch, namespace="default")["data"]
    return result


def managers(obj: JsonObject) -> dict[str, JsonObject]:
    return {each["manager"]: each["fieldsV1"] for each in obj["metadata"].get("managedFields", ())}


def image_of(image: str, container: str = "c") -> JsonObject:
    containers = [{"name": container, "image": image}]
    return {"spec": {"template": {"spec": {"containers": containers}}}}


def test_an_apply_adds_what_is_not_there_and_owns_it(store: Store) -> None:
    made = applied(store, a_deployment(replicas=2))

    entry = made["metadata"]["managedFields"][0]
    assert {key: entry[key] for key in entry if key != "fieldsV1"} == {
        "manager": "me",
        "operation": "Apply",
        "apiVersion": "apps/v1",
        "time": NOW,
        "fieldsType": "FieldsV1",
    }
    assert entry["fieldsV1"]["f:spec"] == {
        "f:replicas": {},
        "f:selector": {},
        "f:template": {
            "f:metadata": {"f:labels": {"f:app": {}}},
            "f:spec": {"f:containers": {'k:{"name":"c"}': {".": {}, "f:image": {}, "f:name": {}}}},
        },
    }


def test_applying_the_same_again_writes_nothing(store: Store, clock: SetClock) -> None:
    made = applied(store, a_deployment())
    clock.forward(60)

    assert applied(store, a_deployment()) is made


def test_what_is_no_longer_applied_goes(store: Store) -> None:
    applied(store, labelled(a_deployment(replicas=3, paused=True), app="web", tier="a"))

    changed = applied(store, labelled(a_deployment(), app="web"))

    assert changed["metadata"]["labels"] == {"app": "web"}
    assert changed["spec"]["replicas"] == 1
    assert "paused" not in changed["spec"]


def test_fields_that_other_managers_own_too_stay(store: Store) -> None:
    map_of(store, {"a": "1", "b": "2"}, "one")
    map_of(store, {"a": "1"}, "two")

    assert map_of(store, {"b": "2"}, "one") == {"a": "1", "b": "2"}
    assert map_of(store, {}, "two") == {"b": "2"}


def test_a_container_goes_with_its_only_owner(store: Store) -> None:
    applied(store, a_deployment())
    applied(store, image_of("side:1", "side"), "two")

    without = applied(store, {}, "two")

    containers = without["spec"]["template"]["spec"]["containers"]
    assert [each["name"] for each in containers] == ["c"]


def test_a_field_of_another_manager_is_a_conflict(store: Store) -> None:
    applied(store, a_deployment(replicas=2))

    with pytest.raises(Conflict) as error:
        applied(store, {"spec": {"replicas": 3}}, "two")

    assert error.value.message == (
        'Apply failed with 1 conflict: conflict with "me": .spec.replicas'
    )
    assert isinstance(error.value, ApplyConflict)
    assert error.value.details["causes"] == [
        {
            "reason": "FieldManagerConflict",
            "message": 'conflict with "me"',
            "field": ".spec.replicas",
        }
    ]


def test_several_conflicts_are_reported_together(store: Store) -> None:
    applied(store, a_deployment(replicas=2))

    with pytest.raises(Conflict) as error:
        applied(store, {"spec": {"replicas": 3, **image_of("i:2")["spec"]}}, "two")

    assert error.value.message == (
        'Apply failed with 2 conflicts: conflicts with "me":\n'
        "- .spec.replicas\n"
        '- .spec.template.spec.containers[name="c"].image'
    )


def test_force_takes_a_field_over(store: Store) -> None:
    applied(store, a_deployment(replicas=2))

    changed = applied(store, {"spec": {"replicas": 3}}, "two", is_forced=True)

    assert changed["spec"]["replicas"] == 3
    assert "f:replicas" not in managers(changed)["me"]["f:spec"]
    assert managers(changed)["two"] == {"f:spec": {"f:replicas": {}}}


def test_managers_may_share_a_field_with_the_same_value(store: Store) -> None:
    applied(store, a_deployment(replicas=2))

    changed = applied(store, {"spec": {"replicas": 2}}, "two")

    assert "f:replicas" in managers(changed)["me"]["f:spec"]
    assert "f:replicas" in managers(changed)["two"]["f:spec"]


def test_an_update_takes_fields_from_those_who_applied_them(store: Store) -> None:
    applied(store, a_deployment(replicas=2))
    store.patch(
        DEPLOYMENT,
        "web",
        Patch(PatchType.MERGE, {"spec": {"replicas": 5}}, "scaler"),
        namespace="default",
    )

    with pytest.raises(Conflict) as error:
        applied(store, a_deployment(replicas=2))

    assert error.value.message == (
        'Apply failed with 1 conflict: conflict with "scaler" using apps/v1: .spec.replicas'
    )


def test_a_status_has_managers_of_its_own(store: Store) -> None:
    applied(store, a_deployment())
    status = Patch(PatchType.MERGE, {"status": {"replicas": 1}}, "controller")

    changed = store.patch(DEPLOYMENT, "web", status, namespace="default", subresource="status")

    entry = changed["metadata"]["managedFields"][1]
    assert (entry["manager"], entry["subresource"]) == ("controller", "status")
    assert entry["fieldsV1"] == {"f:status": {"f:replicas": {}}}


def test_untracked_fields_belong_to_before_first_apply(store: Store) -> None:
    store.create(DEPLOYMENT, a_deployment(replicas=2))

    with pytest.raises(Conflict, match='conflict with "before-first-apply" using apps/v1'):
        applied(store, {"spec": {"replicas": 3}})

    changed = applied(store, {"spec": {"replicas": 3}}, is_forced=True)
    assert set(managers(changed)) == {"before-first-apply", "me"}


def test_a_named_creator_owns_the_fields_of_the_object(store: Store) -> None:
    made = store.create(DEPLOYMENT, labelled(a_deployment(), app="web"), manager="kubectl")

    assert managers(made)["kubectl"]["f:metadata"] == {"f:labels": {".": {}, "f:app": {}}}
    with pytest.raises(Conflict, match='conflict with "kubectl" using apps/v1'):
        applied(store, {"metadata": {"labels": {"app": "db"}}})


def test_a_manager_without_a_name_is_not_tracked(store: Store) -> None:
    made = store.create(POD, a_pod())

    changed = store.patch(
        POD, "web", merge_of({"metadata": {"labels": {"a": "b"}}}), namespace="default"
    )

    assert "managedFields" not in made["metadata"]
    assert "managedFields" not in changed["metadata"]


def test_tracking_can_be_reset(store: Store) -> None:
    made = applied(store, a_deployment())

    changed = store.replace(DEPLOYMENT, with_meta(made, managedFields=[{}]))

    assert "managedFields" not in changed["metadata"]


def test_written_managed_fields_are_accepted(store: Store) -> None:
    """kubectl hands client-side applied fields over to itself this way."""
    made = applied(store, a_deployment(), "old-tool")
    entry = {**made["metadata"]["managedFields"][0], "manager": "kubectl"}

    store.replace(DEPLOYMENT, with_meta(made, managedFields=[entry]))

    changed = applied(store, a_deployment(replicas=4), "kubectl")
    assert changed["spec"]["replicas"] == 4


def test_a_replacement_that_leaves_managed_fields_out_keeps_them(store: Store) -> None:
    applied(store, a_deployment())

    changed = store.replace(DEPLOYMENT, with_spec(a_deployment(), replicas=7), manager="editor")

    assert set(managers(changed)) == {"me", "editor"}


def test_ports_are_identified_by_number_and_protocol(store: Store) -> None:
    def ports(*given: JsonObject) -> JsonObject:
        return {
            "spec": {"template": {"spec": {"containers": [{"name": "c", "ports": list(given)}]}}}
        }

    applied(store, a_deployment())
    applied(store, ports({"containerPort": 53, "protocol": "UDP"}), "two")

    changed = applied(store, ports({"containerPort": 53}), "three")

    found = changed["spec"]["template"]["spec"]["containers"][0]["ports"]
    assert {each["protocol"] for each in found} == {"TCP", "UDP"}


def test_lists_of_custom_resources_merge_as_their_schema_says(store: Store) -> None:
    schema = {
        "properties": {
            "spec": {
                "properties": {
                    "parts": {
                        "type": "array",
                        "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["id"],
                        "items": {"properties": {"id": {"type": "string"}}},
                    },
                    "tags": {"type": "array", "x-kubernetes-list-type": "set"},
                    "steps": {"type": "array"},
                }
            }
        }
    }
    store.create(CUSTOM_RESOURCE, a_definition(schema={"openAPIV3Schema": schema}))
    one = {"parts": [{"id": "a", "n": 1}], "tags": ["x"], "steps": [1]}
    two = {"parts": [{"id": "b", "n": 2}], "tags": ["y"]}

    store.patch(WIDGET, "w", Patch(PatchType.APPLY, {"spec": one}, "one"), namespace="default")
    made = store.patch(
        WIDGET, "w", Patch(PatchType.APPLY, {"spec": two}, "two"), namespace="default"
    )

    assert sorted(each["id"] for each in made["spec"]["parts"]) == ["a", "b"]
    assert made["spec"]["tags"] == ["x", "y"]
    assert made["spec"]["steps"] == [1]


def test_an_apply_needs_a_manager(store: Store) -> None:
    with pytest.raises(Invalid, match="fieldManager: Required value: is required for apply patch"):
        applied(store, a_deployment(), "")


def test_an_apply_does_not_manage_managed_fields(store: Store) -> None:
    made = applied(store, a_deployment())

    with pytest.raises(BadRequest, match=r"metadata\.managedFields must be nil"):
        applied(store, made)


def test_a_status_is_not_applied_to_what_is_not_there(store: Store) -> None:
    patch = Patch(PatchType.APPLY, {"status": {"replicas": 1}}, "me")

    with pytest.raises(NotFound):
        store.patch(DEPLOYMENT, "web", patch, namespace="default", subresource="status")


def test_an_apply_may_be_guarded_by_a_version(store: Store) -> None:
    made = applied(store, a_deployment())
    version = made["metadata"]["resourceVersion"]
    applied(store, a_deployment(replicas=2))

    with pytest.raises(Conflict, match="the object has been modified"):
        applied(store, with_meta(a_deployment(replicas=3), resourceVersion=version))


def test_a_dry_run_applies_nothing(store: Store) -> None:
    patch = Patch(PatchType.APPLY, a_deployment(), "me")

    made = store.patch(DEPLOYMENT, "web", patch, namespace="default", dry_run=True)

    assert made["spec"]["replicas"] == 1
    assert store.find(DEPLOYMENT, "web", "default") is None
