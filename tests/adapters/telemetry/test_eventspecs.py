import ast
from collections.abc import Iterator
from pathlib import Path

from karpy.adapters.telemetry.eventspecs import EVENTS, EventSpec
from karpy.wiring.clouds.registry import PROVIDERS, find_cloud
from tests.tidy.repository import product_files, tree


def _reasons(path: Path) -> Iterator[str]:
    """Find the reasons that notices are made with, where they are written out."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Notice":
            named = [each.value for each in node.keywords if each.arg == "reason"]
            for reason in (*node.args[1:2], *named):
                if isinstance(reason, ast.Constant):
                    yield str(reason.value)


def _of_clouds() -> list[EventSpec]:
    return [each for name in PROVIDERS for each in find_cloud(name).EVENTS]


def test_every_event_is_described_once() -> None:
    reasons = [each.reason for each in (*EVENTS, *_of_clouds())]

    assert len(set(reasons)) == len(reasons)


def test_every_published_event_is_described() -> None:
    told = {reason for path in product_files() for reason in _reasons(path)}

    unknown = sorted(told - {each.reason for each in (*EVENTS, *_of_clouds())})

    assert told
    assert unknown == [], "describe it in adapters/telemetry/eventspecs.py"
