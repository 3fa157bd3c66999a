"""Objects as YAML that every reader takes for the same values."""

import re
from collections.abc import Iterable
from typing import Final

import yaml
from yaml.emitter import ScalarAnalysis

from karpy.codec.fields import JsonObject

_WIDTH: Final = 4096
"""No text is broken into lines that its author wrote as one."""
_AMBIGUOUS: Final = re.compile(
    r"^(?:[yYnN]|[-+]?\.?[0-9][0-9_.]*(?:[eE][-+]?[0-9]+)?|0o[0-7]+|0x[0-9a-fA-F]+|\d+-\d+-\d+.*)$"
)
"""Texts that some reader of YAML takes for a truth value, a number or a date."""


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: object) -> bool:
        """Write out what appears more than once."""
        return data is not self

    def analyze_scalar(self, scalar: str) -> ScalarAnalysis:
        """Allow tabs in texts of several lines, such as scripts, so that they stay readable."""
        if "\n" not in scalar or "\t" not in scalar:
            return super().analyze_scalar(scalar)
        analysis = super().analyze_scalar(scalar.replace("\t", " "))
        analysis.scalar = scalar
        return analysis


def _write_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = None
    if "\n" in text:
        style = "|"
    elif _AMBIGUOUS.match(text):
        style = '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _write_text)


def to_yaml(objects: Iterable[JsonObject]) -> str:
    """Write objects as documents of one file."""
    return yaml.dump_all(
        objects, Dumper=_Dumper, sort_keys=False, width=_WIDTH, explicit_start=True
    )
