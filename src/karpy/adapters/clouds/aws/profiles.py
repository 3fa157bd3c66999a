"""Instance profiles: created for the role of a node class, and deleted with the node class."""

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Final

from karpy.adapters.clouds.aws.calls import AwsCalls, JsonObject
from karpy.codec.aws.answers import read_tags
from karpy.core.aws.refusals import ALREADY_EXISTS, is_not_found, is_role_missing
from karpy.core.aws.tags import (
    cluster_tag,
    ec2_tags,
    is_profile_name,
    legacy_name,
    profile_name,
    profile_path,
    profile_tags,
    role_name,
)
from karpy.errors import AwsRefused
from karpy.model.ec2nodeclass import Ec2NodeClass
from karpy.ports.clock import Clock

PROTECTED_FOR: Final = timedelta(hours=1)
"""How long a profile is not deleted after a node class used it: launches may still need it."""
_FRESH: Final = timedelta(minutes=15)
_ROLE_MISSING_FOR: Final = timedelta(minutes=1)


class Profiles:
    """Creates and deletes the instance profiles of a cluster."""

    def __init__(self, calls: AwsCalls, clock: Clock, cluster: str) -> None:
        self._calls = calls
        self._clock = clock
        self._cluster = cluster
        self._seen: dict[str, tuple[datetime, str]] = {}
        """By profile: when it was last seen with a role, and the role."""
        self._missing: dict[str, tuple[datetime, AwsRefused]] = {}
        """Roles that do not exist: when that was seen, and the error."""
        self._protected: dict[str, datetime] = {}

    async def ensure(self, node_class: Ec2NodeClass) -> str:
        """Return the name of a profile with the role of a node class; create it if needed."""
        spec = node_class.spec
        if spec.instance_profile:
            return spec.instance_profile
        region, role = self._calls.region, role_name(spec.role)
        name = await self._adopted(node_class, role)
        name = name or profile_name(self._cluster, region, node_class.name, spec.role)
        now = self._clock.now()
        for each in {name, node_class.status.instance_profile} - {""}:
            self._protected[each] = now + PROTECTED_FOR
        seen = self._seen.get(name)
        if seen is not None and seen[1] == role and now - seen[0] < _FRESH:
            return name
        missing = self._missing.get(role)
        if missing is not None and now - missing[0] < _ROLE_MISSING_FOR:
            raise missing[1]
        await self._make(name, role, node_class)
        self._seen[name] = now, role
        return name

    async def _adopted(self, node_class: Ec2NodeClass, role: str) -> str:
        """Return the profile in the status, if it has the role and is one of this cluster."""
        name = node_class.status.instance_profile
        if not name or name in self._seen:
            return name if name and self._seen[name][1] == role else ""
        found = await self._find(name)
        path = profile_path(self._calls.region, self._cluster, node_class.meta.uid)
        if found is None or found.get("Path") != path:
            return ""
        return name if [each["RoleName"] for each in found.get("Roles") or ()] == [role] else ""

    async def delete_of(self, node_class: Ec2NodeClass) -> None:
        """Delete the profiles that were made for a node class."""
        for each in await self._under(node_class.meta.uid):
            await self._delete(each)
        name = legacy_name(self._cluster, self._calls.region, node_class.name)
        legacy = await self._find(name) if is_profile_name(name) else None
        if legacy is not None and cluster_tag(self._cluster) in read_tags(legacy.get("Tags")):
            await self._delete(legacy)

    async def collect(self, used: Collection[str]) -> None:
        """Delete the profiles of this cluster that are neither used nor protected."""
        now = self._clock.now()
        self._protected = {name: end for name, end in self._protected.items() if end > now}
        for each in await self._under():
            name = each["InstanceProfileName"]
            if name not in used and name not in self._protected:
                await self._delete(each)

    async def _under(self, uid: str = "") -> list[JsonObject]:
        """List the profiles of this cluster, or of one node class; only these may be deleted."""
        path = profile_path(self._calls.region, self._cluster, uid)
        found = await self._calls.list_instance_profiles(PathPrefix=path)
        return [each for each in found if each.get("Path", "").startswith(path)]

    async def _make(self, name: str, role: str, node_class: Ec2NodeClass) -> None:
        found = await self._find(name)
        if found is None:
            tags = profile_tags(
                node_class.spec.tags, self._cluster, node_class.name, self._calls.region
            )
            path = profile_path(self._calls.region, self._cluster, node_class.meta.uid)
            try:
                await self._calls.create_instance_profile(
                    InstanceProfileName=name, Path=path, Tags=ec2_tags(tags)
                )
            except AwsRefused as error:
                if error.aws_code not in ALREADY_EXISTS:
                    raise
            found = {}
        roles = [each["RoleName"] for each in found.get("Roles") or ()]
        if role in roles:
            return
        for each in roles:
            await self._calls.remove_role_from_instance_profile(
                InstanceProfileName=name, RoleName=each
            )
        try:
            await self._calls.add_role_to_instance_profile(InstanceProfileName=name, RoleName=role)
        except AwsRefused as error:
            if is_role_missing(error.aws_code, error.aws_message):
                self._missing[role] = self._clock.now(), error
            await self._delete({"InstanceProfileName": name})
            raise

    async def _find(self, name: str) -> JsonObject | None:
        try:
            answer = await self._calls.get_instance_profile(InstanceProfileName=name)
        except AwsRefused as error:
            if is_not_found(error.aws_code):
                return None
            raise
        found: JsonObject | None = answer.get("InstanceProfile")
        return found

    async def _delete(self, profile: JsonObject) -> None:
        name = profile["InstanceProfileName"]
        self._seen.pop(name, None)
        try:
            for each in profile.get("Roles") or ():
                await self._calls.remove_role_from_instance_profile(
                    InstanceProfileName=name, RoleName=each["RoleName"]
                )
            await self._calls.delete_instance_profile(InstanceProfileName=name)
        except AwsRefused as error:
            if not is_not_found(error.aws_code):
                raise
