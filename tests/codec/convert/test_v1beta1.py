from json import dumps

import pytest
from syrupy.assertion import SnapshotAssertion

from karpy.codec.fields import JsonObject
from tests.codec.convert.manifests import CLAIM, NODE_CLASS, POOL, SELECTING_CLASS
from tests.codec.convert.texts import converted, notes_in, refused, shown, spec_of

BARE = """\
apiVersion: karpenter.sh/v1beta1
kind: NodePool
metadata: {name: bare}
spec:
  template:
    spec:
      nodeClassRef: {name: bare}
      requirements: []
"""
KWOK = """\
apiVersion: karpenter.kwok.sh/v1alpha1
kind: KWOKNodeClass
metadata: {name: bare}
"""
HALF = "build the whole object first, as `kustomize build` does, or add it"


def test_every_field_of_pools_claims_and_classes_is_carried_or_named(
    snapshot: SnapshotAssertion,
) -> None:
    assert shown(converted(f"{POOL}---\n{CLAIM}---\n{NODE_CLASS}")) == snapshot


def test_every_way_to_choose_images_and_networks_is_carried_or_named(
    snapshot: SnapshotAssertion,
) -> None:
    assert shown(converted(SELECTING_CLASS)) == snapshot


def test_the_defaults_of_the_old_version_are_written_out() -> None:
    assert spec_of(converted(BARE), "NodePool")["disruption"] == {
        "consolidationPolicy": "WhenEmptyOrUnderutilized",
        "consolidateAfter": "0s",
    }


@pytest.mark.parametrize(
    ("texts", "ref"),
    [
        (
            (BARE,),
            {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "bare"},
        ),
        (
            (
                BARE.replace(
                    "requirements: []",
                    "requirements: [{key: a, operator: Exists}, "
                    "{key: karpenter.azure.com/sku-family, operator: In, values: [D]}]",
                ),
            ),
            {"group": "karpenter.azure.com", "kind": "AKSNodeClass", "name": "bare"},
        ),
        (
            (
                BARE.replace(
                    "requirements: []",
                    "requirements: [{key: kubernetes.azure.com/sku-cpu, operator: Exists}]",
                ),
            ),
            {"group": "karpenter.azure.com", "kind": "AKSNodeClass", "name": "bare"},
        ),
        (
            (BARE, KWOK),
            {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "bare"},
        ),
        (
            (
                BARE.replace(
                    "{name: bare}\n      req", "{kind: A, apiVersion: b/v1, name: c}\n      req"
                ),
            ),
            {"group": "b", "kind": "A", "name": "c"},
        ),
    ],
)
def test_the_class_is_named_with_group_and_kind(
    texts: tuple[str, ...], ref: dict[str, str]
) -> None:
    pool = spec_of(converted(*texts), "NodePool")

    assert pool["template"]["spec"]["nodeClassRef"] == ref


@pytest.mark.parametrize(
    ("policy", "problems"),
    [
        ("{consolidationPolicy: WhenUnderutilized}", []),
        ("{consolidationPolicy: WhenUnderutilized, consolidateAfter: Never}", []),
        ("{consolidationPolicy: WhenUnderutilized, consolidateAfter: 30s}", ["is there next to"]),
        ("{consolidateAfter: 30s}", ["is there next to"]),
        ("{consolidationPolicy: WhenEmpty}", ["is missing, and "]),
        ("{consolidationPolicy: WhenEmpty, consolidateAfter: 30s}", []),
    ],
)
def test_what_v1beta1_refuses_of_disruption_is_named_and_converted(
    policy: str, problems: list[str]
) -> None:
    conversion = converted(BARE + f"  disruption: {policy}\n")

    assert [problem[:16] for _, problem, _ in refused(conversion)] == problems
    assert len(conversion.objects) == 1


NEVER = POOL.replace("expireAfter: 168h", "expireAfter: Never")
SILENT = POOL.replace("    expireAfter: 168h\n", "")


@pytest.mark.parametrize(
    ("texts", "after", "change"),
    [
        ((CLAIM, POOL), "168h", "ADDED"),
        ((CLAIM, NEVER), "Never", "ADDED"),
        ((CLAIM, SILENT), "720h", "ADDED"),
        ((CLAIM, converted(NEVER).objects[0]), "Never", "ADDED"),
        ((CLAIM,), "720h", "LOST"),
        ((CLAIM.replace("karpenter.sh/nodepool: web", "a: b"),), "Never", "ADDED"),
    ],
)
def test_a_claim_expires_as_its_pool_says(
    texts: tuple[str | JsonObject, ...], after: str, change: str
) -> None:
    conversion = converted(*(each if isinstance(each, str) else dumps(each) for each in texts))

    assert spec_of(conversion, "NodeClaim")["expireAfter"] == after
    assert (change, "spec.expireAfter") in notes_in(conversion)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            BARE.replace("nodeClassRef: {name: bare}", "taints: []"),
            ("spec.template.spec.nodeClassRef", "is missing", HALF),
        ),
        (
            BARE + "  disruption: {consolidationPolicy: WhenBored}\n",
            (
                "spec.disruption.consolidationPolicy",
                "is `WhenBored`",
                "use one of: WhenEmpty, WhenUnderutilized",
            ),
        ),
        (
            NODE_CLASS.replace("amiFamily: AL2", "amiFamily: Ubuntu"),
            (
                "spec.amiFamily",
                "is Ubuntu without `amiSelectorTerms`, and today no image is known by that name",
                "add `amiSelectorTerms` with the id, name or tags of the images",
            ),
        ),
        (
            NODE_CLASS.replace("  amiFamily: AL2\n", ""),
            ("spec.amiFamily", "is missing", HALF),
        ),
        (
            NODE_CLASS.replace("subnetSelectorTerms", "subnetTerms"),
            ("spec.subnetSelectorTerms", "is missing", HALF),
        ),
        (
            NODE_CLASS.replace(
                "subnetSelectorTerms:\n  - tags: {karpenter.sh/discovery: shop}\n"
                "  - id: subnet-0a1",
                "subnetSelector: {a: b}",
            ),
            (
                "spec.subnetSelector",
                "is a field of AWSNodeTemplates",
                "write `subnetSelectorTerms: [{tags: ...}]`",
            ),
        ),
        (
            NODE_CLASS.replace("role: Nodes", "amiSelectorTerms: {id: ami-1}"),
            (
                "spec.amiSelectorTerms",
                "is no list of objects",
                "write it as a list, `- ...`",
            ),
        ),
    ],
)
def test_an_object_that_cannot_be_converted_is_named(
    text: str, problem: tuple[str, str, str]
) -> None:
    conversion = converted(text)

    assert (conversion.objects, refused(conversion)) == ((), [problem])


@pytest.mark.parametrize(
    ("user_data", "changes"),
    [("userData: x", [("LOST", "spec.amiFamily")]), ("userData: karpenter.sh/unregistered", [])],
)
def test_custom_images_must_register_with_a_taint_today(
    user_data: str, changes: list[tuple[str, str]]
) -> None:
    text = SELECTING_CLASS.replace("amiFamily: Ubuntu", "amiFamily: Custom").replace(
        'userData: "#!/bin/sh\\n"', user_data
    )

    assert [each for each in notes_in(converted(text)) if each[1] == "spec.amiFamily"] == changes
