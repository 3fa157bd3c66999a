"""The checks of a whole plan."""

from karpy.core.check.breaches import Breach
from karpy.core.check.neighbours import check_affinity, check_anti_affinity, find_affinity_risks
from karpy.core.check.options import check_limits, check_names, check_options, check_reservations
from karpy.core.check.scene import PlannedCluster, check_decisions
from karpy.core.check.spreads import check_spreads
from karpy.core.check.tenancy import check_tenancy
from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import Verdict


def check_plan(snapshot: Snapshot, verdict: Verdict) -> tuple[Breach, ...]:
    """
    Return every rule that a plan breaks; a good plan breaks none.

    A plan must hold as kube-scheduler will see it after the launches, whatever instance type, zone
    and capacity type the cloud picks for them. If the order in which kube-scheduler binds the pods
    matters, some order must work; `find_risks` reports the others. Preferences and cost are not
    checked.
    """
    cluster = PlannedCluster(snapshot, verdict)
    return (
        *check_decisions(snapshot, verdict),
        *check_names(cluster),
        *check_options(cluster),
        *check_tenancy(cluster),
        *check_spreads(cluster),
        *check_affinity(cluster),
        *check_anti_affinity(cluster),
        *check_limits(cluster),
        *check_reservations(cluster),
    )


def find_risks(snapshot: Snapshot, verdict: Verdict) -> tuple[Breach, ...]:
    """Return what may break in a correct plan if its pods are bound in an unfavourable order."""
    return tuple(find_affinity_risks(PlannedCluster(snapshot, verdict)))
