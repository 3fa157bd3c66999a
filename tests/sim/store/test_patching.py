import pytest

from karpy.codec.fields import JsonObject
from karpy.errors import BadRequest, Conflict, Invalid, NotFound
from karpy.model.kinds import DEPLOYMENT, POD
from karpy.ports.objects import Patch, PatchType
from karpy.sim.store.store import Store
from tests.sim.store.worlds import a_deployment, a_pod, merge_of


@pytest.fixture
def deployed(store: Store) -> Store:
    store.create(DEPLOYMENT, a_deployment())
    return store


def test_a_json_patch_changes_an_object(deployed: Store) -> None:
    operations = [{"op": "replace", "path": "/spec/replicas", "value": 3}]

    changed = deployed.patch(
        DEPLOYMENT, "web", Patch(PatchType.JSON, operations), namespace="default"
    )

    assert changed["spec"]["replicas"] == 3
    assert changed["metadata"]["generation"] == 2


def test_a_strategic_patch_changes_one_container(deployed: Store) -> None:
    container = {"name": "c", "image": "i:2"}
    body = {"spec": {"template": {"spec": {"containers": [container]}}}}

    changed = deployed.patch(
        DEPLOYMENT, "web", Patch(PatchType.STRATEGIC, body), namespace="default"
    )

    found = changed["spec"]["template"]["spec"]["containers"][0]
    assert (found["image"], found["imagePullPolicy"]) == ("i:2", "IfNotPresent")


def test_a_merge_patch_may_carry_a_guard(deployed: Store) -> None:
    version = deployed.get(DEPLOYMENT, "web", "default")["metadata"]["resourceVersion"]
    guarded = merge_of({"metadata": {"resourceVersion": version}, "spec": {"replicas": 2}})

    deployed.patch(DEPLOYMENT, "web", guarded, namespace="default")

    with pytest.raises(Conflict, match="the object has been modified"):
        deployed.patch(DEPLOYMENT, "web", guarded, namespace="default")


def test_a_failed_test_of_a_json_patch_changes_nothing(deployed: Store) -> None:
    operations: list[JsonObject] = [
        {"op": "test", "path": "/spec/replicas", "value": 5},
        {"op": "remove", "path": "/spec/replicas"},
    ]

    with pytest.raises(Invalid):
        deployed.patch(DEPLOYMENT, "web", Patch(PatchType.JSON, operations), namespace="default")

    assert deployed.get(DEPLOYMENT, "web", "default")["spec"]["replicas"] == 1


def test_a_patch_for_what_is_not_there_is_not_found(store: Store) -> None:
    with pytest.raises(NotFound, match='pods "web" not found'):
        store.patch(POD, "web", merge_of({}), namespace="default")


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ({"metadata": {"name": "other"}}, r"the name of the object \(other\) does not match"),
        (
            {"metadata": {"namespace": "other"}},
            "the namespace of the provided object does not match",
        ),
        ({"metadata": None}, "the patch leaves no metadata"),
    ],
)
def test_a_patch_does_not_make_another_object(
    deployed: Store, body: dict[str, object], why: str
) -> None:
    with pytest.raises(BadRequest, match=why):
        deployed.patch(DEPLOYMENT, "web", merge_of(body), namespace="default")


@pytest.mark.parametrize(
    "patch", [Patch(PatchType.JSON, {}), Patch(PatchType.MERGE, []), Patch(PatchType.APPLY, [])]
)
def test_a_patch_has_the_form_of_its_type(deployed: Store, patch: Patch) -> None:
    with pytest.raises(BadRequest):
        deployed.patch(DEPLOYMENT, "web", patch, namespace="default")


def test_labels_of_a_running_pod_can_be_patched_away(store: Store) -> None:
    store.create(
        POD, {**a_pod(), "metadata": {"name": "web", "namespace": "default", "labels": {"a": "b"}}}
    )

    changed = store.patch(
        POD, "web", merge_of({"metadata": {"labels": {"a": None}}}), namespace="default"
    )

    assert not changed["metadata"].get("labels")
    assert changed["metadata"]["generation"] == 1


def test_a_patch_that_leaves_a_wrong_type_is_invalid(deployed: Store) -> None:
    with pytest.raises(Invalid, match="cannot unmarshal string into Go struct field"):
        deployed.patch(
            DEPLOYMENT, "web", merge_of({"spec": {"replicas": "x"}}), namespace="default"
        )


def test_an_annotation_of_a_deployment_counts_as_a_change_of_it(deployed: Store) -> None:
    annotated = merge_of({"metadata": {"annotations": {"a": "b"}}})

    by_status = deployed.patch(
        DEPLOYMENT, "web", annotated, namespace="default", subresource="status"
    )
    gone = merge_of({"metadata": {"annotations": {"a": None}}})
    by_main = deployed.patch(DEPLOYMENT, "web", gone, namespace="default")

    assert [each["metadata"]["generation"] for each in (by_status, by_main)] == [1, 2]
    assert "annotations" not in by_main["metadata"]
