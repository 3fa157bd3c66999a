"""Hints for objects that violate a pattern or rule of the CustomResourceDefinitions."""

import re
from collections.abc import Mapping
from typing import Final

_AMOUNT: Final = "write a quantity such as `500m`, `2` or `4Gi`"
_KEY: Final = "use letters, digits, `-`, `_` and `.`, as in `example.com/name`"
_OWN_LABEL: Final = "remove it, or use a label of your own domain"

PATTERN_HINTS: Final[Mapping[str, str]] = {
    "spec.disruption.budgets[].duration": "write hours and minutes, such as `8h` or `1h30m`",
    "spec.disruption.budgets[].nodes": "write a number of nodes or a share up to `100%`",
    "spec.disruption.budgets[].schedule": "write five fields as in crontab, such as `0 9 * * *`",
    "spec.disruption.consolidateAfter": "write a duration such as `30s` or `1h30m`, or `Never`",
    "spec.expireAfter": "write a duration such as `720h`, or `Never`",
    "spec.template.spec.expireAfter": "write a duration such as `720h`, or `Never`",
    "spec.terminationGracePeriod": "write a duration such as `30m`",
    "spec.template.spec.terminationGracePeriod": "write a duration such as `30m`",
    "spec.nodeRegistrationDelay": "write a duration such as `30s`",
    "spec.template.metadata.labels[]": "use at most 63 letters, digits, `-`, `_` and `.`",
    "spec.nodeClassRef.group": "write the group without a version",
    "spec.template.spec.nodeClassRef.group": "write the group without a version",
    "spec.price": "write dollars per hour, such as `0.5`",
    "spec.priceAdjustment": "write a change such as `+0.1` or `-10%`",
    "spec.amiSelectorTerms[].id": "write an id such as `ami-0123456789abcdef0`",
    "spec.subnetSelectorTerms[].id": "write an id such as `subnet-0123456789abcdef0`",
    "spec.securityGroupSelectorTerms[].id": "write an id such as `sg-0123456789abcdef0`",
    "spec.capacityReservationSelectorTerms[].id": "write an id such as `cr-0123456789abcdef0`",
    "spec.capacityReservationSelectorTerms[].ownerID": "write the 12 digits of an AWS account",
    "spec.placementGroupSelector.id": "write an id such as `pg-0123456789abcdef0`",
    "spec.blockDeviceMappings[].ebs.volumeSize": "write a size such as `100Gi`",
    "spec.kubelet.evictionHard[]": "write a share such as `5%` or a quantity such as `100Mi`",
    "spec.kubelet.evictionSoft[]": "write a share such as `5%` or a quantity such as `100Mi`",
    **dict.fromkeys(
        (
            "spec.limits[]",
            "spec.capacity[]",
            "spec.resources.requests[]",
            "spec.kubelet.kubeReserved[]",
            "spec.kubelet.systemReserved[]",
            "spec.blockDeviceMappings[].ebs",
        ),
        _AMOUNT,
    ),
    **dict.fromkeys(
        (
            f"spec.{template}{field}"
            for template in ("", "template.spec.")
            for field in (
                "requirements[].key",
                "taints[].key",
                "taints[].value",
                "startupTaints[].key",
                "startupTaints[].value",
            )
        ),
        _KEY,
    ),
}
"""Hints by the path of a field; `[]` stands for any entry of a list or mapping."""

_RULES: Final = tuple(
    (re.compile(pattern), hint)
    for pattern, hint in (
        (r"label .* is restricted", _OWN_LABEL),
        (r"tag contains a restricted tag .*", "remove it: the autoscaler sets this tag itself"),
        (r"empty tag keys.*", "write a key and a value, or `*` for any value"),
        (r"only 'limits\.nodes' is supported .*", "keep no limit but `nodes`"),
        (r"'weight' is not supported .*", "remove `weight`, or `replicas`"),
        (r"'schedule' must be set with 'duration'", "write both, or neither"),
        (r".* is immutable|a NodePool with replicas cannot .*", "create a new object instead"),
        (r"(group|kind|name|role|instanceProfile) (may not|cannot) be empty", "write its name"),
        (r"requirements with operator '(In|NotIn)' must have a value .*", "add a value"),
        (r"requirements with operator 'Gt'.*", "write one whole number of 0 or more"),
        (r"requirements .* at least 'minValues' values", "add values, or lower `minValues`"),
        (r"cannot set both .*|'\w+' cannot be set together with .*", "keep one of them"),
        (r"only extended resources can be added.*", "remove it, or write an extended resource"),
        (r"'podTemplateRef' needs .*", "add `replicas` or `limits`"),
        (r"must specify exactly one of 'role', 'instanceProfile'", "write exactly one of them"),
        (r"amiFamily must be .*", "remove `amiFamily`: the alias says it"),
        (r"must specify amiFamily .*", "add `amiFamily`, or select images by `alias`"),
        (r"every term needs one of .*|one of .* must be set", "add one of them"),
        (r"a term with 'alias' must be the only one", "remove the other terms"),
        (r"'alias' must be written .*", "write it as in `al2023@latest`"),
        (r"the family of 'alias' .*", "use one of these families, as in `al2023@latest`"),
        (r"windows families .*", "write `latest`, as in `windows2022@latest`"),
        (r"must have only one blockDeviceMappings .*", "keep `rootVolume` on one of them"),
        (r"snapshotID or volumeSize must be defined", "add `volumeSize`, such as `100Gi`"),
        (r"snapshotID must be set when .*", "add `snapshotID`, or remove the rate"),
        (r"at least one of tcpEstablishedTimeout.*", "add one of them"),
        (r"imageGCHighThresholdPercent must be .*", "raise the high or lower the low threshold"),
        (r"every key of evictionSoft.*", "write the same keys in both"),
        (r"valid keys for .*", "use one of these keys"),
        (r".* cannot be a negative resource quantity", "write a quantity of 0 or more"),
        (r"networkInterfaces must include .*", "add the primary interface, or remove the list"),
        (r"networkInterfaces must not repeat .*", "give each interface a place of its own"),
        (r"\w+SelectorTerms cannot be empty", "add a term, for example with `tags`"),
    )
)


def rule_hint(message: str) -> str:
    """Return the hint for the rule with this message; empty if there is none."""
    return next((hint for pattern, hint in _RULES if pattern.fullmatch(message)), "")


MISSING_HINTS: Final[Mapping[str, str]] = {
    "group": "add the group of the node class, such as `group: karpenter.k8s.aws`",
    "kind": "add the kind of the node class, such as `kind: EC2NodeClass`",
    "nodeClassRef": "add `nodeClassRef` with `group`, `kind` and `name` of a node class",
    "requirements": "add `requirements`; `[]` is enough",
    "spec": "add `spec`, and indent what belongs to it",
}
"""Hints for missing fields whose name alone does not say what to write."""

_TO_CLASS: Final = "move it to the node class, whose `spec.{0}` it is today"

GONE_HINTS: Final[Mapping[str, str]] = {
    "kubelet": _TO_CLASS.format("kubelet"),
    "kubeletConfiguration": _TO_CLASS.format("kubelet"),
    "userData": _TO_CLASS.format("userData"),
    "ttlSecondsAfterEmpty": "write `spec.disruption.consolidateAfter` instead",
    "ttlSecondsUntilExpired": "write `spec.template.spec.expireAfter` instead",
    "providerRef": "write `spec.template.spec.nodeClassRef` instead",
    "provider": "write an EC2NodeClass and `spec.template.spec.nodeClassRef` instead",
    "consolidation": "write `spec.disruption.consolidationPolicy` instead",
    "containerRuntime": "remove it: today there is containerd alone",
    "launchTemplate": "write what it says as fields of the EC2NodeClass",
    "subnetSelector": "write `subnetSelectorTerms` instead",
    "securityGroupSelector": "write `securityGroupSelectorTerms` instead",
    "amiSelector": "write `amiSelectorTerms` instead",
}
"""Hints for fields that only older versions have."""
