import io
import json
from collections import deque
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypedDict, Unpack

import pytest

from karpy.adapters.telemetry.logs import Log, LogStreams, Reporter, make_log, open_lines
from karpy.adapters.telemetry.metrics import Metrics
from karpy.core.lifecycle.changes import Count, Remark
from karpy.errors import CloudUnavailable, FileUnwritable, NoCapacity, Unexpected
from karpy.model.settings import LogFormat, LogLevel


class _Noon:
    def now(self) -> datetime:
        return datetime(2026, 3, 1, 12, 0, 0, 45_678, UTC)


class _Full(io.BytesIO):
    """A disk without room."""

    def write(self, _data: object) -> int:
        raise OSError(28, "No space left on device")


def _read(out: io.BytesIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.getvalue().splitlines()]


class LogFields(TypedDict, total=False):
    level: LogLevel
    form: LogFormat
    commit: str
    now: Callable[[], float]


def _log(out: io.BytesIO, **fields: Unpack[LogFields]) -> Log:
    return make_log(LogStreams([out], []), _Noon(), **fields)


@pytest.fixture
def out() -> io.BytesIO:
    return io.BytesIO()


def test_a_line_has_karpenters_shape(out: io.BytesIO) -> None:
    log = _log(out, commit="abc1234").bind(controller="provisioner", reconcileID="1-2")

    log.info("created nodeclaim", NodePool="default", **{"instance-types": "a and 3 other(s)"})

    assert out.getvalue() == (
        b'{"level":"INFO","time":"2026-03-01T12:00:00.045Z","logger":"controller",'
        b'"message":"created nodeclaim","commit":"abc1234","controller":"provisioner",'
        b'"reconcileID":"1-2","NodePool":{"name":"default"},"instance-types":"a and 3 other(s)"}\n'
    )


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        (LogLevel.DEBUG, ["DEBUG", "INFO", "WARN", "ERROR"]),
        (LogLevel.INFO, ["INFO", "WARN", "ERROR"]),
        (LogLevel.ERROR, ["ERROR"]),
    ],
)
def test_a_level_lets_through_what_weighs_enough(
    out: io.BytesIO, level: LogLevel, expected: list[str]
) -> None:
    log = _log(out, level=level)

    log.debug("a")
    log.info("b")
    log.warning("c")
    log.error("d")

    assert [line["level"] for line in _read(out)] == expected


def test_only_debugging_tells_the_caller(out: io.BytesIO) -> None:
    _log(out, level=LogLevel.DEBUG).info("a")

    assert _read(out)[0]["caller"].startswith("telemetry/test_logs.py:")


def test_objects_are_logged_by_namespace_and_name(out: io.BytesIO) -> None:
    _log(out).info("a", Pod="shop/web", Node={"name": "n"}, took=timedelta(seconds=1))

    line = _read(out)[0]

    assert (line["Pod"], line["Node"]) == ({"namespace": "shop", "name": "web"}, {"name": "n"})
    assert "caller" not in line


def test_an_error_brings_its_code_and_hint(out: io.BytesIO) -> None:
    error = NoCapacity(claim="a", options=2)

    _log(out).error("failed launching nodeclaim", error=error)
    _log(out).error("odd", error=LookupError("it slipped"))

    ours, other = _read(out)
    assert (ours["error"], ours["code"], ours["hint"]) == (error.message, "KP3001", error.hint)
    assert other["error"] == "it slipped"


def test_too_many_equal_lines_are_thinned_out(out: io.BytesIO) -> None:
    seconds: Iterator[float] = iter([0.5] * 350 + [1.5])
    log = _log(out, now=lambda: next(seconds))

    deque((log.bind(number=number).info("again") for number in range(351)), maxlen=0)

    numbers = [line["number"] for line in _read(out)]
    assert numbers == [*range(100), 199, 299, 350]


def test_a_full_disk_stops_no_controller(out: io.BytesIO) -> None:
    errors = io.BytesIO()
    log = make_log(LogStreams([_Full(), out], [_Full(), errors]), _Noon())

    log.info("a")
    log.info("b")

    assert [line["message"] for line in _read(out)] == ["a", "b"]
    assert errors.getvalue().startswith(b"cannot write to the log: [Errno 28] No space left")


def test_lines_go_to_files_and_standard_streams(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"before\n")
    lines = open_lines(["stdout", "stderr", str(path)], [])

    lines.info(b"{}")

    assert capfdbinary.readouterr() == (b"{}\n", b"{}\n")
    assert path.read_bytes() == b"before\n{}\n"
    lines.close()


def test_an_output_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileUnwritable, match="No such file or directory"):
        open_lines([str(tmp_path / "no" / "log")], [])


def test_remarks_are_lines_and_counts_are_metrics(out: io.BytesIO) -> None:
    metrics = Metrics()
    teller = Reporter(metrics, _log(out)).about("nodeclaim.lifecycle", "default-abc")

    teller.remark(Remark("launched nodeclaim", {"provider-id": "kwok://a", "event": "x"}))
    teller.remark(Remark("consistency error", {"error": "it is gone"}, is_error=True))
    teller.count(Count("nodes_drained_total", {"nodepool": "default"}))

    first, second = _read(out)
    assert first.pop("reconcileID") == second.pop("reconcileID")
    assert first == {
        "level": "INFO",
        "time": "2026-03-01T12:00:00.045Z",
        "logger": "controller",
        "message": "launched nodeclaim",
        "controller": "nodeclaim.lifecycle",
        "namespace": "",
        "name": "default-abc",
        "provider-id": "kwok://a",
    }
    assert (second["level"], second["error"]) == ("ERROR", "it is gone")
    assert b'karpenter_nodes_drained_total{nodepool="default"} 1.0' in metrics.render()


def test_a_failure_is_a_line_and_a_metric(out: io.BytesIO) -> None:
    metrics = Metrics()

    Reporter(metrics, _log(out)).fail(
        "eviction-queue", "shop/web", NoCapacity(claim="a", options=1)
    )

    line = _read(out)[0]
    assert (line["message"], line["controller"]) == ("Reconciler error", "eviction-queue")
    assert (line["namespace"], line["name"], line["code"]) == ("shop", "web", "KP3001")
    assert b'reconcile_errors_total{controller="eviction-queue"} 1.0' in metrics.render()


# --- for people ----------------------------------------------------------------------------------


@pytest.fixture
def console(out: io.BytesIO) -> Log:
    return _log(out, form=LogFormat.CONSOLE).bind(controller="x", reconcileID="1-2")


def test_a_decision_is_a_sentence_for_people(out: io.BytesIO) -> None:
    log = _log(out, form=LogFormat.CONSOLE)

    log.info("computed new nodeclaim(s) to fit pod(s)", nodeclaims="1", pods="3")
    log.info(
        "launched nodeclaim",
        NodeClaim="web-1",
        zone="a",
        **{"instance-type": "c-4x", "capacity-type": "spot", "provider-id": "kwok://web-1"},
    )

    assert out.getvalue().decode().splitlines() == [
        "12:00:00.045 decided on 1 new node(s) for 3 pod(s)",
        "12:00:00.045 launched web-1: c-4x, spot, in a  provider-id=kwok://web-1",
    ]


def test_pods_that_stay_pending_are_a_sentence_for_people(out: io.BytesIO, console: Log) -> None:
    fields = {"pods": "5", "reasons": "5 because a limit of the NodePool is reached"}

    console.info("pod(s) stay pending", **fields)
    _log(out).info("pod(s) stay pending", **fields)

    sentence, line = out.getvalue().splitlines()
    told = b"5 pod(s) stay pending: 5 because a limit of the NodePool is reached"
    assert sentence == b"12:00:00.045 " + told + b"  controller=x"
    assert fields.items() <= json.loads(line).items()


def test_a_line_without_a_sentence_keeps_its_fields(out: io.BytesIO, console: Log) -> None:
    error = CloudUnavailable(call="CreateFleet", problem="throttled")

    console.error("Reconciler error", error=error, Pod="shop/web-0")

    line = out.getvalue().decode()
    assert line.startswith("12:00:00.045 ERROR Reconciler error  controller=x  error=")
    assert "Pod=shop/web-0" in line
    assert "code=KP3004" in line
    assert "reconcileID" not in line


def test_a_sentence_that_lacks_a_field_is_not_begun(out: io.BytesIO) -> None:
    _log(out, form=LogFormat.CONSOLE).info("deleted node", name="n")

    assert out.getvalue() == b"12:00:00.045 deleted node\n"


def test_a_name_cannot_look_like_another_line(out: io.BytesIO) -> None:
    _log(out, form=LogFormat.CONSOLE).info("deleted node", Node="a\n12:00 \x1b[31mb")

    assert out.getvalue() == b"12:00:00.045 a?12:00 ?[31mb is gone\n"


def test_a_mistake_has_its_traceback_below(out: io.BytesIO) -> None:
    _log(out, form=LogFormat.CONSOLE).error("oops", error=Unexpected(error=LookupError("x")))

    first, *trace = out.getvalue().decode().splitlines()
    assert first.startswith("12:00:00.045 ERROR oops  error=")
    assert trace != []
