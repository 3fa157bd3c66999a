from datetime import timedelta

import pytest
from msgspec.structs import replace

from karpy.model.constraints import NodeTerm
from karpy.model.pods import DAEMON_SET, HostPort, Pod, as_it_runs, daemon_set_of, precedence
from tests.builders import daemon, owner, pod
from tests.builders.pods import daemon_pod

OLD = replace(daemon_pod("b", on="n1"), phase="Running")
PINNED = NodeTerm((), has_match_fields=True)
LATER = OLD.created + timedelta(seconds=1)


@pytest.mark.parametrize(
    "behind",
    [
        replace(OLD, created=OLD.created - timedelta(seconds=1)),
        replace(OLD, name="a"),
        replace(OLD, phase="Pending", created=LATER),
    ],
    ids=["older", "name", "waiting"],
)
def test_the_newest_pod_that_runs_counts(behind: Pod) -> None:
    assert max(behind, OLD, key=precedence) is OLD


def test_of_pods_that_wait_the_newest_counts() -> None:
    old, new = replace(OLD, phase="Pending"), replace(OLD, phase="Pending", created=LATER)

    assert max(new, old, key=precedence) is new


def test_only_the_controller_of_a_pod_is_its_daemon_set() -> None:
    other = owner(("apps/v1", "ReplicaSet"))
    mine = owner(DAEMON_SET, "agent")

    assert daemon_set_of(pod("a", namespace="shop", owners=[other, mine])) == ("shop", "uid-agent")
    assert daemon_set_of(pod("a", owners=[owner(DAEMON_SET, is_controller=False)])) is None


def test_a_daemon_set_takes_what_its_pod_takes_on_the_nodes_of_its_template() -> None:
    template = daemon("agent", cpu="1", terms=[NodeTerm(())])
    there = daemon_pod("agent-x", cpu="2", ports=[HostPort(80)], terms=[PINNED])

    seen = as_it_runs(template, there).pod

    assert seen == replace(
        template.pod,
        requests=there.requests,
        limits=there.limits,
        rules=replace(there.rules, required_node_terms=(NodeTerm(()),)),
    )


def test_a_daemon_set_without_a_pod_is_as_its_template_says() -> None:
    template = daemon("agent", cpu="1")

    assert as_it_runs(template, None) is template
