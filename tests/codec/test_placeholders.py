import pytest

from karpy.codec.documents import read_documents
from karpy.codec.placeholders import placeholder_faults, placeholders_in


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("${CLUSTER_NAME}-pool", ("${CLUSTER_NAME}",)),
        ("<<ZONE>>", ("<<ZONE>>",)),
        ("$(REGION)a", ("$(REGION)",)),
        ("__NAME__", ("__NAME__",)),
        ("{{ .Values.name }}-{{ .Values.name }}", ("{{ .Values.name }}",)),
        ("KarpenterNodeRole-$CLUSTER_NAME", ("$CLUSTER_NAME",)),
        ("<CLUSTER_NAME>", ("<CLUSTER_NAME>",)),
        ("<your cluster>", ("<your cluster>",)),
        ('${join(", ", var.zones)}', ('${join(", ", var.zones)}',)),
        ("plain-text_1", ()),
        ("a < b > c", ()),
        ("$5", ()),
        ("a__b", ()),
        ("$5 (about)", ()),
    ],
)
def test_placeholders_of_all_kinds_are_named_once(text: str, expected: tuple[str, ...]) -> None:
    assert placeholders_in(text) == expected


def test_a_text_that_is_no_yaml_because_of_placeholders_names_them() -> None:
    (problem,) = read_documents("f", "values: [${ZONE_A}, ${ZONE_B}]\n")

    assert getattr(problem, "hint", "") == (
        "fill in `${ZONE_A}`, `${ZONE_B}` first, for example with `envsubst` or `helm template`"
    )


@pytest.mark.parametrize("text", ["${var.zone}", "${module.eks.name}", "${jsonencode(local.x)}"])
def test_what_terraform_fills_in_is_left_to_it(text: str) -> None:
    (fault,) = placeholder_faults(text, "a")

    assert fault.hint == f"fill in `{text}` first, as Terraform does"


def test_a_placeholder_is_named_by_its_place() -> None:
    value = {
        "metadata": {"name": "${A}", "annotations": {"x": "${B}"}},
        "spec": {
            "userData": "${C}",
            "tags": {"example.com/x": "${D}", "${E}": "y"},
            "containers": [{"env": [{"value": "$(F)"}], "resources": {"cpu": "__G__"}}],
        },
    }

    assert [(each.path, each.hint.split("`")[1]) for each in placeholder_faults(value)] == [
        ("metadata.name", "${A}"),
        ("spec.tags[example.com/x]", "${D}"),
        ("spec.tags.${E}", "${E}"),
        ("spec.containers[0].resources.cpu", "__G__"),
    ]
