"""EC2, IAM, SQS, SSM, EKS and pricing in memory, on virtual time: the calls of the provider."""

import asyncio
import base64
import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from typing import Any, Final

from karpy.adapters.clouds.awsfake.imagetable import OWNER, ImageSeed, image_of_parameter
from karpy.adapters.clouds.awsfake.market import FleetOverride, counted, lifecycle_of, strategy_of
from karpy.adapters.clouds.awsfake.tables import Tables, has_tags
from karpy.codec.fields import JsonObject
from karpy.core.aws.refusals import refusal_hint
from karpy.errors import AwsRefused
from karpy.model.labels import ON_DEMAND, SPOT
from karpy.ports.clock import Clock
from karpy.sim.draws import SeededDraws
from karpy.sim.ec2.machines import RunningMachine, SimulatedMachines

DISCOVERY: Final = "karpenter.sh/discovery"
_ALIVE: Final = frozenset({"pending", "running"})
_ADDRESSES: Final = 4_000
_USUAL: Final = {"Status": "ok", "Details": [{"Name": "reachability", "Status": "passed"}]}

Pairs = list[tuple[str, list[str]]]


class Ec2Cloud:
    """
    An AWS account with a cluster; `karpy.sim.ec2.calls` is the client.

    Requests and responses have the form of botocore. Refused requests raise AwsRefused.
    """

    def __init__(
        self,
        tables: Tables,
        clock: Clock,
        machines: SimulatedMachines,
        *,
        cluster: str = "demo",
        end_seconds: float = 20.0,
    ) -> None:
        self.tables = tables
        self.cluster = cluster
        self.kubernetes = "1.34"
        """The version of the control plane."""
        self.roles = {f"KarpenterNodeRole-{cluster}"}
        self.instances: dict[str, JsonObject] = {}
        """Instances as EC2 describes them, terminated ones included."""
        self.templates: dict[str, JsonObject] = {}
        """By name."""
        self.profiles: dict[str, JsonObject] = {}
        self.images: dict[str, JsonObject] = {}
        self.messages: dict[str, JsonObject] = {}
        """The messages of the queue, by receipt handle."""
        self.launched = 0
        """How many instances were started so far."""
        self._end_seconds = end_seconds
        self._machines = machines
        self._clock = clock
        self._draws = SeededDraws("ec2", 0)
        self._timers: list[asyncio.TimerHandle] = []
        self._arrived = asyncio.Event()
        tags = [{"Key": DISCOVERY, "Value": cluster}]
        zones = sorted({zone for some in tables.zones.values() for zone in some})
        self.subnets = [
            {
                "SubnetId": f"subnet-{number:08x}",
                "AvailabilityZone": zone,
                "AvailabilityZoneId": f"{_short(tables.region)}-az{number}",
                "AvailableIpAddressCount": _ADDRESSES,
                "Tags": tags,
            }
            for number, zone in enumerate(zones, 1)
        ]
        self.groups = [{"GroupId": "sg-00000001", "GroupName": "nodes", "Tags": tags}]

    # --- control by tests -------------------------------------------------------------------------

    def alive(self) -> list[JsonObject]:
        """Return the instances that are neither terminated nor shutting down."""
        return [each for each in self.instances.values() if each["State"]["Name"] in _ALIVE]

    def end(self, id_: str) -> None:
        """Terminate an instance."""
        instance = self.instances[id_]
        if instance["State"]["Name"] not in _ALIVE:
            return
        instance["State"] = {"Name": "shutting-down"}
        self.tables.market.give_back(instance.get("CapacityReservationId", ""))
        self._machines.halt(id_)

        def over() -> None:
            instance["State"] = {"Name": "terminated"}

        self._timers.append(asyncio.get_running_loop().call_later(self._end_seconds, over))

    def announce(self, detail_type: str, detail: Mapping[str, object], source: str) -> None:
        """Put an event into the queue, as EventBridge does."""
        event = {
            "version": "0",
            "source": source,
            "detail-type": detail_type,
            "time": self._clock.now().isoformat(),
            "detail": detail,
        }
        self.send(json.dumps(event))

    def send(self, body: str) -> None:
        """Put a message into the queue."""
        receipt = f"message-{self._draws.hexadecimal(8)}"
        self.messages[receipt] = {"ReceiptHandle": receipt, "Body": body, "seen": None}
        self._arrived.set()

    def interrupt(self, id_: str, notice: float = 120.0) -> None:
        """Send the interruption warning of a spot instance, and terminate it after the notice."""
        detail = {"instance-id": id_, "instance-action": "terminate"}
        self.announce("EC2 Spot Instance Interruption Warning", detail, "aws.ec2")
        self._timers.append(asyncio.get_running_loop().call_later(notice, self.end, id_))

    def stop(self) -> None:
        """Cancel all timers."""
        for timer in self._timers:
            timer.cancel()

    # --- EC2: reads -------------------------------------------------------------------------------

    def describe_instance_types(self, request: JsonObject) -> list[JsonObject]:
        _refuse_dry_run(request, "DescribeInstanceTypes")
        return list(self.tables.types.values())

    def describe_instance_type_offerings(self, request: JsonObject) -> list[JsonObject]:
        del request
        return [{"InstanceType": name, "Location": zone} for name, zone in self._places()]

    def describe_spot_price_history(self, request: JsonObject) -> list[JsonObject]:
        del request
        return [
            {
                "InstanceType": name,
                "AvailabilityZone": zone,
                "SpotPrice": self.tables.market.dollars(SPOT, name, zone),
            }
            for name, zone in self._places()
        ]

    def describe_subnets(self, request: JsonObject) -> list[JsonObject]:
        return _selected(self.subnets, request, "SubnetId", "subnet-id", "SubnetIds")

    def describe_security_groups(self, request: JsonObject) -> list[JsonObject]:
        return _selected(self.groups, request, "GroupId", "group-id", "GroupIds")

    def describe_images(self, request: JsonObject) -> list[JsonObject]:
        return _selected(self.images.values(), request, "ImageId", "image-id", "ImageIds")

    def describe_capacity_reservations(self, request: JsonObject) -> list[JsonObject]:
        known, ids = self.tables.described_reservations(), request.get("CapacityReservationIds", [])
        for each in set(ids) - self.tables.reservations.keys():
            code = "InvalidCapacityReservationId.NotFound"
            raise refusal("ec2:DescribeCapacityReservations", code, each)
        return _selected(known, request, "CapacityReservationId", "", "CapacityReservationIds")

    def describe_placement_groups(self, request: JsonObject) -> list[JsonObject]:
        wanted = {*request.get("GroupIds", []), *request.get("GroupNames", [])}
        groups = self.tables.groups.values()
        return [each for each in groups if wanted & {each["GroupId"], each["GroupName"]}]

    def describe_instances(self, request: JsonObject) -> list[JsonObject]:
        for each in request.get("InstanceIds", []):
            self._instance(each, "ec2:DescribeInstances")
        found = _selected(self.instances.values(), request, "InstanceId", "", "InstanceIds")
        states = dict(_pairs(request)).get("instance-state-name")
        return [dict(each) for each in found if states is None or each["State"]["Name"] in states]

    def describe_instance_status(self, request: JsonObject) -> list[JsonObject]:
        found = [
            {"InstanceStatus": _USUAL, "SystemStatus": _USUAL, **said, "InstanceId": id_}
            for id_, said in self.tables.health.items()
        ]
        return [each for each in found if _is_ill(each, _pairs(request))]

    def describe_launch_templates(self, request: JsonObject) -> list[JsonObject]:
        names = request.get("LaunchTemplateNames", [])
        for each in names:
            self._template(each, "ec2:DescribeLaunchTemplates")
        found = self.templates.values()
        chosen = [each for each in found if not names or each["LaunchTemplateName"] in names]
        return [each for each in chosen if has_tags(each["Tags"], _pairs(request))]

    # --- EC2: writes ------------------------------------------------------------------------------

    def create_launch_template(self, request: JsonObject) -> JsonObject:
        name = request["LaunchTemplateName"]
        if name in self.templates:
            code = "InvalidLaunchTemplateName.AlreadyExistsException"
            raise refusal("ec2:CreateLaunchTemplate", code, name)
        self.templates[name] = {
            "LaunchTemplateId": f"lt-{self._draws.hexadecimal(17)}",
            "LaunchTemplateName": name,
            "Tags": _tags(request, "launch-template"),
            "data": request["LaunchTemplateData"],
        }
        return {"LaunchTemplate": self.templates[name]}

    def delete_launch_template(self, request: JsonObject) -> JsonObject:
        name, id_ = request.get("LaunchTemplateName"), request.get("LaunchTemplateId")
        ids = {each["LaunchTemplateId"]: key for key, each in self.templates.items()}
        found = name or ids.get(id_, "")
        return {
            "LaunchTemplate": self.templates.pop(self._template(found, "ec2:DeleteLaunchTemplate"))
        }

    def create_fleet(self, request: JsonObject) -> JsonObject:
        """Launch instances from the best overrides with capacity."""
        overrides = [
            (
                self.templates[
                    self._template(
                        config["LaunchTemplateSpecification"]["LaunchTemplateName"],
                        "ec2:CreateFleet",
                    )
                ],
                override,
            )
            for config in request["LaunchTemplateConfigs"]
            for override in config["Overrides"]
        ]
        _refuse_dry_run(request, "CreateFleet")
        target = request["TargetCapacitySpecification"]
        lifecycle = lifecycle_of(target.get("DefaultTargetCapacityType", ON_DEMAND))
        offers = [
            _offer(index, template["data"], override, is_full=self._is_full(override))
            for index, (template, override) in enumerate(overrides)
        ]
        strategy = strategy_of(request, lifecycle)
        machines = target["TotalTargetCapacity"]
        taken = self.tables.market.take(offers, lifecycle, strategy, machines)
        started = []
        for offer, count in counted(taken.offers).items():
            template, override = overrides[offer.index]
            ids = [
                self._start(
                    template["data"], override, offer, lifecycle, _tags(request, "instance")
                )
                for _ in range(count)
            ]
            part = {"Overrides": override}
            started.append(
                {"LaunchTemplateAndOverrides": part, "Lifecycle": lifecycle, "InstanceIds": ids}
            )
        errors = [
            {
                "LaunchTemplateAndOverrides": {"Overrides": overrides[each.offer.index][1]},
                "Lifecycle": lifecycle,
                "ErrorCode": each.code,
                "ErrorMessage": each.message,
            }
            for each in taken.faults
        ]
        return {"Instances": started, "Errors": errors}

    def run_instances(self, request: JsonObject) -> JsonObject:
        self._template(request["LaunchTemplate"]["LaunchTemplateName"], "ec2:RunInstances")
        _refuse_dry_run(request, "RunInstances")
        raise refusal("ec2:RunInstances", "Unsupported", "only dry runs are made")

    def terminate_instances(self, request: JsonObject) -> JsonObject:
        for each in request["InstanceIds"]:
            self._instance(each, "ec2:TerminateInstances")
        for each in request["InstanceIds"]:
            self.end(each)
        ended = [
            {"InstanceId": each, "CurrentState": self.instances[each]["State"]}
            for each in request["InstanceIds"]
        ]
        return {"TerminatingInstances": ended}

    def create_tags(self, request: JsonObject) -> JsonObject:
        for id_ in request["Resources"]:
            instance = self._instance(id_, "ec2:CreateTags")
            known = {each["Key"]: each["Value"] for each in instance["Tags"]}
            known |= {each["Key"]: each["Value"] for each in request["Tags"]}
            instance["Tags"] = _written(known)
        return {}

    # --- IAM --------------------------------------------------------------------------------------

    def get_instance_profile(self, request: JsonObject) -> JsonObject:
        return {"InstanceProfile": self._profile(request, "GetInstanceProfile")}

    def list_instance_profiles(self, request: JsonObject) -> list[JsonObject]:
        path = request.get("PathPrefix", "/")
        return [each for each in self.profiles.values() if each["Path"].startswith(path)]

    def create_instance_profile(self, request: JsonObject) -> JsonObject:
        name = request["InstanceProfileName"]
        if name in self.profiles:
            raise refusal("iam:CreateInstanceProfile", "EntityAlreadyExists", name)
        self.profiles[name] = {**request, "Roles": []}
        return {"InstanceProfile": self.profiles[name]}

    def delete_instance_profile(self, request: JsonObject) -> JsonObject:
        profile = self._profile(request, "DeleteInstanceProfile")
        if profile["Roles"]:
            raise refusal("iam:DeleteInstanceProfile", "DeleteConflict", "it has a role")
        del self.profiles[profile["InstanceProfileName"]]
        return {}

    def add_role_to_instance_profile(self, request: JsonObject) -> JsonObject:
        profile, role = self._profile(request, "AddRoleToInstanceProfile"), request["RoleName"]
        if role not in self.roles:
            message = f"The role with name {role} cannot be found."
            raise refusal("iam:AddRoleToInstanceProfile", "NoSuchEntity", message)
        if profile["Roles"]:
            raise refusal("iam:AddRoleToInstanceProfile", "LimitExceeded", "it has a role")
        profile["Roles"] = [{"RoleName": role}]
        return {}

    def remove_role_from_instance_profile(self, request: JsonObject) -> JsonObject:
        self._profile(request, "RemoveRoleFromInstanceProfile")["Roles"] = []
        return {}

    # --- EKS, pricing, SSM, SQS, STS --------------------------------------------------------------

    def describe_cluster(self, request: JsonObject) -> JsonObject:
        if request["name"] != self.cluster:
            raise refusal("eks:DescribeCluster", "ResourceNotFoundException", request["name"])
        network = {"serviceIpv4Cidr": "10.100.0.0/16"}
        cluster = {
            "name": self.cluster,
            "arn": f"arn:aws:eks:{self.tables.region}:123456789012:cluster/{self.cluster}",
            "version": self.kubernetes,
            "endpoint": "https://eks.example.com",
            "certificateAuthority": {"data": "Y2E="},
            "kubernetesNetworkConfig": network,
        }
        return {"cluster": cluster}

    def get_products(self, request: JsonObject) -> list[JsonObject]:
        del request
        market = self.tables.market
        return [
            {
                "product": {"attributes": {"instanceType": name}},
                "terms": {
                    "OnDemand": {
                        "t": {
                            "priceDimensions": {
                                "d": {"pricePerUnit": {"USD": market.dollars(ON_DEMAND, name)}}
                            }
                        }
                    }
                },
            }
            for name in self.tables.types
        ]

    def get_parameter(self, request: JsonObject) -> JsonObject:
        seed = image_of_parameter(request["Name"], self.tables.release)
        if seed is None:
            raise refusal("ssm:GetParameter", "ParameterNotFound", request["Name"])
        self.images.setdefault(seed.id, _image(seed))
        return {"Parameter": {"Name": request["Name"], "Value": seed.id}}

    def get_queue_url(self, request: JsonObject) -> JsonObject:
        if request["QueueName"] != self.cluster:
            code = "AWS.SimpleQueueService.NonExistentQueue"
            raise refusal("sqs:GetQueueUrl", code, request["QueueName"])
        return {"QueueUrl": f"https://sqs.example.com/{self.cluster}"}

    async def receive_message(self, request: JsonObject) -> JsonObject:
        """Return the visible messages; wait if there are none."""
        hidden = request.get("VisibilityTimeout", 30)
        for _ in range(2):
            now = self._clock.now()
            shown = [each for each in self.messages.values() if _is_visible(each, now, hidden)]
            if shown:
                for each in shown:
                    each["seen"] = now
                return {"Messages": [dict(each) for each in shown[:10]]}
            self._arrived.clear()
            try:
                async with asyncio.timeout(request.get("WaitTimeSeconds", 0)):
                    await self._arrived.wait()
            except TimeoutError:
                break
        return {}

    def delete_message(self, request: JsonObject) -> JsonObject:
        self.messages.pop(request["ReceiptHandle"], None)
        return {}

    def get_managed_resource(self, request: JsonObject) -> JsonObject:
        return {"arn": request["resourceIdentifier"], "zonalShifts": list(self.tables.shifts)}

    def get_caller_identity(self, request: JsonObject) -> JsonObject:
        del request
        return {"Account": "123456789012"}

    # --- parts ------------------------------------------------------------------------------------

    def _places(self) -> Iterable[tuple[str, str]]:
        return ((name, zone) for name, zones in self.tables.zones.items() for zone in zones)

    def _template(self, name: str, call: str) -> str:
        if name not in self.templates:
            raise refusal(call, "InvalidLaunchTemplateName.NotFoundException", name)
        return name

    def _is_full(self, override: JsonObject) -> bool:
        left = {str(each["SubnetId"]): each["AvailableIpAddressCount"] for each in self.subnets}
        return left.get(override.get("SubnetId", ""), 1) == 0

    def _profile(self, request: JsonObject, call: str) -> JsonObject:
        name = request["InstanceProfileName"]
        found: JsonObject | None = self.profiles.get(name)
        if found is None:
            message = f"Instance Profile {name} cannot be found."
            raise refusal(f"iam:{call}", "NoSuchEntity", message)
        return found

    def _instance(self, id_: str, call: str) -> JsonObject:
        found: JsonObject | None = self.instances.get(id_)
        if found is None:
            raise refusal(call, "InvalidInstanceID.NotFound", id_)
        return found

    def _start(
        self,
        data: JsonObject,
        override: JsonObject,
        offer: FleetOverride,
        lifecycle: str,
        tags: list[JsonObject],
    ) -> str:
        id_ = f"i-{self._draws.hexadecimal(17)}"
        self.launched += 1
        placement = data.get("Placement") or {}
        made: JsonObject = {
            "InstanceId": id_,
            "InstanceType": offer.instance_type,
            "ImageId": override.get("ImageId") or data["ImageId"],
            "LaunchTime": self._clock.now(),
            "Placement": {**placement, "AvailabilityZone": offer.zone},
            "SecurityGroups": _groups_of(data),
            "SubnetId": override.get("SubnetId", ""),
            "State": {"Name": "running"},
            "Tags": tags,
        }
        if lifecycle == SPOT:
            made["SpotInstanceRequestId"] = f"sir-{id_[-8:]}"
        if offer.reservation:
            made["CapacityReservationId"] = offer.reservation
            made["CapacityReservationSpecification"] = data["CapacityReservationSpecification"]
        self.instances[id_] = made
        user_data = base64.b64decode(data.get("UserData") or "").decode()
        self._machines.boot(RunningMachine(id_, offer.instance_type, offer.zone, user_data))
        return id_


def refusal(call: str, code: str, message: str) -> AwsRefused:
    """Return the error of a call that AWS refuses."""
    hint = refusal_hint(call, code, message)
    return AwsRefused(call=call, aws_code=code, message=message, hint=hint)


def _refuse_dry_run(request: JsonObject, call: str) -> None:
    if request.get("DryRun"):
        raise refusal(f"ec2:{call}", "DryRunOperation", "Request would have succeeded.")


def _pairs(request: JsonObject) -> Pairs:
    return [(each["Name"], each["Values"]) for each in request.get("Filters", [])]


def _selected(
    known: Iterable[JsonObject], request: JsonObject, key: str, name: str, ids: str
) -> list[JsonObject]:
    """Return the items that match the IDs and the filters of a request."""
    wanted, pairs = request.get(ids), _pairs(request)
    chosen = [each for each in known if not wanted or each[key] in wanted]
    by_id = [values for each, values in pairs if each == name]
    return [
        each
        for each in chosen
        if has_tags(each.get("Tags"), pairs) and all(each[key] in values for values in by_id)
    ]


def _is_ill(said: JsonObject, pairs: Pairs) -> bool:
    kinds: dict[str, list[Any]] = {
        "instance-status.status": [said["InstanceStatus"]["Status"]],
        "system-status.status": [said["SystemStatus"]["Status"]],
        "event.code": [each["Code"] for each in said.get("Events", [])],
    }
    return all(any(value in kinds[name] for value in values) for name, values in pairs)


def _is_visible(message: JsonObject, now: datetime, hidden: float) -> bool:
    seen: datetime | None = message["seen"]
    return seen is None or (now - seen).total_seconds() >= hidden


def _tags(request: JsonObject, kind: str) -> list[JsonObject]:
    specifications: Sequence[JsonObject] = request.get("TagSpecifications", [])
    return [tag for each in specifications if each["ResourceType"] == kind for tag in each["Tags"]]


def _written(tags: Mapping[str, str]) -> list[JsonObject]:
    return [{"Key": key, "Value": value} for key, value in sorted(tags.items())]


def _groups_of(data: JsonObject) -> list[JsonObject]:
    interfaces = data.get("NetworkInterfaces") or [{}]
    return [{"GroupId": each} for each in interfaces[0].get("Groups", [])]


def _offer(index: int, data: JsonObject, override: JsonObject, *, is_full: bool) -> FleetOverride:
    specification = data.get("CapacityReservationSpecification") or {}
    target = specification.get("CapacityReservationTarget") or {}
    return FleetOverride(
        override["InstanceType"],
        override["AvailabilityZone"],
        override.get("Priority", 0.0),
        target.get("CapacityReservationId", ""),
        index,
        is_full,
    )


def _image(seed: ImageSeed) -> JsonObject:
    return {
        "ImageId": seed.id,
        "Name": seed.name,
        "Architecture": seed.architecture,
        "CreationDate": seed.created.strftime("%Y-%m-%dT%H:%M:%S.000Z"),
        "OwnerId": OWNER,
        "State": "available",
    }


def _short(region: str) -> str:
    return sha256(region.encode()).hexdigest()[:4]
