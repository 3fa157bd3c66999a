import asyncio

from msgspec.structs import replace

from karpy.adapters.telemetry.statemetrics import SyncMetrics
from tests.adapters.kube.clocks import run
from tests.adapters.telemetry.books import Book
from tests.core.lifecycle.scenes import claim, node


def gauges(book: Book) -> tuple[float, float]:
    """Return whether decisions can be made, and for how long they could not."""
    return (
        book.told("cluster_state_synced")[""],
        book.told("cluster_state_unsynced_time_seconds")[""],
    )


def test_the_time_without_a_synced_state_is_measured() -> None:
    book, answers = Book(), [True]
    sync = SyncMetrics(book.metrics, book.records, book, lambda: answers[-1])
    told = [gauges(book)]

    answers.append(False)
    sync.refresh()
    book.wait(3)
    told.append(gauges(book))
    book.wait(2)
    told.append(gauges(book))
    answers.append(True)
    told.append(gauges(book))

    assert told == [(1.0, 0.0), (0.0, 3.0), (0.0, 5.0), (1.0, 0.0)]


def test_the_sync_state_is_checked_without_a_scrape() -> None:
    book, looks = Book(), iter(range(100))
    sync = SyncMetrics(book.metrics, book.records, book, lambda: next(looks) >= 0)

    async def story() -> None:
        task = asyncio.create_task(sync.run())
        await asyncio.sleep(2.5)
        task.cancel()

    run(story())

    assert next(looks) == 3


def test_a_node_and_its_claim_are_counted_once() -> None:
    book = Book()
    SyncMetrics(book.metrics, book.records, book, lambda: True)
    one, other, unlaunched = claim(), claim(provider_id="kwok://web-2"), claim(provider_id="")
    book.put_node(node())
    book.put_node(replace(node(name="bare"), provider_id=""))
    book.put_claim(one)
    book.put_claim(replace(other, meta=replace(other.meta, name="web-2")))
    book.put_claim(replace(unlaunched, meta=replace(unlaunched.meta, name="web-3")))

    assert book.told("cluster_state_node_count") == {"": 3.0}
