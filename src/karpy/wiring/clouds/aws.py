"""The cloud `aws`: machines of EC2."""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Final
from urllib.parse import urlsplit

from msgspec.structs import replace

from karpy.adapters.clouds.aws.builtin import known_prices
from karpy.adapters.clouds.aws.calls import AwsCalls
from karpy.adapters.clouds.aws.classes import FOLLOWED, NodeClassBook
from karpy.adapters.clouds.aws.classstatus import ClassStatus
from karpy.adapters.clouds.aws.client import connect_aws
from karpy.adapters.clouds.aws.cluster import PERIOD as CLUSTER_PERIOD
from karpy.adapters.clouds.aws.cluster import ClusterWatch
from karpy.adapters.clouds.aws.finders import Finders
from karpy.adapters.clouds.aws.machines import Machines
from karpy.adapters.clouds.aws.marketplace import PERIOD as MARKET_PERIOD
from karpy.adapters.clouds.aws.marketplace import Marketplace
from karpy.adapters.clouds.aws.nodeclasscontroller import NodeClassController, Workplace
from karpy.adapters.clouds.aws.parametercontroller import PERIOD as PARAMETER_PERIOD
from karpy.adapters.clouds.aws.parametercontroller import ParameterController
from karpy.adapters.clouds.aws.profilecontroller import PERIOD as PROFILE_PERIOD
from karpy.adapters.clouds.aws.profilecontroller import ProfileCollector
from karpy.adapters.clouds.aws.profiles import Profiles
from karpy.adapters.clouds.aws.provider import AwsProvider, Parts
from karpy.adapters.clouds.aws.queue import Announcements
from karpy.adapters.clouds.aws.reports import Reports
from karpy.adapters.clouds.aws.requests import Answered, Tried
from karpy.adapters.clouds.aws.settings import AwsSettings, read_settings
from karpy.adapters.clouds.aws.soldout import SoldOut
from karpy.adapters.clouds.aws.subnets import Subnets
from karpy.adapters.clouds.aws.tagging import TaggingController
from karpy.adapters.clouds.aws.templates import PERIOD as TEMPLATE_PERIOD
from karpy.adapters.clouds.aws.templates import Templates
from karpy.adapters.clouds.aws.zonalshift import PERIOD as SHIFT_PERIOD
from karpy.adapters.clouds.aws.zonalshift import ZonalShiftController
from karpy.adapters.telemetry.eventspecs import EventSpec
from karpy.adapters.telemetry.specs import (
    DURATION_BUCKETS,
    MetricSpec,
    MetricType,
    exponential,
    status_specs,
)
from karpy.controllers.context import ControllerContext
from karpy.controllers.ec2 import (
    CapacityController,
    PartitionController,
    ReservationExpirationController,
    ReservationTypeController,
)
from karpy.controllers.garbagecollection import GarbageCollector
from karpy.core.aws.catalog import EC2_WELL_KNOWN
from karpy.core.aws.instancetypes import type_gauges
from karpy.core.aws.refusals import DRY_RUN
from karpy.core.aws.reservations import lacks_partition
from karpy.core.lifecycle.changes import Count
from karpy.errors import AwsRefused, CloudUnavailable, ClusterError, OptionInvalid
from karpy.model.instances import Catalog
from karpy.model.kinds import DAEMON_SET, DEPLOYMENT, EC2_NODE_CLASS, SERVICE, Kind
from karpy.model.settings import MinValuesPolicy, Options
from karpy.ports.clock import Clock
from karpy.ports.cloud import RegistrationHook
from karpy.wiring.clouds.registry import Cloud, ProviderInputs
from karpy.wiring.flags import SHARE, SWITCH, TEXT, Flag, TextForm, duration, number, shared
from karpy.wiring.surface import ContextOf, OperatorTask

NODE_CLASSES: Final[tuple[Kind, ...]] = (EC2_NODE_CLASS,)


def _flag(name: str, field: str, form: TextForm, meaning: str) -> Flag:
    return replace(shared(name, field, form, meaning), of=AwsSettings)


_REFRESH: Final = duration(timedelta(minutes=1))
FLAGS: Final[tuple[Flag, ...]] = (
    _flag("cluster-name", "cluster_name", TEXT, "The EKS cluster; required."),
    _flag(
        "cluster-endpoint",
        "cluster_endpoint",
        TEXT,
        "The URL of its API server. Empty takes it from EKS.",
    ),
    _flag(
        "cluster-ca-bundle",
        "ca_bundle",
        TEXT,
        "Its CA bundle, as base64. Empty takes that of the kubeconfig.",
    ),
    _flag("isolated-vpc", "isolated_vpc", SWITCH, "Make no calls to APIs without a VPC endpoint."),
    _flag(
        "eks-control-plane",
        "eks_control_plane",
        SWITCH,
        "Take the version of the control plane from EKS, not from the API server.",
    ),
    _flag(
        "disable-dry-run",
        "disable_dry_run",
        SWITCH,
        "Validate node classes without dry runs of EC2 calls.",
    ),
    _flag(
        "enable-zonal-shift",
        "enable_zonal_shift",
        SWITCH,
        "Launch nothing in zones with a zonal shift.",
    ),
    _flag(
        "vm-memory-overhead-percent",
        "vm_memory_overhead",
        SHARE,
        "The share of memory that EC2 lists and that nodes do not have.",
    ),
    _flag(
        "interruption-queue",
        "interruption_queue",
        TEXT,
        "The SQS queue that EventBridge puts interruptions into. Empty uses no queue.",
    ),
    _flag(
        "reserved-enis",
        "reserved_enis",
        number(least=0),
        "Network interfaces without addresses for pods.",
    ),
    _flag(
        "ami-refresh-interval",
        "image_refresh",
        _REFRESH,
        "The time after which images are listed again.",
    ),
    _flag(
        "subnet-refresh-interval",
        "subnet_refresh",
        _REFRESH,
        "The time after which subnets are listed again.",
    ),
)
_BATCH_SIZES: Final = (
    *(1.0, 2.0, 4.0, 5.0, 10.0, 15.0, 20.0, 25.0, 30.0, 35.0, 40.0, 45.0, 50.0, 55.0, 60.0, 65.0),
    *(70.0, 75.0, 80.0, 85.0, 90.0, 95.0, 100.0, 125.0, 150.0, 175.0, 200.0, 225.0, 250.0, 275.0),
    *(300.0, 400.0, 500.0, 1000.0),
)
_REQUESTS: Final = "aws_sdk_go_request_total"
_REQUEST_SECONDS: Final = "aws_sdk_go_request_duration_seconds"
_RETRIES: Final = "aws_sdk_go_request_retry_count"
_TRIES: Final = "aws_sdk_go_request_attempt_total"
_TRY_SECONDS: Final = "aws_sdk_go_request_attempt_duration_seconds"
_OF_REQUESTS: Final = ("service", "action", "code")
METRICS: Final[tuple[MetricSpec, ...]] = (
    *status_specs("operator_ec2nodeclass_"),
    MetricSpec(
        _REQUESTS,
        MetricType.COUNTER,
        "Requests to AWS, by the status of the last answer.",
        _OF_REQUESTS,
    ),
    MetricSpec(
        _REQUEST_SECONDS,
        MetricType.HISTOGRAM,
        "How long requests to AWS took with all their tries.",
        _OF_REQUESTS,
        DURATION_BUCKETS,
    ),
    MetricSpec(
        _RETRIES,
        MetricType.HISTOGRAM,
        "How many more tries than one requests to AWS took.",
        _OF_REQUESTS,
        tuple(map(float, range(11))),
    ),
    MetricSpec(_TRIES, MetricType.COUNTER, "Tries of requests to AWS.", _OF_REQUESTS),
    MetricSpec(
        _TRY_SECONDS,
        MetricType.HISTOGRAM,
        "How long tries of requests to AWS took.",
        _OF_REQUESTS,
        DURATION_BUCKETS,
    ),
    MetricSpec(
        "karpenter_interruption_received_messages_total",
        MetricType.COUNTER,
        "Messages of the interruption queue.",
        ("message_type",),
    ),
    MetricSpec(
        "karpenter_interruption_deleted_messages_total",
        MetricType.COUNTER,
        "Messages that were acted on, or ask for nothing.",
    ),
    MetricSpec(
        "karpenter_interruption_message_queue_duration_seconds",
        MetricType.HISTOGRAM,
        "How long messages were in the queue.",
        (),
        exponential(1.0, 2.0, 12),
    ),
    MetricSpec(
        "karpenter_interruption_instance_status_unhealthy_total",
        MetricType.COUNTER,
        "Machines whose status checks failed.",
        ("category",),
    ),
    MetricSpec(
        "karpenter_cloudprovider_instance_launch_failures_total",
        MetricType.COUNTER,
        "Offerings that CreateFleet could not launch a machine of.",
        ("zone", "zone_id", "capacity_type", "reason"),
    ),
    MetricSpec(
        "karpenter_cloudprovider_instance_termination_failures_total",
        MetricType.COUNTER,
        "Machines whose termination was refused.",
        ("zone", "zone_id"),
    ),
    MetricSpec(
        "karpenter_cloudprovider_batcher_batch_time_seconds",
        MetricType.HISTOGRAM,
        "How long calls to AWS waited for others to be made with.",
        ("batcher",),
        DURATION_BUCKETS,
    ),
    MetricSpec(
        "karpenter_cloudprovider_batcher_batch_size",
        MetricType.HISTOGRAM,
        "How many calls to AWS were made as one.",
        ("batcher",),
        _BATCH_SIZES,
    ),
    MetricSpec(
        "karpenter_cloudprovider_instance_type_cpu_cores",
        MetricType.GAUGE,
        "vCPUs of an instance type.",
        ("instance_type",),
    ),
    MetricSpec(
        "karpenter_cloudprovider_instance_type_memory_bytes",
        MetricType.GAUGE,
        "Memory of an instance type, as far as nodes have it.",
        ("instance_type",),
    ),
    MetricSpec(
        "karpenter_cloudprovider_instance_type_offering_available",
        MetricType.GAUGE,
        "Whether an instance type can be had there.",
        ("instance_type", "capacity_type", "zone"),
    ),
    MetricSpec(
        "karpenter_cloudprovider_instance_type_offering_price_estimate",
        MetricType.GAUGE,
        "Dollars an hour.",
        ("instance_type", "capacity_type", "zone"),
    ),
    MetricSpec(
        "karpenter_ec2nodeclasses_userdata_bytes",
        MetricType.GAUGE,
        "Bytes of user data that machines of the node class get; EC2 takes 16384.",
        ("nodeclass",),
    ),
)
EVENTS: Final[tuple[EventSpec, ...]] = (
    EventSpec(
        "WaitingOnNodeClaimTermination",
        ("EC2NodeClass",),
        "The node class is being deleted and NodeClaims still use it.",
    ),
    EventSpec(
        "ZonalShiftActive",
        ("NodePool",),
        "Traffic is shifted away from a zone of the NodePool: nothing is launched there.",
        is_warning=True,
    ),
    EventSpec("ZonalShiftCleared", ("NodePool",), "The zonal shift is over."),
    EventSpec(
        "SpotServiceLinkedRoleCreationFailure",
        ("NodeClaim",),
        "The account has no service-linked role of EC2 Spot, and Karpy may not create it.",
        is_warning=True,
    ),
)
_MEASURED: Final = timedelta(minutes=1)
_COLLECTED: Final = timedelta(minutes=2)
_COLLECTED_AT_FIRST: Final = (20, timedelta(seconds=10))
"""First rounds, and their shorter period: a crash may have left machines without a NodeClaim."""
_NODE_TERMINATION_HANDLER: Final = "node-termination-handler"
_SOLD_EVERYWHERE: Final = "m5.large"
_DNS_NAMESPACE: Final = "kube-system"
_DNS_NAME: Final = "kube-dns"


def well_known(options: Options) -> frozenset[str]:
    """Return the labels that pods may ask for although their NodePool does not define them."""
    del options
    return EC2_WELL_KNOWN


async def open_cloud(site: ProviderInputs) -> Cloud:
    """Check account and cluster, fetch instance types, and open the provider."""
    calls = await connect_aws(check_write=site.check_write)
    calls.on_answer, calls.on_try = partial(_count_answer, site), partial(_count_try, site)
    try:
        return await open_with(site, calls)
    except BaseException:
        await calls.close()
        raise


async def open_with(site: ProviderInputs, calls: AwsCalls) -> Cloud:
    """Check the cluster and open the provider, with calls that are already connected."""
    options = site.options
    settings = read_settings(
        options.cloud,
        reserves=options.gates.reserved_capacity,
        keeps_min_values=options.min_values_policy is MinValuesPolicy.STRICT,
    )
    await _check(calls)
    asked = _no_version if settings.eks_control_plane else partial(_server_version, site)
    cluster = ClusterWatch(calls, settings.cluster_name, asked, site.on_remark)
    settings = await _discovered(settings, cluster, site)
    assembly = _AwsAssembly(settings, calls, cluster, site)
    if settings.enable_zonal_shift:
        await assembly.shifts.refresh()
    if settings.interruption_queue:
        await _warn_of_termination_handler(site)
    await assembly.marketplace.refresh_types()
    await assembly.marketplace.refresh_prices()
    return Cloud(
        assembly.provider,
        NODE_CLASSES,
        assembly.parts,
        assembly.announcements,
        assembly.follows(),
        (_PARTITION_HOOK,),
        calls.close,
    )


_PARTITION_HOOK: Final = RegistrationHook("PlacementGroupPartition", lacks_partition)
"""Holds registration until EC2 has chosen the partition of a machine, which is a node label."""


class _AwsAssembly:
    """The parts of the provider, and the controllers that it brings."""

    def __init__(
        self, settings: AwsSettings, calls: AwsCalls, cluster: ClusterWatch, site: ProviderInputs
    ) -> None:
        clock: Clock = site.clock
        self._settings = settings
        self._calls = calls
        self._cluster = cluster
        self._site = site
        self._measured: Catalog | None = None
        self._status: ClassStatus | None = None
        """None until this replica leads for the first time."""
        sold_out = SoldOut(clock)
        trouble = site.on_trouble
        self.marketplace = Marketplace(
            calls,
            clock,
            sold_out,
            known_prices(calls.region),
            on_trouble=trouble,
            asks_prices=not settings.isolated_vpc,
        )
        self.templates = Templates(calls, clock, settings.cluster_name)
        self._reports = reports = Reports(trouble, site.on_count, site.notices.emit, site.on_remark)
        self._machines = Machines(
            calls, settings.cluster_name, reserves=settings.reserves, reports=reports
        )
        self._book = NodeClassBook(
            site.feed, reserves=settings.reserves, reservations=sold_out.reservations
        )
        self._profiles = Profiles(calls, clock, settings.cluster_name)
        self._finders = Finders(calls, clock)
        subnets = Subnets(calls, clock, sold_out)
        parts = Parts(
            settings,
            cluster,
            self._machines,
            self.marketplace,
            self._book,
            subnets,
            self.templates,
            sold_out,
            clock,
        )
        self.provider = AwsProvider(parts, reports)
        self.shifts = ZonalShiftController(calls, clock, self._book, cluster.facts.arn, reports)
        self.marketplace.find_shifted = self._machines.find_shifted = self.shifts.zones
        self.announcements = Announcements(
            calls, clock, self._machines, sold_out, settings.interruption_queue, reports
        )

    def follows(self) -> tuple[OperatorTask, ...]:
        """Return the watches, which run whether this replica leads or not."""
        return tuple(
            OperatorTask(f"aws.{kind.plural}", partial(self._book.follow, kind))
            for kind in FOLLOWED
        )

    def parts(self, context_of: ContextOf) -> Iterator[OperatorTask]:
        """Build the controllers that AWS alone needs."""
        context = context_of("nodeclass")
        workplace = Workplace(
            self._site.objects,
            self._site.notices,
            self._site.clock,
            self._settings,
            self._cluster,
            self._book,
            self._finders,
            self._profiles,
            self.templates,
            self.provider,
        )
        self._observe_announcements(context_of)
        controller = NodeClassController(workplace, context.on_failure, context.observer)
        yield OperatorTask("nodeclass", controller.run)
        context.records.claims.listen(self._on_claim)
        if self._status is None and self._site.options.has_cluster_metrics:
            self._status = ClassStatus(self._book, self._site.clock, self._reports)
            self._status.begin()
            self._site.add_source(self._status.gauges)
        yield from self._of_claims(context_of)
        yield from self._of_discoveries(context_of)
        context = context_of("nodeclaim.tagging")
        tagging = TaggingController(
            context.records,
            context.objects,
            self._machines,
            self._settings.cluster_name,
            context.on_failure,
            context.observer,
        )
        yield OperatorTask("nodeclaim.tagging", tagging.run)
        if not self._settings.isolated_vpc:
            context = context_of("instanceprofile.garbagecollection")
            collector = ProfileCollector(context.records, self._book, self._profiles)
            collecting = partial(_collect_profiles, collector, context)
            yield OperatorTask("instanceprofile.garbagecollection", collecting)

    def _observe_announcements(self, context_of: ContextOf) -> None:
        """Have the health check watch the loops that announce interruptions."""
        queue = self._settings.interruption_queue
        receiving = context_of("interruption.queue").observer if queue else None
        self.announcements.observe(receiving, context_of("interruption.instancestatus").observer)

    def _of_claims(self, context_of: ContextOf) -> Iterator[OperatorTask]:
        """Build the controllers that reconcile claims and launch templates with EC2."""
        name, find = "nodeclaim.partition", partial(self._machines.find, is_fresh=True)
        yield OperatorTask(name, PartitionController(context_of(name), find).run)
        if self._settings.reserves:
            name = "capacityreservation.capacitytype"
            yield OperatorTask(name, ReservationTypeController(context_of(name), find).run)
            name = "capacityreservation.expiration"
            expiration = ReservationExpirationController(
                context_of(name), self._book.classes.values
            )
            yield OperatorTask(name, expiration.run)
        context = context_of("instance.garbagecollection")
        collect = GarbageCollector(context).collect_machines
        work = partial(context.every, _COLLECTED, collect, _COLLECTED_AT_FIRST)
        yield OperatorTask("instance.garbagecollection", work)
        name = "providers.launchtemplate"
        yield OperatorTask(name, partial(self._keep_templates, context_of(name)))

    def _of_discoveries(self, context_of: ContextOf) -> Iterator[OperatorTask]:
        """Build the controllers that refresh what is known of AWS and of the memory of nodes."""
        book, finders = self._book, self._finders
        name = "providers.instancetype.capacity"
        capacity = CapacityController(context_of(name), book.classes.values, book.note_memory)
        yield OperatorTask(name, capacity.run)
        parameters = ParameterController(finders.parameters, self._calls, self._site.clock)
        for name, period, work in (
            ("providers.ssm.invalidation", PARAMETER_PERIOD, parameters.invalidate),
            ("providers.instancetype", MARKET_PERIOD, self.marketplace.renew_types),
            ("providers.pricing", MARKET_PERIOD, self.marketplace.renew_prices),
            ("providers.version", CLUSTER_PERIOD, self._cluster.refresh),
            ("cloudprovider.metrics", _MEASURED, self._measure),
            *(
                (("zonalshift", SHIFT_PERIOD, self.shifts.refresh),)
                * self._settings.enable_zonal_shift
            ),
        ):
            yield OperatorTask(name, partial(context_of(name).every, period, work))

    async def _keep_templates(self, context: ControllerContext) -> None:
        """Delete unused launch templates, including those of the previous leader."""
        await self.templates.adopt()
        await context.every(TEMPLATE_PERIOD, self.templates.delete_unused)

    async def _measure(self) -> None:
        """Export the gauges of the catalog, if it has changed."""
        catalog = self.provider.catalog()
        if catalog is not self._measured:
            self._measured = catalog
            for each in type_gauges(catalog):
                self._site.on_count(each)

    def _on_claim(self, _: str, before: object, after: object) -> None:
        del before
        if after is None:
            self._book.note_claim_gone()


def _count_answer(site: ProviderInputs, answered: Answered) -> None:
    labels = _labels_of(answered)
    site.on_count(Count(_REQUESTS, labels))
    site.on_count(Count(_REQUEST_SECONDS, labels, answered.seconds))
    site.on_count(Count(_RETRIES, labels, float(max(0, answered.tries - 1))))


def _count_try(site: ProviderInputs, tried: Tried) -> None:
    labels = _labels_of(tried)
    site.on_count(Count(_TRIES, labels))
    site.on_count(Count(_TRY_SECONDS, labels, tried.seconds))


def _labels_of(request: Answered | Tried) -> dict[str, str]:
    code = str(request.status)
    return dict(zip(_OF_REQUESTS, (request.service, request.action, code), strict=True))


async def _collect_profiles(collector: ProfileCollector, context: ControllerContext) -> None:
    # The previous leader may have created a profile that no node class refers to yet: wait.
    await asyncio.sleep(PROFILE_PERIOD.total_seconds())
    await context.every(PROFILE_PERIOD, collector.collect)


async def _check(calls: AwsCalls) -> None:
    """Check by a dry run that EC2 can be called; raise CloudError."""
    try:
        await calls.describe_instance_types(InstanceTypes=[_SOLD_EVERYWHERE], DryRun=True)
    except AwsRefused as error:
        if error.aws_code != DRY_RUN:
            raise


async def _discovered(
    settings: AwsSettings, cluster: ClusterWatch, site: ProviderInputs
) -> AwsSettings:
    """Fill in settings that are not given: endpoint, CA bundle and DNS address of the cluster."""
    if not settings.cluster_name:
        raise OptionInvalid(
            name="--cluster-name", problem="is missing", hint="name the EKS cluster to work for"
        )
    if settings.cluster_endpoint and not urlsplit(settings.cluster_endpoint).scheme:
        raise OptionInvalid(
            name="--cluster-endpoint",
            problem=f"`{settings.cluster_endpoint}` is no URL",
            hint="write it with https://",
        )
    trouble = await cluster.refresh_if_possible()
    if trouble is not None:
        if not settings.cluster_endpoint:
            raise trouble
        site.on_trouble("ask EKS for version and addresses of the cluster", trouble)
    return settings.filled(
        cluster_endpoint=cluster.facts.endpoint,
        ca_bundle=site.authority or cluster.facts.ca_bundle,
        dns_address=await _dns_address(site),
    )


async def _no_version() -> str:
    return ""


async def _server_version(site: ProviderInputs) -> str:
    """Return the version of the API server as EKS writes it; empty if unknown."""
    with suppress(ClusterError):
        major, _, rest = (await site.server_version()).removeprefix("v").partition(".")
        minor = rest.partition(".")[0]
        if major.isdigit() and minor.isdigit():
            return f"{major}.{minor}"
    return ""


async def _dns_address(site: ProviderInputs) -> str:
    """Return the address of the cluster's DNS; empty if it cannot be found."""
    try:
        found = await site.objects.get(SERVICE, _DNS_NAME, _DNS_NAMESPACE)
    except ClusterError:
        return ""
    address: str = (found.get("spec") or {}).get("clusterIP", "")
    return address


async def _warn_of_termination_handler(site: ProviderInputs) -> None:
    """Report other controllers that drain nodes on the same interruption messages."""
    for kind in (DAEMON_SET, DEPLOYMENT):
        try:
            page = await site.objects.list(kind)
        except ClusterError:
            continue
        for each in page.items:
            meta = each["metadata"]
            if _NODE_TERMINATION_HANDLER in meta["name"]:
                problem = f"{kind.name} {meta.get('namespace')}/{meta['name']} drains nodes, too"
                hint = "remove aws-node-termination-handler, or leave --interruption-queue empty"
                trouble = CloudUnavailable(call="interruption", problem=problem, hint=hint)
                site.on_trouble("act on interruptions alone", trouble)
