"""`karpy crds`: the CustomResourceDefinitions that a cluster needs."""

from typing import Annotated, Literal

from cyclopts import Parameter

from karpy.cli.options import DONE, Injected
from karpy.cli.terminal import line
from karpy.codec.schemas.definitions import CUSTOM_KINDS, CustomKind
from karpy.errors import ObjectNotFound


def crds(
    names: Annotated[
        tuple[str, ...],
        Parameter(help="Only these, as nodepools or NodePool. [default: all]", negative=()),
    ] = (),
    /,
    *,
    output: Annotated[Literal["yaml", "json"], Parameter(help="How to write them.")] = "yaml",
    terminal: Injected,
) -> int:
    """
    Print the CustomResourceDefinitions.

    They are Karpenter's own, with the same fields, defaults and rules. For example:

        $ karpy crds | kubectl apply --server-side -f -
        $ karpy crds nodepools
    """
    kinds = [_find(name) for name in names] or CUSTOM_KINDS
    if output == "json":
        items = [each.to_json() for each in kinds]
        terminal.answer_json({"apiVersion": "v1", "kind": "List", "items": items})
    else:
        text = "---\n".join(each.to_yaml() for each in kinds)
        terminal.answer(line(each) for each in text.splitlines())
    return DONE


def _find(name: str) -> CustomKind:
    wanted = name.lower()
    for each in CUSTOM_KINDS:
        kind = each.kind
        if wanted in {kind.name.lower(), kind.plural, each.name, *each.short_names}:
            return each
    known = ", ".join(each.kind.plural for each in CUSTOM_KINDS)
    raise ObjectNotFound(kind="custom resource", name=name, known=known)
