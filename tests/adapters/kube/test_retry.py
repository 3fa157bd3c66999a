import asyncio

import pytest

from karpy.adapters.kube.retry import Patience, Repeat, TokenBucket
from karpy.errors import ClusterError, Conflict, ServerFault, Throttled, Unreachable
from karpy.model.backoff import Backoff
from tests.adapters.kube.clocks import run

PATIENCE = Patience(tries=4, first_seconds=1, longest_seconds=3, asked_seconds_max=60)


async def moment_of_turn(bucket: TokenBucket) -> float:
    await bucket.take()
    return round(asyncio.get_running_loop().time(), 3)


@pytest.mark.parametrize(("tried", "seconds"), [(1, 1), (2, 2), (3, 3), (4, None)])
def test_pauses_grow_up_to_a_limit_and_end(tried: int, seconds: float | None) -> None:
    pause = PATIENCE.pause(tried, Unreachable("gone"), Repeat.ALWAYS, lambda: 1.0)

    assert pause == seconds


def test_pauses_are_spread_out() -> None:
    pause = PATIENCE.pause(1, Unreachable("gone"), Repeat.ALWAYS, lambda: 0.0)

    assert pause == 0.5


@pytest.mark.parametrize(
    ("error", "repeat", "is_repeated"),
    [
        (Unreachable("x"), Repeat.ALWAYS, True),
        (ServerFault("x"), Repeat.ALWAYS, True),
        (Throttled("x"), Repeat.ALWAYS, True),
        (Conflict("x"), Repeat.ALWAYS, False),
        (Unreachable("x"), Repeat.IF_NOT_SERVED, False),
        (ServerFault("x"), Repeat.IF_NOT_SERVED, False),
        (Throttled("x"), Repeat.IF_NOT_SERVED, True),
        (Throttled("x"), Repeat.NEVER, False),
    ],
)
def test_what_is_repeated_depends_on_the_error_and_the_request(
    error: ClusterError, repeat: Repeat, *, is_repeated: bool
) -> None:
    assert (PATIENCE.pause(1, error, repeat, lambda: 1.0) is not None) == is_repeated


@pytest.mark.parametrize(("asked", "pause"), [(0, 0.5), (7, 7.5), (61, None)])
def test_retry_after_is_respected_up_to_a_limit(asked: float, pause: float | None) -> None:
    error = Throttled("slow down", retry_after=asked)

    assert PATIENCE.pause(1, error, Repeat.ALWAYS, lambda: 1.0) == pause


def test_a_backoff_grows_and_can_be_reset() -> None:
    backoff = Backoff(first=1, longest=5, dice=lambda: 1.0)

    pauses = [backoff.next_pause() for _ in range(4)]
    backoff.reset()

    assert [*pauses, backoff.next_pause()] == [1, 2, 4, 5, 1]


def test_a_bucket_lets_a_burst_pass_and_then_the_rate() -> None:
    async def passing() -> list[float]:
        bucket = TokenBucket(qps=2, burst=3)
        return await asyncio.gather(*(moment_of_turn(bucket) for _ in range(6)))

    assert run(passing()) == [0, 0, 0, 0.5, 1.0, 1.5]


def test_a_bucket_holds_at_most_its_burst() -> None:
    async def passing() -> list[bool]:
        bucket = TokenBucket(qps=2, burst=2)
        bucket.has_taken()
        await asyncio.sleep(60)
        return [bucket.has_taken() for _ in range(3)]

    assert run(passing()) == [True, True, False]


def test_a_cancelled_wait_returns_its_token() -> None:
    async def passing() -> float:
        bucket = TokenBucket(qps=1, burst=1)
        await bucket.take()
        waiting = asyncio.create_task(bucket.take())
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.sleep(0)
        await bucket.take()
        return asyncio.get_running_loop().time()

    assert run(passing()) == pytest.approx(1.0)
