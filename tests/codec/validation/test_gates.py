"""The quick check must agree with the full validation, so that no invalid object passes."""

import pytest

from karpy.codec.fields import JsonObject
from karpy.codec.validation.gates import gate
from karpy.codec.validation.schemafaults import SchemaPlace, schema_faults
from karpy.codec.validation.shaping import shaped
from tests.contract.crdcases.cases import CrdCase, read_cases, read_definitions

SCHEMAS = {
    kind: crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    for kind, crd in read_definitions().items()
}
GATES = {kind: gate(schema) for kind, schema in SCHEMAS.items()}


def is_faultless(case: CrdCase, obj: JsonObject) -> bool:
    return schema_faults(obj, SCHEMAS[case.kind], SchemaPlace()) == []


@pytest.mark.parametrize("case", read_cases(), ids=lambda case: case.id)
def test_a_value_that_passes_the_gate_has_no_fault(case: CrdCase) -> None:
    accepted = shaped(case.accepted, SCHEMAS[case.kind])
    rejected = shaped(case.rejected, SCHEMAS[case.kind])

    assert is_faultless(case, accepted)
    assert GATES[case.kind](rejected) <= is_faultless(case, rejected)


def test_a_pattern_that_only_go_and_python_know_still_counts() -> None:
    schema = {"type": "string", "pattern": r"^(?P<digit>\d)\z"}
    broken = {"type": "string", "pattern": "("}

    assert gate(schema)("x") is False
    assert gate(broken)("x") is False
