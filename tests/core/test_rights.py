"""`karpy doctor` checks the rights that deploy/rbac.yaml grants."""

import pytest

from karpy.core.rights import Right, rights_of
from tests.wiring.grants import BY_CHOICE, OF_CLOUDS, grants


@pytest.mark.parametrize("provider", ["aws", "kwok"])
def test_the_rights_are_those_of_the_manifests(provider: str) -> None:
    granted = {
        Right(*each[:5])
        for each in grants()
        if each.role not in BY_CHOICE and OF_CLOUDS.get(each.role, provider) == provider
    }

    assert set(rights_of(provider, "karpenter")) == granted


def test_a_right_is_written_as_kubectl_writes_it() -> None:
    right = Right("get", "coordination.k8s.io", "leases", "karpenter", "karpenter-leader-election")

    assert str(right) == ("get leases.coordination.k8s.io karpenter-leader-election in karpenter")
    assert str(Right("create", "", "pods/eviction")) == "create pods/eviction"
