from collections.abc import Mapping
from typing import Any

import pytest

from karpy.codec.schemas.definitions import CUSTOM_KINDS, CustomKind
from karpy.codec.validation.validator import CrdValidator
from karpy.errors import Invalid
from karpy.model.kinds import Kind
from tests.contract.crdcases.cases import CrdCase, base_of, read_cases, read_definitions

CASES = read_cases()
VALIDATORS = {kind: CrdValidator(crd) for kind, crd in read_definitions().items()}


def refusal(case: CrdCase) -> str:
    validator = VALIDATORS[case.kind]
    before = validator.admit(case.before, None) if case.before else None
    with pytest.raises(Invalid) as caught:
        validator.admit(case.rejected, before, subresource=case.subresource)
    return caught.value.message


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_valid_object_is_accepted(case: CrdCase) -> None:
    validator = VALIDATORS[case.kind]
    before = validator.admit(case.before, None) if case.before else None

    admitted = validator.admit(case.accepted, before, subresource=case.subresource)

    assert admitted["metadata"] == case.accepted["metadata"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_an_invalid_object_is_refused_by_field_and_reason(case: CrdCase) -> None:
    message = refusal(case)

    assert f"{case.path}: " in message
    assert case.says in message


@pytest.mark.parametrize("kind", VALIDATORS, ids=str)
def test_the_base_of_the_cases_is_accepted(kind: Kind) -> None:
    base = base_of(kind)

    admitted = VALIDATORS[kind].admit(base, None)

    assert admitted["metadata"] == base["metadata"]


@pytest.mark.parametrize("kind", VALIDATORS, ids=str)
def test_every_rule_is_enforced(kind: Kind) -> None:
    assert VALIDATORS[kind].unenforced == ()


@pytest.mark.parametrize("custom", CUSTOM_KINDS, ids=lambda custom: custom.name)
def test_every_rule_has_a_case_that_breaks_it(custom: CustomKind) -> None:
    told = " ".join(refusal(case) for case in CASES if case.kind == custom.kind)

    unbroken = [message for message in messages_in(custom.schema()) if message not in told]

    assert unbroken == []


def messages_in(schema: Mapping[str, Any]) -> list[str]:
    """List the messages of all rules in a schema, at any depth."""
    own = [rule["message"] for rule in schema.get("x-kubernetes-validations", ())]
    parts = [*schema.get("properties", {}).values()]
    parts += [schema[key] for key in ("items", "additionalProperties") if key in schema]
    return own + [message for part in parts for message in messages_in(part)]
