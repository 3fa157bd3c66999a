"""`karpy errors`: every error code and what it means."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from karpy.cli.options import DONE, Injected, Output
from karpy.cli.plans import join_sections
from karpy.cli.tables import Column, heading, table
from karpy.cli.terminal import Line, Span, Style, line
from karpy.errors import Bug, CloudError, ClusterError, ConfigError, KarpyError

_FAMILIES: Final = (
    ("Yours to mend", ConfigError),
    ("Said by an API server", ClusterError),
    ("Said by a cloud", CloudError),
    ("Ours to mend", Bug),
)


class Code(Struct, frozen=True):
    """One error a user may see."""

    code: str
    name: str
    meaning: str


def errors(*, output: Output = "text", terminal: Injected) -> int:
    """
    List the error codes and what each means.

    For example:

        $ karpy errors
    """
    families = [(title, _codes_of(family)) for title, family in _FAMILIES]
    if output == "json":
        terminal.answer_json(
            [
                {"code": each.code, "name": each.name, "meaning": each.meaning, "family": title}
                for title, codes in families
                for each in codes
            ]
        )
    else:
        terminal.answer(
            join_sections([heading(title), *_code_lines(codes)] for title, codes in families)
        )
    return DONE


def _codes_of(family: type[KarpyError]) -> list[Code]:
    codes = [
        Code(kind.code, kind.__name__, (kind.__doc__ or "").strip().partition("\n")[0])
        for kind in family.__subclasses__()
    ]
    return sorted(codes, key=lambda each: each.code)


def _code_lines(codes: Sequence[Code]) -> list[Line]:
    columns = (Column("code"), Column("name"), Column("meaning"))
    rows = [
        [line(Span(each.code, Style.NAME)), line(each.name), line(each.meaning)] for each in codes
    ]
    return table(columns, rows)
