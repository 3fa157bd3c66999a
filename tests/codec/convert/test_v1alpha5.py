import pytest
from syrupy.assertion import SnapshotAssertion

from tests.codec.convert.manifests import NODE_TEMPLATE, PROVISIONER, WITH_PROVIDER
from tests.codec.convert.texts import converted, notes_in, refused, shown, spec_of

BARE = """\
apiVersion: karpenter.sh/v1alpha5
kind: Provisioner
metadata: {name: bare}
spec:
  providerRef: {name: bare}
"""


def with_lines(*lines: str) -> str:
    return BARE + "".join(f"  {each}\n" for each in lines)


def keys(*lines: str) -> list[str]:
    template = spec_of(converted(with_lines(*lines)), "NodePool")["template"]
    return [each["key"].partition("/")[2] for each in template["spec"]["requirements"]]


def test_every_field_of_a_provisioner_is_carried_or_named(snapshot: SnapshotAssertion) -> None:
    assert shown(converted(PROVISIONER + "---\n" + NODE_TEMPLATE)) == snapshot


def test_a_provider_within_becomes_a_node_class(snapshot: SnapshotAssertion) -> None:
    assert shown(converted(WITH_PROVIDER)) == snapshot


def test_a_provider_within_does_not_take_the_name_of_another_class() -> None:
    other = NODE_TEMPLATE.replace("name: batch,", "name: default,")

    conversion = converted(WITH_PROVIDER, other)

    assert [each["metadata"]["name"] for each in conversion.objects] == [
        "default",
        "default-provider",
        "default",
    ]
    ref = spec_of(conversion, "NodePool")["template"]["spec"]["nodeClassRef"]
    assert ref["name"] == "default-provider"


ALL_ADDED = ["os", "arch", "capacity-type", "instance-category", "instance-generation"]
NO_TYPES = ALL_ADDED[:3]


def test_what_the_old_webhook_added_is_written_out() -> None:
    assert keys() == ALL_ADDED


@pytest.mark.parametrize(
    "key",
    [
        "node.kubernetes.io/instance-type",
        "beta.kubernetes.io/instance-type",
        "karpenter.k8s.aws/instance-family",
        "karpenter.k8s.aws/instance-category",
        "karpenter.k8s.aws/instance-generation",
    ],
)
def test_a_pool_with_requirements_on_types_does_not_get_the_usual_ones(key: str) -> None:
    requirement = f"requirements: [{{key: {key}, operator: Exists}}]"

    assert keys(requirement) == [key.partition("/")[2], *NO_TYPES]


@pytest.mark.parametrize("key", ["karpenter.k8s.aws/instance-size", "topology.kubernetes.io/zone"])
def test_other_requirements_leave_the_usual_types(key: str) -> None:
    requirement = f"requirements: [{{key: {key}, operator: Exists}}]"

    assert keys(requirement) == [key.partition("/")[2], *ALL_ADDED]


def test_a_node_class_of_another_cloud_stays_what_it_is() -> None:
    ref = "{name: bare, apiVersion: karpenter.azure.com/v1alpha1, kind: AKSNodeClass}"
    made = spec_of(
        converted(BARE.replace("providerRef: {name: bare}", f"providerRef: {ref}")), "NodePool"
    )["template"]["spec"]

    expected = {"group": "karpenter.azure.com", "kind": "AKSNodeClass", "name": "bare"}
    assert made["nodeClassRef"] == expected
    assert [each["key"].partition("/")[2] for each in made["requirements"]] == NO_TYPES


NEVER = {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "Never"}


@pytest.mark.parametrize(
    ("lines", "disruption"),
    [
        ((), NEVER),
        (("consolidation: {enabled: false}",), NEVER),
        (
            ("ttlSecondsAfterEmpty: 30",),
            {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "30s"},
        ),
        (
            ("ttlSecondsAfterEmpty: 30.0",),
            {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "30s"},
        ),
        (
            ("ttlSecondsAfterEmpty: 0",),
            {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "0s"},
        ),
        (
            ("consolidation: {enabled: true}",),
            {"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "0s"},
        ),
        (
            ("consolidation: {enabled: true}", "ttlSecondsAfterEmpty: 300"),
            {"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "5m"},
        ),
    ],
)
def test_consolidation_is_what_it_was(lines: tuple[str, ...], disruption: dict[str, str]) -> None:
    assert spec_of(converted(with_lines(*lines)), "NodePool")["disruption"] == disruption


def test_consolidation_and_a_time_for_empty_nodes_are_refused_and_converted() -> None:
    conversion = converted(with_lines("consolidation: {enabled: true}", "ttlSecondsAfterEmpty: 30"))

    assert refused(conversion) == [
        (
            "spec.ttlSecondsAfterEmpty",
            "is there next to `consolidation.enabled: true`, which v1alpha5 refuses",
            "remove one of both, or convert: today they may be together",
        )
    ]
    assert len(conversion.objects) == 1


@pytest.mark.parametrize(
    ("lines", "after"),
    [
        ((), "Never"),
        (("ttlSecondsUntilExpired: 604800",), "168h"),
        (("ttlSecondsUntilExpired: 90",), "90s"),
        (("ttlSecondsUntilExpired: 0",), "0s"),
    ],
)
def test_nodes_expire_as_they_did(lines: tuple[str, ...], after: str) -> None:
    template = spec_of(converted(with_lines(*lines)), "NodePool")["template"]

    assert template["spec"]["expireAfter"] == after


def test_a_limit_outside_resources_is_an_error() -> None:
    conversion = converted(with_lines("limits: {cpu: 10, resources: {memory: 1Gi}}"))

    assert refused(conversion) == [
        (
            "spec.limits.cpu",
            "is outside `resources`, so that it had no effect",
            "indent it below `resources`, or remove it",
        )
    ]
    assert spec_of(conversion, "NodePool")["limits"] == {"memory": "1Gi"}


def test_expiry_at_once_is_noted() -> None:
    note = next(
        each
        for each in converted(with_lines("ttlSecondsUntilExpired: 0")).notes
        if each.path == "spec.ttlSecondsUntilExpired"
    )

    assert "nodes expire at once" in note.text


def test_never_is_noted() -> None:
    notes = notes_in(converted(BARE))

    assert notes[-2:] == [
        ("ADDED", "spec.ttlSecondsUntilExpired"),
        ("ADDED", "spec.consolidation"),
    ]


HALF = "build the whole object first, as `kustomize build` does, or add `providerRef`"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            BARE.replace("  providerRef: {name: bare}", "  weight: 1"),
            ("spec.providerRef", "is missing, and so is `provider`", HALF),
        ),
        (
            BARE.replace("{name: bare}\nspec", "{}\nspec"),
            ("metadata.name", "is missing", "add `metadata.name`"),
        ),
        (
            with_lines("ttlSecondsAfterEmpty: soon"),
            (
                "spec.ttlSecondsAfterEmpty",
                "is the text `soon`, not a number of seconds",
                "write a whole number",
            ),
        ),
        (
            with_lines('consolidation: {enabled: "true"}'),
            ("spec.consolidation.enabled", "is the text `true`", "write `true` or `false`"),
        ),
        (
            with_lines("requirements: none"),
            (
                "spec.requirements",
                "is the text `none`, not a list",
                "write it as a list, `- ...`",
            ),
        ),
        (
            with_lines("labels: [a]"),
            ("spec.labels", "is a list, not an object", "write it as `name: value` pairs"),
        ),
    ],
)
def test_an_object_that_cannot_be_converted_is_named(
    text: str, problem: tuple[str, str, str]
) -> None:
    conversion = converted(text)

    assert (conversion.objects, refused(conversion)) == ((), [problem])
