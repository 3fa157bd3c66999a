"""The operator uses all rights in deploy/rbac.yaml, by the audit log of a real API server."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from karpy.adapters.controlplane.operators import NAMESPACE
from karpy.adapters.kube.connection import connect
from tests.e2e.operator.stage import Stage, start_karpy
from tests.wiring.everything import SETTINGS, Everything
from tests.wiring.grants import Use, ungranted, unused

Requests = Callable[[], list[dict[str, Any]]]


@pytest.fixture
def requests(stage: Stage, kubeconfig: Path) -> Iterator[Requests]:
    """
    The audit log of an operator with all feature gates on.

    Earlier operators of the same account made requests that RBAC forbids.
    """
    stage.operator.stop()
    # An existing lease would not be created.
    stage.plane.kubectl("delete", "leases", "--all", "-n", NAMESPACE)
    log = stage.plane.audit_log
    earlier = log.stat().st_size
    with start_karpy(stage.plane, kubeconfig, **SETTINGS):
        yield lambda: [json.loads(line) for line in log.read_bytes()[earlier:].splitlines()]
    stage.operator.start()


def _use_of(entry: dict[str, Any]) -> Use:
    there = entry["objectRef"]
    resource, part = there["resource"], there.get("subresource", "")
    return Use(
        entry["verb"],
        there.get("apiGroup", ""),
        f"{resource}/{part}" if part else resource,
        there.get("namespace", ""),
        there.get("name", ""),
    )


async def test_what_is_granted_is_what_is_used(stage: Stage, requests: Requests) -> None:
    async with connect(kubeconfig=str(stage.plane.kubeconfig)) as admin:
        await Everything(admin.objects).happen()

    entries = requests()
    uses = [_use_of(each) for each in entries]
    denied = [each for each in entries if each.get("responseStatus", {}).get("code") == 403]
    assert denied == []
    assert (ungranted(uses), unused(uses)) == ([], [])
