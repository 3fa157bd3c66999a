import pytest

from karpy.model.kinds import DEPLOYMENT, POD, REPLICA_SET
from tests.sim.stories import on_virtual_time
from tests.sim.workloads.fleets import REVISION, ROLLED_OUT, rolling, sizes
from tests.sim.workloads.stage import on_stage, settle, with_image, workload


@on_virtual_time
async def test_a_new_template_is_rolled_out_step_by_step() -> None:
    with on_stage(start=2) as stage:
        stage.add(DEPLOYMENT, "web", workload("web", replicas=4))
        await settle(5)

        stage.patch(DEPLOYMENT, "web", with_image("app:2"))
        await settle(1)
        first = sizes(stage)
        await settle(2)
        second = sizes(stage)
        await settle(20)

        # One more and one fewer than four: a quarter, rounded up and down.
        assert first == {"1": 3, "2": 2}
        assert second == {"1": 1, "2": 4}
        assert sizes(stage) == {"1": 0, "2": 4}
        assert stage.images() == ["app:2"] * 4
        assert stage.conditions(DEPLOYMENT, "web") == ROLLED_OUT


@pytest.mark.parametrize(
    ("replicas", "surge", "unavailable", "expected"),
    [
        (10, "25%", "25%", {"1": 8, "2": 5}),
        (3, "25%", "25%", {"1": 3, "2": 1}),
        (10, 0, 3, {"1": 7, "2": 3}),
        (10, 3, 0, {"1": 10, "2": 3}),
        (10, "100%", 0, {"1": 10, "2": 10}),
        (2, "0%", "1%", {"1": 1, "2": 1}),
        (1, "1%", "25%", {"1": 1, "2": 1}),
    ],
)
@on_virtual_time
async def test_a_rollout_keeps_its_limits(
    replicas: int, surge: int | str, unavailable: int | str, expected: dict[str, int]
) -> None:
    with on_stage() as stage:
        strategy = rolling(surge, unavailable)
        stage.add(DEPLOYMENT, "web", workload("web", replicas, strategy=strategy))
        await settle(2)

        # The new pods do not start within this time.
        stage.patch(DEPLOYMENT, "web", with_image("app:2"))
        await settle(0.9)

        assert sizes(stage) == expected


@on_virtual_time
async def test_enough_pods_stay_available_all_the_time() -> None:
    with on_stage(start=2, stop=3) as stage:
        stage.add(DEPLOYMENT, "web", workload("web", replicas=8))
        await settle(5)
        seen = []
        stage.store.subscribe(
            POD, lambda *_: seen.append(stage.status(DEPLOYMENT, "web").get("availableReplicas"))
        )

        stage.patch(DEPLOYMENT, "web", with_image("app:2"))
        await settle(60)

        assert stage.images() == ["app:2"] * 8
        assert min(filter(None, seen)) >= 6


@on_virtual_time
async def test_unhealthy_pods_are_deleted_first() -> None:
    """A rollout to something better must not wait for something broken."""
    with on_stage(start=None) as stage:
        strategy = rolling(0, 1)
        stage.add(DEPLOYMENT, "web", workload("web", replicas=3, strategy=strategy))
        await settle()
        well = stage.pod_names()[0]
        stage.run(well)
        await settle()

        stage.patch(DEPLOYMENT, "web", with_image("app:2"))
        await settle()

        assert sizes(stage) == {"1": 2, "2": 1}
        assert well in stage.pod_names()


@on_virtual_time
async def test_recreate_waits_until_all_old_pods_are_gone() -> None:
    with on_stage(stop=10) as stage:
        spec = workload("web", strategy={"type": "Recreate"})
        stage.add(DEPLOYMENT, "web", spec)
        await settle(2)

        stage.patch(DEPLOYMENT, "web", with_image("app:2"))
        await settle(9)
        before = len(stage.names(REPLICA_SET)), stage.pods()
        await settle(5)

        assert before == (1, [])
        assert stage.images() == ["app:2"] * 3
        assert stage.conditions(DEPLOYMENT, "web") == ROLLED_OUT


@on_virtual_time
async def test_a_rollback_uses_the_old_replica_set_again() -> None:
    """What `kubectl rollout undo` does is to write the old template."""
    with on_stage() as stage:
        stage.add(DEPLOYMENT, "web", workload("web"))
        await settle(5)
        stage.patch(DEPLOYMENT, "web", with_image("app:2"))
        await settle(20)

        stage.patch(DEPLOYMENT, "web", with_image("app:1"))
        await settle(20)

        notes = [each["metadata"]["annotations"] for each in stage.all(REPLICA_SET)]
        assert stage.images() == ["app:1"] * 3
        assert sizes(stage) == {"2": 0, "3": 3}
        assert stage.get(DEPLOYMENT, "web")["metadata"]["annotations"][REVISION] == "3"
        assert [
            each["deployment.kubernetes.io/revision-history"]
            for each in notes
            if "deployment.kubernetes.io/revision-history" in each
        ] == ["1"]


@on_virtual_time
async def test_a_rollout_overtaken_by_another_goes_straight_to_the_last() -> None:
    with on_stage(start=2) as stage:
        stage.add(DEPLOYMENT, "web", workload("web", replicas=4))
        await settle(5)

        stage.patch(DEPLOYMENT, "web", with_image("app:2"))
        await settle(1)
        stage.patch(DEPLOYMENT, "web", with_image("app:3"))
        await settle(30)

        assert sizes(stage) == {"1": 0, "2": 0, "3": 4}
        assert stage.images() == ["app:3"] * 4


@on_virtual_time
async def test_old_replica_sets_are_deleted_beyond_the_history_limit() -> None:
    with on_stage() as stage:
        stage.add(DEPLOYMENT, "web", workload("web", replicas=1, revisionHistoryLimit=2))
        await settle(5)

        stage.patch(DEPLOYMENT, "web", with_image("app:2"))
        await settle(10)
        stage.patch(DEPLOYMENT, "web", with_image("app:3"))
        await settle(10)
        stage.patch(DEPLOYMENT, "web", with_image("app:4"))
        await settle(10)

        assert sizes(stage) == {"2": 0, "3": 0, "4": 1}


@on_virtual_time
async def test_a_rollout_that_does_not_move_has_failed_after_its_deadline() -> None:
    with on_stage(start=None) as stage:
        stage.add(DEPLOYMENT, "web", workload("web", progressDeadlineSeconds=60))
        await settle(59)
        before = stage.conditions(DEPLOYMENT, "web")["Progressing"]
        await settle(5)
        after = stage.conditions(DEPLOYMENT, "web")["Progressing"]
        stage.run(stage.pod_names()[0])
        stage.run(stage.pod_names()[1])
        stage.run(stage.pod_names()[2])
        await settle(1)

        assert before == ("True", "ReplicaSetUpdated")
        assert after == ("False", "ProgressDeadlineExceeded")
        assert stage.conditions(DEPLOYMENT, "web") == ROLLED_OUT


@on_virtual_time
async def test_min_ready_seconds_slow_a_rollout_down() -> None:
    with on_stage() as stage:
        spec = workload("web", replicas=2, minReadySeconds=60, strategy=rolling(1, 0))
        stage.add(DEPLOYMENT, "web", spec)
        await settle(70)

        stage.patch(DEPLOYMENT, "web", with_image("app:2"))
        await settle(50)
        before = sizes(stage)
        await settle(100)

        assert before == {"1": 2, "2": 1}
        assert sizes(stage) == {"1": 0, "2": 2}
