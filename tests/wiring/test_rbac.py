"""What deploy/rbac.yaml grants is what an operator uses; tests/e2e says the same of a real one."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.typedefs import Handler

from karpy.adapters.apiserver.application import HttpApi
from karpy.model.kinds import EC2_NODE_CLASS, KWOK_NODE_CLASS, NAMESPACE
from karpy.model.settings import Options
from karpy.sim.kubelets.timing import KubeletTiming
from karpy.sim.world import World, WorldSettings
from karpy.wiring.embedded import embedded_world, serve
from karpy.wiring.options import read_options
from karpy.wiring.process import run_process
from tests.codec.aws.test_instancetypes import M5_LARGE
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
from tests.wiring.test_process import until

EC2_SPEC = {
    "role": "nodes",
    "amiSelectorTerms": [{"alias": "al2023@latest"}],
    "subnetSelectorTerms": [{"tags": {"team": "shop"}}],
    "securityGroupSelectorTerms": [{"tags": {"team": "shop"}}],
}
BRISK = WorldSettings(timing=KubeletTiming(ready_seconds=0, speed=50))


def _named(kind: str) -> list[dict[str, Any]]:
    return [each for each in DOCUMENTS if each["kind"] == kind]


@pytest.fixture
def uses(monkeypatch: pytest.MonkeyPatch) -> list[Use]:
    """Every request that embedded API servers get from now on."""
    noted: list[Use] = []
    serving = HttpApi.application

    @web.middleware
    async def note(request: web.Request, handler: Handler) -> web.StreamResponse:
        # Kubernetes itself grants everyone the version of the API server.
        if request.path != "/version":
            noted.append(use_of(request.method, request.path, request.query))
        return await handler(request)

    def application(http_api: HttpApi) -> web.Application:
        made = serving(http_api)
        made.middlewares.append(note)
        return made

    monkeypatch.setattr(HttpApi, "application", application)
    return noted


@asynccontextmanager
async def operated(folder: Path, *flags: str) -> AsyncIterator[World]:
    """Have a cluster, and an operator that works for it over HTTP with all gates open."""
    async with embedded_world(BRISK) as world, serve(world) as served:
        words = (
            f"--kubeconfig={served.kubeconfig}",
            f"--log-output-paths={folder / 'log'}",
            "--leader-election-namespace=karpenter",
            "--metrics-port=0",
            "--health-probe-port=0",
            *flags,
        )
        world.store.create(NAMESPACE, {"metadata": {"name": "karpenter"}})
        end = asyncio.Event()
        task = asyncio.create_task(run_process(read_options(words, SETTINGS), {}, end))
        try:
            yield world
        finally:
            end.set()
            await task


class EmptyAccount:
    """Calls to AWS for an account with a cluster, in a region that sells one instance type."""

    region = "eu-west-1"
    partition = "aws"

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        async def call(**_: object) -> list[Any] | dict[str, Any]:
            has_many = name.endswith("s") and name != "create_tags"
            return [] if has_many else {}

        return call

    async def describe_instance_types(self, **_: object) -> list[Any]:
        return [M5_LARGE]

    async def describe_instance_type_offerings(self, **_: object) -> list[Any]:
        return [{"InstanceType": "m5.large", "Location": "eu-west-1a"}]


async def test_what_is_granted_is_what_is_used(tmp_path: Path, uses: list[Use]) -> None:
    async with operated(tmp_path) as world:
        world.store.create(KWOK_NODE_CLASS, node_class())
        await Everything(world.objects).happen()

    assert (ungranted(uses), unused(uses)) == ([], [])


async def test_what_only_aws_needs_is_granted_with_aws(
    tmp_path: Path, uses: list[Use], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def connect(**_: object) -> EmptyAccount:
        return EmptyAccount()

    monkeypatch.setattr("karpy.wiring.clouds.aws.connect_aws", connect)
    queue = "--interruption-queue=interruptions"
    async with operated(tmp_path, "--provider=aws", "--cluster-name=shop", queue) as world:
        world.store.create(EC2_NODE_CLASS, {"metadata": {"name": "default"}, "spec": EC2_SPEC})
        await until(lambda: _has_conditions(world))
        world.store.delete(EC2_NODE_CLASS, "default")
        await until(lambda: world.store.find(EC2_NODE_CLASS, "default") is None)

    ours = [each for each in unused(uses, "aws") if each.role == "karpy-aws"]
    assert (ungranted(uses), ours) == ([], [])
    assert {each for each in uses if each.resource.startswith("ec2nodeclasses")}


def _has_conditions(world: World) -> bool:
    found = world.store.find(EC2_NODE_CLASS, "default") or {}
    return bool((found.get("status") or {}).get("conditions"))


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


def test_no_provider_has_what_only_another_one_needs() -> None:
    aws = {(each.verb, each.resource, each.name) for each in grants() if each.role == "karpy-aws"}

    assert aws == {
        ("get", "services", "kube-dns"),
        ("list", "ec2nodeclasses", ""),
        ("patch", "ec2nodeclasses", ""),
        ("patch", "ec2nodeclasses/status", ""),
        ("watch", "ec2nodeclasses", ""),
    }


def test_pods_may_be_patched_by_choice_alone() -> None:
    assert [each.role for each in grants() if each[:3] == ("patch", "", "pods")] == [
        "karpy-pod-deletion-cost"
    ]
    assert {each.verb for each in grants() if each.role in BY_CHOICE} == {"patch"}
