"""`karpy run`: the operator as a process of its own, until a signal ends it."""

import asyncio
import socket
from base64 import b64encode
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from traceback import format_exception
from types import TracebackType
from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct

from karpy import __version__
from karpy.adapters.clock import WallClock
from karpy.adapters.journal import BackgroundJournal, JournalFiles
from karpy.adapters.kube.access import Access
from karpy.adapters.kube.connection import Connection, Rate, find_access
from karpy.adapters.kube.events import EventRecorder
from karpy.adapters.kube.fence import Fence
from karpy.adapters.kube.leases import Candidacy, Election
from karpy.adapters.kube.retry import TokenBucket
from karpy.adapters.telemetry.controllermetrics import RequestMetrics
from karpy.adapters.telemetry.health import health_application, ping
from karpy.adapters.telemetry.logs import Log, Reporter, make_log, open_lines
from karpy.adapters.telemetry.metrics import Metrics
from karpy.adapters.telemetry.servers import HOST as LOOPBACK
from karpy.adapters.telemetry.servers import HttpServer, metrics_application, profiling_application
from karpy.adapters.telemetry.specs import metric_specs
from karpy.barriers import as_karpy_error
from karpy.core.lifecycle.changes import Count
from karpy.errors import KarpyError, LeadershipLost, OptionInvalid
from karpy.model.kinds import NODE_CLAIM, NODE_POOL, Kind
from karpy.model.notices import Notice
from karpy.model.settings import Options
from karpy.ports.cloud import CloudProvider
from karpy.wiring.clouds.registry import ProviderInputs, find_cloud, surface_of
from karpy.wiring.instruments import class_label
from karpy.wiring.operator import KarpyOperator
from karpy.wiring.options import OptionsRead

_RECORDS: Final = "karpy_journal_records_total"
_UNREADABLE: Final = "karpy_unreadable_objects_total"
_STACK_LIMIT: Final = -20
"""Innermost calls of a stack trace that are logged, as a negative limit."""
_DROPPED: Final = "karpy_events_dropped_total"
_LEADS: Final = "leader_election_master_status"
_SECONDS_FOR_EVENTS: Final = 3.0
_EVENT_RATES: Final = {"Nominated": (5.0, 10)}
"""Events per second and burst, by reason: a decision about a thousand pods has one for each."""


class Crashed(Exception):
    """The operator has ended by the error that is the cause, and has logged it."""


async def run_process(read: OptionsRead, environ: Mapping[str, str], end: asyncio.Event) -> None:
    """
    Run the operator until `end` is set; raise Crashed after an error or the loss of the lease.

    At the end the lease is released and pending events are written; the next leader finishes
    whatever was begun.
    """
    options = read.options
    cloud_module = find_cloud(options.provider)
    well_known = cloud_module.well_known(options)
    access = find_access(options.context or None, options.kubeconfig or None, environ)
    async with AsyncExitStack() as stack:
        lines = open_lines(options.log_outputs, options.log_error_outputs)
        stack.callback(lines.close)
        log = make_log(lines, WallClock(), level=options.log_level, form=options.log_format)
        for remark in read.remarks:
            log.error(remark)
        class_labels = tuple(map(class_label, cloud_module.NODE_CLASSES))
        specs = metric_specs(well_known, class_labels)
        metrics = Metrics((*specs, *cloud_module.METRICS))
        metrics.announce(version=__version__)
        troubles = _Troubles(log, metrics)
        connections = await _connected(stack, access, options, metrics, troubles)
        recorder = await stack.enter_async_context(_events(connections.events, troubles))
        objects, feed = connections.usual.objects, connections.usual.feed
        callbacks = troubles.undone, metrics.count, connections.check_write
        authority = b64encode(access.endpoint.ca_pem.encode()).decode()
        reporter = Reporter(metrics, log)
        server = authority, connections.usual.version
        site = ProviderInputs(
            *(objects, feed, WallClock(), recorder, options, environ, *callbacks, *server),
            on_remark=reporter.remark,
            add_source=metrics.add_source,
        )
        with _CrashLog(log):
            cloud = await cloud_module.open_cloud(site)
        stack.push_async_callback(cloud.close)
        operator = KarpyOperator(
            surface_of(site, cloud, connections.nominations.objects),
            options,
            notices=recorder,
            voice=reporter,
            journal=_journal(options, troubles, stack),
            metrics=metrics,
        )
        await _serve(stack, options, metrics, operator)
        log.info("starting controllers", version=__version__, cluster=access.endpoint.server)
        election = _election(connections, options, troubles)
        leading = partial(metrics.set, _LEADS, labels={"name": options.lease_name})
        leading(0.0)
        act = partial(_act, operator, cloud.provider, lambda: leading(1.0))
        acting = election.lead(act) if options.has_leader_election else act()
        await _until(end, operator.watch(), acting, log)
        log.info("stopped")


class _Connections(Struct, frozen=True):
    """
    Connections to the API server, each with a rate limit of its own.

    `own` is for the election, since throttling must not cost the lease. `events` is separate since
    thousands of events must not delay launches, and `nominations` since nodes wait for them.
    """

    fence: Fence | None
    usual: Connection
    own: Connection
    nominations: Connection
    events: Connection

    def check_write(self, what: str) -> None:
        """Raise LeadershipUncertain unless a call to the cloud may change something now."""
        if self.fence is not None:
            self.fence.check("a call to", what)


async def _connected(
    stack: AsyncExitStack,
    access: Access,
    options: Options,
    metrics: Metrics,
    troubles: "_Troubles",
) -> _Connections:
    """Open all connections; they are closed with the stack."""
    rate = Rate(options.kube_qps, options.kube_burst)
    answered = RequestMetrics(metrics, urlsplit(access.endpoint.server).netloc).answered
    fence = Fence() if options.has_leader_election else None
    usual = Connection(
        access,
        rate=rate,
        on_unreadable=troubles.unreadable,
        on_trouble=troubles.unfollowed,
        on_answer=answered,
        fence=fence,
    )
    more = (
        Connection(access, rate=each, on_answer=answered, fence=only_leading)
        for each, only_leading in ((None, None), (None, fence), (rate, fence))
    )
    return _Connections(fence, *[await stack.enter_async_context(each) for each in (usual, *more)])


def _election(connections: _Connections, options: Options, troubles: "_Troubles") -> Election:
    """Return the election for the lease; it opens the fence while this replica surely leads."""
    own, on_trouble = connections.own, troubles.unelected
    candidacy = Candidacy(options.lease_namespace or own.namespace, options.lease_name)
    return Election(
        own.objects, WallClock(), candidacy, on_trouble=on_trouble, fence=connections.fence
    )


async def _act(operator: KarpyOperator, cloud: CloudProvider, on_start: Callable[[], None]) -> None:
    """Run the controllers of the leader, until cancelled."""
    on_start()
    cloud.start()
    try:
        await operator.act()
    finally:
        await cloud.close()


async def _until(
    end: asyncio.Event, watching: Awaitable[None], acting: Awaitable[bool | None], log: Log
) -> None:
    """Watch, and act once elected, until `end` is set; raise Crashed if either fails."""
    watch, act = asyncio.ensure_future(watching), asyncio.ensure_future(acting)
    ending = asyncio.ensure_future(end.wait())
    await asyncio.wait((watch, act, ending), return_when=asyncio.FIRST_COMPLETED)
    is_over = end.is_set()
    # Controllers stop before the watches, so that they never decide on outdated objects.
    for task in (act, watch, ending):
        task.cancel()
        await asyncio.wait((task,))
    if is_over:
        return
    with _CrashLog(log):
        for task in (watch, act):
            if not task.cancelled():
                task.result()
        raise LeadershipLost("the lease was lost")


async def _serve(
    stack: AsyncExitStack, options: Options, metrics: Metrics, operator: KarpyOperator
) -> None:
    """Serve metrics, probes and profiles."""
    host = options.bind_address
    if options.has_profiling:
        port, flag = options.profiling_port, "--profiling-port"
        await stack.enter_async_context(
            HttpServer(profiling_application(), port, flag=flag, host=LOOPBACK)
        )
    measured = metrics_application(metrics)
    await stack.enter_async_context(
        HttpServer(measured, options.metrics_port, flag="--metrics-port", host=host)
    )

    def unlisted(*kinds: Kind) -> str:
        missing = [
            str(each) for each in operator.mirror.waiting_for() if each in kinds or not kinds
        ]
        return f"not listed yet: {', '.join(missing)}" if missing else ""

    health = health_application(
        {"manager": unlisted, "crd": lambda: unlisted(NODE_POOL, NODE_CLAIM)},
        {"ping": ping, "controllers": operator.why_stuck},
    )
    await stack.enter_async_context(
        HttpServer(health, options.health_port, flag="--health-probe-port", host=host)
    )


@asynccontextmanager
async def _events(connection: Connection, troubles: "_Troubles") -> AsyncIterator[EventRecorder]:
    """Write events in the background; at the end, write the pending ones."""
    rates = {reason: TokenBucket(*rate) for reason, rate in _EVENT_RATES.items()}
    recorder = EventRecorder(
        connection.objects,
        WallClock(),
        instance=socket.gethostname(),
        rates=rates,
        on_trouble=troubles.unwritten,
        on_drop=troubles.dropped,
    )
    writing = asyncio.create_task(recorder.run(), name="events")
    try:
        yield recorder
    finally:
        recorder.close()
        with suppress(TimeoutError):
            await asyncio.wait_for(writing, _SECONDS_FOR_EVENTS)


def _journal(
    options: Options, troubles: "_Troubles", stack: AsyncExitStack
) -> BackgroundJournal | None:
    if not options.journal:
        return None
    files = JournalFiles(
        Path(options.journal), file_bytes=options.journal_file_bytes, files=options.journal_files
    )
    loop = asyncio.get_running_loop()

    # The journal writes in its own thread; logs and metrics belong to the event loop.
    def lost(problem: str) -> None:
        loop.call_soon_threadsafe(troubles.unrecorded, problem)

    def recorded() -> None:
        loop.call_soon_threadsafe(troubles.recorded)

    journal = BackgroundJournal(files, lost, recorded)
    stack.callback(journal.close)
    return journal


class _CrashLog:
    """Logs the error that ends the operator, and raises Crashed."""

    def __init__(self, log: Log) -> None:
        self._log = log

    def __enter__(self) -> None:
        """Enter the block whose errors end the operator."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # An invalid option is shown on stderr, as for other commands.
        if isinstance(error, Exception) and not isinstance(error, OptionInvalid):
            self._log.error("operator has ended", error=as_karpy_error(error))
            raise Crashed from error


class _Troubles:
    """Logs and counts failures that are retried."""

    def __init__(self, log: Log, metrics: Metrics) -> None:
        self._log = log
        self._metrics = metrics
        metrics.on_failure = self.unmeasured

    def unreadable(self, kind: Kind, key: str, error: Exception) -> None:
        self._metrics.count(Count(_UNREADABLE, {"kind": str(kind)}))
        self._log.error(
            "object cannot be read, it is left aside",
            kind=str(kind),
            name=key,
            error=error,
            stacktrace="".join(format_exception(error, limit=_STACK_LIMIT)),
        )

    def unfollowed(self, kind: Kind, error: KarpyError) -> None:
        self._log.error("kind cannot be followed", kind=str(kind), error=error)

    def undone(self, what: str, error: KarpyError) -> None:
        self._log.error("cannot " + what, error=error)

    def unmeasured(self, error: KarpyError) -> None:
        self._log.error("metrics are missing", error=error)

    def unelected(self, error: KarpyError) -> None:
        self._log.error("lease cannot be had", error=error)

    def unwritten(self, notice: Notice, error: KarpyError) -> None:
        self._log.debug("event cannot be written", reason=notice.reason, error=error)

    def dropped(self) -> None:
        self._metrics.count(Count(_DROPPED))

    def recorded(self) -> None:
        self._metrics.count(Count(_RECORDS, {"result": "recorded"}))

    def unrecorded(self, problem: str) -> None:
        self._metrics.count(Count(_RECORDS, {"result": "lost"}))
        self._log.error("decision was not recorded", error=problem)
