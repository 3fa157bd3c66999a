"""The judge of plans."""

from karpy.core.check.breaches import Breach
from karpy.core.check.neighbours import check_affinity, check_anti_affinity, find_affinity_risks
from karpy.core.check.options import check_limits, check_names, check_options, check_reservations
from karpy.core.check.scene import Scene, check_decisions
from karpy.core.check.spreads import check_spreads
from karpy.core.check.tenancy import check_tenancy
from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import Verdict


def check_plan(snapshot: Snapshot, verdict: Verdict) -> tuple[Breach, ...]:
    """
    Return every rule that a plan breaks; a good plan breaks none.

    It must hold as kube-scheduler will see it after the launches, whatever instance type, zone and
    capacity type the cloud picks for them. Where it matters in which order kube-scheduler binds the
    pods, some order must work; see `find_risks` for the others. Preferences are never required, and
    nothing is said about how good a plan is: only whether it is right.
    """
    scene = Scene(snapshot, verdict)
    return (
        *check_decisions(snapshot, verdict),
        *check_names(scene),
        *check_options(scene),
        *check_tenancy(scene),
        *check_spreads(scene),
        *check_affinity(scene),
        *check_anti_affinity(scene),
        *check_limits(scene),
        *check_reservations(scene),
    )


def find_risks(snapshot: Snapshot, verdict: Verdict) -> tuple[Breach, ...]:
    """Return what goes wrong with a plan that is right if its pods are bound in a bad order."""
    return tuple(find_affinity_risks(Scene(snapshot, verdict)))
