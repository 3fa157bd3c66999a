"""What deploy/rbac.yaml grants is what an operator uses; tests/e2e says the same of a real one."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.typedefs import Handler

from karpy.adapters.apiserver.application import Face
from karpy.model.kinds import KWOK_NODE_CLASS, NAMESPACE
from karpy.model.options import Options
from karpy.sim.kubelets.timing import Timing
from karpy.sim.world import WorldSettings
from karpy.wiring.embedded import embedded_world, serve
from karpy.wiring.options import read_options
from karpy.wiring.process import run_process
from tests.scenarios.manifests import node_class
from tests.wiring.everything import SETTINGS, Everything
from tests.wiring.grants import (
    BY_CHOICE,
    DOCUMENTS,
    Use,
    explained,
    grants,
    ungranted,
    unused,
    use_of,
)

BRISK = WorldSettings(timing=Timing(ready_seconds=0, speed=50))


def _named(kind: str) -> list[dict[str, Any]]:
    return [each for each in DOCUMENTS if each["kind"] == kind]


@pytest.fixture
def uses(monkeypatch: pytest.MonkeyPatch) -> list[Use]:
    """Every request that embedded API servers get from now on."""
    noted: list[Use] = []
    serving = Face.application

    @web.middleware
    async def note(request: web.Request, handler: Handler) -> web.StreamResponse:
        noted.append(use_of(request.method, request.path, request.query))
        return await handler(request)

    def application(face: Face) -> web.Application:
        made = serving(face)
        made.middlewares.append(note)
        return made

    monkeypatch.setattr(Face, "application", application)
    return noted


async def test_what_is_granted_is_what_is_used(tmp_path: Path, uses: list[Use]) -> None:
    async with embedded_world(BRISK) as world, serve(world) as served:
        words = (
            f"--kubeconfig={served.kubeconfig}",
            f"--log-output-paths={tmp_path / 'log'}",
            "--leader-election-namespace=karpenter",
            "--metrics-port=0",
            "--health-probe-port=0",
        )
        world.store.create(NAMESPACE, {"metadata": {"name": "karpenter"}})
        world.store.create(KWOK_NODE_CLASS, node_class())
        end = asyncio.Event()
        task = asyncio.create_task(run_process(read_options(words, SETTINGS), {}, end))
        try:
            await Everything(world.objects).happen()
        finally:
            end.set()
            await task

    assert (ungranted(uses), unused(uses)) == ([], [])


def test_every_grant_has_its_reason_in_the_documentation() -> None:
    granted = {
        (each.role, each.verb, f"{each.resource}.{each.group}".rstrip(".")) for each in grants()
    }

    assert set(explained()) == granted


def test_only_our_lease_may_be_written() -> None:
    leases = {(each.verb, each.namespace, each.name) for each in grants() if "leases" in each}

    assert leases == {
        ("create", "karpenter", ""),
        ("get", "karpenter", Options().lease_name),
        ("update", "karpenter", Options().lease_name),
    }


def test_every_role_but_those_by_choice_is_bound_to_our_account() -> None:
    account = _named("ServiceAccount")[0]["metadata"]
    roles = {(each["kind"], each["metadata"]["name"]) for each in _named("ClusterRole")}
    roles |= {(each["kind"], each["metadata"]["name"]) for each in _named("Role")}
    bindings = [*_named("ClusterRoleBinding"), *_named("RoleBinding")]

    assert {(each["roleRef"]["kind"], each["roleRef"]["name"]) for each in bindings} == {
        role for role in roles if role[1] not in BY_CHOICE
    }
    assert [each["subjects"] for each in bindings] == [
        [{"kind": "ServiceAccount", "name": account["name"], "namespace": account["namespace"]}]
    ] * len(bindings)


def test_what_only_kwok_needs_is_granted_with_kwok() -> None:
    kwok = {(each.verb, each.resource) for each in grants() if each.role == "karpy-kwok"}

    assert kwok == {
        ("create", "nodes"),
        ("get", "kwoknodeclasses"),
        ("get", "nodes"),
        ("list", "kwoknodeclasses"),
        ("patch", "nodes/status"),
        ("watch", "kwoknodeclasses"),
    }


def test_pods_may_be_patched_by_choice_alone() -> None:
    assert [each.role for each in grants() if each[:3] == ("patch", "", "pods")] == [
        "karpy-pod-deletion-cost"
    ]
    assert {each.verb for each in grants() if each.role in BY_CHOICE} == {"patch"}
