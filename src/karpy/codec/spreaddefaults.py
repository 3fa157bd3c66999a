"""The part of kube-scheduler's configuration that Karpenter mirrors: default spread constraints."""

from typing import Final

from karpy.codec.constraints import read_spreads
from karpy.codec.documents import Document, read_documents
from karpy.codec.fields import FieldInvalid, Fields
from karpy.errors import ManifestInvalid
from karpy.model.constraints import SpreadConstraint

_PLUGIN: Final = "podTopologySpread"
_LIST: Final = "defaultConstraints"
_KNOWN: Final = frozenset(
    {
        "maxSkew",
        "topologyKey",
        "whenUnsatisfiable",
        "minDomains",
        "nodeAffinityPolicy",
        "nodeTaintsPolicy",
    }
)
_DEDUCED: Final = frozenset({"labelSelector", "matchLabelKeys"})


def read_spread_defaults(text: str) -> tuple[SpreadConstraint, ...]:
    """Read YAML or JSON with `podTopologySpread.defaultConstraints`; raise FieldInvalid."""
    documents = list(read_documents("", text)) if text.strip() else []
    if not documents:
        return ()
    if len(documents) > 1:
        raise FieldInvalid("", "has more than one document", "write a single one")
    only = documents[0]
    if isinstance(only, ManifestInvalid):
        raise FieldInvalid(only.path, only.problem, only.hint)
    return _read(only)


def _read(document: Document) -> tuple[SpreadConstraint, ...]:
    whole = Fields(document.value)
    _refuse_others(whole, frozenset({_PLUGIN}))
    plugin = whole.child(_PLUGIN)
    _refuse_others(plugin, frozenset({_LIST}))
    for each in plugin.children(_LIST):
        for key in sorted(_DEDUCED & each.obj.keys()):
            each.fail(key, "is not allowed here", "leave it out: it is deduced for each pod")
        _refuse_others(each, _KNOWN)
    spreads = read_spreads(plugin, _LIST)
    _refuse_repeats(plugin, spreads)
    return spreads


def _refuse_others(fields: Fields, known: frozenset[str]) -> None:
    for key in fields.obj:
        if key not in known:
            fields.fail(str(key), "is unknown", f"use only {', '.join(sorted(known))}")


def _refuse_repeats(plugin: Fields, spreads: tuple[SpreadConstraint, ...]) -> None:
    seen: set[tuple[str, str]] = set()
    for index, each in enumerate(spreads):
        pair = (each.topology_key, each.when_unsatisfiable.value)
        if pair in seen:
            plugin.fail(
                f"{_LIST}[{index}]",
                f"repeats {each.topology_key} with {each.when_unsatisfiable.value}",
                "keep one constraint for each topologyKey and whenUnsatisfiable",
            )
        seen.add(pair)
