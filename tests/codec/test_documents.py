from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karpy.codec.documents import Document, read_documents
from karpy.errors import ManifestInvalid


def values(text: str) -> list[object]:
    """Return the values of documents, and the problems of invalid ones."""
    return [
        each.value if isinstance(each, Document) else each.problem
        for each in read_documents("f.yaml", text)
    ]


def problem(text: str) -> ManifestInvalid:
    (found,) = read_documents("f.yaml", text)
    return cast("ManifestInvalid", found)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# nothing\n---\n", []),
        ("a: 1\n", [{"a": 1}]),
        ("---\na: 1\n---\n# a comment\n---\nb: 2\n", [{"a": 1}, {"b": 2}]),
        ("--- {a: 1}\n--- # and\nb: 2\n...\n", [{"a": 1}, {"b": 2}]),
        ("%YAML 1.2\n---\na: 1\n", [{"a": 1}]),
        ("\ufeffa: 1\n", [{"a": 1}]),
        ("a: |\n  ---\n  b\n", [{"a": "---\nb\n"}]),
        ("a: 1\r\n---\r\nb: 2\r\n", [{"a": 1}, {"b": 2}]),
        ('{"a": 1}', [{"a": 1}]),
        ('\ufeff {"a": 1}\n{"b": 2}\n', [{"a": 1}, {"b": 2}]),
        ("[1, 2]", [[1, 2]]),
        ("{a: 1}", [{"a": 1}]),
        ("a: &x [1]\nb: *x\n", [{"a": [1], "b": [1]}]),
    ],
)
def test_documents_are_found_in_yaml_and_json(text: str, expected: list[object]) -> None:
    assert values(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"),
        ("2026-01-01", "2026-01-01"),
        ("12:30", "12:30"),
        ("=", "="),
        ("1.2.3", "1.2.3"),
        ("1e3", 1000.0),
        ("0x10", 16),
        ("010", 8),
        ("-7", -7),
        ("1.5", 1.5),
        ("yes", True),
        ("~", None),
        ("500m", "500m"),
        ("1_000", 1000),
    ],
)
def test_yaml_means_what_it_means_to_kubectl(text: str, expected: object) -> None:
    assert values(f"a: {text}") == [{"a": expected}]


def test_a_bad_document_does_not_prevent_reading_the_others() -> None:
    assert values("a: 1\n---\nb: [\n---\nc: 3\n") == [
        {"a": 1},
        "is not YAML: did not find expected node content in line 3",
        {"c": 3},
    ]


def test_json_up_to_the_first_mistake_is_kept() -> None:
    assert values('{"a": 1}\n{"b": ') == [
        {"a": 1},
        "is not JSON: Expecting value: line 2 column 7 (char 15)",
    ]


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("a: [", "check indentation and quotes"),
        ("a:\n\tb: 1", "replace the tabs by spaces"),
        ("a: {{ .Values.x }}\nb: [", "render the template first, for example with `helm template`"),
        (
            "{{ if .Values.x }}\na: 1\n{{ end }}",
            "render the template first, for example with `helm template`",
        ),
        ('{"a": ]', "check the brackets, commas and quotes there"),
        (
            "kubectl apply -f - <<EOF\nkind: Pod\nEOF\n",
            "take the manifest out of the shell script, or give what the script prints",
        ),
        (
            "# Title\n\n```yaml\nkind: Pod\n```\n",
            "take the manifest out of the Markdown page, without the fences",
        ),
        (
            'resource "kubectl_manifest" "a" {\n  yaml_body = <<-YAML\n    kind: Pod\nYAML\n}\n',
            "take the manifest out of the Terraform file, or give what Terraform renders",
        ),
        ("a: 1\n<<<<<<< HEAD\nb: 2\n=======\n", "resolve the merge conflict first"),
        (
            "kind: Pod\nspec: [\ndata: |\n  cat <<EOF\n",
            "check indentation and quotes",
        ),
        ("a: &x [*x]", "write the repeated parts out"),
        ('{"a":' + "[" * 100_000, "check that it is a manifest"),
        ("a: 0x_", "put it in quotes if it is text"),
    ],
)
def test_a_hint_says_what_to_do(text: str, hint: str) -> None:
    assert problem(text).hint == hint


def test_a_problem_names_the_file_and_the_document() -> None:
    (_, found) = read_documents("f.yaml", "a: 1\n---\nb: [")

    assert str(found).startswith("`f.yaml` document 2: `b` is not YAML: ")


def test_a_document_that_is_not_yaml_is_named_with_its_object_and_field() -> None:
    text = "kind: Pod\nmetadata:\n  name: web\nspec:\n  priority: 1\n  priority: 2\n"
    text += "---\nkind: NodePool\nmetadata: {name: web}\nspec:\n\tweight: 1\n"

    found = [each for each in read_documents("f.yaml", text) if isinstance(each, ManifestInvalid)]

    tab = "found character that cannot start any token"
    assert [(each.where, each.path, each.problem) for each in found] == [
        ("`f.yaml` document 1, Pod web", "spec.priority", "has the key `priority` twice in line 6"),
        ("`f.yaml` document 2, NodePool web", "spec.weight", f"is not YAML: {tab} in line 11"),
    ]


@pytest.mark.parametrize("text", ["", " \n\n", "\ufeff"])
def test_an_empty_file_is_a_problem(text: str) -> None:
    found = problem(text)

    assert (found.message, found.hint) == (
        "`f.yaml`: is empty",
        "see whether the command that wrote it has failed, or leave it out",
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: 1\nb: 2\na: 3\n", "has the key `a` twice in line 3"),
        ("a:\n  b: 1\n  b: 1\n", "has the key `b` twice in line 3"),
        ("1: a\n'1': b\n", "has the key `1` twice in line 2"),
        ("x: {a: 1, a: 2}", "has the key `a` twice in line 1"),
        ('{"a": 1,\n"a": 2}', "has the key `a` twice in line 2"),
        ('{"a": {"b:c": 1,\n"b:c": 1}}', "has the key `b:c` twice in line 2"),
        ('{"a": ":",\n"\\u0061": 2, "\\u003a": 1}', "has the key `a` twice in line 2"),
        (f'{{"{"k" * 70}": 1, "{"k" * 70}": 2}}', f"has the key `{'k' * 60}…` twice in line 1"),
    ],
)
def test_a_key_twice_in_a_mapping_is_refused(text: str, expected: str) -> None:
    """Only one of them would count, and nothing says which one was meant."""
    assert values(text) == [expected]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": {"b": 1}, "c": {"b": 1}, "d": "a:b"}', {"a": {"b": 1}, "c": {"b": 1}, "d": "a:b"}),
        ('{"\\u003a": ["b", "b"]}', {":": ["b", "b"]}),
        ('{"a": "{\\"b\\": 1, \\"b\\": 2} \\u003c"}', {"a": '{"b": 1, "b": 2} <'}),
        ("a: &x {k: 1}\nb: {<<: *x, k: 2}\n", {"a": {"k": 1}, "b": {"k": 2}}),
    ],
)
def test_the_same_key_in_two_mappings_is_no_problem(text: str, expected: object) -> None:
    assert values(text) == [expected]


def test_json_after_a_document_with_a_key_twice_is_not_read() -> None:
    assert values('{"a": 1}\n{"b": 1,\n"b": 2}') == [
        {"a": 1},
        "has the key `b` twice in line 3",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{kind: List, items: [{kind: Pod}, {kind: List, items: []}]}", "`items[1]`"),
        ("{kind: PodList, items: [{kind: NodeList, items: []}]}", "`items[0]`"),
        ('[{"kind": "List", "items": []}]', "`[0]`"),
    ],
)
def test_a_list_within_a_list_is_a_problem(text: str, expected: str) -> None:
    found = problem(text)

    assert found.problem == f"has a List within a list, as {expected}"
    assert found.hint == "move its items to the outer list, or make it a document of its own"


@pytest.mark.parametrize("text", ['{"a": "\\ud800"}', '{"a": 1} {"a": "\\ud800"}'])
def test_half_a_character_is_a_problem(text: str) -> None:
    assert values(text)[-1] == "holds half a character (a lone surrogate, such as `\\ud800`)"


def test_repetitions_that_grow_without_end_are_refused() -> None:
    """A few lines of aliases can stand for more than all memory."""
    lines = ["a0: &a0 [1]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]

    assert problem("\n".join(lines)).problem.startswith("repeats itself by aliases without end")


def test_placeholders_that_are_valid_yaml_are_not_the_fault() -> None:
    assert problem("a:\n  - b: <NAME>\n  c: 1\n").hint == "check indentation and quotes"
    assert problem("a: [${NAME}]\n").hint.startswith("fill in `${NAME}` first")


@pytest.mark.parametrize(
    "text", ["{% for pool in pools %}\na: b\n", "{{- range .Values }}\na: b\n"]
)
def test_a_template_is_to_be_rendered_first(text: str) -> None:
    assert problem(text).problem.startswith("is not YAML")
    assert problem(text).hint == "render the template first, for example with `helm template`"


@given(st.text())
def test_any_text_can_be_quoted_in_an_error(text: str) -> None:
    found = list(read_documents("f", text))

    assert all(isinstance(each, Document | ManifestInvalid) for each in found)
