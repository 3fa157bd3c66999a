"""Properties of any conversion: it is idempotent, and an API server accepts its objects."""

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from hypothesis import given
from hypothesis import strategies as st

from karpy.codec.comments import Comment, Path, Side, with_comments
from karpy.codec.convert.conversion import Conversion
from karpy.codec.convert.manifests import convert
from karpy.codec.convert.oldfields import path_of
from karpy.codec.convert.yamltexts import to_yaml
from karpy.codec.documents import Document
from karpy.codec.fields import JsonObject
from karpy.codec.schemas.definitions import CUSTOM_KINDS
from karpy.codec.validation.validator import CrdValidator
from tests.codec.convert.texts import again

VALIDATORS: Final = {each.kind.name: CrdValidator(each.to_json()) for each in CUSTOM_KINDS}

names = st.sampled_from(["a", "b", "web"])
words = st.sampled_from(["x", "prod", "y"])
labels = st.dictionaries(st.sampled_from(["team", "example.com/tier"]), words, min_size=1)
annotations = labels | st.just({"karpenter.sh/do-not-evict": "true"})


def some(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[JsonObject]:
    return st.fixed_dictionaries({}, optional=fields)


def needed(
    needs: dict[str, st.SearchStrategy[Any]], **fields: st.SearchStrategy[Any]
) -> st.SearchStrategy[JsonObject]:
    return st.fixed_dictionaries(needs, optional=fields)


def obj(
    version: str, kind: str, spec: st.SearchStrategy[JsonObject]
) -> st.SearchStrategy[JsonObject]:
    head = {"apiVersion": st.just(version), "kind": st.just(kind), "spec": spec}
    meta = needed(
        {"name": names}, namespace=words, labels=labels, annotations=annotations, uid=words
    )
    return needed({**head, "metadata": meta}, status=some(x=words))


keys = st.sampled_from(
    [
        "kubernetes.io/arch",
        "kubernetes.io/os",
        "karpenter.sh/capacity-type",
        "karpenter.sh/provisioner-name",
        "karpenter.k8s.aws/instance-family",
        "karpenter.k8s.aws/instance-pods",
        "node.kubernetes.io/instance-type",
    ]
)
requirement = needed(
    {"key": keys, "operator": st.just("In"), "values": st.just(["a", "b"])}
) | needed({"key": keys, "operator": st.just("Gt"), "values": st.just([2]) | st.just(["2"])})
taint = needed(
    {"key": words, "effect": st.just("NoSchedule")}, value=words, operator=st.just("Equal")
)
amounts = some(cpu=st.just(1) | st.just("100m"), memory=st.just("1Gi"))
kubelet = some(
    containerRuntime=st.just("containerd"),
    maxPods=st.integers(1, 110),
    systemReserved=amounts,
    evictionHard=st.just({"memory.available": "5%"}),
    clusterDNS=st.just(["10.0.0.10"]),
)
selector = (
    labels
    | st.just({"Name": "*", "aws:eks:cluster-name": "x, y"})
    | st.just({"aws-ids": "subnet-1,subnet-2"})
)
groups = labels | st.just({"aws-ids": "sg-1"})
disks = st.just([{"deviceName": "/dev/xvda", "ebs": {"volumeSize": "20Gi"}}])
options = some(httpTokens=st.just("optional"), httpPutResponseHopLimit=st.integers(1, 5))
families = st.sampled_from(["AL2", "Bottlerocket", "Windows2022"])
common = {
    "tags": labels | st.just({"kubernetes.io/cluster/a": "owned"}),
    "metadataOptions": options,
    "blockDeviceMappings": disks,
    "userData": st.just("#!/bin/sh\n"),
    "context": words,
    "detailedMonitoring": st.booleans(),
}
template_fields = {
    **common,
    "amiFamily": families | st.just("AL2"),
    "amiSelector": labels | st.just({"aws::name": "a,b", "aws::owners": "self"}),
    "instanceProfile": words,
}
networks = {"subnetSelector": selector, "securityGroupSelector": groups}
pool_fields = {
    "labels": labels,
    "annotations": annotations,
    "requirements": st.lists(requirement, max_size=3),
    "taints": st.lists(taint, max_size=2),
    "startupTaints": st.lists(taint, max_size=2),
    "limits": some(resources=amounts),
    "weight": st.integers(1, 100),
    "ttlSecondsAfterEmpty": st.integers(0, 10**6),
    "ttlSecondsUntilExpired": st.integers(0, 10**7),
    "consolidation": some(enabled=st.booleans()),
    "kubeletConfiguration": kubelet,
    "surprise": words,
}
ref = needed({"name": names})
class_ref = ref | needed(
    {
        "name": names,
        "apiVersion": st.just("karpenter.k8s.aws/v1beta1"),
        "kind": st.just("EC2NodeClass"),
    }
)
provisioners = obj(
    "karpenter.sh/v1alpha5",
    "Provisioner",
    needed({"providerRef": ref}, **pool_fields)
    | needed({"provider": needed(networks, **template_fields)}, **pool_fields),
)
node_templates = obj(
    "karpenter.k8s.aws/v1alpha1", "AWSNodeTemplate", needed(networks, **template_fields)
)
inner = {
    "taints": st.lists(taint, max_size=2),
    "startupTaints": st.lists(taint, max_size=2),
    "kubelet": kubelet,
}
needs = {"nodeClassRef": class_ref, "requirements": st.lists(requirement, max_size=3)}
pools = obj(
    "karpenter.sh/v1beta1",
    "NodePool",
    needed(
        {"template": needed({"spec": needed(needs, **inner)}, metadata=some(labels=labels))},
        limits=amounts,
        weight=st.integers(1, 100),
        disruption=some(
            consolidationPolicy=st.sampled_from(["WhenEmpty", "WhenUnderutilized"]),
            consolidateAfter=st.just("30s") | st.just("Never"),
            expireAfter=st.just("Never") | st.just("24h"),
            budgets=st.just([{"nodes": "10%"}]),
        ),
    ),
)
claims = obj(
    "karpenter.sh/v1beta1", "NodeClaim", needed(needs, resources=some(requests=amounts), **inner)
)
terms = st.lists(needed({"tags": labels}), min_size=1, max_size=2)
node_classes = obj(
    "karpenter.k8s.aws/v1beta1",
    "EC2NodeClass",
    needed(
        {"amiFamily": families, "subnetSelectorTerms": terms, "securityGroupSelectorTerms": terms},
        amiSelectorTerms=terms,
        role=words,
        instanceProfile=words,
        **common,
    ),
)
calls = st.lists(provisioners | node_templates | pools | claims | node_classes, max_size=5)


def of(objects: Sequence[object]) -> Conversion:
    documents = (Document("in.yaml", at, each) for at, each in enumerate(objects, start=1))
    return convert(documents, role="Nodes")


@given(calls)
def test_converted_objects_are_accepted_by_an_api_server(objects: list[JsonObject]) -> None:
    conversion = of(objects)

    admitted = [VALIDATORS[each["kind"]].admit(each, None) for each in conversion.objects]
    assert (len(admitted), conversion.total.failed) == (len(conversion.objects), 0)


@given(calls)
def test_converting_again_changes_nothing(objects: list[JsonObject]) -> None:
    conversion = of(objects)

    second = again(conversion)

    assert (second.objects, second.notes, second.total.failed) == (conversion.objects, (), 0)


@given(calls)
def test_the_input_is_left_as_it_is(objects: list[JsonObject]) -> None:
    before = json.dumps(objects)

    of(objects)

    assert json.dumps(objects) == before


def leaves(value: object, path: Path) -> Iterator[Path]:
    """Find the paths of the values that are not empty."""
    match value:
        case dict():
            for key, each in value.items():
                yield from leaves(each, (*path, key))
        case list():
            for index, each in enumerate(value):
                yield from leaves(each, (*path, index))
        case _:
            yield path


def shown(path: Path) -> str:
    text = ""
    for step in path:
        text = f"{text}[{step}]" if isinstance(step, int) else path_of(text, step)
    return text


def unnamed(value: JsonObject) -> list[str]:
    """Return the fields that are neither there after a conversion nor named by it."""
    comments = [Comment(path, Side.ABOVE, f"# <{shown(path)}>") for path in leaves(value, ())]
    text = with_comments(to_yaml([value]).removeprefix("---\n"), comments)
    conversion = convert([Document("in.yaml", 1, value, text)], role="Nodes")
    kept = {
        each.text
        for product in conversion.products
        for each in product.comments
        if each.path and product.value
    }
    named = (
        *(each.path for each in conversion.notes if each.path),
        *(each.path for each in conversion.problems if each.path),
    )
    lost = (each.text for each in comments if each.text not in kept)
    return [each for each in lost if not each.removeprefix("# <").startswith(named)]


@given(provisioners | node_templates | pools | claims | node_classes)
def test_every_field_is_carried_over_or_named(value: JsonObject) -> None:
    assert unnamed(value) == []


junk: st.SearchStrategy[object] = st.sampled_from(
    [None, True, 0, -1, 1.5, "", "text", [], ["a"], [[]], {}, {"a": 1}, {1: 2}]
)
depths = st.integers(1, 8)


def spoilt(value: object, depth: int, choose: st.DataObject, bad: object) -> object:
    """Replace some part of a value by a wrong one."""
    match value:
        case dict() if value and depth:
            key = choose.draw(st.sampled_from(sorted(value)))
            return {**value, key: spoilt(value[key], depth - 1, choose, bad)}
        case list() if value and depth:
            return [spoilt(value[0], depth - 1, choose, bad), *value[1:]]
    return bad


@given(calls, st.data(), depths, junk)
def test_any_input_is_converted_or_named(
    objects: list[JsonObject], choose: st.DataObject, depth: int, bad: object
) -> None:
    broken = [spoilt(each, depth, choose, bad) for each in objects]

    conversion = of(broken)

    read = conversion.total.converted + conversion.total.unchanged + conversion.total.failed
    assert read == len(objects)
