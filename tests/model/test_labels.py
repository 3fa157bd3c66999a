import pytest

from karpy.model.labels import (
    ALIASES,
    ARCH,
    CAPACITY_TYPE,
    HOSTNAME,
    INITIALIZED,
    INSTANCE_TYPE,
    NODE_POOL,
    OS,
    REGION,
    REGISTERED,
    WELL_KNOWN,
    ZONE,
    is_restricted,
    normalise,
)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("failure-domain.beta.kubernetes.io/zone", ZONE),
        ("failure-domain.beta.kubernetes.io/region", REGION),
        ("beta.kubernetes.io/arch", ARCH),
        ("beta.kubernetes.io/os", OS),
        ("beta.kubernetes.io/instance-type", INSTANCE_TYPE),
    ],
)
def test_a_former_name_stands_for_the_current_one(old: str, new: str) -> None:
    assert normalise(old) == new


def test_other_names_stand_for_themselves() -> None:
    assert normalise("example.com/team") == "example.com/team"
    assert [normalise(key) for key in sorted(WELL_KNOWN)] == sorted(WELL_KNOWN)


def test_no_alias_leads_to_another_alias() -> None:
    """Otherwise one call of normalise would not be enough."""
    assert ALIASES.keys().isdisjoint(ALIASES.values())


def test_the_well_known_labels_are_those_of_karpenter() -> None:
    assert {
        "karpenter.sh/capacity-type",
        "karpenter.sh/nodepool",
        "kubernetes.io/arch",
        "kubernetes.io/os",
        "node.kubernetes.io/instance-type",
        "node.kubernetes.io/windows-build",
        "topology.kubernetes.io/region",
        "topology.kubernetes.io/zone",
    } == WELL_KNOWN


@pytest.mark.parametrize(
    "key",
    [HOSTNAME, REGISTERED, INITIALIZED, "karpenter.sh/x", "my.karpenter.sh/x", "karpenter.sh/"],
)
def test_the_hostname_and_karpenters_domain_may_not_be_asked_for(key: str) -> None:
    assert is_restricted(key)


@pytest.mark.parametrize(
    "key",
    [
        NODE_POOL,
        CAPACITY_TYPE,
        ZONE,
        "kubernetes.io/anything",
        "node.k8s.io/anything",
        "my-karpenter.sh/x",
        "karpenter.sh.example.com/x",
        "karpenter.sh",
        "team",
    ],
)
def test_everything_else_may_be_asked_for(key: str) -> None:
    assert not is_restricted(key)


def test_a_provider_may_open_keys_of_its_own() -> None:
    assert is_restricted("aws.karpenter.sh/size")
    assert not is_restricted("aws.karpenter.sh/size", WELL_KNOWN | {"aws.karpenter.sh/size"})
