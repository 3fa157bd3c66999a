"""Tells what controllers have to say: counts to the metrics, remarks to the log."""

from typing import Final
from uuid import uuid4

from karpy.adapters.telemetry.logs import Log
from karpy.adapters.telemetry.metrics import Metrics
from karpy.core.lifecycle.changes import Count, Remark

_ERRORS: Final = "controller_runtime_reconcile_errors_total"


class Teller:
    """Metrics and log behind one face, for one controller or for one look of it."""

    def __init__(self, metrics: Metrics, log: Log) -> None:
        self._metrics = metrics
        self._log = log

    def about(self, controller: str, name: str = "", namespace: str = "") -> "Teller":
        """Return one whose lines carry who speaks, about which object, and a number of its own."""
        log = self._log.bind(
            controller=controller, namespace=namespace, name=name, reconcileID=str(uuid4())
        )
        return Teller(self._metrics, log)

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
        """Tell that a controller could not work on an object; it will try again."""
        namespace, _, name = key.rpartition("/")
        self._metrics.count(Count(_ERRORS, {"controller": controller}))
        log = self._log.bind(controller=controller, namespace=namespace, name=name)
        log.error("Reconciler error", error=error)
