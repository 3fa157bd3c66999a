from itertools import permutations

import pytest

from karpy.codec.convert.conversion import Conversion
from tests.codec.convert.manifests import NODE_CLASS
from tests.codec.convert.texts import again, converted, notes_in, refused

CLASS = NODE_CLASS.replace("  tags: {team: web, karpenter.sh/nodepool: web}\n", "")


def pool(name: str, max_pods: int = 0) -> str:
    kubelet = f", kubelet: {{maxPods: {max_pods}}}" if max_pods else ""
    inner = f"{{nodeClassRef: {{name: web}}, requirements: []{kubelet}}}"
    return (
        f"apiVersion: karpenter.sh/v1beta1\nkind: NodePool\nmetadata: {{name: {name}}}\n"
        f"spec: {{template: {{spec: {inner}}}}}\n"
    )


def classes(conversion: Conversion) -> dict[str, object]:
    return {
        each["metadata"]["name"]: each["spec"].get("kubelet")
        for each in conversion.objects
        if each["kind"] == "EC2NodeClass"
    }


def pools(conversion: Conversion) -> dict[str, str]:
    return {
        each["metadata"]["name"]: each["spec"]["template"]["spec"]["nodeClassRef"]["name"]
        for each in conversion.objects
        if each["kind"] == "NodePool"
    }


def test_pools_that_agree_share_their_class() -> None:
    conversion = converted(pool("a", 10), pool("b", 10), CLASS)

    assert classes(conversion) == {"web": {"maxPods": 10}}
    assert pools(conversion) == {"a": "web", "b": "web"}


def test_a_class_that_nothing_refers_to_stays_as_it_is() -> None:
    assert classes(converted(CLASS)) == {"web": None}


def test_pools_that_disagree_split_their_class() -> None:
    conversion = converted(pool("a", 10), pool("b"), pool("c", 20), pool("d", 10), CLASS)

    assert classes(conversion) == {
        "web": None,
        "web-a": {"maxPods": 10},
        "web-c": {"maxPods": 20},
    }
    assert pools(conversion) == {"a": "web-a", "b": "web", "c": "web-c", "d": "web-a"}


@pytest.mark.parametrize("texts", list(permutations([pool("a", 10), pool("b", 20), CLASS])))
def test_names_do_not_depend_on_the_order_of_files(texts: tuple[str, ...]) -> None:
    conversion = converted(*texts)

    assert classes(conversion) == {"web": {"maxPods": 10}, "web-b": {"maxPods": 20}}
    assert pools(conversion) == {"a": "web", "b": "web-b"}


def test_a_class_that_has_a_kubelet_already_keeps_it() -> None:
    own = CLASS.replace("spec:", "spec:\n  kubelet: {maxPods: 5}")

    conversion = converted(pool("a", 10), own)

    assert classes(conversion) == {"web": {"maxPods": 5}, "web-a": {"maxPods": 10}}
    assert pools(conversion) == {"a": "web-a"}


def test_a_split_does_not_take_the_name_of_another_class() -> None:
    other = CLASS.replace("name: web\n", "name: web-b\n")

    conversion = converted(pool("a", 10), pool("b", 20), CLASS, other)

    assert sorted(classes(conversion)) == ["web", "web-b", "web-b-kubelet"]
    assert pools(conversion) == {"a": "web", "b": "web-b-kubelet"}


def test_a_note_of_a_class_names_the_pools_of_its_kubelet() -> None:
    conversion = converted(pool("a", 10), CLASS)

    assert ("ADDED", "spec.kubelet") in notes_in(conversion)


def test_a_split_stays_as_it_is() -> None:
    conversion = converted(pool("a", 10), pool("b", 20), CLASS)

    assert again(conversion).objects == conversion.objects


def test_a_class_in_the_same_file_comes_first() -> None:
    conversion = converted(CLASS, pool("a", 10) + "---\n" + CLASS)

    kubelets = [each["spec"].get("kubelet") for each in conversion.objects]
    assert kubelets == [None, None, {"maxPods": 10}]


def test_a_kubelet_of_another_cloud_is_noted_as_lost() -> None:
    text = pool("a", 10).replace("{name: web}", "{name: web, kind: A, apiVersion: b/v1}")

    assert notes_in(converted(text, CLASS))[3] == ("LOST", "spec.template.spec.kubelet")


def test_a_kubelet_without_its_class_is_noted_as_lost() -> None:
    notes = notes_in(converted(pool("a", 10)))

    assert notes[-1] == ("LOST", "spec.template.spec.kubelet")


ANNOTATION = "compatibility.karpenter.sh/v1beta1-kubelet-conversion"


def annotated(name: str, kubelet: str) -> str:
    """Write a NodePool as the conversion webhook of Karpenter 1.0 left it."""
    ref = "{group: karpenter.k8s.aws, kind: EC2NodeClass, name: web}"
    return (
        f"apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {{name: {name}, annotations: "
        f"{{{ANNOTATION}: '{kubelet}'}}}}\n"
        f"spec: {{template: {{spec: {{nodeClassRef: {ref}, requirements: []}}}}}}\n"
    )


def test_a_kubelet_that_was_left_in_an_annotation_goes_to_the_class() -> None:
    conversion = converted(annotated("a", '{"maxPods": 10}'), annotated("b", "{}"), CLASS)

    assert classes(conversion) == {"web": None, "web-a": {"maxPods": 10}}
    assert pools(conversion) == {"a": "web-a", "b": "web"}
    assert [each["metadata"] for each in conversion.objects[:2]] == [{"name": "a"}, {"name": "b"}]
    assert again(conversion).objects == conversion.objects


def test_an_annotation_without_a_kubelet_in_it_is_refused() -> None:
    ((path, problem, _),) = refused(converted(annotated("a", "{maxPods")))

    assert (path, problem[:10]) == (f"metadata.annotations[{ANNOTATION}]", "is no JSON")
