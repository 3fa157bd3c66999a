import pytest

from karpy.codec.textplaces import object_in, path_in

BROKEN = """\
# Of the shop.
apiVersion: karpenter.sh/v1
kind: NodePool
metadata:
  labels: {name: other}

  annotations:
    name: third
  name: "web"  # the shop
spec:
  template:
    metadata:
      labels:
\t\tteam: a
    spec:
      requirements:
      # By hand.
      - key: a
        operator: In
        values: [${azs}d]
      - key: example.com/b
        values:
          - "x
  limits:
  - cpu: 1
"""


@pytest.mark.parametrize(
    ("line", "path"),
    [
        (0, ""),
        (1, ""),
        (3, "kind"),
        (9, "metadata.name"),
        (14, "spec.template.metadata.labels.team"),
        (20, "spec.template.spec.requirements[0].values"),
        (21, "spec.template.spec.requirements[1].key"),
        (23, "spec.template.spec.requirements[1].values[0]"),
        (25, "spec.limits[0].cpu"),
        (26, ""),
    ],
)
def test_a_path_is_found_by_indentation(line: int, path: str) -> None:
    assert path_in(BROKEN, line) == path


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("a:\n\tb: 1\n", "a.b"),
        ("a:\n  b: 1\n\tc: 1\n", "a.c"),
        ("a:\n\t- 1\n", "a"),
        ("\tb: 1\n", "b"),
        ("a:\n  example.com/b:\n\tc: 1\n", "a[example.com/b].c"),
    ],
)
def test_a_line_with_a_tab_belongs_to_the_field_above(text: str, path: str) -> None:
    assert path_in(text, text.count("\n")) == path


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (BROKEN, "NodePool web"),
        ("kind: Pod\nmetadata: {labels: {a: b}, name: 'a b'}\n", "Pod a b"),
        ("kind: Pod\nmetadata: {name: [}\n", "Pod"),
        ("kind: Pod\nmetadata:\n  name: {{ .Name }}-a\n", "Pod {{ .Name }}-a"),
        ("kind: Pod\nmetadata:\nname: a\n", "Pod"),
        ("metadata: {name: a}\n", ""),
        ("run <<EOF\n  kind: Pod\n  metadata:\n    name: a\nEOF\n", "Pod a"),
        ("  kind: Pod\n  metadata:\n  name: a\n", "Pod"),
        (f"kind: Pod\nmetadata:\n  name: {'a' * 100}\n", f"Pod {'a' * 63}"),
    ],
)
def test_an_object_is_named_as_far_as_it_can_be_seen(text: str, name: str) -> None:
    assert object_in(text) == name


def test_a_long_text_takes_no_time() -> None:
    blanks = " " * 1_000_000

    assert object_in(f"kind: Pod\nmetadata:\n{blanks}\n{blanks}x") == "Pod"
    assert path_in(f"a:\n{blanks}x\n\tb", 3) == "a"
