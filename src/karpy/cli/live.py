"""A live cluster to answer about: seen once, and left as it is."""

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
from karpy.cli.findings import tell_findings
from karpy.cli.inputs import Seen, find_supply, supplied
from karpy.cli.options import Question, Reach
from karpy.cli.room import with_room
from karpy.cli.terminal import Terminal
from karpy.codec.findings import Finding, said
from karpy.errors import NotRead
from karpy.model.kinds import Kind
from karpy.model.labels import REGION
from karpy.model.snapshot import Snapshot
from karpy.wiring.onlooker import ANY_CLUSTER, Sight, look

_EC2_MACHINE: Final = "aws:///"
_UNREADABLE_HINT: Final = "correct the object, or run a version of Karpy that knows its value"
_WITHHELD_HINT: Final = "grant `list` and `watch` on it, as deploy/rbac.yaml does"


def check_reach(reach: Reach, files: Sequence[str], command: str) -> None:
    """Raise misuse if a command is given both files and a cluster."""
    if files and reach.is_given:
        raise CycloptsError(
            msg="Give FILES, or a cluster by --kubeconfig and --context, not both.",
            command_chain=(command,),
        )


def see_live(reach: Reach, question: Question, terminal: Terminal) -> Seen:
    """Look at the cluster of a kubeconfig, and tell what could not be read."""
    snapshot, sight = _look(reach, question)
    seen = seen_of(snapshot, sight, question)
    tell_findings(seen.findings, terminal)
    return seen


def see_any(reach: Reach, question: Question, terminal: Terminal) -> Seen:
    """Look at a cluster that may have neither NodePools nor NodeClaims."""
    snapshot, sight = _look(reach, question, ANY_CLUSTER)
    seen = seen_of(snapshot, sight, at_home(question, snapshot))
    tell_findings(seen.findings, terminal)
    return seen


def seen_of(snapshot: Snapshot, sight: Sight, question: Question) -> Seen:
    """Put what was seen of a cluster and what can be bought for it together."""
    snapshot, on_room = with_room(snapshot, sight.buffers, question, is_live=True)
    supply = find_supply(question, Needs(snapshot, sight.node_classes))
    return supplied(snapshot, question, supply, (*_findings(sight), *on_room))


def at_home(question: Question, snapshot: Snapshot) -> Question:
    """Have nodes of EC2 priced where no NodePool says what is bought: by the region they are in."""
    if question.catalog is not None or snapshot.pools:
        return question
    regions = (
        node.labels.get(REGION, "")
        for node in snapshot.nodes
        if node.provider_id.startswith(_EC2_MACHINE)
    )
    region = next((each for each in regions if each in builtin_regions()), "")
    return dataclasses.replace(question, catalog=f"{EC2}:{region}") if region else question


def access_of(reach: Reach) -> Access:
    """Find the way to the cluster that is meant."""
    return find_access(reach.context, reach.kubeconfig, os.environ)


def see_bare(reach: Reach, question: Question) -> Seen:
    """Look at the cluster of a kubeconfig without asking what can be bought for it."""
    snapshot, sight = _look(reach, question)
    return Seen(snapshot, tuple(_findings(sight)))


def _look(
    reach: Reach, question: Question, optional: frozenset[Kind] = OPTIONAL
) -> tuple[Snapshot, Sight]:
    sight = asyncio.run(look(access_of(reach), question.settings, optional))
    now = question.now or sight.snapshot.now
    return replace(sight.snapshot, now=now), sight


def _findings(sight: Sight) -> Iterator[Finding]:
    for kind, key, problem in sight.unreadable:
        error = NotRead(problem=f"cannot be read: {problem}", hint=_UNREADABLE_HINT)
        yield said(error, where=f"{kind.name} {key}", is_warning=True, is_left_out=True)
    for kind in sight.withheld:
        error = NotRead(problem=f"{kind} may not be listed", hint=_WITHHELD_HINT)
        yield said(error, is_warning=True)
