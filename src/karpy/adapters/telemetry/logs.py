"""Logs: JSON lines in Karpenter's format, or console lines; and the sink of counts and lines."""

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from traceback import format_exception
from typing import IO, Any, Final, TypeAlias
from uuid import uuid4

import structlog
from msgspec.json import Encoder
from structlog.processors import CallsiteParameter, CallsiteParameterAdder
from structlog.typing import EventDict, FilteringBoundLogger, Processor

from karpy.adapters.telemetry.consolelines import console_line
from karpy.adapters.telemetry.metrics import Metrics
from karpy.core.lifecycle.changes import Count, Remark
from karpy.errors import Bug, FileUnwritable, KarpyError
from karpy.model.settings import LogFormat, LogLevel
from karpy.ports.clock import Clock

Log: TypeAlias = FilteringBoundLogger
"""`log.info("created nodeclaim", NodeClaim="a")`: a constant message, then fields."""
_LOGGER: Final = "controller"
_LEVELS: Final = {"debug": "DEBUG", "info": "INFO", "warning": "WARN", "error": "ERROR"}
_KINDS: Final = frozenset({"Pod", "Node", "NodeClaim", "NodePool", "NodeClass", "CapacityBuffer"})
"""Fields that name an object; Karpenter writes them as objects, too."""
_SAMPLES_PER_SECOND: Final = 100
_SAMPLE_EVERY: Final = 100
_THRESHOLDS: Final = {LogLevel.DEBUG: 10, LogLevel.INFO: 20, LogLevel.ERROR: 40}
_STANDARD: Final = ("stdout", "stderr")
_ERRORS: Final = "controller_runtime_reconcile_errors_total"


class LogStreams:
    """
    The streams that log lines are written to.

    A line that cannot be written is reported once on the streams for errors, and raises no error: a
    full disk must not stop launches.
    """

    def __init__(self, streams: Sequence[IO[bytes]], errors: Sequence[IO[bytes]]) -> None:
        self._streams = streams
        self._errors = errors
        self._is_broken = False

    def info(self, line: bytes) -> None:
        """Write a line."""
        for stream in self._streams:
            try:
                stream.write(line + b"\n")
                stream.flush()
            except (OSError, ValueError) as error:
                self._report(error)
            else:
                self._is_broken = False

    debug = warning = error = info

    def close(self) -> None:
        """Close the files; standard streams stay open."""
        standard = (sys.stdout.buffer, sys.stderr.buffer)
        for stream in (*self._streams, *self._errors):
            if stream not in standard:
                stream.close()

    def _report(self, error: Exception) -> None:
        if self._is_broken:
            return
        self._is_broken = True
        for stream in self._errors:
            with suppress(OSError, ValueError):
                stream.write(f"cannot write to the log: {error}\n".encode())
                stream.flush()


def make_log(
    lines: LogStreams,
    clock: Clock,
    *,
    level: LogLevel = LogLevel.INFO,
    form: LogFormat = LogFormat.JSON,
    commit: str = "",
    now: Callable[[], float] = time.monotonic,
) -> Log:
    """Make a log that writes lines from `level` on; every line has the commit, if it is known."""
    is_debugging = level is LogLevel.DEBUG
    where = CallsiteParameterAdder({CallsiteParameter.PATHNAME, CallsiteParameter.LINENO})
    processors: list[Processor] = [
        Sampler(now),
        *((where,) if is_debugging else ()),
        _Shape(clock, commit),
        _encoded if form is LogFormat.JSON else _written,
    ]
    log: Log = structlog.wrap_logger(
        lines,
        processors=processors,
        wrapper_class=structlog.make_filtering_bound_logger(_THRESHOLDS[level]),
    )
    return log


def open_lines(outputs: Sequence[str], error_outputs: Sequence[str]) -> LogStreams:
    """Open outputs: `stdout`, `stderr` or the paths of files; raise FileUnwritable."""
    return LogStreams(
        [_stream(each) for each in outputs], [_stream(each) for each in error_outputs]
    )


class Sampler:
    """
    Drops lines that repeat too often.

    In each second, a hundred lines with the same message pass, then every hundredth, as in
    Karpenter.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._second = -1
        self._seen: dict[tuple[str, str], int] = {}

    def __call__(self, _log: object, method: str, event: EventDict) -> EventDict:
        second = int(self._now())
        if second != self._second:
            self._second = second
            self._seen.clear()
        key = (method, str(event["event"]))
        seen = self._seen[key] = self._seen.get(key, 0) + 1
        beyond = seen - _SAMPLES_PER_SECOND
        if beyond > 0 and beyond % _SAMPLE_EVERY:
            raise structlog.DropEvent
        return event


class _Shape:
    """Puts the fields of a line into Karpenter's order and names."""

    def __init__(self, clock: Clock, commit: str) -> None:
        self._clock = clock
        self._commit = {"commit": commit} if commit else {}

    def __call__(self, _log: object, method: str, event: EventDict) -> EventDict:
        moment = self._clock.now()
        shaped: dict[str, Any] = {
            "level": _LEVELS[method],
            "time": f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z",
            "logger": event.pop("logger", _LOGGER),
            **_caller(event),
            "message": event.pop("event"),
            **self._commit,
        }
        for key, value in event.items():
            shaped |= _field(key, value)
        return shaped


def _caller(event: EventDict) -> Mapping[str, str]:
    path = event.pop("pathname", "")
    line = event.pop("lineno", 0)
    return {"caller": f"{'/'.join(Path(path).parts[-2:])}:{line}"} if path else {}


def _field(key: str, value: object) -> dict[str, object]:
    if key in _KINDS and isinstance(value, str):
        namespace, _, name = value.rpartition("/")
        return {key: {"namespace": namespace, "name": name} if namespace else {"name": name}}
    if isinstance(value, KarpyError):
        shown: dict[str, object] = {key: value.message, "code": value.code, "hint": value.hint}
        return {**shown, "stacktrace": _stacktrace(value)} if isinstance(value, Bug) else shown
    return {key: value}


def _stacktrace(bug: Bug) -> str:
    """Return the traceback of a bug, for the field `stacktrace`."""
    return "".join(format_exception(bug.__cause__ or bug)).rstrip()


_ENCODER: Final = Encoder(enc_hook=str)


def _encoded(_log: object, _method: str, event: EventDict) -> bytes:
    return _ENCODER.encode(event)


def _written(_log: object, _method: str, event: EventDict) -> bytes:
    return console_line(event)


def _stream(name: str) -> IO[bytes]:
    if name in _STANDARD:
        return sys.stdout.buffer if name == "stdout" else sys.stderr.buffer
    try:
        return Path(name).open("ab")
    except OSError as error:
        raise FileUnwritable(path=name, problem=error.strerror or str(error)) from error


class Reporter:
    """The sink of counts and log lines, for one controller or one reconcile."""

    def __init__(self, metrics: Metrics, log: Log) -> None:
        self._metrics = metrics
        self._log = log

    def about(self, controller: str, name: str = "", namespace: str = "") -> "Reporter":
        """Return a reporter whose lines carry controller, object and a reconcile ID."""
        log = self._log.bind(
            controller=controller, namespace=namespace, name=name, reconcileID=str(uuid4())
        )
        return Reporter(self._metrics, log)

    def count(self, count: Count) -> None:
        """Count something that happened."""
        self._metrics.count(count)

    def remark(self, remark: Remark) -> None:
        """Write a line to the log."""
        log = self._log.bind(**remark.fields)
        if remark.is_error:
            log.error(remark.event)
        else:
            log.info(remark.event)

    def fail(self, controller: str, key: str, error: BaseException) -> None:
        """Report that a reconcile failed; the controller retries it."""
        namespace, _, name = key.rpartition("/")
        self._metrics.count(Count(_ERRORS, {"controller": controller}))
        log = self._log.bind(controller=controller, namespace=namespace, name=name)
        log.error("Reconciler error", error=error)
