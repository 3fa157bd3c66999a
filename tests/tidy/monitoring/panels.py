"""The parts of a dashboard, and their form in Grafana's JSON."""

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from msgspec import Struct

SCHEMA: Final = 39
"""The version of the dashboard schema of Grafana 11."""
_WIDTH: Final = 24
_DATASOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}


class Query(Struct, frozen=True):
    """A query of Prometheus; the legend contains labels in double braces."""

    expr: str
    legend: str = ""


class Panel(Struct, frozen=True):
    """A panel; `about` says how to read it."""

    title: str
    about: str
    queries: tuple[Query, ...]
    unit: str = "short"
    kind: str = "timeseries"
    width: int = 8
    height: int = 8
    is_stacked: bool = False
    red_above: float | None = None
    """The value from which it is red."""


class Row(Struct, frozen=True):
    """Panels under one heading."""

    title: str
    panels: tuple[Panel, ...]


class Dashboard(Struct, frozen=True):
    """A dashboard of Grafana."""

    uid: str
    title: str
    about: str
    rows: tuple[Row, ...]

    @property
    def queries(self) -> list[Query]:
        """All queries of all panels."""
        return [query for row in self.rows for panel in row.panels for query in panel.queries]


def stat(
    title: str, about: str, expr: str, unit: str = "short", red_above: float | None = None
) -> Panel:
    """Show one number."""
    return Panel(title, about, (Query(expr),), unit, "stat", 4, 4, red_above=red_above)


def graph(title: str, about: str, *queries: Query, unit: str = "short", width: int = 8) -> Panel:
    """Show lines over time."""
    return Panel(title, about, queries, unit, width=width)


def stack(title: str, about: str, *queries: Query, unit: str = "short", width: int = 8) -> Panel:
    """Show areas over time, one on top of the other."""
    return Panel(title, about, queries, unit, width=width, is_stacked=True)


def dashboard_text(dashboard: Dashboard, others: Sequence[Dashboard]) -> str:
    """Write a dashboard as Grafana imports it, with links to the others."""
    value = {
        "annotations": {"list": []},
        "description": dashboard.about,
        "editable": True,
        "fiscalYearStartMonth": 0,
        "graphTooltip": 1,
        "id": None,
        "links": [_link(each) for each in others if each.uid != dashboard.uid],
        "panels": list(_panels(dashboard.rows)),
        "refresh": "1m",
        "schemaVersion": SCHEMA,
        "tags": ["karpy", "karpenter", "kubernetes"],
        "templating": {"list": _variables(dashboard)},
        "time": {"from": "now-6h", "to": "now"},
        "timezone": "browser",
        "title": dashboard.title,
        "uid": dashboard.uid,
        "version": 1,
    }
    return json.dumps(value, indent=2) + "\n"


def _link(dashboard: Dashboard) -> dict[str, Any]:
    return {
        "title": dashboard.title,
        "type": "link",
        "url": f"/d/{dashboard.uid}",
        "keepTime": True,
        "includeVars": True,
    }


def _variables(dashboard: Dashboard) -> list[dict[str, Any]]:
    source = {
        "name": "datasource",
        "label": "Prometheus",
        "type": "datasource",
        "query": "prometheus",
        "hide": 0,
    }
    if not any("$nodepool" in each.expr for each in dashboard.queries):
        return [source]
    return [source, _POOLS]


POOL_VALUES: Final = "label_values(karpenter_nodepools_usage, nodepool)"
_POOLS: Final[dict[str, Any]] = {
    "name": "nodepool",
    "label": "NodePool",
    "type": "query",
    "datasource": _DATASOURCE,
    "definition": POOL_VALUES,
    "query": {"query": POOL_VALUES, "refId": "nodepool"},
    "refresh": 2,
    "includeAll": True,
    "allValue": ".*",
    "multi": True,
    "sort": 1,
    "current": {"selected": True, "text": ["All"], "value": ["$__all"]},
}


def _panels(rows: Sequence[Row]) -> Iterator[dict[str, Any]]:
    """Place panels from left to right, row by row."""
    place, top = 0, 0
    for row in rows:
        place += 1
        yield {
            "type": "row",
            "title": row.title,
            "id": place,
            "collapsed": False,
            "gridPos": {"x": 0, "y": top, "w": _WIDTH, "h": 1},
            "panels": [],
        }
        top, left, height = top + 1, 0, 0
        for panel in row.panels:
            if left + panel.width > _WIDTH:
                top, left, height = top + height, 0, 0
            place += 1
            yield _panel(panel, place, (left, top))
            left += panel.width
            height = max(height, panel.height)
        top += height


def _panel(panel: Panel, place: int, at: tuple[int, int]) -> dict[str, Any]:
    left, top = at
    return {
        "type": panel.kind,
        "title": panel.title,
        "description": panel.about,
        "id": place,
        "datasource": _DATASOURCE,
        "gridPos": {"x": left, "y": top, "w": panel.width, "h": panel.height},
        "targets": [
            {
                "refId": chr(ord("A") + number),
                "datasource": _DATASOURCE,
                "expr": query.expr,
                "legendFormat": query.legend or "__auto",
                "instant": panel.kind == "stat",
                "range": panel.kind != "stat",
            }
            for number, query in enumerate(panel.queries)
        ],
        "fieldConfig": {"defaults": _defaults(panel), "overrides": []},
        "options": _options(panel),
    }


def _defaults(panel: Panel) -> dict[str, Any]:
    steps: list[dict[str, Any]] = [{"color": "green", "value": None}]
    if panel.red_above is not None:
        steps.append({"color": "red", "value": panel.red_above})
    defaults: dict[str, Any] = {
        "unit": panel.unit,
        "min": 0,
        "color": {"mode": "palette-classic" if panel.kind == "timeseries" else "thresholds"},
        "thresholds": {"mode": "absolute", "steps": steps},
    }
    if panel.kind == "timeseries":
        defaults["custom"] = {
            "drawStyle": "line",
            "fillOpacity": 40 if panel.is_stacked else 5,
            "lineWidth": 1,
            "showPoints": "never",
            "stacking": {"mode": "normal" if panel.is_stacked else "none", "group": "A"},
        }
    return defaults


def _options(panel: Panel) -> dict[str, Any]:
    if panel.kind == "stat":
        return {
            "colorMode": "value",
            "graphMode": "area",
            "justifyMode": "auto",
            "textMode": "auto",
            "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
        }
    return {
        "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
        "tooltip": {"mode": "multi", "sort": "desc"},
    }
