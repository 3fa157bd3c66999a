from typing import Final, Unpack

from msgspec.structs import replace

from karpy.core.check.breaches import Rule
from karpy.core.check.spreads import hard_spreads
from karpy.model.constraints import LabelSelector, SpreadConstraint, WhenUnsatisfiable
from karpy.model.labels import ZONE
from karpy.model.pods import Owner, Pod, PodController, Service
from karpy.model.requirements import Requirement, one_of
from karpy.model.settings import Settings
from karpy.model.snapshot import Snapshot
from tests.core.check.builders import NOON, even, in_zone, launch, pod, world
from tests.core.check.fields import SnapshotFields

DEFAULT: Final = SpreadConstraint(ZONE, 1)
DEFAULTS: Final = Settings(default_spreads=(DEFAULT,))
WEB: Final = pod("web", labels={"app": "web", "tier": "x"})
SERVICE: Final = Service("web", "shop", {"app": "web"})


def controlled(kind: str, api_version: str = "apps/v1") -> Pod:
    return replace(WEB, owners=(Owner(api_version, kind, "c", is_controller=True),))


def controller(kind: str, api_version: str = "apps/v1") -> PodController:
    selector = (one_of("app", "mine"),)
    return PodController(api_version, kind, "c", "shop", "uid", selector)


def deduced(its: Pod, **snapshot: Unpack[SnapshotFields]) -> tuple[SpreadConstraint, ...]:
    given: SnapshotFields = {"settings": DEFAULTS, **snapshot}
    return hard_spreads(its, Snapshot(NOON, **given))


def spread(*wanted: Requirement) -> tuple[SpreadConstraint, ...]:
    return (replace(DEFAULT, selector=LabelSelector(wanted)),)


def test_pods_of_a_service_are_spread_by_default() -> None:
    assert deduced(WEB, services=(SERVICE,)) == spread(one_of("app", "web"))


def test_without_a_service_or_controller_there_is_nobody_to_be_spread_among() -> None:
    strangers = (
        Service("other", "shop", {"app": "other"}),
        Service("far", "elsewhere", {"app": "web"}),
        Service("none", "shop"),
        Service("all", "shop", {}),
    )

    assert deduced(WEB) == ()
    assert deduced(WEB, services=strangers) == ()
    assert deduced(controlled("ReplicaSet")) == ()


def test_a_pod_with_a_rule_of_its_own_has_no_defaults() -> None:
    own = replace(WEB, rules=replace(WEB.rules, spreads=(even("own"),)))

    assert deduced(own, services=(SERVICE,)) == (even("own"),)


def test_soft_defaults_are_not_required() -> None:
    soft = replace(DEFAULT, when_unsatisfiable=WhenUnsatisfiable.SCHEDULE_ANYWAY)
    settings = Settings(default_spreads=(soft,))

    assert hard_spreads(WEB, Snapshot(NOON, settings=settings, services=(SERVICE,))) == ()


def test_a_replica_set_narrows_what_services_select() -> None:
    both: SnapshotFields = {"services": (SERVICE,), "controllers": (controller("ReplicaSet"),)}

    assert deduced(controlled("ReplicaSet"), **both) == spread(
        one_of("app", "web"), one_of("app", "mine")
    )


def test_a_replication_controller_overrides_what_services_select() -> None:
    both: SnapshotFields = {
        "services": (SERVICE,),
        "controllers": (controller("ReplicationController", "v1"),),
    }

    assert deduced(controlled("ReplicationController", "v1"), **both) == spread(
        one_of("app", "mine")
    )


def test_other_controllers_say_nothing() -> None:
    assert (
        deduced(controlled("Job", "batch/v1"), controllers=(controller("Job", "batch/v1"),)) == ()
    )


def test_defaults_are_rules_for_a_plan() -> None:
    pods = [WEB, replace(WEB, name="web-2")]
    its = launch("l1", pods, in_zone("a"))

    judged = world(its, pods=pods, services=(SERVICE,), settings=DEFAULTS)

    assert judged.rules() == {Rule.SPREAD}
