import asyncio
from datetime import timedelta
from functools import partial
from typing import Final

import pytest

from karpy.adapters.kube.leases import Candidacy, Election, Timing, own_identity
from karpy.errors import ClusterError, CredentialsRefused
from karpy.model.kinds import LEASE as LEASES
from tests.adapters.kube.clocks import SetClock, run
from tests.adapters.kube.smallstore import SmallStore
from tests.builders import NOON

LEASE: Final = "karpenter-leader-election"


def election(store: SmallStore, identity: str, clock: SetClock | None = None) -> Election:
    candidacy = Candidacy("kube-system", identity=identity)
    return Election(store, clock or SetClock(), candidacy, dice=lambda: 0.0)


def holders(store: SmallStore) -> list[str]:
    """Return the holders of the lease in order."""
    names = [each["spec"].get("holderIdentity", "") for _, each in store.writes]
    return [name for name, before in zip(names, [None, *names], strict=False) if name != before]


def now() -> float:
    return round(asyncio.get_running_loop().time(), 1)


async def forever() -> None:
    await asyncio.Event().wait()


def test_the_timings_are_those_of_karpenter() -> None:
    assert Timing() == Timing(lease=15, renew_deadline=10, retry=2)


def test_every_process_has_a_name_of_its_own() -> None:
    assert own_identity() != own_identity()


def test_the_first_candidate_makes_the_lease() -> None:
    async def story() -> SmallStore:
        store = SmallStore()
        await election(store, "a").acquire()
        return store

    store = run(story())

    assert store.objects[LEASE] == {
        "metadata": {"name": LEASE, "namespace": "kube-system", "resourceVersion": "1"},
        "spec": {
            "holderIdentity": "a",
            "leaseDurationSeconds": 15,
            "acquireTime": "2026-03-02T12:00:00.000000Z",
            "renewTime": "2026-03-02T12:00:00.000000Z",
            "leaseTransitions": 0,
        },
    }


def test_a_leader_renews_and_others_wait() -> None:
    async def story() -> tuple[bool, bool, str, SmallStore]:
        store = SmallStore()
        first, second = election(store, "a"), election(store, "b")
        leading = asyncio.create_task(first.lead(forever))
        await asyncio.sleep(1)
        waiting = asyncio.create_task(second.lead(forever))
        await asyncio.sleep(120)
        outcome = (first.is_leader, second.is_leader, second.leader, store)
        leading.cancel()
        waiting.cancel()
        await asyncio.gather(leading, waiting, return_exceptions=True)
        return outcome

    first, second, leader, store = run(story())

    assert (first, second, leader) == (True, False, "a")
    assert len(store.writes) > 50


def test_a_lease_of_a_leader_that_died_is_taken_when_it_has_not_changed_for_its_time() -> None:
    async def story() -> tuple[float, SmallStore]:
        store = SmallStore()
        await election(store, "a").acquire()
        await asyncio.sleep(5)
        heir = election(store, "b")
        await heir.acquire()
        return now(), store

    when, store = run(story())

    assert 5 + 15 <= when <= 5 + 15 + 3
    assert store.objects[LEASE]["spec"]["leaseTransitions"] == 1


@pytest.mark.parametrize("hours", [-24, 24])
def test_clocks_of_candidates_may_differ(hours: int) -> None:
    async def story() -> list[str]:
        store = SmallStore()
        other = SetClock(NOON + timedelta(hours=hours))
        leading = asyncio.create_task(election(store, "a").lead(forever))
        await asyncio.sleep(1)
        waiting = asyncio.create_task(election(store, "b", other).lead(forever))
        await asyncio.sleep(100)
        names = holders(store)
        leading.cancel()
        waiting.cancel()
        await asyncio.gather(leading, waiting, return_exceptions=True)
        return names

    assert run(story()) == ["a"]


def test_a_leader_that_stops_releases_the_lease() -> None:
    async def story() -> tuple[list[str], float]:
        store = SmallStore()
        leading = asyncio.create_task(election(store, "a").lead(forever))
        await asyncio.sleep(10)
        heir = election(store, "b")
        waiting = asyncio.create_task(heir.acquire())
        leading.cancel()
        await asyncio.gather(leading, return_exceptions=True)
        await waiting
        return holders(store), now()

    names, when = run(story())

    assert names == ["a", "", "b"]
    assert when <= 13


def test_the_lease_is_kept_until_the_work_has_stopped() -> None:
    async def story() -> list[str]:
        store = SmallStore()
        heard: list[str] = []

        async def slow_to_stop() -> None:
            try:
                await forever()
            finally:
                await asyncio.sleep(1)
                heard.append(store.objects[LEASE]["spec"]["holderIdentity"])

        leading = asyncio.create_task(election(store, "a").lead(slow_to_stop))
        await asyncio.sleep(5)
        leading.cancel()
        await asyncio.gather(leading, return_exceptions=True)
        return [*heard, store.objects[LEASE]["spec"].get("holderIdentity", "nobody")]

    assert run(story()) == ["a", "nobody"]


def test_lead_returns_true_when_the_work_ends() -> None:
    async def story() -> bool:
        async def short() -> None:
            await asyncio.sleep(30)

        return await election(SmallStore(), "a").lead(short)

    assert run(story())


def test_an_error_of_the_work_is_raised_and_the_lease_is_released() -> None:
    store = SmallStore()

    async def story() -> None:
        async def failing() -> None:
            raise LookupError

        await election(store, "a").lead(failing)

    with pytest.raises(LookupError):
        run(story())
    assert holders(store) == ["a", ""]


@pytest.mark.parametrize(("is_failing", "is_hanging"), [(True, False), (False, True)])
def test_a_leader_that_cannot_renew_stops_before_its_lease_expires(
    *, is_failing: bool, is_hanging: bool
) -> None:
    async def story() -> tuple[bool, float]:
        store = SmallStore()
        first = election(store, "a")
        leading = asyncio.create_task(first.lead(forever))
        await asyncio.sleep(20)
        store.is_failing, store.is_hanging = is_failing, is_hanging
        is_done = await leading
        return is_done, now()

    is_done, when = run(story())

    assert not is_done
    assert 20 + 7 <= when <= 20 + 12


def test_a_short_failure_keeps_the_lease_and_is_reported() -> None:
    async def story() -> tuple[bool, int]:
        store, troubles = SmallStore(), list[ClusterError | CredentialsRefused]()
        candidate = Election(
            store,
            SetClock(),
            Candidacy("kube-system", identity="a"),
            on_trouble=troubles.append,
        )
        leading = asyncio.create_task(candidate.lead(forever))
        await asyncio.sleep(20)
        store.is_failing = True
        await asyncio.sleep(6)
        store.is_failing = False
        await asyncio.sleep(30)
        is_leader = candidate.is_leader
        leading.cancel()
        await asyncio.gather(leading, return_exceptions=True)
        return is_leader, len(troubles)

    is_leader, troubles = run(story())

    assert is_leader
    assert troubles >= 2


def test_a_leader_whose_lease_was_taken_stops_at_once() -> None:
    async def story() -> tuple[bool, float, str]:
        store = SmallStore()
        leading = asyncio.create_task(election(store, "a").lead(forever))
        await asyncio.sleep(20)
        lease = store.objects[LEASE]
        await store.replace(LEASES, {**lease, "spec": {**lease["spec"], "holderIdentity": "thief"}})
        is_done = await leading
        return is_done, now(), store.objects[LEASE]["spec"]["holderIdentity"]

    is_done, when, holder = run(story())

    assert not is_done
    assert when <= 23
    assert holder == "thief"


def test_only_one_of_many_candidates_leads_at_a_time() -> None:
    async def story() -> list[str]:
        store = SmallStore()
        leading: list[str] = []
        most: list[str] = []

        async def term(name: str) -> None:
            leading.append(name)
            assert leading == [name]
            most.append(name)
            await asyncio.sleep(30)
            leading.remove(name)

        await asyncio.gather(*(election(store, name).lead(partial(term, name)) for name in "abcd"))
        return sorted(most)

    assert run(story()) == ["a", "b", "c", "d"]
