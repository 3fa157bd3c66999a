"""What AWS announces: messages of the queue, and failed status checks."""

import asyncio
import json
from datetime import timedelta

import pytest

from karpy.adapters.clouds.aws.machines import Machines
from karpy.adapters.clouds.aws.queue import Announcements
from karpy.adapters.clouds.aws.reports import Reports
from karpy.adapters.clouds.aws.soldout import SoldOut
from karpy.adapters.telemetry.health import ProgressCheck
from karpy.codec.fields import JsonObject
from karpy.controllers.queue import UNOBSERVED
from karpy.model.ec2 import CapacityReservation
from karpy.ports.cloud import MachineEvent, MachineFate
from karpy.sim.ec2.calls import MemoryCalls
from karpy.sim.loop import run
from tests.adapters.clouds.aws.accounts import START, Account, account

SPOT = "EC2 Spot Instance Interruption Warning"


class Stuck(MemoryCalls):
    """Calls of which one is never answered."""

    async def receive_message(self, **request: object) -> JsonObject:
        await asyncio.Event().wait()
        return await super().receive_message(**request)


class Listener:
    """Announcements of an account, and what was heard of them."""

    def __init__(self, some: Account, queue: str = "demo") -> None:
        self.sold_out = SoldOut(some.clock)
        self.heard: list[MachineEvent] = []
        machines = Machines(some.calls, "demo")
        reports = Reports(some.trouble, some.counts.append)
        self.announcements = Announcements(
            some.calls, some.clock, machines, self.sold_out, queue, reports
        )

    def watch(self) -> ProgressCheck:
        """Have its loops watched, as `/healthz` does."""
        progress = ProgressCheck(asyncio.get_running_loop().time)
        names = ("interruption.queue", "interruption.instancestatus")
        self.announcements.observe(*(progress.of(name, UNOBSERVED) for name in names))
        return progress

    async def listen(self, seconds: float, *, acknowledges: bool = True) -> list[MachineEvent]:
        """Hear for a while; return what was heard."""
        try:
            async with asyncio.timeout(seconds):
                async for each in self.announcements.machine_events():
                    self.heard.append(each)
                    if acknowledges:
                        await self.announcements.acknowledge(each)
        except TimeoutError:
            pass
        return self.heard


def fates(events: list[MachineEvent]) -> list[tuple[MachineFate, tuple[str, ...]]]:
    return [(each.fate, each.machines) for each in events]


@pytest.mark.parametrize(
    ("detail_type", "source", "detail", "fate"),
    [
        (SPOT, "aws.ec2", {"instance-id": "i-1"}, MachineFate.SPOT_INTERRUPTED),
        (
            "EC2 Instance Rebalance Recommendation",
            "aws.ec2",
            {"instance-id": "i-1"},
            MachineFate.REBALANCE_RECOMMENDED,
        ),
        (
            "EC2 Instance State-change Notification",
            "aws.ec2",
            {"instance-id": "i-1", "state": "Stopping"},
            MachineFate.STOPPED,
        ),
        (
            "EC2 Instance State-change Notification",
            "aws.ec2",
            {"instance-id": "i-1", "state": "shutting-down"},
            MachineFate.TERMINATED,
        ),
        (
            "AWS Health Event",
            "aws.health",
            {
                "service": "EC2",
                "eventTypeCategory": "scheduledChange",
                "affectedEntities": [{"entityValue": "i-1"}],
            },
            MachineFate.SCHEDULED_CHANGE,
        ),
        (
            "EC2 Capacity Reservation Instance Interruption Warning",
            "aws.ec2",
            {"instance-id": "i-1"},
            MachineFate.RESERVATION_INTERRUPTED,
        ),
    ],
)
def test_every_kind_of_message_is_heard_and_deleted(
    detail_type: str, source: str, detail: dict[str, object], fate: MachineFate
) -> None:
    async def story(some: Account) -> list[MachineEvent]:
        some.cloud.announce(detail_type, detail, source)
        return await Listener(some).listen(30)

    with account() as some:
        assert fates(run(story(some))) == [(fate, ("i-1",))]
        assert some.cloud.messages == {}
        kind = {"message_type": fate.value}
        assert some.counted("interruption_received_messages_total") == [(kind, 1.0)]
        assert len(some.counted("interruption_deleted_messages_total")) == 1


@pytest.mark.parametrize(
    ("detail_type", "detail"),
    [
        ("EC2 Instance State-change Notification", {"instance-id": "i-1", "state": "running"}),
        ("AWS Health Event", {"service": "RDS", "eventTypeCategory": "scheduledChange"}),
        ("Something Else", {"instance-id": "i-1"}),
        (SPOT, {}),
    ],
)
def test_what_asks_for_nothing_is_deleted(detail_type: str, detail: dict[str, object]) -> None:
    async def story(some: Account) -> list[MachineEvent]:
        some.cloud.announce(detail_type, detail, "aws.ec2")
        return await Listener(some).listen(30)

    with account() as some:
        assert run(story(some)) == []
        assert some.cloud.messages == {}


def scheduled_change(entities: list[dict[str, str]], status: str = "open") -> dict[str, object]:
    return {
        "service": "EC2",
        "eventTypeCategory": "scheduledChange",
        "eventTypeCode": "AWS_EC2_PERSISTENT_INSTANCE_RETIREMENT_SCHEDULED",
        "statusCode": status,
        "affectedEntities": entities,
    }


@pytest.mark.parametrize("status", ["upcoming", "open", "", "of another day"])
def test_a_scheduled_change_that_is_not_over_is_heard(status: str) -> None:
    async def story(some: Account) -> list[MachineEvent]:
        detail = scheduled_change([{"entityValue": "i-1", "status": "PENDING"}], status)
        some.cloud.announce("AWS Health Event", detail, "aws.health")
        return await Listener(some).listen(30)

    with account() as some:
        assert fates(run(story(some))) == [(MachineFate.SCHEDULED_CHANGE, ("i-1",))]


def test_a_completed_scheduled_change_asks_for_nothing_and_is_deleted() -> None:
    """AWS Health announces the end of an event, too; the machine will not be stopped then."""

    async def story(some: Account) -> list[MachineEvent]:
        detail = scheduled_change([{"entityValue": "i-1"}], "closed")
        some.cloud.announce("AWS Health Event", detail, "aws.health")
        return await Listener(some).listen(30)

    with account() as some:
        assert run(story(some)) == []
        assert some.cloud.messages == {}
        kind = {"message_type": "no_op"}
        assert some.counted("interruption_received_messages_total") == [(kind, 1.0)]


def test_machines_that_a_scheduled_change_no_longer_affects_are_left_out() -> None:
    async def story(some: Account) -> list[MachineEvent]:
        entities = [
            {"entityValue": "i-done", "status": "RESOLVED"},
            {"entityValue": "i-next", "status": "PENDING"},
            {"entityValue": "i-other"},
        ]
        some.cloud.announce("AWS Health Event", scheduled_change(entities), "aws.health")
        return await Listener(some).listen(30)

    with account() as some:
        heard = fates(run(story(some)))
        assert heard == [(MachineFate.SCHEDULED_CHANGE, ("i-next", "i-other"))]


@pytest.mark.parametrize("body", ["{", "[]", '{"version": "0"', "\udcff", "null"])
def test_a_message_that_cannot_be_read_does_not_block_the_queue(body: str) -> None:
    async def story(some: Account) -> list[MachineEvent]:
        some.cloud.send(body)
        some.cloud.announce(SPOT, {"instance-id": "i-1"}, "aws.ec2")
        return await Listener(some).listen(30)

    with account() as some:
        assert fates(run(story(some))) == [(MachineFate.SPOT_INTERRUPTED, ("i-1",))]
        assert some.cloud.messages == {}
        assert any("it is deleted" in what for what, _ in some.troubles)


def test_an_announcement_that_was_not_acted_on_is_heard_again() -> None:
    async def story(some: Account) -> list[MachineEvent]:
        some.cloud.announce(SPOT, {"instance-id": "i-1"}, "aws.ec2")
        return await Listener(some).listen(50, acknowledges=False)

    with account() as some:
        assert len(run(story(some))) > 1


def test_spot_that_is_taken_back_is_not_asked_for_again_there() -> None:
    async def story(some: Account) -> frozenset[tuple[str, str, str]]:
        id_ = some.run_instance()["InstanceId"]
        some.cloud.announce(SPOT, {"instance-id": id_}, "aws.ec2")
        listener = Listener(some)
        await listener.listen(30)
        return listener.sold_out.offerings.members()

    with account() as some:
        assert run(story(some)) == {("spot", "c6a.large", "us-west-2a")}


def test_a_reservation_that_takes_machines_back_has_none_left() -> None:
    async def story(some: Account) -> int:
        only = {"CapacityReservationPreference": "capacity-reservations-only"}
        made = some.run_instance(
            CapacityReservationId="cr-1", CapacityReservationSpecification=only
        )
        detail_type = "EC2 Capacity Reservation Instance Interruption Warning"
        some.cloud.announce(detail_type, {"instance-id": made["InstanceId"]}, "aws.ec2")
        listener = Listener(some)
        reservation = CapacityReservation("cr-1", "c6a.large", "us-west-2a", left=3)
        listener.sold_out.reservations.sync([reservation])
        await listener.listen(30)
        found = listener.sold_out.reservations.find("cr-1")
        assert found is not None
        return found.left

    with account() as some:
        assert run(story(some)) == 0


def test_a_queue_that_does_not_exist_is_reported_and_looked_for_again() -> None:
    async def story(some: Account) -> list[MachineEvent]:
        return await Listener(some, queue="missing").listen(12)

    with account() as some:
        assert run(story(some)) == []
        assert len(some.troubles) > 1
        assert some.troubles[0][0] == "read the queue `missing`"


def impaired(since: float) -> dict[str, object]:
    details = [
        {"Status": "failed", "ImpairedSince": START - timedelta(seconds=since)},
    ]
    return {"Status": "impaired", "Details": details}


def test_status_checks_are_heard_without_a_queue_once_each() -> None:
    async def story(some: Account) -> list[MachineEvent]:
        health = some.tables.health
        health["i-instance"] = {"InstanceStatus": impaired(120)}
        health["i-system"] = {"SystemStatus": impaired(120)}
        health["i-passing"] = {"InstanceStatus": impaired(-3600)}
        health["i-event"] = {"Events": [{"Code": "system-reboot"}]}
        health["i-other"] = {"Events": [{"Code": "something-else"}]}
        return await Listener(some, queue="").listen(130)

    with account() as some:
        heard = run(story(some))
        kinds = {each["category"] for each, _ in some.counted(UNHEALTHY)}

    assert sorted(fates(heard), key=lambda each: each[1]) == [
        (MachineFate.EVENT_STATUS, ("i-event",)),
        (MachineFate.INSTANCE_STATUS, ("i-instance",)),
        (MachineFate.SYSTEM_STATUS, ("i-system",)),
    ]
    assert kinds == {"event_status", "instance_status", "system_status"}


def test_a_scheduled_event_that_is_over_ends_no_machine() -> None:
    """EC2 describes events that are completed or canceled for up to a week more."""

    async def story(some: Account) -> list[MachineEvent]:
        over = "[Completed] The instance is running on degraded hardware"
        health = some.tables.health
        health["i-done"] = {"Events": [{"Code": "instance-reboot", "Description": over}]}
        health["i-off"] = {"Events": [{"Code": "instance-stop", "Description": "[Canceled] x"}]}
        health["i-next"] = {
            "Events": [
                {"Code": "system-reboot", "Description": over},
                {"Code": "instance-retirement", "Description": "It will be retired"},
            ]
        }
        return await Listener(some, queue="").listen(30)

    with account() as some:
        assert fates(run(story(some))) == [(MachineFate.EVENT_STATUS, ("i-next",))]
        assert some.counted(UNHEALTHY) == [({"category": "event_status"}, 1.0)]


UNHEALTHY = "interruption_instance_status_unhealthy_total"


def test_a_machine_that_fails_again_is_heard_again() -> None:
    async def story(some: Account) -> int:
        listener = Listener(some, queue="")
        some.tables.health["i-1"] = {"InstanceStatus": impaired(120)}
        await listener.listen(30)
        await listener.listen(30)
        some.tables.health.clear()
        await listener.listen(30)
        some.tables.health["i-1"] = {"InstanceStatus": impaired(120)}
        return len(await listener.listen(30))

    with account() as some:
        assert run(story(some)) == 2


def test_a_status_check_that_was_not_acted_on_is_announced_again_and_counted_once() -> None:
    async def story(some: Account) -> tuple[int, int]:
        listener = Listener(some, queue="")
        some.tables.health["i-1"] = {"InstanceStatus": impaired(120)}
        failed = len(await listener.listen(90, acknowledges=False))
        return failed, len(await listener.listen(150))

    with account() as some:
        assert run(story(some)) == (2, 3)
        assert some.counted(UNHEALTHY) == [({"category": "instance_status"}, 1.0)]


def test_status_checks_that_are_not_allowed_are_given_up() -> None:
    async def story(some: Account) -> list[MachineEvent]:
        some.tables.refuse("DescribeInstanceStatus", "UnauthorizedOperation", times=3)
        some.tables.health["i-1"] = {"InstanceStatus": impaired(120)}
        return await Listener(some, queue="").listen(200)

    with account() as some:
        assert run(story(some)) == []
        assert [what for what, _ in some.troubles] == ["check the status of machines"]


def test_the_age_of_messages_is_measured() -> None:
    async def story(some: Account) -> None:
        event = {"version": "0", "source": "aws.ec2", "detail-type": SPOT, "detail": {}}
        moment = (START - timedelta(seconds=40)).isoformat()
        some.cloud.send(json.dumps({**event, "time": moment}))
        await Listener(some).listen(10)

    with account() as some:
        run(story(some))
        ((_, seconds),) = some.counted("interruption_message_queue_duration_seconds")

    assert seconds == pytest.approx(40, abs=1)


def test_loops_that_hear_nothing_or_are_refused_are_well() -> None:
    async def story(some: Account) -> str:
        some.tables.refuse("DescribeInstanceStatus", "RequestLimitExceeded", times=999)
        listener = Listener(some, queue="missing")
        progress = listener.watch()
        await listener.listen(1000)
        return progress.check()

    with account() as some:
        assert run(story(some)) == ""
        assert some.troubles != []


def test_a_queue_that_gives_no_answer_is_named_by_the_health_check() -> None:
    async def story(some: Account) -> str:
        some.calls = Stuck(some.cloud)
        listener = Listener(some)
        progress = listener.watch()
        await listener.listen(1000)
        return progress.check()

    with account() as some:
        told = run(story(some))

    assert told == ("interruption.queue has finished nothing for 1000 s, with 1 at work or waiting")


def test_status_checks_that_are_given_up_are_no_work() -> None:
    async def story(some: Account) -> str:
        some.tables.refuse("DescribeInstanceStatus", "UnauthorizedOperation", times=3)
        listener = Listener(some, queue="")
        progress = listener.watch()
        await listener.listen(1000)
        return progress.check()

    with account() as some:
        assert run(story(some)) == ""
