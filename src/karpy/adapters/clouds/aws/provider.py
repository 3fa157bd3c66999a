"""The port CloudProvider on EC2."""

import asyncio
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from karpy.adapters.clouds.aws.classes import NodeClassBook
from karpy.adapters.clouds.aws.cluster import ClusterWatch
from karpy.adapters.clouds.aws.instances import Origin, described_machine, launched_machine
from karpy.adapters.clouds.aws.machines import FleetLaunch, Machines
from karpy.adapters.clouds.aws.marketplace import Marketplace
from karpy.adapters.clouds.aws.reports import Reports
from karpy.adapters.clouds.aws.settings import AwsSettings
from karpy.adapters.clouds.aws.soldout import SoldOut
from karpy.adapters.clouds.aws.subnets import Subnets
from karpy.adapters.clouds.aws.templates import Templates
from karpy.codec.aws.answers import Launched
from karpy.core.aws.bootstrap import (
    Bootstrap,
    UserDataInvalid,
    is_ipv6,
    node_labels,
    registration_taints,
)
from karpy.core.aws.catalog import CatalogMaker
from karpy.core.aws.drift import (
    DriftUnknown,
    Observed,
    find_image_drift,
    find_machine_drift,
    find_static_drift,
)
from karpy.core.aws.fleet import (
    Wanted,
    choose_capacity_type,
    choose_tenancy,
    choose_types,
    fleet_request,
    is_thin_fallback,
    only_options,
    overrides_everywhere,
    overrides_of,
    reservations_in,
    trial_tenancy,
    wants_efa,
)
from karpy.core.aws.images import bottlerocket_version, image_for
from karpy.core.aws.launchtemplates import (
    ENCLAVE,
    USER_DATA_LARGE,
    USER_DATA_MAX,
    LaunchProperties,
    LaunchTemplate,
    TemplateKind,
    launch_template,
    split_by_template,
    template_tags,
    user_data_bytes,
)
from karpy.core.aws.nodeclass import validation_failure
from karpy.core.aws.refusals import (
    SERVICE_LINKED_ROLE,
    SUBNET_FULL,
    TEMPLATE_GONE,
    is_forbidden,
    is_sold_out,
    is_spread_full,
    launch_reason,
    refusal_hint,
)
from karpy.core.aws.tags import MachineOwner, machine_tags, restricted_tags
from karpy.core.aws.userdata import CUSTOM, family_of
from karpy.core.lifecycle.changes import Count, Remark
from karpy.core.nodepool.readiness import class_missing
from karpy.errors import (
    AwsRefused,
    CloudError,
    CloudUnavailable,
    MachineNotFound,
    NoCapacity,
    NodeClassNotReady,
    RebootUnsupported,
)
from karpy.model.conditions import FALSE, READY, TRUE, UNKNOWN
from karpy.model.ec2 import PLACEMENT_GROUP_PARTITION, FleetError, Instance
from karpy.model.ec2nodeclass import Ec2NodeClass, Kubelet
from karpy.model.instances import PRICE_MAX, Catalog, InstanceType
from karpy.model.kinds import NODE_CLAIM
from karpy.model.labels import ON_DEMAND, RESERVED, SPOT
from karpy.model.nodes import RepairPolicy
from karpy.model.notices import Notice, Subject
from karpy.model.recent import Recent
from karpy.model.records import ClaimRecord
from karpy.model.requirements import Requirements, why_disjoint
from karpy.model.resources import PODS
from karpy.model.verdicts import LaunchOption
from karpy.ports.clock import Clock
from karpy.ports.cloud import LaunchSpec, Machine

REPAIR_POLICIES: Final = (
    RepairPolicy("Ready", FALSE, timedelta(minutes=30)),
    RepairPolicy("Ready", UNKNOWN, timedelta(minutes=30), ".*"),
    RepairPolicy("AcceleratedHardwareReady", FALSE, timedelta(minutes=10), ".*"),
    RepairPolicy("StorageReady", FALSE, timedelta(minutes=30), ".*"),
    RepairPolicy("NetworkingReady", FALSE, timedelta(minutes=30), ".*"),
    RepairPolicy("KernelReady", FALSE, timedelta(minutes=30), ".*"),
    RepairPolicy("ContainerRuntimeReady", FALSE, timedelta(minutes=30), ".*"),
)
"""Node repair requires a policy that applies to any reason."""
_TOKENS_MAX: Final = 10_000
_LAUNCH_FAILURES: Final = "cloudprovider_instance_launch_failures_total"
_TERMINATION_FAILURES: Final = "cloudprovider_instance_termination_failures_total"
_USER_DATA_BYTES: Final = "ec2nodeclasses_userdata_bytes"


_Question: TypeAlias = tuple[tuple[InstanceType, ...], tuple[LaunchOption, ...], Wanted]
"""The input of the choice of types."""


class Parts(Struct, frozen=True):
    """The collaborators of the provider."""

    settings: AwsSettings
    cluster: ClusterWatch
    machines: Machines
    marketplace: Marketplace
    classes: NodeClassBook
    subnets: Subnets
    templates: Templates
    sold_out: SoldOut
    clock: Clock


class AwsProvider:
    """
    A CloudProvider whose machines are EC2 instances.

    Within a process two launches with one token start one machine: the second launch waits for the
    first and gets the same answer. A machine that an earlier process launched without recording it
    is terminated by garbage collection.
    """

    name: Final = "aws"

    def __init__(self, parts: Parts, reports: Reports | None = None) -> None:
        self._parts = parts
        self._reports = reports or Reports()
        self._maker = CatalogMaker(parts.settings.types())
        self._choices: Recent[_Question, list[InstanceType]] = Recent()
        self._made: Recent[tuple[LaunchProperties, list[TemplateKind]], list[LaunchTemplate]] = (
            Recent()
        )
        self._launching: dict[str, asyncio.Task[Machine]] = {}
        """Launches by token."""

    def start(self) -> None:
        """Do nothing: controllers refresh types, prices and launch templates."""

    async def close(self) -> None:
        """Cancel all calls under way."""
        await self._parts.machines.close()

    def catalog(self) -> Catalog:
        """Return all instance types, per NodePool under the settings of its node class."""
        parts = self._parts
        for name, each in parts.classes.classes.items():
            parts.classes.full_zones[name] = parts.subnets.full_zones(each)
        return self._maker.make(parts.marketplace.region(), parts.classes.settings())

    async def launch(self, spec: LaunchSpec) -> Machine:
        """Start one machine; raise NoCapacity if every allowed offering is sold out."""
        task = self._launching.get(spec.token)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._launch(spec))
            self._launching[spec.token] = task
            task.add_done_callback(lambda _: self._forget_failed(spec.token))
        return await asyncio.shield(task)

    async def terminate(self, provider_id: str) -> None:
        """Request the termination of a machine; raise MachineNotFound once it is gone."""
        machines, id_ = self._parts.machines, machine_id(provider_id)
        known = machines.known(id_)
        machines.check_zone(id_, "ec2:TerminateInstances")
        try:
            await machines.terminate(id_)
        except MachineNotFound:
            if known is not None and known.reservation:
                self._parts.sold_out.reservations.give_back(known.reservation)
            raise
        except CloudError:
            labels = {"zone": "", "zone_id": ""} if known is None else _place_labels(known)
            self._reports.count(Count(_TERMINATION_FAILURES, labels))
            raise

    async def machine(self, provider_id: str) -> Machine:
        """Return one machine; raise MachineNotFound if it is gone."""
        machines, id_ = self._parts.machines, machine_id(provider_id)
        return described_machine(await machines.find(id_, is_fresh=not machines.is_shifted(id_)))

    async def machines(self) -> Sequence[Machine]:
        """
        List the machines that carry this cluster's tags.

        A machine is tagged with its claim once it has a node. Before that, only the process that
        launched it knows the claim.
        """
        found = map(described_machine, await self._parts.machines.list())
        claims = {each.provider_id: each.claim for each in self._launched()}
        return [
            each if each.claim else replace(each, claim=claims.get(each.provider_id, ""))
            for each in found
        ]

    def _launched(self) -> Iterator[Machine]:
        """Yield the machines that this process has launched."""
        for task in self._launching.values():
            if task.done() and not task.cancelled() and task.exception() is None:
                yield task.result()

    async def drift(self, claim: ClaimRecord) -> str:
        """Return the reason why a claim's machine differs from its node class; empty if not."""
        node_class = self._parts.classes.find(claim.node_class.name)
        if node_class is None or node_class.meta.is_deleting or not claim.pool:
            return ""
        observed = Observed(
            claim, node_class, self.catalog().types_for(claim.pool), self._group_of(node_class)
        )
        try:
            reason = find_static_drift(claim, node_class) or find_image_drift(observed)
            if reason:
                return reason
            instance = await self._parts.machines.find(machine_id(claim.provider_id))
            reason = find_machine_drift(observed, instance)
            if reason == "CapacityReservationDrift":
                # When a reservation ends, its machines become on-demand.
                fresh = await self._parts.machines.find(instance.id, is_fresh=True)
                reason = find_machine_drift(observed, fresh)
        except DriftUnknown as error:
            self._reports.trouble("judge drift", CloudUnavailable(call="drift", problem=str(error)))
            return ""
        return reason

    @property
    def repair_policies(self) -> tuple[RepairPolicy, ...]:
        """The conditions that call for repair."""
        return REPAIR_POLICIES

    async def reboot(self, provider_id: str, operation: str) -> None:
        """Raise RebootUnsupported: machines are replaced, never rebooted."""
        del provider_id, operation
        raise RebootUnsupported(provider=self.name)

    async def check(self, node_class: Ec2NodeClass) -> tuple[str, str] | None:
        """
        Make a dry run of a launch with a node class.

        Return reason and message if AWS refuses it, else None. The dry run creates a launch
        template, as a real launch does. Raise CloudError if AWS gives no answer.
        """
        launch = await self._trial(node_class)
        if launch is None:
            return None
        try:
            templates = await self._templates(launch)
        except AwsRefused as error:
            return self._refusal(error)
        except NodeClassNotReady as error:
            # Differs: user data that cannot be read: Karpenter only logs why; Karpy writes it into
            # the condition ValidationSucceeded, because only the author of the user data can mend
            # it.
            if isinstance(error.__cause__, UserDataInvalid):
                return "UserDataInvalid", f"userData: {error.__cause__}"
            raise
        machines, template = self._parts.machines, templates[0]
        overrides = overrides_everywhere(template, node_class.status.subnets)
        if not overrides:
            return None
        owner = MachineOwner(self._parts.settings.cluster_name, node_class.name)
        tags = machine_tags(node_class.spec.tags, owner)
        chosen = [(template, overrides)]
        request = fleet_request(chosen, ON_DEMAND, launch.wanted, tags, node_class.spec.context)
        refused = await machines.try_fleet(request)
        if refused is not None:
            return self._refusal(refused)
        first = None
        for each in overrides:
            refused = await machines.try_run(template, each, tags)
            if refused is None:
                return None
            first = first or refused
        return None if first is None else self._refusal(first)

    def _refusal(self, error: AwsRefused) -> tuple[str, str] | None:
        found = validation_failure(error.call, error.aws_code, error.aws_message)
        if found is None:
            raise error
        return found

    async def _trial(self, node_class: Ec2NodeClass) -> "_Launch | None":
        """Return a launch of the cheapest type that an image of a node class boots."""
        settings = self._parts.classes.settings_of(node_class)
        region = self._parts.marketplace.region()
        catalog = await asyncio.to_thread(
            CatalogMaker(self._parts.settings.types()).make, region, {}, settings
        )
        usable = [
            each
            for each in catalog.types
            if image_for(node_class.status.images, each) is not None
            and any(offer.capacity_type == ON_DEMAND for offer in each.offerings)
        ]
        if not usable:
            return None
        pools = self._parts.classes.requirements_of(node_class.name)
        suitable = [each for each in usable if _suits_any(each, pools)] or usable
        cheapest = min(suitable, key=lambda each: (each.offerings[0].price or PRICE_MAX, each.name))
        tenancy = trial_tenancy(pools)
        spec = LaunchSpec("", "", "", node_class.name, (), requirements=tenancy)
        return _Launch(spec, node_class, Wanted({}), [cheapest], ON_DEMAND)

    def _forget_failed(self, token: str) -> None:
        """Forget a failed launch, so that its token can be launched again."""
        task = self._launching.get(token)
        if task is not None and (task.cancelled() or task.exception() is not None):
            del self._launching[token]
        # NodeClaims that were launched long ago have their provider ID in the status.
        while len(self._launching) > _TOKENS_MAX and next(iter(self._launching.values())).done():
            del self._launching[next(iter(self._launching))]

    # --- one launch -------------------------------------------------------------------------------

    async def _launch(self, spec: LaunchSpec) -> Machine:
        node_class = self._ready_class(spec)
        is_strict = self._parts.settings.keeps_min_values
        wanted = Wanted(spec.requirements, spec.requests, spec.annotations, is_strict)
        types = self._types_for(spec, wanted)
        if not types:
            raise NoCapacity(claim=spec.claim, options=len(spec.options))
        capacity_type = choose_capacity_type(types, spec.requirements)
        if is_thin_fallback(types, capacity_type, spec.requirements):
            fields = {"NodeClaim": spec.claim, "instance-types": str(len(types))}
            self._reports.remark(Remark("launching on-demand with few instance types", fields))
        try:
            return await self._start(_Launch(spec, node_class, wanted, types, capacity_type))
        except AwsRefused as error:
            error.reason = launch_reason(error.aws_code, error.aws_message)
            if is_forbidden(error.aws_code):
                # A condition may cut off a long message of AWS: the hint comes first.
                advice = f"{error.call} is not allowed; {error.hint}"
                error.message = f"{advice}; AWS says: {error.aws_message}"
            raise

    def _types_for(self, spec: LaunchSpec, wanted: Wanted) -> list[InstanceType]:
        """Choose the types to launch with; equal launches share the choice."""
        catalog = self.catalog()
        types = catalog.types_for(spec.pool)

        def choose() -> list[InstanceType]:
            decided = {
                (each.instance_type, each.zone, each.capacity_type): each.price
                for each in spec.options
            }
            sold = types if spec.requirements else only_options(types, spec.options)
            may_lack = catalog.well_known | {catalog.reservation_label}
            return choose_types(sold, replace(wanted, prices=decided), may_lack)

        question = types, spec.options, replace(wanted, annotations={})
        return self._choices.answer(question, choose)

    def _ready_class(self, spec: LaunchSpec) -> Ec2NodeClass:
        name = f"ec2nodeclass/{spec.node_class}"
        found = self._parts.classes.find(spec.node_class)
        if found is None or found.meta.is_deleting:
            subject = Subject(NODE_CLAIM, spec.claim, uid=spec.token)
            self._reports.emit(class_missing(subject, spec.node_class))
            raise NodeClassNotReady(name=name, problem="it does not exist, or is being deleted")
        ready = found.status.conditions.get(READY)
        if ready is None or ready.status == UNKNOWN:
            problem = f"whether {name} is ready is not known yet"
            raise CloudUnavailable(
                call="launch", problem=problem, reason="NodeClassReadinessUnknown"
            )
        if ready.status != TRUE:
            raise NodeClassNotReady(name=name, problem=ready.message)
        if ready.generation != found.meta.generation:
            raise NodeClassNotReady(name=name, problem="its latest change is not looked at yet")
        restricted = restricted_tags(found.spec.tags)
        if restricted:
            problem = f"its tags are reserved: {', '.join(restricted)}"
            raise NodeClassNotReady(name=name, problem=problem)
        return found

    async def _start(self, launch: "_Launch") -> Machine:
        spec, parts = launch.spec, self._parts
        subnets = await parts.subnets.by_zone(launch.node_class)
        templates = await self._templates(launch)
        chosen = [
            (each, overrides)
            for each in templates
            if (
                overrides := overrides_of(
                    each, launch.capacity_type, subnets, launch.spec.requirements
                )
            )
        ]
        if not chosen:
            raise NoCapacity(claim=spec.claim, options=len(spec.options))
        used = {each.subnet for _, overrides in chosen for each in overrides}
        addresses = min(each.capacity.get(PODS, 0) for each in launch.types)
        parts.subnets.take(used, addresses)
        owner = MachineOwner(parts.settings.cluster_name, launch.node_class.name, spec.pool)
        tags = machine_tags(launch.node_class.spec.tags, owner)
        request = fleet_request(
            chosen, launch.capacity_type, launch.wanted, tags, launch.node_class.spec.context
        )
        fleet = await self._ask_for(request, launch, templates)
        self._note_errors(fleet.errors, launch)
        if fleet.launched is None:
            parts.subnets.give_back(used, addresses)
            raise self._why_failed(fleet.errors, launch)
        parts.subnets.give_back(used - {fleet.launched.subnet}, addresses)
        return self._machine(fleet.launched, launch)

    async def _ask_for(
        self,
        request: dict[str, object],
        launch: "_Launch",
        templates: Sequence[LaunchTemplate],
    ) -> FleetLaunch:
        try:
            return await self._parts.machines.launch(request)
        except AwsRefused as error:
            if error.aws_code != TEMPLATE_GONE:
                raise
        # Another process has deleted a template that is in our cache: create it and retry once.
        self._parts.templates.forget([each.name for each in templates])
        await self._templates(launch)
        return await self._parts.machines.launch(request)

    async def _templates(self, launch: "_Launch") -> list[LaunchTemplate]:
        efa = wants_efa(launch.spec.requests)
        kinds = split_by_template(
            launch.node_class, launch.types, launch.capacity_type, wants_efa=efa
        )
        if not kinds:
            name = f"ec2nodeclass/{launch.node_class.name}"
            raise NodeClassNotReady(name=name, problem="no image of it boots these types")
        machines = self._template_machines(launch)
        try:
            made = self._made.answer(
                (machines, kinds),
                lambda: [self._template(machines, each) for each in kinds],
            )
        except UserDataInvalid as error:
            name = f"ec2nodeclass/{launch.node_class.name}"
            raise NodeClassNotReady(name=name, problem=f"userData: {error}") from error
        tags = template_tags(machines)
        for each in made:
            labels, size = {"nodeclass": launch.node_class.name}, user_data_bytes(each)
            self._reports.count(Count(_USER_DATA_BYTES, labels, float(size)))
            await self._parts.templates.ensure(each, tags)
        return made

    def _template(self, machines: LaunchProperties, kind: TemplateKind) -> LaunchTemplate:
        """Return a launch template; log a warning if its user data is close to the limit."""
        made = launch_template(machines, kind)
        size = user_data_bytes(made)
        if size >= USER_DATA_LARGE:
            name = machines.node_class.name
            fields = {"EC2NodeClass": name, "bytes": str(size), "limit": str(USER_DATA_MAX)}
            self._reports.remark(Remark("user data takes 90 % of the limit or more", fields))
        return made

    def _template_machines(self, launch: "_Launch") -> LaunchProperties:
        settings, spec = self._parts.settings, launch.spec
        node_class = launch.node_class
        family = family_of(node_class.spec)
        return LaunchProperties(
            node_class=node_class,
            family=family,
            bootstrap=Bootstrap(
                cluster=settings.cluster_name,
                endpoint=settings.cluster_endpoint,
                ca_bundle=settings.ca_bundle,
                kubelet=_with_dns(node_class.spec.kubelet or Kubelet(), settings.dns_address),
                taints=registration_taints(spec.taints, spec.startup_taints),
                labels=node_labels(
                    spec.labels, launch.capacity_type, is_custom=family.name == CUSTOM
                ),
                user_data=node_class.spec.user_data or "",
                instance_store_policy=node_class.spec.instance_store_policy,
                cidr=self._parts.cluster.facts.cidr,
                is_ipv6=is_ipv6(settings.dns_address),
                image_version=bottlerocket_version(node_class),
            ),
            owner=MachineOwner(settings.cluster_name, node_class.name, spec.pool),
            capacity_type=launch.capacity_type,
            tenancy=choose_tenancy(spec.requirements),
            region=self._parts.marketplace.region().name,
            has_enclave=bool(spec.requests.get(ENCLAVE)),
            placement_group=self._group_of(node_class),
            partition=_partition_of(spec),
            reserves=settings.reserves,
        )

    def _note_errors(self, errors: Sequence[FleetError], launch: "_Launch") -> None:
        """Remember the offerings and subnets that errors name, after a successful launch, too."""
        sold_out = self._parts.sold_out
        for each in errors:
            self._count_failure(each, launch)
            if each.code == SUBNET_FULL and each.subnet:
                self._parts.subnets.note_full(each.subnet)
            elif each.code == SERVICE_LINKED_ROLE:
                sold_out.capacity_types.add(SPOT)
                self._reports.emit(_role_notice(launch.spec, each))
            elif is_sold_out(each.code) and each.instance_type:
                self._note_sold_out(each, launch)

    def _note_sold_out(self, error: FleetError, launch: "_Launch") -> None:
        sold_out, group = self._parts.sold_out, self._group_of(launch.node_class)
        place = (launch.capacity_type, error.instance_type, error.zone)
        if launch.capacity_type == RESERVED:
            for each in reservations_in(launch.types, error.instance_type, error.zone):
                sold_out.reservations.note_empty(each)
        elif not group:
            sold_out.offerings.add(place)
        elif is_spread_full(error.message):
            for type_ in self.catalog().types_for(launch.spec.pool):
                sold_out.grouped.add((launch.capacity_type, type_.name, error.zone, group, ""))
        else:
            sold_out.grouped.add((*place, group, _partition_of(launch.spec)))

    def _count_failure(self, error: FleetError, launch: "_Launch") -> None:
        ids = {each.zone: each.zone_id for each in launch.node_class.status.subnets}
        labels = {
            "zone": error.zone,
            "zone_id": ids.get(error.zone, ""),
            "capacity_type": launch.capacity_type,
            "reason": launch_reason(error.code, error.message),
        }
        self._reports.count(Count(_LAUNCH_FAILURES, labels))

    def _why_failed(self, errors: Sequence[FleetError], launch: "_Launch") -> CloudError:
        spec = launch.spec
        if all(is_sold_out(each.code) or each.code == SERVICE_LINKED_ROLE for each in errors):
            return NoCapacity(claim=spec.claim, options=len(launch.types))
        first = next(each for each in errors if not is_sold_out(each.code))
        call, reason = "ec2:CreateFleet", launch_reason(first.code, first.message)
        return AwsRefused(
            call=call,
            aws_code=first.code or reason,
            message=first.message,
            hint=refusal_hint(call, first.code, first.message),
            reason=reason,
        )

    def _machine(self, launched: Launched, launch: "_Launch") -> Machine:
        type_ = next(each for each in launch.types if each.name == launched.instance_type)
        if launch.capacity_type == RESERVED:
            for each in reservations_in([type_], type_.name, launched.zone):
                self._parts.sold_out.reservations.take(each)
        has_efa = wants_efa(launch.spec.requests) or bool(launch.node_class.spec.network_interfaces)
        origin = Origin(
            launch.spec.claim,
            launch.node_class,
            self._parts.clock.now(),
            tenancy=choose_tenancy(launch.spec.requirements),
            placement_group=self._group_of(launch.node_class),
            partition=_partition_of(launch.spec),
            has_efa=has_efa,
            requests=launch.spec.requests,
        )
        return launched_machine(replace(launched, lifecycle=launch.capacity_type), type_, origin)

    def _group_of(self, node_class: Ec2NodeClass) -> str:
        group = self._parts.classes.groups.get(node_class.name)
        return "" if group is None else group.id


class _Launch(Struct, frozen=True):
    """One launch under way."""

    spec: LaunchSpec
    node_class: Ec2NodeClass
    wanted: Wanted
    types: list[InstanceType]
    capacity_type: str


def machine_id(provider_id: str) -> str:
    """Return the instance ID in a provider ID; raise MachineNotFound if it is not EC2's."""
    id_ = provider_id.rpartition("/")[2]
    if not id_.startswith("i-"):
        raise MachineNotFound(provider_id=provider_id)
    return id_


def _suits_any(type_: InstanceType, pools: Sequence[Requirements]) -> bool:
    return any(why_disjoint(type_.requirements, each) is None for each in pools)


def _partition_of(spec: LaunchSpec) -> str:
    """Return the required partition of a placement group; empty if EC2 chooses it."""
    wanted = spec.requirements.get(PLACEMENT_GROUP_PARTITION)
    is_one = wanted is not None and not wanted.complement and len(wanted.values) == 1
    return min(wanted.values) if wanted is not None and is_one else ""


def _place_labels(instance: Instance) -> dict[str, str]:
    return {"zone": instance.zone, "zone_id": instance.zone_id}


def _role_notice(spec: LaunchSpec, error: FleetError) -> Notice:
    """Return the event of a spot launch without the service-linked role of EC2 Spot."""
    return Notice(
        Subject(NODE_CLAIM, spec.claim, uid=spec.token),
        "SpotServiceLinkedRoleCreationFailure",
        f"The service-linked role of EC2 Spot cannot be created: {error.message}",
        is_warning=True,
        same_as=(spec.token,),
    )


def _with_dns(kubelet: Kubelet, address: str) -> Kubelet:
    if kubelet.cluster_dns or not address:
        return kubelet
    return replace(kubelet, cluster_dns=(address,))
