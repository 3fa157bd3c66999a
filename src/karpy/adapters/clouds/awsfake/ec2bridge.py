"""EC2 of moto, with the calls that moto lacks or answers wrongly."""

import base64
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, ClassVar, Final, TypeAlias

from botocore.model import OperationModel
from moto.core.common_types import TYPE_RESPONSE
from moto.core.responses import ActionContext, ActionResult
from moto.core.utils import get_service_model
from moto.ec2.exceptions import EC2ClientError, InvalidInstanceIdError
from moto.ec2.models.amis import Ami
from moto.ec2.responses import EC2Response
from moto.ec2.utils import filter_reservations

from karpy.adapters.clouds.awsfake.imagetable import OWNER, ImageSeed
from karpy.adapters.clouds.awsfake.market import (
    FleetOverride,
    Taken,
    counted,
    lifecycle_of,
    strategy_of,
)
from karpy.adapters.clouds.awsfake.tables import JsonObject, Tables, has_tags
from karpy.adapters.clouds.awsfake.xmltext import item_shape, write_answer, write_item
from karpy.model.instances import MICROS_PER_DOLLAR
from karpy.model.labels import ON_DEMAND, SPOT

Moto: TypeAlias = Any
"""An object of moto, whose models have no type annotations."""

USER_DATA_MAX: Final = 16_384
_TYPES_A_PAGE: Final = 100
_ROWS_A_PAGE: Final = 1000
_USUAL_HEALTH: Final = {
    "Status": "ok",
    "Details": [{"Name": "reachability", "Status": "passed"}],
}
_NO_TEMPLATE: Final = "InvalidLaunchTemplateName.NotFoundException"


class _Written(ActionResult):
    """An answer that is already serialized."""

    def execute_result(self, context: ActionContext) -> TYPE_RESPONSE:
        del context
        return 200, {"Content-Type": "text/xml"}, str(self.result)


class Ec2Bridge(EC2Response):
    """The calls that moto lacks, or whose answers would mislead the provider."""

    tables: ClassVar[Tables]
    written: ClassVar[dict[tuple[str, str], str]]
    """A cache of the items of long lists as XML, because writing them takes most of the time."""

    def call_action(self) -> TYPE_RESPONSE:
        """Count each call, and raise its injected refusal."""
        refused = self.tables.admit(self._get_action())
        if refused is None:
            return super().call_action()
        status, headers, body = self.serialized(ActionResult(EC2ClientError(*refused)))
        return status, headers, body

    # --- types, offerings, prices -----------------------------------------------------------------

    def describe_instance_types(self) -> ActionResult:
        self.error_on_dryrun()
        wanted = self._get_param("InstanceTypes", [])
        unknown = [each for each in wanted if each not in self.tables.types]
        if unknown:
            message = f"The following supplied instance types do not exist: [{unknown[0]}]"
            raise EC2ClientError("InvalidInstanceType", message)
        names = wanted or [each for each in self.tables.types if self._is_asked_for(each)]
        shown, token = self._page(names, _TYPES_A_PAGE)
        kinds = self.tables.types
        items = [(name, partial(kinds.__getitem__, name)) for name in shown]
        return self._text("InstanceTypes", items, token)

    def describe_instance_type_offerings(self) -> ActionResult:
        self.error_on_dryrun()
        rows = [
            (f"{name}/{zone}", name, zone)
            for name, zones in self.tables.zones.items()
            for zone in zones
        ]
        shown, token = self._page(rows, _ROWS_A_PAGE)

        def row(name: str, zone: str) -> Callable[[], JsonObject]:
            return lambda: {
                "InstanceType": name,
                "LocationType": "availability-zone",
                "Location": zone,
            }

        return self._text(
            "InstanceTypeOfferings", [(key, row(name, zone)) for key, name, zone in shown], token
        )

    def describe_spot_price_history(self) -> ActionResult:
        self.error_on_dryrun()
        market = self.tables.market
        rows = [(name, zone) for name, zones in self.tables.zones.items() for zone in zones]
        shown, token = self._page(rows, _ROWS_A_PAGE)

        def row(name: str, zone: str) -> Callable[[], JsonObject]:
            return lambda: {
                "InstanceType": name,
                "AvailabilityZone": zone,
                "ProductDescription": "Linux/UNIX",
                "SpotPrice": market.dollars(SPOT, name, zone),
                "Timestamp": "2026-01-01T00:00:00.000Z",
            }

        items = [("", row(name, zone)) for name, zone in shown]
        return self._text("SpotPriceHistory", items, token)

    def _is_asked_for(self, name: str) -> bool:
        said = self.tables.types[name]
        kinds: dict[str, Sequence[object]] = {
            "supported-virtualization-type": said.get("SupportedVirtualizationTypes") or (),
            "processor-info.supported-architecture": said["ProcessorInfo"][
                "SupportedArchitectures"
            ],
            "instance-type": (name,),
            "bare-metal": (str(said.get("BareMetal", False)).lower(),),
            "current-generation": (str(said.get("CurrentGeneration", False)).lower(),),
        }
        return all(
            name not in kinds or any(value in kinds[name] for value in values)
            for name, values in self._pairs()
        )

    def _text(
        self, key: str, items: Iterable[tuple[str, Callable[[], JsonObject]]], token: str
    ) -> "_Written":
        operation: OperationModel = get_service_model("ec2").operation_model(self._get_action())
        shape = item_shape(operation, key)
        texts = []
        for name, make in items:
            text = self.written.get((key, name)) if name else None
            if text is None:
                text = write_item(shape, make())
                if name:
                    self.written[key, name] = text
            texts.append(text)
        return _Written(write_answer(operation, key, texts, token))

    def _page(self, items: Sequence[Any], usual: int) -> tuple[Sequence[Any], str]:
        start = int(self._get_param("NextToken") or 0)
        end = start + min(int(self._get_param("MaxResults") or usual), usual)
        return items[start:end], str(end) if end < len(items) else ""

    def _pairs(self) -> list[tuple[str, list[str]]]:
        """Return all filters; two with the same name must both be met."""
        return [(each["Name"], each.get("Values", [])) for each in self._get_param("Filters", [])]

    # --- instances --------------------------------------------------------------------------------

    def describe_instances(self) -> ActionResult:
        self.error_on_dryrun()
        ids, backend = self._get_param("InstanceIds", []), self.ec2_backend
        found = (
            backend.get_reservations_by_instance_ids(ids)
            if ids
            else backend.describe_instances(filters=None)
        )
        for name, values in self._pairs():
            found = filter_reservations(found, {name: values})
        shown, token = self._page(found, _ROWS_A_PAGE)
        return ActionResult({"Reservations": shown, "NextToken": token or None})

    def terminate_instances(self) -> ActionResult:
        ids = self._get_param("InstanceIds", [])
        alive = [each for each in map(self.ec2_backend.get_instance_by_id, ids) if each is not None]
        reserved = [
            getattr(each, "capacity_reservation_id", "")
            for each in alive
            if each.state not in {"terminated", "shutting-down"}
        ]
        answer = super().terminate_instances()
        for each in reserved:
            self.tables.market.give_back(each)
        return answer

    def create_tags(self) -> ActionResult:
        for each in self._get_param("Resources", []):
            if each.startswith("i-") and self.ec2_backend.get_instance_by_id(each) is None:
                raise InvalidInstanceIdError(each)
        return super().create_tags()

    def describe_instance_status(self) -> ActionResult:
        self.error_on_dryrun()
        found = [
            {
                "InstanceId": each.id,
                "AvailabilityZone": each.placement.zone,
                "InstanceState": {"Code": 16, "Name": "running"},
                "InstanceStatus": _USUAL_HEALTH,
                "SystemStatus": _USUAL_HEALTH,
                **self.tables.health.get(each.id, {}),
            }
            for each in self.ec2_backend.all_running_instances()
        ]
        return ActionResult({"InstanceStatuses": [each for each in found if self._is_shown(each)]})

    def _is_shown(self, said: JsonObject) -> bool:
        ids = self._get_param("InstanceIds", [])
        kinds: dict[str, list[object]] = {
            "instance-status.status": [said["InstanceStatus"]["Status"]],
            "system-status.status": [said["SystemStatus"]["Status"]],
            "event.code": [each["Code"] for each in said.get("Events", [])],
        }
        return (not ids or said["InstanceId"] in ids) and all(
            name not in kinds or any(value in kinds[name] for value in values)
            for name, values in self._pairs()
        )

    # --- launches ---------------------------------------------------------------------------------

    def create_launch_template(self) -> ActionResult:
        encoded = self._get_param("LaunchTemplateData.UserData") or ""
        if len(base64.b64decode(encoded)) > USER_DATA_MAX:
            message = f"User data is limited to {USER_DATA_MAX} bytes"
            raise EC2ClientError("InvalidUserData.Malformed", message)
        return super().create_launch_template()

    def delete_launch_template(self) -> ActionResult:
        id_, name = self._get_param("LaunchTemplateId"), self._get_param("LaunchTemplateName")
        self.error_on_dryrun()
        templates = self.ec2_backend.launch_templates
        if id_ and id_ not in templates:
            message = f"The specified launch template, with template ID {id_}, does not exist."
            raise EC2ClientError("InvalidLaunchTemplateId.NotFound", message)
        if name and all(each.name != name for each in templates.values()):
            message = f"The specified launch template, with template name {name}, does not exist."
            raise EC2ClientError(_NO_TEMPLATE, message)
        return super().delete_launch_template()

    def create_fleet(self) -> ActionResult:
        configs = self._get_param("LaunchTemplateConfigs", [])
        templates = [self._template(each["LaunchTemplateSpecification"]) for each in configs]
        overrides = [
            (template, override)
            for template, config in zip(templates, configs, strict=True)
            for override in config.get("Overrides") or [{}]
        ]
        for _, override in overrides:
            if override.get("SubnetId"):
                self.ec2_backend.get_subnet(override["SubnetId"])
        self.error_on_dryrun()
        target = self._get_param("TargetCapacitySpecification", {})
        kind = target.get("DefaultTargetCapacityType", ON_DEMAND)
        lifecycle = lifecycle_of(kind)
        strategy = strategy_of(self._options(), lifecycle)
        offers = [
            self._offer(index, template.latest_version().data, override)
            for index, (template, override) in enumerate(overrides)
        ]
        with self.tables.lock:
            machines = int(target.get("TotalTargetCapacity", 1))
            taken = self.tables.market.take(offers, lifecycle, strategy, machines)
            started = [
                self._start(*overrides[offer.index], offer, lifecycle, count)
                for offer, count in counted(taken.offers).items()
            ]
        faults = self._faults(taken, overrides, lifecycle)
        answer = {"FleetId": f"fleet-{len(self.tables.calls)}", "Instances": started}
        return ActionResult(answer | ({"Errors": faults} if faults else {}))

    def _options(self) -> JsonObject:
        return {each: self._get_param(each, {}) for each in ("SpotOptions", "OnDemandOptions")}

    def _template(self, wanted: JsonObject) -> Moto:
        if "LaunchTemplateId" in wanted:
            return self.ec2_backend.get_launch_template(wanted["LaunchTemplateId"])
        return self.ec2_backend.get_launch_template_by_name(wanted["LaunchTemplateName"])

    def _offer(self, index: int, data: JsonObject, override: JsonObject) -> FleetOverride:
        specification = data.get("CapacityReservationSpecification") or {}
        target = specification.get("CapacityReservationTarget") or {}
        subnet = override.get("SubnetId")
        left = self.ec2_backend.get_subnet(subnet).available_ip_address_count if subnet else 1
        return FleetOverride(
            override.get("InstanceType") or data.get("InstanceType", "m5.large"),
            self._zone(override),
            float(override.get("Priority") or 0.0),
            target.get("CapacityReservationId", ""),
            index,
            left <= 0,
        )

    def _zone(self, override: JsonObject) -> str:
        subnet = override.get("SubnetId")
        if subnet:
            return str(self.ec2_backend.get_subnet(subnet).availability_zone)
        return str(override.get("AvailabilityZone") or f"{self.region}a")

    def _start(
        self,
        template: Moto,
        override: JsonObject,
        offer: FleetOverride,
        lifecycle: str,
        count: int,
    ) -> JsonObject:
        """Start machines of one override by the launch template."""
        data = template.latest_version().data
        made = self.ec2_backend.run_instances(
            override.get("ImageId") or data.get("ImageId"),
            count,
            data.get("UserData"),
            [],
            instance_type=offer.instance_type,
            is_instance_type_default=False,
            region_name=self.region,
            subnet_id=override.get("SubnetId") or self._subnet_of(offer.zone),
            security_group_ids=_groups(data),
            launch_template={"LaunchTemplateName": template.name, "Version": "$Latest"},
            metadata_options=data.get("MetadataOptions", {}),
            monitoring_state="enabled"
            if (data.get("Monitoring") or {}).get("Enabled")
            else "disabled",
            lifecycle=SPOT if lifecycle == SPOT else None,
            tags=_tags_by_kind(self._get_param("TagSpecifications", []), data),
        )
        for each in made.instances:
            self._complete(each, data, offer, lifecycle)
        return {
            "LaunchTemplateAndOverrides": _said(template, override, offer),
            "Lifecycle": lifecycle,
            "InstanceIds": [each.id for each in made.instances],
            "InstanceType": offer.instance_type,
        }

    def _complete(
        self, instance: Moto, data: JsonObject, offer: FleetOverride, lifecycle: str
    ) -> None:
        """Set the fields of an instance that moto does not take from the launch template."""
        placement = data.get("Placement") or {}
        instance.placement.tenancy = placement.get("Tenancy", "default")
        zones = {each.availability_zone: each.availability_zone_id for each in self._subnets()}
        instance.placement.availability_zone_id = zones.get(offer.zone, "")
        if placement.get("GroupId"):
            instance.placement.group_id = placement["GroupId"]
        if placement.get("PartitionNumber"):
            instance.placement.partition_number = placement["PartitionNumber"]
        profile = (data.get("IamInstanceProfile") or {}).get("Name")
        if profile:
            self.ec2_backend.associate_iam_instance_profile(
                instance.id, iam_instance_profile_name=profile
            )
        if lifecycle == SPOT:
            instance.spot_instance_request_id = f"sir-{instance.id[-8:]}"
        if offer.reservation:
            instance.capacity_reservation_id = offer.reservation
            instance.capacity_reservation_specification = data["CapacityReservationSpecification"]

    def _subnets(self) -> Iterable[Moto]:
        return (each for some in self.ec2_backend.subnets.values() for each in some.values())

    def _subnet_of(self, zone: str) -> str | None:
        found = (each.id for each in self._subnets() if each.availability_zone == zone)
        return next(found, None)

    def _faults(
        self, taken: Taken, overrides: Sequence[tuple[Moto, JsonObject]], lifecycle: str
    ) -> list[JsonObject]:
        return [
            {
                "LaunchTemplateAndOverrides": _said(*overrides[each.offer.index], each.offer),
                "Lifecycle": lifecycle,
                "ErrorCode": each.code,
                "ErrorMessage": each.message,
            }
            for each in taken.faults
        ]

    # --- images, reservations, placement groups ---------------------------------------------------

    def enable_image_deprecation(self) -> ActionResult:
        image = self.ec2_backend.amis[self._get_param("ImageId")]
        image.deprecation_time = str(self._get_param("DeprecateAt"))
        return ActionResult({"Return": True})

    def describe_capacity_reservations(self) -> ActionResult:
        ids, known = self._get_param("CapacityReservationIds", []), self.tables.reservations
        for each in ids:
            if each not in known:
                message = f"The ID '{each}' does not exist"
                raise EC2ClientError("InvalidCapacityReservationId.NotFound", message)
        pairs = self._pairs()
        plain = {
            "state": "State",
            "owner-id": "OwnerId",
            "instance-match-criteria": "InstanceMatchCriteria",
            "instance-type": "InstanceType",
        }
        found = [
            each
            for each in self.tables.described_reservations()
            if (not ids or each["CapacityReservationId"] in ids)
            and has_tags(each["Tags"], pairs)
            and all(each.get(plain[name]) in values for name, values in pairs if name in plain)
        ]
        return ActionResult({"CapacityReservations": found})

    def create_capacity_reservation(self) -> ActionResult:
        id_ = f"cr-{len(self.tables.reservations) + 1:017x}"
        self.tables.reserve(
            id_,
            self._get_param("InstanceType"),
            self._get_param("AvailabilityZone"),
            int(self._get_param("InstanceCount")),
            InstanceMatchCriteria=self._get_param("InstanceMatchCriteria", "open"),
            Tags=_reservation_tags(self._get_param("TagSpecifications", [])),
        )
        found = self.tables.described_reservations()[-1]
        return ActionResult({"CapacityReservation": found})

    def cancel_capacity_reservation(self) -> ActionResult:
        id_ = self._get_param("CapacityReservationId")
        self.tables.reservations[id_]["State"] = "cancelled"
        return ActionResult({"Return": True})

    def describe_placement_groups(self) -> ActionResult:
        ids, names = self._get_param("GroupIds", []), self._get_param("GroupNames", [])
        every = list(self.tables.groups.values())
        found = [
            each
            for each in every
            if (not ids or each["GroupId"] in ids) and (not names or each["GroupName"] in names)
        ]
        if (ids or names) and not found:
            message = f"The placement group '{(ids or names)[0]}' is unknown."
            raise EC2ClientError("InvalidPlacementGroup.Unknown", message)
        return ActionResult({"PlacementGroups": found})

    def create_placement_group(self) -> ActionResult:
        name = self._get_param("GroupName")
        id_ = f"pg-{len(self.tables.groups) + 1:017x}"
        partitions = int(self._get_param("PartitionCount") or 0)
        self.tables.group(id_, name, self._get_param("Strategy", "cluster"), partitions)
        return ActionResult({"PlacementGroup": self.tables.groups[name]})

    def delete_placement_group(self) -> ActionResult:
        self.tables.groups.pop(self._get_param("GroupName"), None)
        return ActionResult({})


def add_image(backend: Moto, seed: ImageSeed) -> None:
    """Add an image to the EC2 of moto."""
    if seed.id in backend.amis:
        return
    backend.amis[seed.id] = Ami(
        backend,
        seed.id,
        name=seed.name,
        description=seed.name,
        owner_id=OWNER,
        owner_alias="amazon",
        public=True,
        virtualization_type="hvm",
        architecture=seed.architecture,
        creation_date=seed.created,
        platform=seed.platform or None,
        hypervisor="xen",
        root_device_type="ebs",
        root_device_name="/dev/xvda",
        region_name=f"{backend.region_name}a",
    )


def _said(template: Moto, override: JsonObject, offer: FleetOverride) -> JsonObject:
    return {
        "LaunchTemplateSpecification": {
            "LaunchTemplateId": template.id,
            "LaunchTemplateName": template.name,
            "Version": str(template.latest_version_number),
        },
        "Overrides": {**override, "AvailabilityZone": offer.zone},
    }


def _groups(data: JsonObject) -> list[str]:
    interfaces = data.get("NetworkInterfaces") or [{}]
    first: JsonObject = interfaces[0]
    found = first.get("Groups") or first.get("SecurityGroupId") or data.get("SecurityGroupIds")
    return [str(each) for each in found or ()]


def _tags_by_kind(specifications: Sequence[JsonObject], data: JsonObject) -> JsonObject:
    found: dict[str, dict[str, str]] = {}
    for each in (*(data.get("TagSpecifications") or ()), *specifications):
        tags = {tag["Key"]: tag.get("Value", "") for tag in each.get("Tags") or ()}
        found.setdefault(each["ResourceType"], {}).update(tags)
    return found


def _reservation_tags(specifications: Sequence[JsonObject]) -> list[JsonObject]:
    return [tag for each in specifications for tag in each.get("Tags") or ()]


def micros_text(micros: int) -> str:
    """Write a price in the format of Pricing."""
    return f"{micros / MICROS_PER_DOLLAR:.10f}"
