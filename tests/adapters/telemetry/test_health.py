import pytest
from aiohttp import ClientSession

from karpy.adapters.telemetry.health import (
    PATIENCE_SECONDS,
    ProgressCheck,
    health_application,
    ping,
)
from karpy.adapters.telemetry.servers import HttpServer
from karpy.controllers.queue import UNOBSERVED
from karpy.ports.observers import Observer, ReconcileResult


class _Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> _Clock:
    return _Clock()


@pytest.fixture
def progress(clock: _Clock) -> ProgressCheck:
    return ProgressCheck(clock)


@pytest.fixture
def observer(progress: ProgressCheck) -> Observer:
    return progress.of("nodepool", UNOBSERVED)


def test_a_controller_without_work_is_well_for_ever(
    progress: ProgressCheck, observer: Observer, clock: _Clock
) -> None:
    observer.add("a")
    observer.take("a")
    observer.finish("a", ReconcileResult.SUCCESS)
    observer.put_off("a")

    clock.now = 10 * PATIENCE_SECONDS

    assert progress.check() == ""


@pytest.mark.parametrize(("seconds", "is_well"), [(0, True), (1, False)])
def test_work_that_waits_too_long_is_reported(
    progress: ProgressCheck, observer: Observer, clock: _Clock, seconds: float, *, is_well: bool
) -> None:
    observer.add("a")
    observer.add("b")
    observer.take("a")

    clock.now = PATIENCE_SECONDS + seconds

    told = "nodepool has finished nothing for 301 s, with 2 at work or waiting"
    assert progress.check() == ("" if is_well else told)


def test_what_fails_again_and_again_is_progress(
    progress: ProgressCheck, observer: Observer, clock: _Clock
) -> None:
    observer.add("waiting")
    observer.take("failing")
    clock.now = PATIENCE_SECONDS
    observer.finish("failing", ReconcileResult.ERROR)

    clock.now = 2 * PATIENCE_SECONDS

    assert progress.check() == ""


async def test_a_kubelet_hears_of_stuck_controllers(
    progress: ProgressCheck, observer: Observer, clock: _Clock
) -> None:
    observer.take("a")
    clock.now = PATIENCE_SECONDS + 1
    checks = {"ping": ping, "controllers": progress.check}

    async with (
        HttpServer(health_application({}, checks), 0, flag="-") as site,
        ClientSession() as session,
        session.get(f"http://localhost:{site.port}/healthz") as response,
    ):
        answer = response.status, await response.text()

    told = "nodepool has finished nothing for 301 s, with 1 at work or waiting"
    assert answer == (
        500,
        f"[+]ping ok\n[-]controllers failed: {told}\nhealthz check failed\n",
    )
