import pytest

from tests.codec.convert.manifests import NODE_CLASS, POOL, PROVISIONER
from tests.codec.convert.texts import again, converted, notes_in, refused

TODAY = """\
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: a, uid: x, namespace: y}
spec:
  template:
    spec: {requirements: [], nodeClassRef: {group: example.com, kind: Class, name: a}}
---
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: a}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: a}
data: {k: v}
"""


def test_objects_of_today_pass_unchanged() -> None:
    conversion = converted(TODAY)

    assert again(conversion).objects == conversion.objects
    assert (conversion.notes, conversion.problems) == ((), ())
    assert (conversion.total.converted, conversion.total.unchanged) == (0, 3)


def test_objects_of_today_are_validated_by_their_definitions() -> None:
    conversion = converted(TODAY.replace("requirements: []", "kubelet: {maxPods: 1}"))

    assert refused(conversion) == [
        (
            "spec.template.spec.kubelet",
            "is not known here",
            "move it to the node class, whose `spec.kubelet` it is today",
        ),
        ("spec.template.spec.requirements", "is missing", "add `requirements`; `[]` is enough"),
    ]
    assert (len(conversion.objects), conversion.total.unchanged, conversion.total.failed) == (
        2,
        2,
        1,
    )


def test_an_object_with_placeholders_is_converted_and_named() -> None:
    conversion = converted(NODE_CLASS.replace("role: Nodes", 'role: "nodes-${CLUSTER}"'))

    assert refused(conversion) == [
        (
            "spec.role",
            "is `nodes-${CLUSTER}`, which is not filled in",
            "fill in `${CLUSTER}` first, for example with `envsubst` or `helm template`",
        )
    ]
    assert len(conversion.objects) == 1


def test_values_that_a_template_fills_in_are_carried_over() -> None:
    values = "values: '${jsonencode(zones)}'"
    conversion = converted(PROVISIONER.replace("values: [us-east-1e]", values))

    assert [path for path, _, _ in refused(conversion)] == [
        "spec.template.spec.requirements[1].values"
    ]
    (pool,) = conversion.objects
    inner = pool["spec"]["template"]["spec"]
    assert inner["requirements"][1]["values"] == "${jsonencode(zones)}"


def test_a_fault_that_only_v1beta1_refuses_is_named_and_converted() -> None:
    old = POOL.replace("consolidationPolicy: WhenEmpty", "consolidationPolicy: WhenUnderutilized")
    conversion = converted(old.replace("disruption:", "disruption:\n    consolidateAfter: 30s", 1))

    assert refused(conversion) == [
        (
            "spec.disruption.consolidateAfter",
            "is there next to `WhenUnderutilized`, which v1beta1 refuses",
            "remove it, or convert: today they may be together",
        )
    ]
    assert len(conversion.objects) == 1


def test_an_old_object_that_no_server_would_take_today_is_left_out() -> None:
    conversion = converted(POOL.replace("weight: 5", "weight: 500"))

    assert refused(conversion) == [("spec.weight", "is `500`", "write a number from 1 to 100")]
    assert (conversion.objects, conversion.total.converted, conversion.total.failed) == ((), 0, 1)


def test_a_converted_object_is_not_converted_again() -> None:
    conversion = converted(POOL, NODE_CLASS)

    second = again(conversion)

    assert (second.objects, second.notes) == (conversion.objects, ())


def test_the_items_of_a_list_are_converted() -> None:
    lines = "\n".join(f"  {each}" for each in POOL.splitlines())
    item = f"- {lines[2:]}"

    whole = converted(f"apiVersion: v1\nkind: List\nitems:\n{item}\n")

    assert whole.objects == converted(POOL).objects
    assert whole.notes[0].where == "`1.yaml` document 1 items[0], NodePool web"


def test_a_list_of_one_kind_leaves_kind_and_version_to_its_items() -> None:
    lines = "\n".join(f"  {each}" for each in POOL.splitlines()[2:])

    whole = converted(
        f"apiVersion: karpenter.sh/v1beta1\nkind: NodePoolList\nitems:\n- {lines[2:]}\n"
    )

    assert whole.objects == converted(POOL).objects


def test_smart_quotes_are_taken_off() -> None:
    quoted = POOL.replace("20%", "\u201c20%\u201d").replace("NodePool", "\u201cNodePool\u201d")

    conversion = converted(quoted)

    assert conversion.objects == converted(POOL).objects
    assert notes_in(conversion)[:2] == [
        ("RENAMED", "kind"),
        ("RENAMED", "spec.disruption.budgets[0].nodes"),
    ]


def test_smart_quotes_are_taken_off_objects_of_today_whose_kind_has_them() -> None:
    quoted = TODAY.replace("kind: NodePool", "kind: \u201cNodePool\u201d").replace(
        "kind: Class", "kind: \u201cClass\u201d"
    )

    conversion = converted(quoted)

    assert conversion.objects == converted(TODAY).objects
    assert [path for _, path in notes_in(conversion)] == [
        "kind",
        "spec.template.spec.nodeClassRef.kind",
    ]


@pytest.mark.parametrize(
    ("text", "change"),
    [
        ("resources: [a.yaml]\n", "DROPPED"),
        ("resources: [a.yaml]\npatches: [{path: b.yaml}]\n", "LOST"),
        ("resources: ['https://example.com/a']\n", "LOST"),
    ],
)
def test_a_kustomization_is_no_object_and_says_what_it_would_change(text: str, change: str) -> None:
    head = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n"

    conversion = converted(head + text)

    assert (conversion.objects, notes_in(conversion)) == ((), [(change, "")])


def test_documents_that_do_not_change_keep_their_text() -> None:
    product = converted(TODAY).products[0]

    assert product.text.startswith("apiVersion: karpenter.sh/v1\n")
    assert converted(POOL).products[0].text == ""


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            PROVISIONER.replace("v1alpha5", "v1", 1),
            (
                "apiVersion",
                "is `karpenter.sh/v1`, and Provisioner has no such version",
                (
                    "write `karpenter.sh/v1alpha5`; as NodePool and EC2NodeClass it has newer "
                    "versions"
                ),
            ),
        ),
        (
            POOL.replace("v1beta1", "v9", 1),
            (
                "apiVersion",
                "is `karpenter.sh/v9`, and NodePool has no such version",
                "write `karpenter.sh/v1`, or `karpenter.sh/v1beta1` if it is an old manifest",
            ),
        ),
        (
            "apiVersion: karpenter.sh/v1alpha5\nkind: Machine\nmetadata: {name: a}\n",
            (
                "kind",
                "is `Machine`, which is not read from karpenter.sh",
                "remove the object: controllers make what they need anew",
            ),
        ),
        (
            "spec: {weight: 1}\n",
            ("kind", "is missing", "add `apiVersion` and `kind`, as in any Kubernetes manifest"),
        ),
        ("apiVersion: v1\nkind: 2\n", ("kind", "is `2`, not text", 'quote it: `"2"`')),
        (
            "kind: Thing\n",
            (
                "apiVersion",
                "is missing",
                "add `apiVersion` and `kind`, as in any Kubernetes manifest",
            ),
        ),
        (
            "- {op: add, path: /spec/weight, value: 1}\n",
            (
                "",
                "is a patch, not an object",
                "build the whole object first, as `kustomize build` does",
            ),
        ),
        (
            "just text\n",
            ("", "is the text `just text`, not an object", "write it as `name: value` pairs"),
        ),
    ],
)
def test_an_object_of_an_unknown_version_is_named(text: str, problem: tuple[str, str, str]) -> None:
    conversion = converted(text)

    assert (conversion.objects, refused(conversion)) == ((), [problem])


def test_an_object_that_nests_too_deeply_is_named() -> None:
    deep = '{"apiVersion": "v1", "kind": "Pod", "spec": ' + '{"a": ' * 900 + "1" + "}" * 901

    conversion = converted(deep)

    assert (conversion.objects, len(conversion.problems)) == ((), 1)


def test_a_broken_document_does_not_prevent_converting_the_others() -> None:
    conversion = converted("kind: [\n---\n" + NODE_CLASS)

    assert [each["kind"] for each in conversion.objects] == ["EC2NodeClass"]
    assert len(conversion.problems) == 1
