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
from karpy.barriers import known
from karpy.core.lifecycle.changes import Count
from karpy.errors import KarpyError, LeadershipLost, OptionInvalid
from karpy.model.kinds import NODE_CLAIM, NODE_POOL, Kind
from karpy.model.notices import Notice
from karpy.model.settings import Options
from karpy.ports.cloud import CloudProvider
from karpy.wiring.clouds.registry import Site, find_cloud, surface_of
from karpy.wiring.instruments import class_label
from karpy.wiring.operator import Operator
from karpy.wiring.options import OptionsRead

_RECORDS: Final = "karpy_journal_records_total"
_UNREADABLE: Final = "karpy_unreadable_objects_total"
_FRAMES: Final = -20
"""So many calls of a stack are logged, the last ones."""
_DROPPED: Final = "karpy_events_dropped_total"
_LEADS: Final = "leader_election_master_status"
_SECONDS_FOR_EVENTS: Final = 3.0
_EVENT_RATES: Final = {"Nominated": (5.0, 10)}
"""Per second in the long run, and at once: a thousand pods need not each be told at once."""


class Crashed(Exception):
    """The operator has ended by the error that is the cause; the log says so already."""


async def run_process(read: OptionsRead, environ: Mapping[str, str], end: asyncio.Event) -> None:
    """
    Run the operator until `end` is set; raise Crashed if it cannot go on, or another one leads.

    Everything begun is left as it stands, the lease is given back, and events are written.
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
        recorder = await stack.enter_async_context(_events(connections.telling, troubles))
        objects, feed = connections.usual.objects, connections.usual.feed
        heard = troubles.undone, metrics.count, connections.check_write
        authority = b64encode(access.endpoint.ca_pem.encode()).decode()
        reporter = Reporter(metrics, log)
        server = authority, connections.usual.version
        site = Site(
            *(objects, feed, WallClock(), recorder, options, environ, *heard, *server),
            on_remark=reporter.remark,
            add_source=metrics.add_source,
        )
        with _LastWords(log):
            cloud = await cloud_module.open_cloud(site)
        stack.push_async_callback(cloud.close)
        operator = Operator(
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


class _Lines(Struct, frozen=True):
    """
    Connections to the API server.

    Elections have one of their own: being throttled must not cost the lease. So have events,
    thousands of which must not be in the way of launches, and the names of their nodes that pods
    are told, for which those nodes wait.
    """

    fence: Fence | None
    usual: Connection
    own: Connection
    nominations: Connection
    telling: Connection

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
) -> _Lines:
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
    return _Lines(fence, *[await stack.enter_async_context(each) for each in (usual, *more)])


def _election(lines: _Lines, options: Options, troubles: "_Troubles") -> Election:
    """Return the candidate for the lease; it opens the fence for as long as it surely leads."""
    own, on_trouble = lines.own, troubles.unelected
    candidacy = Candidacy(options.lease_namespace or own.namespace, options.lease_name)
    return Election(own.objects, WallClock(), candidacy, on_trouble=on_trouble, fence=lines.fence)


async def _act(operator: Operator, cloud: CloudProvider, on_start: Callable[[], None]) -> None:
    """Lead, until cancelled."""
    on_start()
    cloud.start()
    try:
        await operator.act()
    finally:
        await cloud.close()


async def _until(
    end: asyncio.Event, watching: Awaitable[None], acting: Awaitable[bool | None], log: Log
) -> None:
    """Watch, wait for the lease and act, until `end` is set; raise Crashed if any fails."""
    watch, act = asyncio.ensure_future(watching), asyncio.ensure_future(acting)
    ending = asyncio.ensure_future(end.wait())
    await asyncio.wait((watch, act, ending), return_when=asyncio.FIRST_COMPLETED)
    is_over = end.is_set()
    # Controllers stop first; until then what they see must stay fresh.
    for task in (act, watch, ending):
        task.cancel()
        await asyncio.wait((task,))
    if is_over:
        return
    with _LastWords(log):
        for task in (watch, act):
            if not task.cancelled():
                task.result()
        raise LeadershipLost("the lease was lost")


async def _serve(
    stack: AsyncExitStack, options: Options, metrics: Metrics, operator: Operator
) -> None:
    """Answer Prometheus and kubelets."""
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
    """Write events, those of the end included."""
    rates = {reason: TokenBucket(*rate) for reason, rate in _EVENT_RATES.items()}
    recorder = EventRecorder(
        connection.objects,
        WallClock(),
        instance=socket.gethostname(),
        rates=rates,
        on_trouble=troubles.untold,
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

    # The journal writes in a thread of its own; logs and metrics are for the loop alone.
    def lost(problem: str) -> None:
        loop.call_soon_threadsafe(troubles.unrecorded, problem)

    def recorded() -> None:
        loop.call_soon_threadsafe(troubles.recorded)

    journal = BackgroundJournal(files, lost, recorded)
    stack.callback(journal.close)
    return journal


class _LastWords:
    """Has the log say what ends the operator."""

    def __init__(self, log: Log) -> None:
        self._log = log

    def __enter__(self) -> None:
        """Begin with what may end it."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # A flag that cannot be is shown as that of any other command.
        if isinstance(error, Exception) and not isinstance(error, OptionInvalid):
            self._log.error("operator has ended", error=known(error))
            raise Crashed from error


class _Troubles:
    """Writes down what does not work right now, and will be tried again."""

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
            stacktrace="".join(format_exception(error, limit=_FRAMES)),
        )

    def unfollowed(self, kind: Kind, error: KarpyError) -> None:
        self._log.error("kind cannot be followed", kind=str(kind), error=error)

    def undone(self, what: str, error: KarpyError) -> None:
        self._log.error("cannot " + what, error=error)

    def unmeasured(self, error: KarpyError) -> None:
        self._log.error("metrics are missing", error=error)

    def unelected(self, error: KarpyError) -> None:
        self._log.error("lease cannot be had", error=error)

    def untold(self, notice: Notice, error: KarpyError) -> None:
        self._log.debug("event cannot be written", reason=notice.reason, error=error)

    def dropped(self) -> None:
        self._metrics.count(Count(_DROPPED))

    def recorded(self) -> None:
        self._metrics.count(Count(_RECORDS, {"result": "recorded"}))

    def unrecorded(self, problem: str) -> None:
        self._metrics.count(Count(_RECORDS, {"result": "lost"}))
        self._log.error("decision was not recorded", error=problem)
