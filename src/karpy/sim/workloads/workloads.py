"""All workload controllers of a cluster."""

from karpy.model.kinds import CONTROLLER_REVISION, JOB, POD, REPLICA_SET
from karpy.ports.clock import Clock
from karpy.sim.budgets import Budgets
from karpy.sim.collector import Collector
from karpy.sim.quotas import QuotaController
from karpy.sim.store.store import Store
from karpy.sim.workloads.controller import Controller, WorkloadContext
from karpy.sim.workloads.cronjobs import CronJobs
from karpy.sim.workloads.daemonsets import DaemonSets
from karpy.sim.workloads.deployments import Deployments
from karpy.sim.workloads.expiry import Expiry
from karpy.sim.workloads.family import Family
from karpy.sim.workloads.jobs import Jobs
from karpy.sim.workloads.recorder import WorkloadEvents
from karpy.sim.workloads.replicasets import ReplicaSets, ReplicationControllers
from karpy.sim.workloads.statefulsets import StatefulSets


class Workloads:
    """
    The workload controllers, the disruption controller and the garbage collector.

    Changes of pods within `patience_seconds` are handled in one reconcile, which is cheaper where
    many pods start at slightly different times.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        *,
        has_events: bool = True,
        patience_seconds: float = 0.1,
    ) -> None:
        context = WorkloadContext(
            store,
            clock,
            WorkloadEvents(store, clock) if has_events else None,
            pods=Family(store, POD),
            replica_sets=Family(store, REPLICA_SET),
            revisions=Family(store, CONTROLLER_REVISION),
            jobs=Family(store, JOB),
            patience_seconds=patience_seconds,
        )
        self._families = (context.pods, context.replica_sets, context.revisions, context.jobs)
        self._controllers: tuple[Controller, ...] = (
            Deployments(context),
            ReplicaSets(context),
            ReplicationControllers(context),
            StatefulSets(context),
            DaemonSets(context),
            Jobs(context),
            CronJobs(context),
            Expiry(context),
            Budgets(context),
            QuotaController(context),
        )
        self._collector = Collector(store)

    def start(self) -> None:
        """Start all controllers."""
        for family in self._families:
            family.start()
        for controller in self._controllers:
            controller.start()
        self._collector.start()

    def stop(self) -> None:
        """Stop all controllers."""
        self._collector.stop()
        for controller in self._controllers:
            controller.stop()
        for family in self._families:
            family.stop()
