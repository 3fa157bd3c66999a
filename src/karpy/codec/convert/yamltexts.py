"""Objects as YAML that every YAML reader reads as the same values."""

import re
from collections.abc import Iterable
from typing import Final

import yaml
from yaml.emitter import ScalarAnalysis

from karpy.codec.comments import with_comments
from karpy.codec.convert.conversion import Product
from karpy.codec.fields import JsonObject
from karpy.codec.yamltext import parse_yaml

_WIDTH: Final = 4096
"""Wide enough that no line of a text is wrapped."""
_AMBIGUOUS: Final = re.compile(
    r"^(?:[yYnN]|[-+]?\.?[0-9][0-9_.]*(?:[eE][-+]?[0-9]+)?|0o[0-7]+|0x[0-9a-fA-F]+|\d+-\d+-\d+.*)$"
)
"""Texts that some YAML readers take for a truth value, a number or a date."""
_BREAKS: Final = re.compile("[\x85\u2028\u2029]")
"""Characters that some YAML readers take for the end of a line."""
_BEGIN: Final = re.compile(r"^---(?:[ \t]+(?P<rest>.*))?\n", re.MULTILINE)
_START: Final = "---\n"


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: object) -> bool:
        """Write repeated objects in full, without aliases."""
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
    if _BREAKS.search(text):
        style = '"'
    elif "\n" in text:
        style = "|"
    elif _AMBIGUOUS.match(text):
        style = '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _write_text)


def write_products(products: Iterable[Product]) -> str:
    """Write objects as documents of one file, as their authors did where that is possible."""
    return "".join(map(_written, products))


def to_yaml(objects: Iterable[JsonObject], *, in_ascii: bool = False) -> str:
    """Write objects as documents of one file."""
    return yaml.dump_all(
        objects,
        Dumper=_Dumper,
        sort_keys=False,
        width=_WIDTH,
        explicit_start=True,
        allow_unicode=not in_ascii,
    )


def _written(product: Product) -> str:
    own = _own(product)
    if own:
        return own
    text = to_yaml([product.value])
    if not product.comments:
        return text
    return _START + with_comments(text.removeprefix(_START), product.comments)


def _own(product: Product) -> str:
    """Return the source text of the author after a new `---`; empty if there is none."""
    text = product.text
    if text and not text.endswith("\n"):
        text += "\n"
        # The added line end may change a block scalar at the end of the file.
        text = text if parse_yaml(text) == product.value else ""
    begin = _BEGIN.search(text)
    if not text or begin is None:
        return _START + text if text else ""
    if begin["rest"] and not begin["rest"].startswith("#"):
        return text
    rest = f"{begin['rest']}\n" if begin["rest"] else ""
    return f"{_START}{text[: begin.start()]}{rest}{text[begin.end() :]}"
