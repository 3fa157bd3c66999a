"""Placeholders of templates that are not filled in."""

import re
from collections.abc import Iterator
from typing import Final

from karpy.codec.fields import FieldInvalid


class PlaceholderLeft(FieldInvalid):
    """A text has a placeholder, so that its other faults cannot be known yet."""


_PLACEHOLDER: Final = re.compile(
    r"\$\{[^{}\n]+\}|\$\([\w.-]+\)|\$[A-Z][A-Z0-9_]+|<<[^<>\s]+>>|<[A-Za-z][\w -]*>"
    r"|__[A-Za-z](?:\w*?[A-Za-z0-9])?__|\{\{[^{}]*\}\}"
)
_OF_TERRAFORM: Final = re.compile(r"\$\{(?:data|each|local|module|var)\.|\$\{\w+\(")
_FREE: Final = frozenset(
    {
        "annotations",
        "args",
        "command",
        "data",
        "env",
        "envFrom",
        "image",
        "lifecycle",
        "livenessProbe",
        "managedFields",
        "readinessProbe",
        "startupProbe",
        "status",
        "stringData",
        "userData",
        "volumeMounts",
        "volumes",
        "workingDir",
    }
)
"""Fields whose text may hold variables of shells, kubelets and containers."""


_SHOWN_MAX: Final = 5
SIGNS: Final = ("$", "<", "__", "{{")
"""A text without any of these has no placeholder."""


def placeholders_in(text: str) -> tuple[str, ...]:
    """Name the placeholders in a text, each once."""
    return tuple(dict.fromkeys(_PLACEHOLDER.findall(text)))


def fill_in(names: tuple[str, ...]) -> str:
    """Return the hint for these placeholders."""
    shown = ", ".join(f"`{each}`" for each in names[:_SHOWN_MAX])
    if any(map(_OF_TERRAFORM.match, names)):
        return f"fill in {shown} first, as Terraform does"
    return f"fill in {shown} first, for example with `envsubst` or `helm template`"


def placeholder_faults(value: object, path: str = "") -> Iterator[PlaceholderLeft]:
    """Find texts with placeholders, wherever Karpy or Karpenter reads them."""
    match value:
        case str():
            if names := placeholders_in(value):
                yield PlaceholderLeft(path, f"is `{value}`, which is not filled in", fill_in(names))
        case list():
            for index, each in enumerate(value):
                yield from placeholder_faults(each, f"{path}[{index}]")
        case dict():
            for key, each in value.items():
                if key in _FREE:
                    continue
                at = f"[{key}]" if {*".-/"} & {*str(key)} else f".{key}"
                at = f"{path}{at}".removeprefix(".")
                if isinstance(key, str) and (names := placeholders_in(key)):
                    yield PlaceholderLeft(at, "is not filled in", fill_in(names))
                yield from placeholder_faults(each, at)
