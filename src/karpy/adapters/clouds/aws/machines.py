"""EC2 instances: launch, describe and terminate, batched into few calls."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import msgspec

from karpy.adapters.clouds.aws.batching import BatchWindow, CallBatcher
from karpy.adapters.clouds.aws.calls import AwsCalls
from karpy.adapters.clouds.aws.reports import Reports
from karpy.codec.aws.answers import FleetAnswer, Launched, read_fleet, read_instance
from karpy.core.aws.fleet import Override
from karpy.core.aws.launchtemplates import LaunchTemplate
from karpy.core.aws.refusals import DRY_RUN, is_not_found
from karpy.core.aws.tags import NODE_CLASS, NODE_POOL, OWNED, cluster_tag, ec2_tags
from karpy.core.lifecycle.changes import Count
from karpy.errors import AwsRefused, CloudError, CloudUnavailable, MachineNotFound
from karpy.model.ec2 import FleetError, Instance

_FLEET: Final = BatchWindow(0.035, 1.0, 1000)
_DESCRIBE: Final = BatchWindow(0.1, 1.0, 500)
_TERMINATE: Final = BatchWindow(0.1, 1.0, 500)
_STATES: Final = ["pending", "running", "stopping", "stopped", "shutting-down"]
_TERMINATING: Final = frozenset({"shutting-down", "terminated"})
_CAPACITY: Final = "TargetCapacitySpecification"
_BATCH_SECONDS: Final = "cloudprovider_batcher_batch_time_seconds"
_BATCH_SIZE: Final = "cloudprovider_batcher_batch_size"


class FleetLaunch(msgspec.Struct, frozen=True):
    """The result of one launch: an instance, or errors."""

    launched: Launched | None
    errors: tuple[FleetError, ...] = ()


class Machines:
    """Launches, describes and terminates instances, many with one call."""

    def __init__(
        self,
        calls: AwsCalls,
        cluster: str,
        *,
        reserves: bool = True,
        reports: Reports | None = None,
    ) -> None:
        self._calls = calls
        self._cluster = cluster
        self._reserves = reserves
        self._requests: dict[bytes, Mapping[str, Any]] = {}
        count = (reports or Reports()).count
        fleets, looks, ends = (
            partial(_count_batch, count, each)
            for each in ("create_fleet", "describe_instances", "terminate_instances")
        )
        self._fleets: CallBatcher[bytes, None, FleetLaunch] = CallBatcher(
            self._create, _FLEET, fleets
        )
        self._looks: CallBatcher[str, str, Instance | None] = CallBatcher(
            self._describe, _DESCRIBE, looks
        )
        self._ends: CallBatcher[str, str, bool] = CallBatcher(self._terminate, _TERMINATE, ends)
        self._known: dict[str, Instance] = {}
        """Instances as EC2 described them last."""
        self.find_shifted: Callable[[], frozenset[str]] = frozenset
        """Returns the zones with a zonal shift: their instances are not described anew."""

    @property
    def fleet_calls(self) -> int:
        """The number of calls to CreateFleet."""
        return self._fleets.calls

    async def close(self) -> None:
        """Cancel all calls under way."""
        await asyncio.gather(self._fleets.close(), self._looks.close(), self._ends.close())

    async def launch(self, request: Mapping[str, Any]) -> FleetLaunch:
        """Launch one instance; equal requests share a call."""
        key = msgspec.json.encode(request, order="sorted")
        self._requests[key] = request
        return await self._fleets.ask(key, None)

    async def try_fleet(self, request: Mapping[str, Any]) -> AwsRefused | None:
        """Make a dry run of CreateFleet; return why it is refused, or None."""
        return await _tried(self._calls.create_fleet(**{**request, "DryRun": True}))

    async def try_run(
        self, template: LaunchTemplate, override: Override, tags: Mapping[str, str]
    ) -> AwsRefused | None:
        """Make a dry run of RunInstances; return why it is refused, or None."""
        machine_tags = ec2_tags(tags)
        kinds = ("instance", "volume", "network-interface")
        # With interfaces in the template, EC2 takes the subnet only within an interface.
        interfaces = [
            {**each, "SubnetId": override.subnet} for each in template.data["NetworkInterfaces"]
        ]
        request = {
            "MinCount": 1,
            "MaxCount": 1,
            "InstanceType": override.instance_type,
            "LaunchTemplate": {"LaunchTemplateName": template.name, "Version": "$Latest"},
            "NetworkInterfaces": interfaces,
            "TagSpecifications": [{"ResourceType": each, "Tags": machine_tags} for each in kinds],
        }
        return await _tried(self._calls.run_instances(**request, DryRun=True))

    def known(self, id_: str) -> Instance | None:
        """Return an instance as EC2 described it last, or None."""
        return self._known.get(id_)

    def is_shifted(self, id_: str) -> bool:
        """Say whether an instance is in a zone with a zonal shift."""
        known = self._known.get(id_)
        return known is not None and known.zone in self.find_shifted()

    def check_zone(self, id_: str, call: str) -> None:
        """Raise CloudUnavailable if an instance is in a zone with a zonal shift."""
        if self.is_shifted(id_):
            problem = f"traffic is shifted away from zone `{self._known[id_].zone}`"
            hint = "wait for the end of the zonal shift"
            raise CloudUnavailable(call=call, problem=problem, hint=hint)

    async def find(self, id_: str, *, is_fresh: bool = False) -> Instance:
        """Return an instance, from the cache unless `is_fresh`; raise MachineNotFound."""
        known = None if is_fresh else self._known.get(id_)
        found = known or await self._looks.ask("", id_)
        if found is None or found.state == "terminated":
            self._known.pop(id_, None)
            raise MachineNotFound(provider_id=id_)
        self._known[id_] = found
        return found

    async def list(self) -> list[Instance]:
        """Return the instances of this cluster that are not terminated."""
        filters = [
            {"Name": "tag-key", "Values": [NODE_POOL]},
            {"Name": "tag-key", "Values": [NODE_CLASS]},
            {"Name": f"tag:{cluster_tag(self._cluster)}", "Values": ["owned"]},
            {"Name": "instance-state-name", "Values": _STATES},
        ]
        answers = await self._calls.describe_instances(Filters=filters)
        read = (read_instance(each, reserves=self._reserves) for each in answers)
        # An instance without a tag is released: it is never terminated, even if a filter fails.
        found = [each for each in read if {NODE_POOL, NODE_CLASS} <= each.tags.keys()]
        shifted = self.find_shifted()
        kept = {id_: each for id_, each in self._known.items() if each.zone in shifted}
        self._known = kept | {each.id: each for each in found}
        return found

    async def terminate(self, id_: str) -> None:
        """Terminate an instance; raise MachineNotFound once it is gone."""
        found = await self.find(id_, is_fresh=True)
        if found.tags.get(cluster_tag(self._cluster)) != OWNED:
            # Differs: an instance that lacks the tag of the cluster: Karpenter calls
            # TerminateInstances, which its policy forbids; Karpy releases the instance, because a
            # user who removes the tag wants to keep it.
            self._known.pop(id_, None)
            raise MachineNotFound(provider_id=id_)
        if not found.is_terminating:
            await self._ends.ask("", id_)

    async def tag(self, id_: str, tags: Mapping[str, str]) -> None:
        """Write tags on an instance; raise MachineNotFound."""
        self.check_zone(id_, "ec2:CreateTags")
        try:
            await self._calls.create_tags(Resources=[id_], Tags=ec2_tags(tags))
        except AwsRefused as error:
            if is_not_found(error.aws_code):
                raise MachineNotFound(provider_id=id_) from error
            raise

    async def _create(
        self, key: bytes, items: Sequence[None]
    ) -> Sequence[FleetLaunch | BaseException]:
        request = dict(self._requests.pop(key))
        target = {**request[_CAPACITY], "TotalTargetCapacity": len(items)}
        answer = read_fleet(await self._calls.create_fleet(**{**request, _CAPACITY: target}))
        return _distribute(answer, len(items))

    async def _describe(
        self, _: str, ids: Sequence[str]
    ) -> Sequence[Instance | BaseException | None]:
        wanted = list(dict.fromkeys(ids))
        try:
            found = await self._described(wanted)
        except AwsRefused as error:
            if not is_not_found(error.aws_code):
                raise
            # An instance that does not exist fails the call for all other instances.
            each = await asyncio.gather(*map(self._describe_one, wanted), return_exceptions=True)
            one_by_one = dict(zip(wanted, each, strict=True))
            return [one_by_one[id_] for id_ in ids]
        return [found.get(id_) for id_ in ids]

    async def _describe_one(self, id_: str) -> Instance | None:
        try:
            return (await self._described([id_])).get(id_)
        except AwsRefused as error:
            if is_not_found(error.aws_code):
                return None
            raise

    async def _described(self, ids: Sequence[str]) -> dict[str, Instance]:
        answers = await self._calls.describe_instances(InstanceIds=list(ids))
        found = (read_instance(each, reserves=self._reserves) for each in answers)
        return {each.id: each for each in found}

    async def _terminate(self, _: str, ids: Sequence[str]) -> Sequence[bool | BaseException]:
        wanted = list(dict.fromkeys(ids))
        try:
            terminated = await self._terminated(wanted)
        except CloudError:
            terminated = set()
        left = [each for each in wanted if each not in terminated]
        retried = await asyncio.gather(*map(self._terminate_one, left), return_exceptions=True)
        results = dict(zip(left, retried, strict=True))
        return [results.get(each, True) for each in ids]

    async def _terminate_one(self, id_: str) -> bool:
        try:
            return id_ in await self._terminated([id_])
        except AwsRefused as error:
            if is_not_found(error.aws_code):
                return True
            raise

    async def _terminated(self, ids: Sequence[str]) -> set[str]:
        answer = await self._calls.terminate_instances(InstanceIds=list(ids))
        return {
            each["InstanceId"]
            for each in answer.get("TerminatingInstances") or ()
            if (each.get("CurrentState") or {}).get("Name") in _TERMINATING
        }


def _count_batch(count: Callable[[Count], None], batcher: str, seconds: float, items: int) -> None:
    labels = {"batcher": batcher}
    count(Count(_BATCH_SECONDS, labels, seconds))
    count(Count(_BATCH_SIZE, labels, float(items)))


async def _tried(call: Awaitable[object]) -> AwsRefused | None:
    try:
        await call
    except AwsRefused as error:
        return None if error.aws_code == DRY_RUN else error
    return None


def _distribute(answer: FleetAnswer, callers: int) -> list[FleetLaunch]:
    """Give each caller one instance; callers without one get the errors."""
    errors = answer.errors or (FleetError("", "too few instances returned"),)
    launched = list(answer.launched[:callers])
    # A successful launch has errors, too, for offerings that are sold out.
    first = [FleetLaunch(each, answer.errors) for each in launched]
    return first + [FleetLaunch(None, errors)] * (callers - len(launched))
