from typing import Final

import pytest

from karpy.codec.fields import JsonObject
from karpy.codec.validation.validator import CrdValidator
from karpy.errors import Invalid
from tests.codec.validation.gadgets import definition, definition_of, gadget, rule, validator

TEXT: Final = {"type": "string"}
NOT_ASKED: Final = (
    "<nil>: Invalid value: null: some validation rules were not checked because the object was "
    "invalid; correct the existing errors to complete validation"
)


def refusal(
    judge: CrdValidator, obj: JsonObject, old: JsonObject | None = None, subresource: str = ""
) -> Invalid:
    with pytest.raises(Invalid) as caught:
        judge.admit(obj, old, subresource=subresource)
    return caught.value


def test_a_refusal_names_the_object_and_the_fault() -> None:
    error = refusal(validator(x=TEXT), gadget(x=1))

    assert error.status == 422
    assert error.message == (
        'Gadget.example.com "g" is invalid: spec.x: Invalid value: "integer": '
        'spec.x in body must be of type string: "integer"'
    )


def test_many_faults_come_in_brackets() -> None:
    error = refusal(validator(x=TEXT, y=TEXT), gadget(x=1, y=2))

    assert error.message == (
        'Gadget.example.com "g" is invalid: ['
        'spec.x: Invalid value: "integer": spec.x in body must be of type string: "integer", '
        'spec.y: Invalid value: "integer": spec.y in body must be of type string: "integer"]'
    )


def test_rules_are_not_evaluated_on_a_value_of_the_wrong_type() -> None:
    ruled = {**TEXT, "x-kubernetes-validations": [rule("self.startsWith('a')")]}

    assert NOT_ASKED in refusal(validator(x=ruled), gadget(x=1)).message


def test_rules_are_evaluated_on_a_value_that_only_breaks_a_pattern() -> None:
    ruled = {
        **TEXT,
        "pattern": "^a",
        "x-kubernetes-validations": [rule("self.endsWith('z')", "must end with z")],
    }

    message = refusal(validator(x=ruled), gadget(x="b")).message

    assert "should match '^a'" in message
    assert "must end with z" in message


def test_the_status_is_judged_alone_when_it_alone_is_written() -> None:
    judge = validator(x={**TEXT, "minLength": 1})
    broken = {**gadget(x=""), "status": {"x": "fine"}}

    assert judge.admit(broken, gadget(x=""), subresource="status") == broken


def test_a_fault_of_the_status_has_the_message_of_an_api_server() -> None:
    judge = validator(x={**TEXT, "minLength": 1})

    error = refusal(judge, {**gadget(), "status": {"x": ""}}, gadget(), "status")

    assert 'status.x: Invalid value: "": x in body should be at least 1 chars' in error.message


def test_a_version_that_is_not_defined_is_refused() -> None:
    error = refusal(validator(), {**gadget(), "apiVersion": "example.com/v2"})

    assert 'apiVersion: Invalid value: "example.com/v2": must be example.com/v1' in error.message


def test_every_version_has_its_own_schema() -> None:
    crd = definition(x=TEXT)
    crd["spec"]["versions"] += definition_of({"type": "object"}, "v2")["spec"]["versions"]

    judge = CrdValidator(crd)

    assert "spec" in judge.admit(gadget(x="a"), None)
    assert "spec" not in judge.admit({**gadget(x="a"), "apiVersion": "example.com/v2"}, None)


def test_a_definition_that_defines_nothing_is_refused() -> None:
    with pytest.raises(Invalid, match=r"spec.names.kind: Required value"):
        CrdValidator({"metadata": {"name": "x"}, "spec": {"group": "example.com"}})


def test_a_rule_that_cannot_be_compiled_is_named_and_not_enforced() -> None:
    judge = validator(x={**TEXT, "x-kubernetes-validations": [rule("semver(self).major() > 1")]})

    judge.admit(gadget(x="1.0.0"), None)

    assert judge.unenforced == ("semver(self).major() > 1",) * 2


def test_a_rule_of_the_root_has_no_place() -> None:
    schema = {
        "type": "object",
        "x-kubernetes-validations": [rule("self.metadata.name == 'h'", "must be h")],
    }

    error = refusal(CrdValidator(definition_of(schema)), gadget())

    assert error.message == 'Gadget.example.com "g" is invalid: <nil>: Invalid value: must be h'


def test_a_stored_object_is_completed_by_a_newer_definition() -> None:
    newer = validator(x={**TEXT, "default": "new"})

    assert newer.complete(gadget(gone=1))["spec"] == {"x": "new"}


@pytest.mark.parametrize("spec", ["text", 5, [], True])
def test_a_spec_of_the_wrong_type_is_refused(spec: object) -> None:
    error = refusal(validator(x=TEXT), {**gadget(), "spec": spec})

    assert "spec in body must be of type object" in error.message
