import pytest

from karpy.errors import Conflict, Invalid, NotFound
from karpy.model.kinds import CUSTOM_RESOURCE, DAEMON_SET, DEPLOYMENT, REPLICATION_CONTROLLER
from karpy.ports.objects import Patch, PatchType
from karpy.sim.store.store import Store
from tests.sim.store.worlds import (
    WIDGET,
    a_definition,
    a_deployment,
    a_widget,
    merge_of,
    with_meta,
    with_spec,
)


@pytest.fixture
def deployed(store: Store) -> Store:
    store.create(DEPLOYMENT, a_deployment(replicas=2))
    return store


def test_a_scale_shows_replicas_and_selector(deployed: Store) -> None:
    status = merge_of({"status": {"replicas": 1}})
    made = deployed.patch(DEPLOYMENT, "web", status, namespace="default", subresource="status")

    scale = deployed.get(DEPLOYMENT, "web", "default", subresource="scale")

    assert (scale["apiVersion"], scale["kind"]) == ("autoscaling/v1", "Scale")
    assert scale["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
    assert scale["spec"] == {"replicas": 2}
    assert scale["status"] == {"replicas": 1, "selector": "app=web"}


def test_scaling_changes_the_replicas(deployed: Store) -> None:
    scale = deployed.get(DEPLOYMENT, "web", "default", subresource="scale")

    answer = deployed.replace(DEPLOYMENT, with_spec(scale, replicas=5), subresource="scale")

    deployment = deployed.get(DEPLOYMENT, "web", "default")
    assert answer["spec"] == {"replicas": 5}
    assert deployment["spec"]["replicas"] == 5
    assert deployment["metadata"]["generation"] == 2


@pytest.mark.parametrize("kind", [PatchType.MERGE, PatchType.STRATEGIC, PatchType.APPLY])
def test_a_scale_can_be_patched(deployed: Store, kind: PatchType) -> None:
    patch = Patch(kind, {"spec": {"replicas": 0}}, is_forced=True)

    deployed.patch(DEPLOYMENT, "web", patch, namespace="default", subresource="scale")

    assert deployed.get(DEPLOYMENT, "web", "default")["spec"]["replicas"] == 0


def test_a_scale_below_zero_is_refused(deployed: Store) -> None:
    patch = merge_of({"spec": {"replicas": -1}})

    with pytest.raises(Invalid) as error:
        deployed.patch(DEPLOYMENT, "web", patch, namespace="default", subresource="scale")

    assert error.value.message == (
        'Scale.autoscaling "web" is invalid: spec.replicas: Invalid value: -1: must be greater '
        "than or equal to 0"
    )


def test_a_stale_scale_is_refused(deployed: Store) -> None:
    scale = deployed.get(DEPLOYMENT, "web", "default", subresource="scale")

    with pytest.raises(Conflict):
        deployed.replace(DEPLOYMENT, with_meta(scale, resourceVersion="1"), subresource="scale")


def test_the_selector_of_a_replication_controller_is_a_map(store: Store) -> None:
    controller = a_deployment(selector={"app": "web"})
    store.create(REPLICATION_CONTROLLER, controller)

    scale = store.get(REPLICATION_CONTROLLER, "web", "default", subresource="scale")

    assert scale["status"] == {"replicas": 0, "selector": "app=web"}


def test_a_custom_resource_says_where_its_replicas_are(store: Store) -> None:
    paths = {
        "specReplicasPath": ".spec.size.wanted",
        "statusReplicasPath": ".status.size",
        "labelSelectorPath": ".status.selector",
    }
    store.create(CUSTOM_RESOURCE, a_definition(subresources={"scale": paths}))
    store.create(WIDGET, {**a_widget(size={"wanted": 3}), "status": {"selector": "a=b"}})

    patch = merge_of({"spec": {"replicas": 4}})
    scale = store.patch(WIDGET, "w", patch, namespace="default", subresource="scale")

    assert scale["status"] == {"replicas": 0, "selector": "a=b"}
    assert store.get(WIDGET, "w", "default")["spec"] == {"size": {"wanted": 4}}


def test_not_everything_has_a_scale(store: Store) -> None:
    store.create(DAEMON_SET, a_deployment())

    with pytest.raises(NotFound, match="could not find the requested resource"):
        store.get(DAEMON_SET, "web", "default", subresource="scale")
