"""What types of custom resources are made of: names on the wire, bounds, rules, defaults."""

from typing import Annotated, Final

from msgspec import Meta, Struct

from karpy.codec.fields import JsonObject

_CAPITALS: Final = {
    "cfs": "CFS",
    "dns": "DNS",
    "gc": "GC",
    "id": "ID",
    "ip": "IP",
    "ipv6": "IPv6",
}
"""Words that Kubernetes does not write in camel case, unless a name begins with them."""

DEFAULT: Final = "x-default"
"""Stands for `default` until the schema is written out, because msgspec writes `default` itself."""

_AMOUNT: Final = r"(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
QUANTITY_PATTERN: Final = rf"^(\+|-)?{_AMOUNT}(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?{_AMOUNT}))?$"
_DNS_PREFIX: Final = r"([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*(\/))?"
LABEL_KEY_PATTERN: Final = rf"^{_DNS_PREFIX}([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$"
LABEL_VALUE_PATTERN: Final = r"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$"


def wire_name(name: str) -> str:
    """Say what a field is called on the wire: `provider_id` is `providerID` there."""
    first, *rest = name.split("_")
    return first + "".join(_CAPITALS.get(word, word.capitalize()) for word in rest)


class Wire(Struct, frozen=True, rename=wire_name):
    """A part of a custom resource; its docstring and those of its fields are for users."""


class SchemaRule(Struct, frozen=True):
    """A CEL expression that must hold, and what to say if it does not."""

    expression: str
    message: str


def about(text: str) -> Meta:
    """Describe a field; `kubectl explain` shows it."""
    return Meta(description=text)


def rules(*all_of: SchemaRule) -> Meta:
    """Add CEL rules for what a schema cannot express."""
    each = [{"message": rule.message, "rule": rule.expression} for rule in all_of]
    return Meta(extra_json_schema={"x-kubernetes-validations": each})


def default(value: object) -> Meta:
    """Fill in an object or a list where nothing is given."""
    return Meta(extra_json_schema={DEFAULT: value})


def list_type(name: str, *keys: str) -> Meta:
    """Say how lists are merged: `atomic`, `set`, or `map` with the keys of an entry."""
    extra: JsonObject = {"x-kubernetes-list-type": name}
    if keys:
        extra["x-kubernetes-list-map-keys"] = list(keys)
    return Meta(extra_json_schema=extra)


def map_type(name: str) -> Meta:
    """Say how maps are merged: `atomic` or `granular`."""
    return Meta(extra_json_schema={"x-kubernetes-map-type": name})


def number_format(name: str) -> Meta:
    """Say how large a number may be: `int32` or `int64`."""
    return Meta(extra_json_schema={"format": name})


Duration = Annotated[str, Meta(pattern=r"^([0-9]+(s|m|h))+$")]
DurationOrNever = Annotated[str, Meta(pattern=r"^(([0-9]+(s|m|h))+|Never)$")]
Int32 = Annotated[int, number_format("int32")]
Int64 = Annotated[int, number_format("int64")]
Natural32 = Annotated[int, number_format("int32"), Meta(ge=0)]
Quantity = Annotated[
    int | str,
    Meta(extra_json_schema={"pattern": QUANTITY_PATTERN, "x-kubernetes-int-or-string": True}),
]
Resources = dict[str, Quantity]
Time = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
