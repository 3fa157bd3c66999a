"""The generated parts of the charts: rules from deploy/, the schema and the page of values."""

import json
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

from karpy.codec.fields import JsonObject
from karpy.model.settings import (
    LogFormat,
    LogLevel,
    MinValuesPolicy,
    Packing,
    PodNomination,
    PreferencePolicy,
)
from karpy.wiring.clouds.registry import PROVIDERS
from tests.tidy.definitions import DEFINITIONS
from tests.tidy.repository import ROOT
from tests.tidy.tables import table

CHART: Final = ROOT / "charts" / "karpenter"
CRD_CHART: Final = ROOT / "charts" / "karpenter-crd"
PAGE: Final = ROOT / "docs" / "chart.md"
ROLES: Final = {
    "core": ("ClusterRole", "karpy"),
    "aws": ("ClusterRole", "karpy-aws"),
    "kwok": ("ClusterRole", "karpy-kwok"),
    "podDeletionCost": ("ClusterRole", "karpy-pod-deletion-cost"),
    "lease": ("Role", "karpy"),
    "dns": ("Role", "karpy-aws"),
}
"""The roles of deploy/rbac.yaml, by name in the chart."""
_TYPES: Final = {
    dict: "object",
    list: "array",
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    type(None): "integer",
}
_CHOICES: Final[dict[str, list[str]]] = {
    "imagePullPolicy": ["Always", "IfNotPresent", "Never"],
    "dnsPolicy": ["ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"],
    "logFormat": [each.value for each in LogFormat],
    "logLevel": ["", *(each.value for each in LogLevel)],
    "settings.provider": sorted(PROVIDERS),
    "settings.preferencePolicy": [each.value for each in PreferencePolicy],
    "settings.minValuesPolicy": [each.value for each in MinValuesPolicy],
    "settings.packing": ["", *(each.value for each in Packing)],
    "settings.nominatePods": ["", *(each.value for each in PodNomination)],
}
_LOOSE: Final = {
    "podDisruptionBudget.maxUnavailable": ["integer", "string"],
    "settings.reservedENIs": ["integer", "string"],
    "settings.vmMemoryOverheadPercent": ["number", "string"],
}
"""Values that are written as numbers and as text."""
_NUMERAL: Final = "^[0-9]+$"
_DURATION: Final = "^([0-9.]+(ns|us|ms|s|m|h))*$"
_PATTERNS: Final = {
    "podDisruptionBudget.maxUnavailable": "^[0-9]+%?$",
    "settings.reservedENIs": _NUMERAL,
    "settings.vmMemoryOverheadPercent": r"^[0-9]*\.?[0-9]+$",
    **dict.fromkeys(
        (
            "settings.amiRefreshInterval",
            "settings.batchIdleDuration",
            "settings.batchMaxDuration",
            "settings.decisionTimeout",
            "settings.subnetRefreshInterval",
        ),
        _DURATION,
    ),
}
"""Patterns of texts, so that a mistake fails at installation and not in the operator's pod."""
_INERT: Final = ("enabled", "global", "webhook", "USER-SUPPLIED VALUES", "COMPUTED VALUES")
"""Values of parent charts, a value that most files still turn off, and Helm's own values."""
_NOTE: Final = "# Written by `make fix` from {source}.\n"
_ANNOTATIONS: Final = (
    "metadata:\n  {{- with .Values.additionalAnnotations }}\n  annotations:\n"
    "    {{- toYaml . | nindent 4 }}\n  {{- end }}\n"
)
_TEXT: Final = re.compile(r"(?m)^( *)(?:# -- (.+)|(\w+): ?(.*))$")


_MOVED: Final[JsonObject] = {"description": "of another chart"}


class _Leaf(NamedTuple):
    schema: Any


def moved(chart: Path = CHART) -> dict[str, str]:
    """Return the hints for values of earlier charts."""
    path = chart / "files" / "moved.yaml"
    found: dict[str, str] = yaml.safe_load(path.read_text("utf-8")) if path.exists() else {}
    return found


def rules() -> dict[str, list[Any]]:
    """Return the rules of deploy/rbac.yaml by the name of their role in the chart."""
    text = (ROOT / "deploy" / "rbac.yaml").read_text(encoding="utf-8")
    found = {
        (each["kind"], each["metadata"]["name"]): each.get("rules")
        for each in yaml.safe_load_all(text)
    }
    return {name: found[of] for name, of in ROLES.items()}


def _roles() -> str:
    return _NOTE.format(source="deploy/rbac.yaml") + yaml.safe_dump(rules(), sort_keys=False)


def _template(write: Callable[[], str]) -> str:
    """Return a definition as template: braces in it are escaped for Helm."""
    body = write().partition("\n")[2].replace("{{", '{{ "{{" }}')
    assert body.count("\nmetadata:\n") == 1
    return _NOTE.format(source="deploy/crds") + body.replace("metadata:\n", _ANNOTATIONS, 1)


def described(text: str) -> Iterator[tuple[str, str]]:
    """Yield path and meaning of each value, from its comment in values.yaml."""
    path: list[str] = []
    meaning = ""
    for indent, comment, name, _ in _TEXT.findall(text):
        if comment:
            meaning = comment
            continue
        path[len(indent) // 2 :] = [name]
        if meaning:
            yield ".".join(path), meaning
        meaning = ""


def value_at(values: JsonObject, path: str) -> object:
    """Return the default of a value."""
    *folders, name = path.split(".")
    for part in folders:
        values = values[part]
    found: object = values[name]
    return found


def _type_of(path: str, value: object) -> JsonObject:
    """Return the JSON schema of a value: the type of its default, or null."""
    if path in _CHOICES:
        return {"enum": _CHOICES[path]}
    text = {"pattern": _PATTERNS[path]} if path in _PATTERNS else {}
    if path in _LOOSE:
        return {"type": [*_LOOSE[path], "null"], **text}
    if isinstance(value, bool) and path.startswith("settings."):
        # Terraform and `--set-string` write booleans as text.
        return {"enum": [True, False, "true", "false"]}
    kind = _TYPES[type(value)]
    if kind == "integer":
        return {"type": [kind, "string", "null"], "pattern": _NUMERAL}
    return {"type": [kind, "null"], **text}


def _schema(chart: Path) -> str:
    text = (chart / "values.yaml").read_text(encoding="utf-8")
    values = yaml.safe_load(text)
    leaves = {path: _type_of(path, value_at(values, path)) for path, _ in described(text)}
    # The schema accepts values of earlier charts; the template fails with a hint for them.
    before = {path: _MOVED for path in moved(chart) if path.rpartition(".")[0] not in moved(chart)}
    inert = dict.fromkeys(_INERT, _MOVED)
    whole = _nested({**before, **inert, **leaves})
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return json.dumps({**head, **_closed(whole), "type": "object"}, indent=2) + "\n"


def _nested(leaves: dict[str, Any]) -> dict[str, Any]:
    """Return a tree of paths; a leaf that is the parent of other leaves is dropped."""
    tree: dict[str, Any] = {}
    for path, leaf in leaves.items():
        *folders, name = path.split(".")
        at = tree
        for each in folders:
            at = at.setdefault(each, {})
        at[name] = _Leaf(leaf)
    return tree


def _closed(tree: dict[str, Any]) -> dict[str, Any]:
    """Forbid unknown values; the hint is a constant, which Helm quotes in its error."""
    known = {
        name: each.schema if isinstance(each, _Leaf) else _closed(each)
        for name, each in tree.items()
    }
    shown = [name for name, each in known.items() if each != _MOVED]
    # A null would remove a table from the defaults, and templates read all tables.
    tables = [name for name, each in tree.items() if not isinstance(each, _Leaf)]
    hint = f"left out: no such value; there are {', '.join(sorted(shown))}"
    return {
        "type": ["object", "null"],
        "properties": known,
        **({"required": sorted(tables)} if tables else {}),
        "additionalProperties": {"const": hint},
    }


def _written(value: object) -> str:
    text = yaml.safe_dump(value, default_flow_style=True, width=10_000).removesuffix("...\n")
    return f"`{text.strip()}`"


def _page() -> str:
    text = (CHART / "values.yaml").read_text(encoding="utf-8")
    values = yaml.safe_load(text)
    rows = [
        (f"`{path}`", _written(value_at(values, path)), meaning)
        for path, meaning in described(text)
    ]
    before = [(f"`{old}`", now) for old, now in moved().items()]
    return _PAGE.format(
        values=table(("value", "default", "meaning"), rows),
        moved=table(("value", "what has become of it"), before),
    )


_PAGE: Final = """\
<!-- Written by `make fix`; change charts/karpenter instead. -->

# Values of the chart

`charts/karpenter` takes the values of Karpenter's chart v1.14, with its defaults.
[Installing with Helm](guides/install.md) says how to use it. The chart fails for a value that is
not listed, and for a value of the wrong type.

## Values

{values}

`enabled` and `global` are for parent charts, and have no effect here. `webhook` with
`enabled: false`, which many values files still have, has no effect either, because there are no
webhooks. Numbers and booleans may be written as text.

## Values of earlier charts

These fail, with what has become of them.

{moved}
"""


CHARTS: Final[dict[Path, Callable[[], str]]] = {
    CHART / "files" / "roles.yaml": _roles,
    **{CHART / "crds" / path.name: write for path, write in DEFINITIONS.items()},
    **{
        CRD_CHART / "templates" / path.name: partial(_template, write)
        for path, write in DEFINITIONS.items()
    },
    **{chart / "values.schema.json": partial(_schema, chart) for chart in (CHART, CRD_CHART)},
    PAGE: _page,
}
