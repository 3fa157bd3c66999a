"""The calls to AWS over HTTP, by aiobotocore."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any, Final

import msgspec
from aiobotocore.client import AioBaseClient
from aiobotocore.config import AioConfig
from aiobotocore.session import AioSession
from aiobotocore.utils import AioIMDSRegionProvider
from aiohttp import ClientError as HttpError
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    CredentialRetrievalError,
    InvalidRegionError,
    NoCredentialsError,
    ParamValidationError,
    PartialCredentialsError,
    ProfileNotFound,
    TokenRetrievalError,
    UnknownRegionError,
)
from botocore.parsers import ResponseParserError

from karpy import __version__
from karpy.adapters.clouds.aws.calls import JsonObject
from karpy.adapters.clouds.aws.decoding import OffLoopParsers
from karpy.adapters.clouds.aws.requests import Answered, OnAnswer, OnTry, RequestWatch, Tried
from karpy.core.aws.offerings import pricing_region, zone_region
from karpy.core.aws.refusals import refusal_hint
from karpy.errors import AwsRefused, CloudUnavailable, KarpyError, OptionInvalid

_REGION_VARIABLES: Final = ("AWS_REGION", "AWS_DEFAULT_REGION")
_NO_CREDENTIALS: Final = (
    CredentialRetrievalError,
    NoCredentialsError,
    PartialCredentialsError,
    ProfileNotFound,
    TokenRetrievalError,
)
_FAILURES: Final = (
    ClientError,
    BotoCoreError,
    ResponseParserError,
    HttpError,
    OSError,
    ValueError,
)
_PAGES: Final = {
    "describe_instance_types": ("InstanceTypes", 100),
    "describe_instance_type_offerings": ("InstanceTypeOfferings", 1000),
    "describe_subnets": ("Subnets", 500),
    "describe_security_groups": ("SecurityGroups", 500),
    "describe_images": ("Images", 1000),
    "describe_capacity_reservations": ("CapacityReservations", 1000),
    "describe_launch_templates": ("LaunchTemplates", 200),
    "describe_instances": ("Reservations", 1000),
    "describe_instance_status": ("InstanceStatuses", 1000),
    "describe_spot_price_history": ("SpotPriceHistory", 1000),
    "list_instance_profiles": ("InstanceProfiles", 100),
    "get_products": ("PriceList", 100),
}
"""The key of the items of a page, and the page size, by operation."""
_SIZES: Final = {"list_instance_profiles": "MaxItems"}
_READS: Final = ("Describe", "Get", "List", "Receive")
_BY_NAME: Final = ("Ids", "Names", "InstanceTypes")
"""Suffixes of parameters that name objects; EC2 refuses a page size together with them."""
_PROCESS: Final = "custom-process"
_DECODER: Final = msgspec.json.Decoder(type=dict[str, Any])

CheckWrite = Callable[[str], None]
"""Raises LeadershipUncertain unless a writing call may be made now."""


class AwsTimeouts(msgspec.Struct, frozen=True):
    """Timeouts and retries of calls."""

    seconds: float = 240.0
    """The limit for all tries and all pages of a call together."""
    connect_seconds: float = 10.0
    read_seconds: float = 60.0
    tries: int = 5
    connections: int = 100
    """The number of connections to each service."""


class AwsClient:
    """
    Makes calls with the standard credentials: environment, profile, IRSA, Pod Identity, EC2.

    `AWS_ENDPOINT_URL` redirects all calls, `AWS_ENDPOINT_URL_EC2` those to EC2.
    """

    def __init__(
        self,
        session: AioSession,
        region: str,
        partition: str,
        patience: AwsTimeouts,
        check_write: CheckWrite,
    ) -> None:
        """Use `connect_aws` instead."""
        self._session = session
        self._check_write = check_write
        self._region = region
        self._partition = partition
        self._patience = patience
        self._clients: dict[str, AioBaseClient] = {}
        self._open = AsyncExitStack()
        self._turn = asyncio.Lock()
        self.on_answer: OnAnswer = lambda _: None
        """Called at the end of every request."""
        self.on_try: OnTry = lambda _: None
        """Called at the end of every try of a request."""

    @property
    def region(self) -> str:
        """The region that the calls go to."""
        return self._region

    @property
    def partition(self) -> str:
        """`aws`, `aws-cn` or `aws-us-gov`."""
        return self._partition

    async def close(self) -> None:
        """Close all connections."""
        self._clients.clear()
        await self._open.aclose()

    # --- EC2 --------------------------------------------------------------------------------------

    async def describe_instance_types(self, **request: object) -> list[JsonObject]:
        return await self._items("ec2", "describe_instance_types", request)

    async def describe_instance_type_offerings(self, **request: object) -> list[JsonObject]:
        return await self._items("ec2", "describe_instance_type_offerings", request)

    async def describe_subnets(self, **request: object) -> list[JsonObject]:
        return await self._items("ec2", "describe_subnets", request)

    async def describe_security_groups(self, **request: object) -> list[JsonObject]:
        return await self._items("ec2", "describe_security_groups", request)

    async def describe_images(self, **request: object) -> list[JsonObject]:
        return await self._items("ec2", "describe_images", request)

    async def describe_capacity_reservations(self, **request: object) -> list[JsonObject]:
        return await self._items("ec2", "describe_capacity_reservations", request)

    async def describe_placement_groups(self, **request: object) -> list[JsonObject]:
        answer = await self._call("ec2", "describe_placement_groups", request)
        return _listed(answer, "PlacementGroups")

    async def describe_launch_templates(self, **request: object) -> list[JsonObject]:
        return await self._items("ec2", "describe_launch_templates", request)

    async def describe_instances(self, **request: object) -> list[JsonObject]:
        launches = await self._items("ec2", "describe_instances", request)
        return [each for launch in launches for each in _listed(launch, "Instances")]

    async def describe_instance_status(self, **request: object) -> list[JsonObject]:
        return await self._items("ec2", "describe_instance_status", request)

    async def describe_spot_price_history(self, **request: object) -> list[JsonObject]:
        return await self._items("ec2", "describe_spot_price_history", request)

    async def create_launch_template(self, **request: object) -> JsonObject:
        return await self._call("ec2", "create_launch_template", request)

    async def delete_launch_template(self, **request: object) -> JsonObject:
        return await self._call("ec2", "delete_launch_template", request)

    async def create_fleet(self, **request: object) -> JsonObject:
        return await self._call("ec2", "create_fleet", request)

    async def run_instances(self, **request: object) -> JsonObject:
        return await self._call("ec2", "run_instances", request)

    async def terminate_instances(self, **request: object) -> JsonObject:
        return await self._call("ec2", "terminate_instances", request)

    async def create_tags(self, **request: object) -> JsonObject:
        return await self._call("ec2", "create_tags", request)

    # --- IAM --------------------------------------------------------------------------------------

    async def get_instance_profile(self, **request: object) -> JsonObject:
        return await self._call("iam", "get_instance_profile", request)

    async def list_instance_profiles(self, **request: object) -> list[JsonObject]:
        return await self._items("iam", "list_instance_profiles", request)

    async def create_instance_profile(self, **request: object) -> JsonObject:
        return await self._call("iam", "create_instance_profile", request)

    async def delete_instance_profile(self, **request: object) -> JsonObject:
        return await self._call("iam", "delete_instance_profile", request)

    async def add_role_to_instance_profile(self, **request: object) -> JsonObject:
        return await self._call("iam", "add_role_to_instance_profile", request)

    async def remove_role_from_instance_profile(self, **request: object) -> JsonObject:
        return await self._call("iam", "remove_role_from_instance_profile", request)

    # --- others -----------------------------------------------------------------------------------

    async def describe_cluster(self, **request: object) -> JsonObject:
        return await self._call("eks", "describe_cluster", request)

    async def get_products(self, **request: object) -> list[JsonObject]:
        texts = await self._items("pricing", "get_products", request)
        return await asyncio.to_thread(lambda: [_DECODER.decode(str(each)) for each in texts])

    async def get_parameter(self, **request: object) -> JsonObject:
        return await self._call("ssm", "get_parameter", request)

    async def get_queue_url(self, **request: object) -> JsonObject:
        return await self._call("sqs", "get_queue_url", request)

    async def receive_message(self, **request: object) -> JsonObject:
        return await self._call("sqs", "receive_message", request)

    async def delete_message(self, **request: object) -> JsonObject:
        return await self._call("sqs", "delete_message", request)

    async def get_managed_resource(self, **request: object) -> JsonObject:
        return await self._call("arc-zonal-shift", "get_managed_resource", request)

    async def get_caller_identity(self, **request: object) -> JsonObject:
        return await self._call("sts", "get_caller_identity", request)

    # --- how calls are made -----------------------------------------------------------------------

    async def _call(self, service: str, operation: str, request: JsonObject) -> JsonObject:
        async with self._calling(service, operation) as client:
            answer = await getattr(client, operation)(**request)
        return {key: value for key, value in answer.items() if key != "ResponseMetadata"}

    async def _items(self, service: str, operation: str, request: JsonObject) -> list[JsonObject]:
        key, _ = _PAGES[operation]
        found: list[JsonObject] = []
        async with self._calling(service, operation) as client:
            pages = client.get_paginator(operation).paginate(**_sized(operation, request))
            async for page in pages:
                found += _listed(page, key)
        return found

    @asynccontextmanager
    async def _calling(self, service: str, operation: str) -> AsyncIterator[AioBaseClient]:
        """Yield the client of a service; turn errors of its call into CloudErrors."""
        call = f"{service}:{operation.title().replace('_', '')}"
        try:
            async with asyncio.timeout(self._patience.seconds):
                yield await self._client(service)
        except TimeoutError as error:
            problem = f"there was no answer within {self._patience.seconds:g} s"
            raise CloudUnavailable(call=call, problem=problem) from error
        except _FAILURES as error:
            raise _retyped(call, error, self._region) from error

    async def _client(self, service: str) -> AioBaseClient:
        async with self._turn:
            if service not in self._clients:
                region = pricing_region(self._region) if service == "pricing" else self._region
                made = self._session.create_client(service, region, config=_config(self._patience))
                client = await self._open.enter_async_context(made)
                client.meta.events.register("before-send", self._before_send)
                RequestWatch(client, self._on_answer, self._on_try)
                self._clients[service] = client
            return self._clients[service]

    def _on_answer(self, answered: Answered) -> None:
        self.on_answer(answered)

    def _on_try(self, tried: Tried) -> None:
        self.on_try(tried)

    def _before_send(self, event_name: str, **_: object) -> None:
        """Check before each try of a writing call that it may still be made."""
        service, operation = event_name.split(".")[1:]
        if not operation.startswith(_READS):
            self._check_write(f"{service}:{operation}")


async def connect_aws(
    region: str = "",
    patience: AwsTimeouts | None = None,
    check_write: CheckWrite = lambda _: None,
) -> AwsClient:
    """
    Return a client for a region; without one, the region of environment, profile or machine.

    Raise OptionInvalid if the region does not exist. No call is made except to find the region.
    `check_write` is called with the name of each writing call, before each try.
    """
    session = AioSession()
    session.register_component("response_parser_factory", OffLoopParsers())
    found = region or await _find_region(session)
    try:
        partition = session.get_partition_for_region(found)
    except (InvalidRegionError, UnknownRegionError) as error:
        raise OptionInvalid(
            name="AWS_REGION",
            problem=f"is `{found}`, which is no region of AWS",
            hint="give a region such as eu-west-1",
        ) from error
    return AwsClient(session, found, partition, patience or AwsTimeouts(), check_write)


async def _find_region(session: AioSession) -> str:
    for each in _region_sources(session):
        if each:
            return str(each)
    zone = ""
    with suppress(BotoCoreError, HttpError, OSError, TimeoutError):
        # It returns the zone without its last letter, which is not a region for a Local Zone.
        zone = await AioIMDSRegionProvider(session).provide() or ""
    found = zone_region(zone)
    if not found:
        raise OptionInvalid(
            name="AWS_REGION",
            problem="is not set, and neither a profile nor the metadata of EC2 tells the region",
            hint="set AWS_REGION to the region of the cluster, such as eu-west-1",
        )
    return found


def _region_sources(session: AioSession) -> Iterator[str | None]:
    yield from (os.environ.get(each) for each in _REGION_VARIABLES)
    try:
        yield session.get_config_variable("region")
    except ProfileNotFound as error:
        raise OptionInvalid(
            name="AWS_PROFILE",
            problem=f"cannot be used: {error}",
            hint="name a profile of ~/.aws/config",
        ) from error


def _config(patience: AwsTimeouts) -> AioConfig:
    return AioConfig(
        user_agent_extra=f"karpy/{__version__}",
        connect_timeout=patience.connect_seconds,
        read_timeout=patience.read_seconds,
        max_pool_connections=patience.connections,
        retries={"mode": "adaptive", "total_max_attempts": patience.tries},
        warm_up_loader_caches=True,
    )


def _sized(operation: str, request: JsonObject) -> JsonObject:
    """Add the page size to a request, unless the request names objects."""
    size = _SIZES.get(operation, "MaxResults")
    if size in request or any(key.endswith(_BY_NAME) for key in request):
        return request
    return {**request, size: _PAGES[operation][1]}


def _listed(answer: JsonObject, key: str) -> list[JsonObject]:
    found: list[JsonObject] = answer.get(key) or []
    return found


def _status_of(error: Exception) -> int:
    if not isinstance(error, ClientError):
        return 0
    found = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    return found if isinstance(found, int) else 0


def _retyped(call: str, error: Exception, region: str) -> KarpyError:
    """Return the error of ours that says what botocore does."""
    match error:
        case ClientError():
            said = error.response.get("Error", {})
            code, message = str(said.get("Code", "")), str(said.get("Message", ""))
            if code.isdecimal():
                # A server or a proxy that breaks down answers with a page, and without a code.
                problem = f"the answer is no error of AWS (HTTP {_status_of(error) or code})"
                return CloudUnavailable(call=call, problem=problem)
            hint = refusal_hint(call, code, message)
            return AwsRefused(call=call, aws_code=code, message=message, hint=hint)
        case ParamValidationError():
            hint = "mend the field that the message names"
            message = str(error.kwargs.get("report", error))
            return AwsRefused(call=call, aws_code="ParamValidation", message=message, hint=hint)
        case ResponseParserError():
            hint = f"check that no proxy answers in place of AWS, and the region `{region}`"
            return CloudUnavailable(call=call, problem="the answer cannot be read", hint=hint)
        case _ if isinstance(error, _NO_CREDENTIALS):
            hint = "give the service account a role (IRSA or Pod Identity), or set AWS_PROFILE"
            problem = f"no credentials: {_without_output(error)}"
            return CloudUnavailable(call=call, problem=problem, hint=hint)
        case _:
            hint = f"check the network, and that `{region}` is the region of the cluster"
            return CloudUnavailable(call=call, problem=str(error), hint=hint)


def _without_output(error: Exception) -> str:
    """Return the text of an error without the output of a program, which may hold a secret."""
    if getattr(error, "kwargs", {}).get("provider") == _PROCESS:
        return "the `credential_process` of the profile has failed"
    return str(error)
