"""The controllers `nodeclass`, `nodeclass.hash` and `nodeclass.termination` of EC2NodeClasses."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any, Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from karpy.adapters.clouds.aws.classes import NodeClassBook
from karpy.adapters.clouds.aws.cluster import ClusterWatch
from karpy.adapters.clouds.aws.finders import Finders
from karpy.adapters.clouds.aws.profiles import Profiles
from karpy.adapters.clouds.aws.provider import AwsProvider
from karpy.adapters.clouds.aws.reports import OnFailure, Working
from karpy.adapters.clouds.aws.settings import AwsSettings
from karpy.adapters.clouds.aws.templates import Templates
from karpy.barriers import Barrier
from karpy.codec.aws.nodeclasses import status_writes
from karpy.codec.fields import Fields, JsonObject
from karpy.codec.records import claim_writes, read_claim_record
from karpy.core.aws.drift import hash_node_class
from karpy.core.aws.images import why_unsupported
from karpy.core.aws.nodeclass import (
    FINALIZER,
    GROUPS_READY,
    IMAGES_READY,
    PLACEMENT_READY,
    PROFILE_READY,
    RESERVATIONS_READY,
    SUBNETS_READY,
    VALIDATED,
    is_ready_to_validate,
    with_hash,
    with_images,
    with_placement_group,
    with_problem,
    with_profile,
    with_reservations,
    with_security_groups,
    with_subnets,
    with_validation,
    with_validation_waiting,
)
from karpy.core.aws.refusals import is_forbidden, profile_problem
from karpy.core.aws.tags import restricted_tags
from karpy.core.aws.userdata import AL2023, family_name
from karpy.errors import AwsRefused, CloudError, ClusterError, Conflict, KarpyError, NotFound
from karpy.model.backoff import Backoff
from karpy.model.ec2 import CapacityReservation
from karpy.model.ec2nodeclass import Ec2NodeClass
from karpy.model.kinds import EC2_NODE_CLASS, NODE_CLAIM
from karpy.model.notices import Notice, Subject
from karpy.model.records import ClaimRecord
from karpy.ports.clock import Clock
from karpy.ports.notices import Notices
from karpy.ports.objects import Objects, Patch, PatchType
from karpy.ports.observers import Observer

T = TypeVar("T")

PERIOD: Final = timedelta(minutes=1)
_FIRST_PAUSE: Final = 0.1
"""The first pause after a failed reconcile, in seconds; each further pause is longer."""
_VALID_FOR: Final = timedelta(minutes=30)
_WAITING_SHOWN: Final = 5


class Workplace(Struct, frozen=True):
    """The collaborators of the controller."""

    objects: Objects
    notices: Notices
    clock: Clock
    settings: AwsSettings
    cluster: ClusterWatch
    book: NodeClassBook
    finders: Finders
    profiles: Profiles
    templates: Templates
    provider: AwsProvider


class NodeClassController:
    """Reconciles EC2NodeClasses: finds their AWS resources, writes the status core.aws computes."""

    def __init__(self, workplace: Workplace, on_failure: OnFailure, observer: Observer) -> None:
        self._at = workplace
        self._on_failure = on_failure
        self._observer = observer
        self._backoffs: dict[str, Backoff] = {}
        """Backoffs of the node classes whose last reconcile failed."""
        self._recent: dict[tuple[str, str], tuple[object, datetime, Any]] = {}
        """By node class and step: the input of the last search, its moment, and the result."""
        self._validated: dict[str, tuple[bytes, datetime, tuple[str, str]]] = {}
        """By node class: the input of the last validation, its moment, and the result."""

    async def run(self) -> None:
        """Reconcile all node classes, until cancelled."""
        await self._at.book.wait_until_synced()
        self._observer.set_workers(1)
        while True:
            seen, names = self._at.book.changes, sorted(self._at.book.classes)
            self._forget_others(names)
            pauses = await asyncio.gather(*map(self._guarded, names))
            await self._at.book.wait_for_change(seen, min(pauses, default=PERIOD))

    async def reconcile(self, name: str) -> None:
        """Reconcile one node class."""
        found = self._at.book.find(name)
        if found is None:
            return
        if found.meta.is_deleting:
            await self._finalize(found)
        else:
            await self._update_status(await self._stamped(found))

    def _forget_others(self, names: list[str]) -> None:
        for known in (self._validated, self._backoffs):
            for each in known.keys() - set(names):
                del known[each]
        for step in [each for each in self._recent if each[0] not in names]:
            del self._recent[step]

    async def _guarded(self, name: str) -> timedelta:
        """Reconcile one node class; return the longest pause until the next reconcile."""
        backoff = self._backoffs.pop(name, None) or Backoff(_FIRST_PAUSE, PERIOD.total_seconds())
        with Working(self._observer, name, self._on_failure):
            with suppress(Conflict):
                # The watch delivers the change of the other writer, which triggers a reconcile.
                await self.reconcile(name)
            return PERIOD
        self._backoffs[name] = backoff
        return timedelta(seconds=backoff.next_pause())

    async def _stamped(self, node_class: Ec2NodeClass) -> Ec2NodeClass:
        """Write finalizer and hash to a node class; return it with both."""
        spec = self._at.book.objects[node_class.name].get("spec") or {}
        digest = hash_node_class(spec, family_name(node_class.spec), self._at.settings.ca_bundle)
        stamped, _ = with_hash(node_class, digest, ())
        is_new_version = stamped.meta.annotations != node_class.meta.annotations
        claims = await self._claims_of(node_class.name) if is_new_version else []
        stamped, changed = with_hash(node_class, digest, [record for record, _ in claims])
        before = {record.name: record for record, _ in claims}
        for each in changed:
            await self._write_claim(before[each.name], each)
        finalizers = node_class.meta.finalizers
        if FINALIZER in finalizers and not is_new_version:
            return node_class
        meta: JsonObject = {"resourceVersion": node_class.meta.version}
        if FINALIZER not in finalizers:
            meta["finalizers"] = [*finalizers, FINALIZER]
        meta["annotations"] = dict(stamped.meta.annotations)
        written = await self._at.objects.patch(
            EC2_NODE_CLASS, node_class.name, Patch(PatchType.MERGE, {"metadata": meta})
        )
        version = written["metadata"]["resourceVersion"]
        return replace(stamped, meta=replace(stamped.meta, version=version))

    async def _update_status(self, node_class: Ec2NodeClass) -> None:
        """Find the selected resources, validate, and write the status."""
        after, troubles = node_class, list[KarpyError]()
        reserved = ((RESERVATIONS_READY, self._with_reservations),) * self._at.settings.reserves
        for type_, step in (
            (IMAGES_READY, self._with_images),
            *reserved,
            (PLACEMENT_READY, self._with_group),
            (SUBNETS_READY, self._with_subnets),
            (GROUPS_READY, self._with_security_groups),
            (PROFILE_READY, self._with_profile),
            (VALIDATED, self._validate),
        ):
            failed: list[KarpyError] = []
            # A failed step does not keep the results of the other steps from being written.
            with Barrier(failed.append):
                after = await step(after)
            for error in failed:
                after = self._with_denial(after, type_, error)
            troubles += failed
        await self._write_status(node_class, after)
        if troubles:
            raise troubles[0]

    def _with_denial(self, known: Ec2NodeClass, type_: str, error: KarpyError) -> Ec2NodeClass:
        """Write a missing permission into the condition; other errors are only retried."""
        if not isinstance(error, AwsRefused) or not is_forbidden(error.aws_code):
            return known
        message = f"{error.call} is not allowed; {error.hint}"
        return with_problem(known, type_, "Unauthorized", message, self._at.clock.now())

    async def _with_images(self, known: Ec2NodeClass) -> Ec2NodeClass:
        at, alias = self._at, known.spec.alias
        version = at.cluster.facts.kubernetes
        unsupported = "" if alias is None else why_unsupported(alias, version)
        if unsupported:
            return with_images(known, (), unsupported, at.clock.now())
        # Differs: how soon a new image is found: Karpenter searches every five minutes; Karpy
        # searches every AMI_REFRESH_INTERVAL, because that is what the setting says.
        refresh = at.settings.image_refresh
        found = await self._remembered(
            "images", known, version, refresh, lambda: at.finders.images(known.spec, version)
        )
        return with_images(known, found.chosen, "", at.clock.now(), found.unusable)

    async def _with_reservations(self, known: Ec2NodeClass) -> Ec2NodeClass:
        async def find() -> list[CapacityReservation]:
            found = await self._at.finders.reservations(known.spec)
            # Between two answers of EC2, launches and terminations are counted.
            self._at.book.reservations.sync(found)
            return found

        found = await self._remembered("reservations", known, "", PERIOD, find)
        return with_reservations(known, found, self._at.clock.now())

    async def _with_group(self, known: Ec2NodeClass) -> Ec2NodeClass:
        find = self._at.finders.placement_group
        try:
            found = await self._remembered("group", known, "", PERIOD, lambda: find(known.spec))
        except CloudError as error:
            problem = f"{error.message}; {error.hint}"
            return with_placement_group(known, None, problem, self._at.clock.now())
        self._at.book.groups[known.name] = found
        return with_placement_group(known, found, "", self._at.clock.now())

    async def _with_subnets(self, known: Ec2NodeClass) -> Ec2NodeClass:
        find, refresh = self._at.finders.subnets, self._at.settings.subnet_refresh
        found = await self._remembered("subnets", known, "", refresh, lambda: find(known.spec))
        return with_subnets(known, found, self._at.clock.now())

    async def _with_security_groups(self, known: Ec2NodeClass) -> Ec2NodeClass:
        find = self._at.finders.security_groups
        found = await self._remembered("groups", known, "", PERIOD, lambda: find(known.spec))
        return with_security_groups(known, found, self._at.clock.now())

    async def _with_profile(self, known: Ec2NodeClass) -> Ec2NodeClass:
        at = self._at
        try:
            profile = await at.profiles.ensure(known)
        except AwsRefused as error:
            self._on_failure(known.name, error)
            reason = profile_problem(error.aws_code, error.aws_message)
            message = f"{error.message}; {error.hint}"
            return with_problem(known, PROFILE_READY, reason, message, at.clock.now())
        return with_profile(known, profile, at.clock.now())

    async def _remembered(
        self,
        step: str,
        node_class: Ec2NodeClass,
        version: str,
        fresh: timedelta,
        find: Callable[[], Awaitable[T]],
    ) -> T:
        """Return the recent result of a step for an unchanged node class, or search now."""
        now, question = self._at.clock.now(), (node_class.meta.uid, node_class.spec, version)
        known = self._recent.get((node_class.name, step))
        if known is not None and known[0] == question and now - known[1] < fresh:
            remembered: T = known[2]
            return remembered
        found = await find()
        self._recent[node_class.name, step] = question, now, found
        return found

    async def _validate(self, node_class: Ec2NodeClass) -> Ec2NodeClass:
        at, now = self._at, self._at.clock.now()
        if family_name(node_class.spec) == AL2023 and not at.cluster.facts.cidr:
            reason = "ClusterCIDRResolutionFailed"
            message = "the range of addresses of Services is not known"
            if at.cluster.trouble is not None:
                message += f": {at.cluster.trouble.message}; {at.cluster.trouble.hint}"
            return with_validation(node_class, reason, message, now)
        if not is_ready_to_validate(node_class):
            return with_validation_waiting(node_class, now)
        restricted = restricted_tags(node_class.spec.tags)
        if restricted:
            message = f"tags are reserved: {', '.join(restricted)}"
            return with_validation(node_class, "TagValidationFailed", message, now)
        if at.settings.disable_dry_run:
            return with_validation(node_class, "", "", now)
        return with_validation(node_class, *await self._checked(node_class, now), now)

    async def _checked(self, node_class: Ec2NodeClass, now: datetime) -> tuple[str, str]:
        key = _key_of(node_class)
        known = self._validated.get(node_class.name)
        if known is not None and known[0] == key and now - known[1] < _VALID_FOR:
            return known[2]
        failure = await self._at.provider.check(node_class) or ("", "")
        self._validated[node_class.name] = key, now, failure
        return failure

    async def _finalize(self, node_class: Ec2NodeClass) -> None:
        """Delete the AWS resources of a deleting node class once no NodeClaim uses it."""
        if FINALIZER not in node_class.meta.finalizers:
            return
        claims = await self._claims_of(node_class.name)
        if claims:
            self._emit_waiting(node_class, [record.name for record, _ in claims])
            return
        if not self._at.settings.isolated_vpc:
            await self._at.profiles.delete_of(node_class)
        await self._at.templates.delete_of(node_class.name)
        left = [each for each in node_class.meta.finalizers if each != FINALIZER]
        meta = {"resourceVersion": node_class.meta.version, "finalizers": left or None}
        patch = Patch(PatchType.MERGE, {"metadata": meta})
        try:
            await self._at.objects.patch(EC2_NODE_CLASS, node_class.name, patch)
        except NotFound:
            return

    def _emit_waiting(self, node_class: Ec2NodeClass, claims: list[str]) -> None:
        shown = ", ".join(sorted(claims)[:_WAITING_SHOWN])
        more = len(claims) - _WAITING_SHOWN
        text = f"{shown} and {more} other(s)" if more > 0 else shown
        subject = Subject(EC2_NODE_CLASS, node_class.name, uid=node_class.meta.uid)
        self._at.notices.emit(
            Notice(
                subject,
                "WaitingOnNodeClaimTermination",
                f"Waiting on NodeClaim termination for {text}",
                same_as=(node_class.meta.uid, text),
            )
        )

    async def _write_status(self, before: Ec2NodeClass, after: Ec2NodeClass) -> None:
        body = status_writes(before, after)
        if body is None:
            return
        patch = Patch(PatchType.MERGE, body)
        try:
            await self._at.objects.patch(EC2_NODE_CLASS, before.name, patch, subresource="status")
        except (Conflict, NotFound):
            # The watch delivers the change, which triggers another reconcile.
            return

    async def _claims_of(self, name: str) -> list[tuple[ClaimRecord, JsonObject]]:
        page = await self._at.objects.list(NODE_CLAIM)
        found = [(read_claim_record(Fields(each)), each) for each in page.items]
        return [
            each
            for each in found
            if (each[0].node_class.kind, each[0].node_class.name) == (EC2_NODE_CLASS.name, name)
        ]

    async def _write_claim(self, before: ClaimRecord, after: ClaimRecord) -> None:
        body = claim_writes(before, after).main
        if body is not None:
            try:
                await self._at.objects.patch(NODE_CLAIM, before.name, Patch(PatchType.MERGE, body))
            except ClusterError:
                # The claim is gone or has changed: the next reconcile reads it again.
                return


def _key_of(node_class: Ec2NodeClass) -> bytes:
    """Return the input of a validation, for comparison."""
    status = node_class.status
    parts = (node_class.spec, status.subnets, status.security_groups, status.images)
    return repr((*parts, status.instance_profile)).encode()
