import pytest

from karpy.codec.fields import FieldInvalid
from karpy.codec.versions import check_version, is_old

TWO_VERSIONS = "write `karpenter.sh/v1`, or `karpenter.sh/v1beta1` if it is an old manifest"


@pytest.mark.parametrize(
    ("version", "kind"),
    [
        ("v1", "Pod"),
        ("apps/v1", "Deployment"),
        ("karpenter.sh/v1", "NodePool"),
        ("karpenter.sh/v1alpha1", "NodeOverlay"),
        ("karpenter.sh/v1alpha5", "Provisioner"),
        ("serving.knative.dev/v1", "Service"),
        ("hypershift.openshift.io/v1beta1", "NodePool"),
        ("example.com/v7", "Anything"),
    ],
)
def test_known_versions_and_kinds_of_other_groups_pass(version: str, kind: str) -> None:
    check_version(version, kind)


@pytest.mark.parametrize(
    ("version", "kind", "hint"),
    [
        ("karpenter.sh/v9", "NodePool", TWO_VERSIONS),
        ("karpenter.sh", "NodePool", TWO_VERSIONS),
        ("karpenter.sh/v1", "NodeOverlay", "write `karpenter.sh/v1alpha1`"),
        ("apps/v1beta9", "Deployment", "write `apps/v1`"),
        ("extensions/v1beta1", "Deployment", "write `apps/v1`"),
        ("app/v1", "Deployment", "write `apps/v1`"),
        ("v1", "Deployment", "write `apps/v1`"),
        ("v2", "Pod", "write `v1`"),
        ("policy/v1beta1", "PodDisruptionBudget", "write `policy/v1`"),
        ("compute.k8s.aws/v1", "EC2NodeClass", "write `karpenter.k8s.aws/v1`"),
        ("compute.k8s.aws/v1beta1", "EC2NodeClass", "write `karpenter.k8s.aws/v1beta1`"),
        (
            "karpenter.sh/v1",
            "Provisioner",
            "write `karpenter.sh/v1alpha5`; as NodePool and EC2NodeClass it has newer versions",
        ),
    ],
)
def test_an_unknown_version_is_refused_with_the_known_ones(
    version: str, kind: str, hint: str
) -> None:
    with pytest.raises(FieldInvalid) as raised:
        check_version(version, kind)

    assert (raised.value.path, raised.value.hint) == ("apiVersion", hint)
    assert raised.value.problem == f"is `{version}`, and {kind} has no such version"


@pytest.mark.parametrize(
    ("kind", "hint"),
    [
        ("NodePoool", "write `NodePool`"),
        ("Machine", "remove the object: controllers make what they need anew"),
        ("Sun", "write one of: NodeClaim, NodeOverlay, NodePool, Provisioner"),
    ],
)
def test_a_kind_that_karpenter_does_not_have_is_refused(kind: str, hint: str) -> None:
    with pytest.raises(FieldInvalid) as raised:
        check_version("karpenter.sh/v1", kind)

    assert (raised.value.path, raised.value.hint) == ("kind", hint)


def test_versions_that_are_converted_are_old() -> None:
    assert is_old("karpenter.sh/v1alpha5", "Provisioner")
    assert not is_old("karpenter.sh/v1", "NodePool")
