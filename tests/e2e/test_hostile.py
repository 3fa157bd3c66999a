"""kube-apiserver answers hostile requests as the embedded server does, or as the row says."""

import asyncio

import pytest

from karpy.adapters.controlplane.plane import ControlPlane
from tests.controlplane.waiting import wait_until
from tests.hostile.payloads import BODIES, CUSTOM, PATCHES, YAMLS, prepare
from tests.hostile.queries import HEADERS, NO_HTTP, PARAMETERS, PATHS
from tests.hostile.requests import Row, Wire

ROWS = (*PARAMETERS, *PATHS, *HEADERS, *NO_HTTP, *BODIES, *YAMLS, *PATCHES, *CUSTOM)


@pytest.fixture(scope="module")
def wire(control_plane: ControlPlane) -> Wire:
    control_plane.restart_ended()
    wire = Wire(control_plane.server, control_plane.authority, control_plane.token_of())
    asyncio.run(prepare(wire))
    wait_until(lambda: not control_plane.try_kubectl("get", "bases.hostile.example").code)
    return wire


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_real_server_answers_as_the_row_says(wire: Wire, row: Row) -> None:
    assert asyncio.run(wire.ask(row)).status == (row.real or row.status)
