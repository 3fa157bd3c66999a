"""All workload controllers of a cluster."""

from karpy.model.kinds import CONTROLLER_REVISION, JOB, POD, REPLICA_SET
from karpy.ports.clock import Clock
from karpy.sim.budgets import Budgets
from karpy.sim.collector import Collector
from karpy.sim.quotas import Quotas
from karpy.sim.store.store import Store
from karpy.sim.workloads.controller import Controller, WorkloadContext
from karpy.sim.workloads.cronjobs import CronJobs
from karpy.sim.workloads.daemonsets import DaemonSets
from karpy.sim.workloads.deployments import Deployments
from karpy.sim.workloads.expiry import Expiry
from karpy.sim.workloads.family import Family
from karpy.sim.workloads.jobs import Jobs
from karpy.sim.workloads.recorder import Recorder
from karpy.sim.workloads.replicasets import ReplicaSets, ReplicationControllers
from karpy.sim.workloads.statefulsets import StatefulSets


class Workloads:
    """
    Makes pods of whatever asks for them, counts them for budgets, and collects what is left over.

    Pods that change within `patience_seconds` are looked at together: where many start at slightly
    different times, one look costs less than many.
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
            Recorder(store, clock) if has_events else None,
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
            Quotas(context),
        )
        self._collector = Collector(store)

    def start(self) -> None:
        """Look at everything there is, and then at whatever changes."""
        for family in self._families:
            family.start()
        for controller in self._controllers:
            controller.start()
        self._collector.start()

    def stop(self) -> None:
        """Do nothing any more."""
        self._collector.stop()
        for controller in self._controllers:
            controller.stop()
        for family in self._families:
            family.stop()
