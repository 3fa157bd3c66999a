"""The controller `instanceprofile.garbagecollection`."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Final

from karpy.adapters.clouds.aws.classes import NodeClassBook
from karpy.adapters.clouds.aws.instances import INSTANCE_PROFILE
from karpy.adapters.clouds.aws.profiles import Profiles
from karpy.barriers import Barrier
from karpy.errors import KarpyError
from karpy.ports.records import Records

PERIOD: Final = timedelta(minutes=30)

OnFailure = Callable[[str, KarpyError], None]


class ProfileCollector:
    """Deletes instance profiles that no node class and no NodeClaim names."""

    def __init__(
        self,
        records: Records,
        book: NodeClassBook,
        profiles: Profiles,
        on_failure: OnFailure = lambda *_: None,
    ) -> None:
        self._records = records
        self._book = book
        self._profiles = profiles
        self._on_failure = on_failure

    async def run(self) -> None:
        """Delete profiles now and then, until cancelled."""
        await self._book.wait_until_synced()
        while True:
            await asyncio.sleep(PERIOD.total_seconds())
            with Barrier(partial(self._on_failure, "")):
                await self.collect()

    async def collect(self) -> None:
        """Delete the profiles that nothing uses."""
        used = {each.status.instance_profile for each in self._book.classes.values()}
        used |= {
            kept.record.meta.annotations.get(INSTANCE_PROFILE, "")
            for kept in self._records.claims.all()
        }
        await self._profiles.collect(used - {""})
