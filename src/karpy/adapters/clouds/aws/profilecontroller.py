"""The controller `instanceprofile.garbagecollection`."""

from datetime import timedelta
from typing import Final

from karpy.adapters.clouds.aws.classes import NodeClassBook
from karpy.adapters.clouds.aws.instances import INSTANCE_PROFILE
from karpy.adapters.clouds.aws.profiles import Profiles
from karpy.ports.records import Records

PERIOD: Final = timedelta(minutes=30)


class ProfileCollector:
    """Deletes instance profiles that no node class and no NodeClaim uses."""

    def __init__(self, records: Records, book: NodeClassBook, profiles: Profiles) -> None:
        self._records = records
        self._book = book
        self._profiles = profiles

    async def collect(self) -> None:
        """Delete the profiles that nothing uses."""
        await self._book.wait_until_synced()
        used = {each.status.instance_profile for each in self._book.classes.values()}
        used |= {
            kept.record.meta.annotations.get(INSTANCE_PROFILE, "")
            for kept in self._records.claims.all()
        }
        await self._profiles.collect(used - {""})
