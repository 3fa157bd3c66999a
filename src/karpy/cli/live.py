"""The cluster of a kubeconfig as input: read once, never changed."""

import asyncio
import dataclasses
import os
from collections.abc import Iterator, Sequence
from typing import Final

from cyclopts import CycloptsError
from msgspec.structs import replace

from karpy.adapters.clouds.aws.builtin import builtin_regions
from karpy.adapters.kube.access import Access
from karpy.adapters.kube.connection import find_access
from karpy.adapters.mirror.mirror import OPTIONAL
from karpy.cli.ec2supply import EC2, Needs
from karpy.cli.findings import report_findings
from karpy.cli.inputs import ClusterInput, find_supply, with_catalog
from karpy.cli.options import ClusterAccess, Question
from karpy.cli.room import with_room
from karpy.cli.terminal import Terminal
from karpy.codec.findings import Finding, finding_of
from karpy.errors import NotRead
from karpy.model.kinds import Kind
from karpy.model.labels import REGION
from karpy.model.snapshot import Snapshot
from karpy.wiring.onlooker import ANY_CLUSTER, Sight, look

_EC2_MACHINE: Final = "aws:///"
_UNREADABLE_HINT: Final = "correct the object, or run a version of Karpy that knows its value"
_WITHHELD_HINT: Final = "grant `list` and `watch` on it, as deploy/rbac.yaml does"


def check_reach(reach: ClusterAccess, files: Sequence[str], command: str) -> None:
    """Raise CycloptsError if a command gets both files and a cluster."""
    if files and reach.is_given:
        raise CycloptsError(
            msg="Give FILES, or a cluster by --kubeconfig and --context, not both.",
            command_chain=(command,),
        )


def read_live(reach: ClusterAccess, question: Question, terminal: Terminal) -> ClusterInput:
    """Read the cluster of a kubeconfig with its catalog, and report the findings."""
    snapshot, sight = _look(reach, question)
    cluster = live_input(snapshot, sight, question)
    report_findings(cluster.findings, terminal)
    return cluster


def read_live_any(reach: ClusterAccess, question: Question, terminal: Terminal) -> ClusterInput:
    """Read a cluster that may have neither NodePools nor NodeClaims."""
    snapshot, sight = _look(reach, question, ANY_CLUSTER)
    cluster = live_input(snapshot, sight, with_region_of_nodes(question, snapshot))
    report_findings(cluster.findings, terminal)
    return cluster


def live_input(snapshot: Snapshot, sight: Sight, question: Question) -> ClusterInput:
    """Combine what was read of a cluster with its CapacityBuffers and its catalog."""
    snapshot, on_room = with_room(snapshot, sight.buffers, question, is_live=True)
    supply = find_supply(question, Needs(snapshot, sight.node_classes))
    return with_catalog(snapshot, question, supply, (*_findings(sight), *on_room))


def with_region_of_nodes(question: Question, snapshot: Snapshot) -> Question:
    """Choose EC2's catalog by the region of the nodes, if the cluster has no NodePools."""
    if question.catalog is not None or snapshot.pools:
        return question
    regions = (
        node.labels.get(REGION, "")
        for node in snapshot.nodes
        if node.provider_id.startswith(_EC2_MACHINE)
    )
    region = next((each for each in regions if each in builtin_regions()), "")
    return dataclasses.replace(question, catalog=f"{EC2}:{region}") if region else question


def access_of(reach: ClusterAccess) -> Access:
    """Return the access to the cluster that the options name."""
    return find_access(reach.context, reach.kubeconfig, os.environ)


def read_live_without_catalog(reach: ClusterAccess, question: Question) -> ClusterInput:
    """Read the cluster of a kubeconfig without a catalog."""
    snapshot, sight = _look(reach, question)
    return ClusterInput(snapshot, tuple(_findings(sight)))


def _look(
    reach: ClusterAccess, question: Question, optional: frozenset[Kind] = OPTIONAL
) -> tuple[Snapshot, Sight]:
    sight = asyncio.run(look(access_of(reach), question.settings, optional))
    now = question.now or sight.snapshot.now
    return replace(sight.snapshot, now=now), sight


def _findings(sight: Sight) -> Iterator[Finding]:
    for kind, key, problem in sight.unreadable:
        error = NotRead(problem=f"cannot be read: {problem}", hint=_UNREADABLE_HINT)
        yield finding_of(error, where=f"{kind.name} {key}", is_warning=True, is_left_out=True)
    for kind in sight.withheld:
        error = NotRead(problem=f"{kind} may not be listed", hint=_WITHHELD_HINT)
        yield finding_of(error, is_warning=True)
