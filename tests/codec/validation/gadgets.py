"""Small CustomResourceDefinitions for tests."""

from karpy.codec.fields import JsonObject
from karpy.codec.validation.validator import CrdValidator


def definition(**properties: object) -> JsonObject:
    """Return a definition whose spec has these fields."""
    spec = {"type": "object", "properties": properties}
    return definition_of({"type": "object", "properties": {"spec": spec, "status": spec}})


def definition_of(schema: JsonObject | None, version: str = "v1") -> JsonObject:
    """Return a definition with this schema."""
    made: JsonObject = {"name": version, "served": True, "storage": True}
    if schema is not None:
        made["schema"] = {"openAPIV3Schema": schema}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "gadgets.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"kind": "Gadget", "plural": "gadgets"},
            "scope": "Cluster",
            "versions": [made],
        },
    }


def validator(**properties: object) -> CrdValidator:
    return CrdValidator(definition(**properties))


def gadget(**spec: object) -> JsonObject:
    """Return an object with this spec."""
    return {
        "apiVersion": "example.com/v1",
        "kind": "Gadget",
        "metadata": {"name": "g"},
        "spec": spec,
    }


def rule(expression: str, message: str = "", **more: object) -> JsonObject:
    """Return an entry of `x-kubernetes-validations`."""
    return {"rule": expression, "message": message, **more}
