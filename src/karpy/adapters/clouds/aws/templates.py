"""Launch templates in EC2: created when a launch needs them, deleted when they are unused."""

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from karpy.adapters.clouds.aws.calls import AwsCalls
from karpy.core.aws.launchtemplates import LaunchTemplate
from karpy.core.aws.refusals import ALREADY_EXISTS, is_not_found
from karpy.core.aws.tags import CLUSTER_NAME
from karpy.errors import AwsRefused
from karpy.ports.clock import Clock

PERIOD: Final = timedelta(seconds=20)
UNUSED_FOR: Final = timedelta(minutes=1)
_CLASS_TAG: Final = "karpenter.k8s.aws/ec2nodeclass"


class Templates:
    """Creates and deletes the launch templates of this cluster."""

    def __init__(self, calls: AwsCalls, clock: Clock, cluster: str) -> None:
        self._calls = calls
        self._clock = clock
        self._cluster = cluster
        self._used: dict[str, datetime] = {}
        """When each template was last needed, by name."""
        self._turn = asyncio.Lock()

    async def ensure(self, template: LaunchTemplate, tags: Sequence[dict[str, str]]) -> None:
        """Create a template unless it exists; raise AwsRefused."""
        async with self._turn:
            if template.name not in self._used and not await self._exists(template.name):
                await self._create(template, tags)
            self._used[template.name] = self._clock.now()

    async def _create(self, template: LaunchTemplate, tags: Sequence[dict[str, str]]) -> None:
        try:
            await self._calls.create_launch_template(
                LaunchTemplateName=template.name,
                LaunchTemplateData=dict(template.data),
                TagSpecifications=[{"ResourceType": "launch-template", "Tags": list(tags)}],
            )
        except AwsRefused as error:
            # EC2 may list a template only after a while. Its name is a hash of its content.
            if error.aws_code not in ALREADY_EXISTS:
                raise

    def forget(self, names: Sequence[str]) -> None:
        """Drop templates from the cache: another process may have deleted them."""
        for each in names:
            self._used.pop(each, None)

    async def adopt(self) -> None:
        """Take over the templates that exist in EC2, such as those of an earlier leader."""
        filters = [{"Name": f"tag:{CLUSTER_NAME}", "Values": [self._cluster]}]
        began = self._clock.now()
        async with self._turn:
            found = await self._calls.describe_launch_templates(Filters=filters)
            now = self._clock.now()
            # Launches during the call have used templates that its answer may lack.
            own = {name: used for name, used in self._used.items() if used >= began}
            self._used = {each["LaunchTemplateName"]: now for each in found} | own

    async def delete_unused(self) -> None:
        """Delete the templates that no launch has needed for a while."""
        async with self._turn:
            since = self._clock.now() - UNUSED_FOR
            for name in [each for each, used in self._used.items() if used <= since]:
                await self._delete(LaunchTemplateName=name)
                self._used.pop(name, None)

    async def delete_of(self, node_class: str) -> None:
        """Delete all templates of a node class, including those of an earlier process."""
        filters = [
            {"Name": f"tag:{CLUSTER_NAME}", "Values": [self._cluster]},
            {"Name": f"tag:{_CLASS_TAG}", "Values": [node_class]},
        ]
        for each in await self._calls.describe_launch_templates(Filters=filters):
            await self._delete(LaunchTemplateId=each["LaunchTemplateId"])
            self._used.pop(each["LaunchTemplateName"], None)

    async def _exists(self, name: str) -> bool:
        try:
            found = await self._calls.describe_launch_templates(LaunchTemplateNames=[name])
        except AwsRefused as error:
            if is_not_found(error.aws_code):
                return False
            raise
        return bool(found)

    async def _delete(self, **which: str) -> None:
        try:
            await self._calls.delete_launch_template(**which)
        except AwsRefused as error:
            if not is_not_found(error.aws_code):
                raise
