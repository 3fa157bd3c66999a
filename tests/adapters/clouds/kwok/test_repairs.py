from karpy.adapters.clouds.kwok.repairs import REPAIR_POLICIES
from karpy.model.nodes import RepairAction


def test_the_policies_are_those_of_karpenter() -> None:
    told = [
        (
            each.condition,
            each.status,
            each.reason_pattern,
            each.toleration.total_seconds(),
            each.grace_period.total_seconds() if each.grace_period is not None else None,
            each.action,
            each.priority,
        )
        for each in REPAIR_POLICIES
    ]

    assert told == [
        ("Ready", "False", "", 600, 0, RepairAction.REPLACE, 0),
        ("Ready", "Unknown", ".*", 600, 0, RepairAction.REPLACE, 0),
        ("KWOKUnhealthy", "True", ".*", 30, 45, RepairAction.REPLACE, 0),
        ("KWOKRebootRequired", "True", ".*", 30, 60, RepairAction.REBOOT, 0),
    ]
