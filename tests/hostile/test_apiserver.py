"""Requests that are made to get a mistake out of the embedded API server."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from hypothesis import HealthCheck, given, settings

from karpy.sim.kubelets.timing import AT_ONCE
from karpy.sim.world import WorldSettings
from karpy.wiring.embedded import embedded_world, serve
from tests.hostile.drafts import drafts
from tests.hostile.memory import at_most
from tests.hostile.payloads import BODIES, CUSTOM, DOUBLING, LAUGHS, PATCHES, YAMLS, prepare
from tests.hostile.queries import HEADERS, NO_HTTP, PARAMETERS, PATHS
from tests.hostile.requests import CONFIG_MAPS, OPERATIONS, REASONS, TRIED, YAML, Row, Wire, dump

pytestmark = pytest.mark.asyncio(loop_scope="module")

ROWS = (*PARAMETERS, *PATHS, *HEADERS, *BODIES, *YAMLS, *PATCHES, *CUSTOM)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def wire() -> AsyncIterator[Wire]:
    """A way to a server that serves a few objects, and must make no mistake."""
    mistakes: list[BaseException] = []
    async with (
        embedded_world(WorldSettings(timing=AT_ONCE, history=50)) as world,
        serve(world, report=mistakes.append) as served,
    ):
        wire = Wire(served.url, served.authority, served.token)
        await prepare(wire)
        yield wire
    assert mistakes == []


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
async def test_a_hostile_request_is_refused_by_name(wire: Wire, row: Row) -> None:
    reply = await wire.ask(row)

    assert (reply.status, reply.reason) == (row.status, REASONS.get(row.status, ""))


@pytest.mark.parametrize("row", NO_HTTP, ids=lambda row: row.name)
async def test_what_is_no_http_is_a_bad_request(wire: Wire, row: Row) -> None:
    assert (await wire.ask(row)).status == row.status


@pytest.mark.parametrize(
    "row",
    [
        Row("laughs", "POST", f"{CONFIG_MAPS}{TRIED}", 400, LAUGHS, YAML),
        Row("doubling", "PATCH", f"{CONFIG_MAPS}/base{TRIED}", 422, dump(DOUBLING), OPERATIONS),
    ],
    ids=lambda row: row.name,
)
async def test_a_request_takes_little_memory(wire: Wire, row: Row) -> None:
    with at_most(megabytes=50):
        reply = await wire.ask(row)

    assert reply.status == row.status


@given(row=drafts())
@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
async def test_no_request_gets_a_mistake_out_of_the_server(wire: Wire, row: Row) -> None:
    reply = await wire.ask(row)

    assert reply.status < 500, reply.body
