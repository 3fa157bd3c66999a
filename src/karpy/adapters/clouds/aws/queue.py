"""Announcements of AWS about machines: messages of an SQS queue, and status checks of EC2."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final

from karpy.adapters.clouds.aws.calls import AwsCalls
from karpy.adapters.clouds.aws.machines import Machines
from karpy.adapters.clouds.aws.reports import Reports, Working
from karpy.adapters.clouds.aws.soldout import SoldOut
from karpy.barriers import Barrier
from karpy.codec.aws.interruptions import NO_OP, MessageInvalid, is_over, read_interruption
from karpy.core.aws.refusals import is_forbidden, is_not_found
from karpy.core.lifecycle.changes import Count
from karpy.errors import AwsRefused, CloudError, CloudUnavailable, KarpyError
from karpy.model.labels import SPOT
from karpy.model.times import parse_moment
from karpy.ports.clock import Clock
from karpy.ports.cloud import MachineEvent, MachineFate
from karpy.ports.observers import Observer

_WAIT_SECONDS: Final = 20
_MESSAGES: Final = 10
_CHECK_PERIOD: Final = timedelta(minutes=1)
_IMPAIRED_FOR: Final = timedelta(minutes=2)
_PAUSE_SECONDS: Final = 5.0
_WAITING_MAX: Final = 100
_STAMP_MAX: Final = 14
"""The digits of a timestamp in milliseconds since 1970, until the year 5138."""
_EVENT_CODES: Final = [
    "instance-reboot",
    "system-reboot",
    "system-maintenance",
    "instance-retirement",
    "instance-stop",
]
_RECEIVED: Final = "interruption_received_messages_total"
_DELETED: Final = "interruption_deleted_messages_total"
_AGE: Final = "interruption_message_queue_duration_seconds"
_UNHEALTHY: Final = "interruption_instance_status_unhealthy_total"


class Announcements:
    """The port EventfulCloud on an SQS queue and on status checks; either may be missing."""

    def __init__(
        self,
        calls: AwsCalls,
        clock: Clock,
        machines: Machines,
        sold_out: SoldOut,
        queue: str = "",
        reports: Reports | None = None,
    ) -> None:
        """Take the name of the queue; without one only status checks are made."""
        self._calls = calls
        self._clock = clock
        self._machines = machines
        self._sold_out = sold_out
        self._queue = queue
        self._url = ""
        self._on_trouble = (reports or Reports()).trouble
        self._on_count = (reports or Reports()).count
        self._waiting: asyncio.Queue[MachineEvent] = asyncio.Queue(_WAITING_MAX)
        self._counted: set[tuple[str, MachineFate]] = set()
        """Failing status checks that were counted; removed when they pass again."""
        self._handled: set[tuple[str, MachineFate]] = set()
        """Those of them that were acted on; the others are announced again."""
        self._receiving: Observer | None = None
        self._checking: Observer | None = None

    def observe(self, receiving: Observer | None, checking: Observer) -> None:
        """Have its loops observed: the one that reads the queue, and that of status checks."""
        self._receiving, self._checking = receiving, checking

    async def machine_events(self) -> AsyncIterator[MachineEvent]:
        """Yield the announcements of AWS, until cancelled."""
        loops = [self._check_statuses()]
        if self._queue:
            loops.append(self._receive())
        tasks = [asyncio.get_running_loop().create_task(each) for each in loops]
        try:
            while True:
                yield await self._waiting.get()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def acknowledge(self, event: MachineEvent) -> None:
        """Delete the message of an event, or mark a failing status check as handled."""
        if event.token:
            await self._delete(event.token)
        else:
            self._handled |= {(each, event.fate) for each in event.machines}

    async def _receive(self) -> None:
        while True:
            failed: list[KarpyError] = []
            with _observed(self._receiving, failed):
                await self._receive_once()
            for error in failed:
                if isinstance(error, AwsRefused) and is_not_found(error.aws_code):
                    self._url = ""
                self._on_trouble(f"read the queue `{self._queue}`", error)
                await asyncio.sleep(_PAUSE_SECONDS)

    async def _receive_once(self) -> None:
        url = await self._queue_url()
        answer = await self._calls.receive_message(
            QueueUrl=url,
            MaxNumberOfMessages=_MESSAGES,
            VisibilityTimeout=_WAIT_SECONDS,
            WaitTimeSeconds=_WAIT_SECONDS,
            AttributeNames=["SentTimestamp"],
        )
        for message in answer.get("Messages") or ():
            # A message that fails comes again later; the messages after it are handled now.
            with Barrier(partial(self._on_trouble, "take a message of the queue")):
                await self._take(message)

    async def _queue_url(self) -> str:
        if not self._url:
            answer = await self._calls.get_queue_url(QueueName=self._queue)
            self._url = answer["QueueUrl"]
        return self._url

    async def _take(self, message: Mapping[str, Any]) -> None:
        receipt = message.get("ReceiptHandle", "")
        try:
            read = read_interruption(message.get("Body", ""))
        except MessageInvalid as error:
            hint = "have only EventBridge send messages to the queue"
            trouble = CloudUnavailable(call="sqs:ReceiveMessage", problem=str(error), hint=hint)
            self._on_trouble("read a message of the queue, it is deleted", trouble)
            await self._delete_quietly(receipt)
            return
        self._on_count(Count(_RECEIVED, {"message_type": read.kind}))
        sent = read.sent or _sent(message)
        if sent is not None:
            seconds = max(0.0, (self._clock.now() - sent).total_seconds())
            self._on_count(Count(_AGE, {}, seconds))
        if read.kind == NO_OP or not read.machines:
            await self._delete_quietly(receipt)
            return
        fate = MachineFate(read.kind)
        await self._note_capacity(fate, read.machines)
        await self._waiting.put(MachineEvent(fate, read.machines, sent, receipt))

    async def _note_capacity(self, fate: MachineFate, ids: tuple[str, ...]) -> None:
        """Mark the offerings of interrupted machines as sold out for a while."""
        is_interruption = fate in {
            MachineFate.SPOT_INTERRUPTED,
            MachineFate.RESERVATION_INTERRUPTED,
        }
        for each in ids if is_interruption else ():
            # A failure here must not keep the machine from being drained.
            with Barrier(lambda _: None):
                found = await self._machines.find(each)
                if fate is MachineFate.SPOT_INTERRUPTED:
                    self._sold_out.offerings.add((SPOT, found.instance_type, found.zone))
                elif found.reservation:
                    self._sold_out.reservations.note_empty(found.reservation)

    async def _delete(self, receipt: str) -> None:
        await self._calls.delete_message(QueueUrl=await self._queue_url(), ReceiptHandle=receipt)
        self._on_count(Count(_DELETED))

    async def _delete_quietly(self, receipt: str) -> None:
        try:
            await self._delete(receipt)
        except CloudError as error:
            self._on_trouble("delete a message of the queue", error)

    async def _check_statuses(self) -> None:
        while True:
            failed: list[KarpyError] = []
            with _observed(self._checking, failed):
                await self._check_once()
            for error in failed:
                self._on_trouble("check the status of machines", error)
                if isinstance(error, AwsRefused) and is_forbidden(error.aws_code):
                    return
            await asyncio.sleep(_CHECK_PERIOD.total_seconds())

    async def _check_once(self) -> None:
        scans = await asyncio.gather(
            self._scan("instance-status.status", ["impaired"]),
            self._scan("system-status.status", ["impaired"]),
            self._scan("event.code", _EVENT_CODES),
        )
        now, failed = self._clock.now(), set[tuple[str, MachineFate]]()
        for key, fate, statuses in (
            ("InstanceStatus", MachineFate.INSTANCE_STATUS, scans[0]),
            ("SystemStatus", MachineFate.SYSTEM_STATUS, scans[1]),
        ):
            failed |= {
                (each["InstanceId"], fate) for each in statuses if _has_failed(each.get(key), now)
            }
        failed |= {
            (each["InstanceId"], MachineFate.EVENT_STATUS)
            for each in scans[2]
            if any(map(_is_ahead, each.get("Events") or ()))
        }
        for _, fate in failed - self._counted:
            self._on_count(Count(_UNHEALTHY, {"category": fate.value}))
        self._counted, self._handled = failed, self._handled & failed
        for id_, fate in sorted(failed - self._handled, key=lambda each: (each[0], each[1].value)):
            await self._waiting.put(MachineEvent(fate, (id_,)))

    async def _scan(self, name: str, values: list[str]) -> list[dict[str, Any]]:
        return await self._calls.describe_instance_status(
            Filters=[{"Name": name, "Values": values}]
        )


def _observed(observer: Observer | None, failed: list[KarpyError]) -> Barrier:
    """Return what keeps the failure of one round, and has the round observed."""
    if observer is None:
        return Barrier(failed.append)
    return Working(observer, "", lambda _, error: failed.append(error))


def _has_failed(status: object, now: datetime) -> bool:
    """Say whether a status check has failed for two minutes or longer."""
    details = status.get("Details") if isinstance(status, dict) else None
    for each in details or ():
        since = each.get("ImpairedSince")
        moment = since if isinstance(since, datetime) else parse_moment(str(since or ""))
        if each.get("Status") == "failed" and moment is not None and now - moment >= _IMPAIRED_FOR:
            return True
    return False


def _is_ahead(event: Mapping[str, Any]) -> bool:
    """Say whether a scheduled event will still stop or reboot a machine."""
    # Differs: a scheduled event that EC2 describes as completed or canceled: Karpenter deletes the
    # NodeClaim for up to a week after; Karpy does not, as the event will not happen again.
    return event.get("Code") in _EVENT_CODES and not is_over(event)


def _sent(message: Mapping[str, Any]) -> datetime | None:
    stamp = (message.get("Attributes") or {}).get("SentTimestamp")
    if not isinstance(stamp, str) or not stamp.isdecimal() or len(stamp) > _STAMP_MAX:
        return None
    return datetime.fromtimestamp(int(stamp) / 1000, tz=UTC)
