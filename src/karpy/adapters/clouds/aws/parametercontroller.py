"""The controller `providers.ssm.invalidation`: drops cached parameters of deprecated images."""

from datetime import timedelta
from typing import Final

from karpy.adapters.clouds.aws.calls import AwsCalls
from karpy.adapters.clouds.aws.finders import Parameters
from karpy.codec.aws.answers import read_image
from karpy.core.aws.images import is_deprecated
from karpy.ports.clock import Clock

PERIOD: Final = timedelta(minutes=30)


class ParameterController:
    """Drops SSM parameters from the cache whose image is deprecated."""

    def __init__(self, parameters: Parameters, calls: AwsCalls, clock: Clock) -> None:
        self._parameters = parameters
        self._calls = calls
        self._clock = clock

    async def invalidate(self) -> None:
        """Drop the cached parameters whose image is deprecated."""
        known = self._parameters.mutable()
        if not known:
            return
        filters = [{"Name": "image-id", "Values": sorted(set(known.values()))}]
        answers = await self._calls.describe_images(Filters=filters, IncludeDeprecated=True)
        now = self._clock.now()
        old = {each.id for each in map(read_image, answers) if is_deprecated(each, now)}
        for name, image in known.items():
            if image in old:
                self._parameters.forget(name)
