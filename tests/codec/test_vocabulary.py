from karpy.codec.fields import Fields
from karpy.codec.vocabulary import unknown_in_pod


def test_a_field_of_a_pod_that_kubernetes_does_not_have_is_named_with_its_path() -> None:
    spec = Fields({"spec": {"containers": [], "nodeSelectors": {}, "Volumes": []}}).child("spec")

    assert list(unknown_in_pod(spec)) == ["spec.nodeSelectors", "spec.Volumes"]
