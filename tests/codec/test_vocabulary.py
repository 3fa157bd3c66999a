from karpy.codec.fields import Fields
from karpy.codec.vocabulary import unknown_in_overlay, unknown_in_pod, unknown_in_pool
from tests.codec.plain import plain_pool


def test_a_field_of_a_pod_that_kubernetes_does_not_have_is_named_with_its_path() -> None:
    spec = Fields({"spec": {"containers": [], "nodeSelectors": {}, "Volumes": []}}).child("spec")

    assert list(unknown_in_pod(spec)) == ["spec.nodeSelectors", "spec.Volumes"]


def test_a_pool_is_looked_at_on_both_levels() -> None:
    pool = plain_pool("p", weigth=5, taints=[])
    pool["spec"]["template"]["spec"]["kubelet"] = {}

    assert list(unknown_in_pool(Fields(pool))) == ["spec.weigth", "spec.template.spec.kubelet"]


def test_an_overlay_is_looked_at() -> None:
    assert list(unknown_in_overlay(Fields({"spec": {"price": "1", "cost": "2"}}))) == ["spec.cost"]
