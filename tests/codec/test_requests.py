import pytest

from karpy.codec.fields import Fields
from karpy.codec.requests import effective_limits, effective_requests, plain_requests
from tests.codec.plain import Json, container

GI = 2**30


def effective(spec: Json, status: Json | None = None) -> dict[str, int]:
    return effective_requests(Fields(spec), Fields(status or {}))


def test_containers_add_up() -> None:
    spec = {
        "containers": [
            container("a", requests={"cpu": "500m", "memory": "1Gi"}),
            container("b", requests={"cpu": "1", "example.com/gpu": "2"}),
            container("c"),
        ]
    }

    assert effective(spec) == {"cpu": 1500, "memory": GI, "example.com/gpu": 2, "pods": 1}


def test_limits_stand_in_for_requests_that_are_not_there() -> None:
    """The API server fills them in; a request of zero is there."""
    spec = {
        "containers": [
            container(
                requests={"cpu": "1", "nvidia.com/gpu": "0"},
                limits={"cpu": "4", "memory": "2Gi", "nvidia.com/gpu": "1"},
            )
        ]
    }

    assert effective(spec) == {"cpu": 1000, "memory": 2 * GI, "pods": 1}


def test_limits_alone_are_requests() -> None:
    assert effective({"containers": [container(limits={"cpu": "250m"})]}) == {"cpu": 250, "pods": 1}


def test_an_init_container_counts_if_it_needs_more_than_all_others() -> None:
    spec = {
        "containers": [container(requests={"cpu": "1", "memory": "2Gi"})],
        "initContainers": [
            container("first", requests={"cpu": "3", "memory": "1Gi"}),
            container("second", requests={"cpu": "2"}),
        ],
    }

    assert effective(spec) == {"cpu": 3000, "memory": 2 * GI, "pods": 1}


def test_a_sidecar_runs_next_to_all_that_start_after_it() -> None:
    spec = {
        "containers": [container(requests={"cpu": "1"})],
        "initContainers": [
            container("before", requests={"cpu": "2"}),
            container("sidecar", requests={"cpu": "500m"}, restartPolicy="Always"),
            container("after", requests={"cpu": "1800m"}),
        ],
    }

    assert effective(spec) == {"cpu": 2300, "pods": 1}


def test_sidecars_add_to_the_containers() -> None:
    spec = {
        "containers": [container(requests={"cpu": "1"})],
        "initContainers": [
            container("a", requests={"cpu": "200m"}, restartPolicy="Always"),
            container("b", requests={"cpu": "300m"}, restartPolicy="Always"),
        ],
    }

    assert effective(spec) == {"cpu": 1500, "pods": 1}


def test_the_overhead_comes_on_top() -> None:
    spec = {
        "containers": [container(requests={"cpu": "1"})],
        "overhead": {"cpu": "100m", "memory": "64Mi"},
    }

    assert effective(spec) == {"cpu": 1100, "memory": 64 * 2**20, "pods": 1}


def test_requests_at_pod_level_replace_the_sum() -> None:
    spec = {
        "containers": [container(requests={"cpu": "1", "memory": "1Gi", "example.com/gpu": "1"})],
        "resources": {"requests": {"cpu": "3", "hugepages-2Mi": "4Mi", "example.com/gpu": "9"}},
        "overhead": {"cpu": "100m"},
    }

    assert effective(spec) == {
        "cpu": 3100,
        "memory": GI,
        "example.com/gpu": 1,
        "hugepages-2Mi": 4 * 2**20,
        "pods": 1,
    }


def test_a_limit_at_pod_level_is_a_request_if_no_container_has_one() -> None:
    spec = {
        "containers": [container(requests={"cpu": "1"})],
        "resources": {"limits": {"cpu": "3", "memory": "2Gi"}},
    }

    assert effective(spec) == {"cpu": 1000, "memory": 2 * GI, "pods": 1}


def status(cpu: str, allocated: str, reason: str = "") -> Json:
    return {
        "containerStatuses": [
            {
                "name": "main",
                "resources": {"requests": {"cpu": cpu}},
                "allocatedResources": {"cpu": allocated},
            }
        ],
        "conditions": [{"type": "PodResizePending", "status": "True", "reason": reason}],
    }


@pytest.mark.parametrize(
    ("reported", "cpu"),
    [
        (status("500m", "750m"), 1000),
        (status("2", "1"), 2000),
        (status("1", "3"), 3000),
        (status("500m", "750m", "Deferred"), 1000),
        (status("500m", "750m", "Infeasible"), 750),
    ],
)
def test_a_pod_that_is_resized_counts_with_the_most_it_may_hold(reported: Json, cpu: int) -> None:
    spec = {"containers": [container(requests={"cpu": "1"})]}

    assert effective(spec, reported) == {"cpu": cpu, "pods": 1}


def test_a_status_without_resources_changes_nothing() -> None:
    spec = {"containers": [container(requests={"cpu": "1"})]}

    assert effective(spec, {"containerStatuses": [{"name": "main"}]}) == {"cpu": 1000, "pods": 1}


@pytest.mark.parametrize(
    "resources",
    [
        None,
        {},
        {"requests": {}},
        {"requests": {"cpu": "0"}},
        {"requests": {"cpu": "-1"}},
        {"requests": {"cpu": 1}},
        {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}},
        {"limits": {"cpu": "2"}},
    ],
)
def test_only_plain_requests_are_read_the_short_way(resources: Json | None) -> None:
    assert plain_requests(resources) is None


def test_plain_requests_read_the_short_way_are_the_same() -> None:
    resources = {"requests": {"cpu": "1500m", "memory": "3Mi", "example.com/gpu": "1"}}

    assert plain_requests(resources) == effective({"containers": [{"resources": resources}]})


def test_limits_add_up_where_there_are_any() -> None:
    spec = {
        "containers": [
            container("a", requests={"cpu": "1"}, limits={"cpu": "2", "memory": "1Gi"}),
            container("b", limits={"cpu": "1"}),
            container("c", requests={"cpu": "4"}),
        ],
        "overhead": {"cpu": "100m", "ephemeral-storage": "1Gi"},
    }

    assert effective_limits(Fields(spec)) == {"cpu": 3100, "memory": GI}


def test_an_init_container_counts_alone_next_to_the_sidecars_before_it() -> None:
    spec = {
        "containers": [container(limits={"cpu": "1"})],
        "initContainers": [
            container("first", limits={"cpu": "3"}),
            container("sidecar", limits={"cpu": "500m"}, restartPolicy="Always"),
            container("second", limits={"cpu": "2800m"}),
        ],
    }

    assert effective_limits(Fields(spec)) == {"cpu": 3300}


def test_limits_at_pod_level_replace_those_of_the_containers() -> None:
    spec = {
        "containers": [container(limits={"cpu": "1", "nvidia.com/gpu": "1"})],
        "resources": {"limits": {"cpu": "8", "nvidia.com/gpu": "4"}},
    }

    assert effective_limits(Fields(spec)) == {"cpu": 8000, "nvidia.com/gpu": 1}
