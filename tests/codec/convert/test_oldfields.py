import pytest

from karpy.codec.convert.oldfields import Notes, OldFields, as_text, path_of
from tests.codec.convert.manifests import NODE_TEMPLATE, POOL, PROVISIONER
from tests.codec.convert.texts import converted, notes_in, refused


@pytest.mark.parametrize(
    ("above", "key", "path"),
    [
        ("", "spec", "spec"),
        ("spec", "", "spec"),
        ("spec", "a", "spec.a"),
        ("spec.labels", "example.com/a", "spec.labels[example.com/a]"),
        ("nodegroup", "labels[example.com/a]", "nodegroup.labels[example.com/a]"),
    ],
)
def test_a_name_with_a_domain_is_in_brackets(above: str, key: str, path: str) -> None:
    assert path_of(above, key) == path


@pytest.mark.parametrize(("value", "text"), [(None, ""), (True, "true"), (1, "1"), ("a", "a")])
def test_a_plain_value_is_the_text_that_was_meant(value: object, text: str) -> None:
    assert as_text(value) == text


def test_faults_of_several_parts_are_kept_until_all_are_found() -> None:
    old = OldFields({"a": 1, "b": 2, "c": "x"}, "spec", Notes(""))

    texts = [old.tried("none", OldFields.text, each) for each in "abc"]

    assert texts == ["none", "none", "x"]
    assert [each.path for each in old.notes.faults] == ["spec.a", "spec.b"]


def test_all_faults_of_an_old_object_are_reported_at_once() -> None:
    text = (
        PROVISIONER.replace("name: batch\n", "nam: batch\n")
        .replace("providerRef: {name: batch", "providerRef: {nme: batch")
        .replace("tier: batch", "[tier]")
        .replace("ttlSecondsUntilExpired: 2592000", "ttlSecondsUntilExpired: soon")
    )

    conversion = converted(text.replace("labels: {[tier]}", "labels: [tier]"))

    assert conversion.objects == ()
    assert {path for path, _, _ in refused(conversion)} == {
        "metadata.name",
        "metadata.nam",
        "spec.labels",
        "spec.providerRef.name",
        "spec.ttlSecondsUntilExpired",
    }


def test_a_misspelt_field_is_an_error_and_the_object_is_converted() -> None:
    conversion = converted(POOL.replace("  weight: 5", "  weigth: 5"))

    assert refused(conversion) == [
        (
            "spec.weigth",
            "is no field of the old version, so that it had no effect",
            "write `weight`, or remove it",
        )
    ]
    assert len(conversion.objects) == 1


def test_a_label_outside_labels_of_a_provisioner_is_an_error() -> None:
    conversion = converted(PROVISIONER.replace("  weight: 10", "  intent: apps"))

    assert refused(conversion) == [
        (
            "spec.intent",
            "is no field of the old version, so that it had no effect",
            "indent it below `labels`, if `intent` is to be a label; otherwise remove it",
        )
    ]
    assert ("DROPPED", "spec.userData") in notes_in(conversion)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        (POOL.replace("rank: 1", "rank: [1]"), "spec.template.metadata.labels.rank"),
        (NODE_TEMPLATE.replace("team: data, kub", "team: {a: b}, kub"), "spec.tags.team"),
        (PROVISIONER.replace("cpu: 1000", "cpu: [1000]"), "spec.limits.resources.cpu"),
    ],
)
def test_a_list_or_an_object_is_no_text(text: str, path: str) -> None:
    conversion = converted(text)

    assert [(each, hint) for each, _, hint in refused(conversion)] == [(path, "write one text")]
    assert conversion.objects == ()


def test_faults_within_an_unreadable_field_are_not_reported() -> None:
    old = "{apiVersion: karpenter.sh/v1beta1, kind: NodePool, metadata: {name: a}, spec: {0}}"

    conversion = converted(old.replace("{0}", "{template: [], disruption: 5, limits: []}"))

    assert [path for path, _, _ in refused(conversion)] == [
        "spec.template",
        "spec.disruption",
        "spec.limits",
    ]


def test_a_field_of_no_version_is_named() -> None:
    conversion = converted(POOL.replace("  weight: 5", "  surprise: 5"))

    assert ("DROPPED", "spec.surprise") in notes_in(conversion)
    assert refused(conversion) == []


@pytest.mark.parametrize(
    ("text", "path", "hint"),
    [
        (
            POOL.replace("labels: {tier: web, rank: 1}", "tier: web"),
            "spec.template.metadata.tier",
            "indent it below `labels`, if `tier` is to be a label; otherwise remove it",
        ),
        (
            POOL.replace("labels: {tier: web, rank: 1}", "lables: {tier: web}"),
            "spec.template.metadata.lables",
            "write `labels`",
        ),
        (
            NODE_TEMPLATE.replace("namespace: karpenter", "team: data"),
            "metadata.team",
            "indent it below `labels`, if `team` is to be a label; otherwise remove it",
        ),
    ],
)
def test_a_label_outside_labels_is_an_error(text: str, path: str, hint: str) -> None:
    assert refused(converted(text)) == [(path, "is no field of metadata", hint)]
