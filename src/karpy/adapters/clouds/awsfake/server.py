"""The fake AWS on a port, in a thread of this process."""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from threading import Thread
from typing import Final

from flask import Flask
from moto.backends import SERVICE_NAMES, get_backend
from moto.core.responses import BaseResponse
from moto.core.utils import convert_to_flask_response
from moto.moto_server.utilities import RegexConverter
from moto.moto_server.werkzeug_app import (
    HTTP_METHODS,
    BackendRequest,
    DomainDispatcherApplication,
    MotoRequestHandler,
    create_backend_app,
)
from msgspec import Struct
from werkzeug.routing import Map
from werkzeug.serving import BaseWSGIServer, make_server

from karpy.adapters.clouds.aws.builtin import known_prices
from karpy.adapters.clouds.awsfake.ec2bridge import Ec2Bridge, Moto, add_image
from karpy.adapters.clouds.awsfake.imagetable import image_of_parameter
from karpy.adapters.clouds.awsfake.otherbridges import (
    IamBridge,
    PricingBridge,
    SsmBridge,
    ZonalShiftBridge,
)
from karpy.adapters.clouds.awsfake.tables import Tables
from karpy.adapters.clouds.awsfake.typetable import types_of, zones_of

ACCOUNT: Final = "123456789012"
"""The account that moto assigns to unknown credentials."""
DISCOVERY: Final = "karpenter.sh/discovery"
_OWN: Final = {"pricing": "pricing.", "arc-zonal-shift": "arc-zonal-shift."}
_EVENTS: Final = (
    ("aws.ec2", "EC2 Spot Instance Interruption Warning"),
    ("aws.ec2", "EC2 Instance Rebalance Recommendation"),
    ("aws.ec2", "EC2 Instance State-change Notification"),
    ("aws.ec2", "EC2 Capacity Reservation Instance Interruption Warning"),
    ("aws.health", "AWS Health Event"),
)
_ALIASES: Final = (
    "/aws/service/eks/optimized-ami/{}/amazon-linux-2023/x86_64/standard/recommended/image_id",
    "/aws/service/eks/optimized-ami/{}/amazon-linux-2023/arm64/standard/recommended/image_id",
    "/aws/service/eks/optimized-ami/{}/amazon-linux-2023/x86_64/nvidia/recommended/image_id",
    "/aws/service/bottlerocket/aws-k8s-{}/x86_64/latest/image_id",
    "/aws/service/bottlerocket/aws-k8s-{}/arm64/latest/image_id",
)


class FakeAccount(Struct, frozen=True):
    """The initial content of the account."""

    region: str = "us-west-2"
    cluster: str = "demo"
    kubernetes: str = "1.34"
    families: Sequence[str] = ()
    """Families of instance types that are sold; empty sells all."""
    sold_out: Sequence[str] = ()
    """Offerings that are sold out, as `capacity type/instance type/zone`."""


class RunningInstance(Struct, frozen=True):
    """An instance, with the facts that its machine can read."""

    id: str
    instance_type: str
    zone: str
    image: str
    user_data: str
    tags: Mapping[str, str]


class AwsFake:
    """Serves AWS on loopback from `start` to `stop`; one per process, because moto is global."""

    def __init__(self, account: FakeAccount | None = None, port: int = 0) -> None:
        self.account = account or FakeAccount()
        region = self.account.region
        types, zones = types_of(self.account.families), zones_of(region)
        self.tables = Tables(region, known_prices(region), types, zones)
        for each in self.account.sold_out:
            self.tables.market.sell_out(*each.split("/"))
        self._port = port
        self._server: BaseWSGIServer | None = None
        self._thread: Thread | None = None

    @property
    def url(self) -> str:
        """The URL of the server."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def environ(self) -> dict[str, str]:
        """The environment variables that direct clients of AWS to the server."""
        return {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_REGION": self.account.region,
            "AWS_ACCESS_KEY_ID": "fake",
            "AWS_SECRET_ACCESS_KEY": "fake",
        }

    def start(self) -> None:
        """Create the initial content, and listen; raise OSError if the port is taken."""
        self._empty()
        app = _Dispatcher(self._app_of)
        self._server = make_server(
            "127.0.0.1", self._port, app, threaded=True, request_handler=_QuietHandler
        )
        self._port = self._server.server_port
        self._seed()
        self._thread = Thread(target=self._server.serve_forever, name="aws fake", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop listening."""
        if self._server is not None and self._thread is not None:
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()
        self._server = self._thread = None

    # --- a hand on it -----------------------------------------------------------------------------

    def instances(self) -> list[RunningInstance]:
        """Return the running instances."""
        return [
            RunningInstance(
                each.id,
                each.instance_type,
                each.placement.zone,
                each.image_id,
                each.user_data.decode() if each.user_data else "",
                {tag["key"]: tag["value"] for tag in each.get_tags()},
            )
            for each in list(self._ec2.all_instances())
            if each.state in {"pending", "running"}
        ]

    def launch_templates(self) -> list[str]:
        """Return the names of the launch templates that exist."""
        return sorted(each.name for each in self._ec2.launch_templates.values())

    def instance_profiles(self) -> list[str]:
        """Return the names of the instance profiles that exist."""
        return sorted(each.name for each in self._iam.get_instance_profiles())

    def terminate(self, instance: str) -> None:
        """Terminate an instance, as through the console."""
        self._ec2.terminate_instances([instance])

    def release_images(self, release: str) -> None:
        """Publish new images of EKS; a release is named like `v20260201`."""
        self.tables.release = release

    def announce(self, detail_type: str, detail: Mapping[str, object], source: str = "") -> None:
        """Put an event into the interruption queue, as EventBridge does."""
        found = next(each for each, name in _EVENTS if name == detail_type)
        event = {
            "version": "0",
            "id": "00000000-0000-0000-0000-000000000000",
            "source": source or found,
            "detail-type": detail_type,
            "account": ACCOUNT,
            "region": self.account.region,
            "detail": detail,
        }
        queues = get_backend("sqs")[ACCOUNT][self.account.region]
        queues.send_message(self.account.cluster, json.dumps(event))

    def interrupt(self, instance: str) -> None:
        """Announce that a spot instance is interrupted in two minutes."""
        detail = {"instance-id": instance, "instance-action": "terminate"}
        self.announce("EC2 Spot Instance Interruption Warning", detail)

    # --- how it is made ---------------------------------------------------------------------------

    @property
    def _ec2(self) -> Moto:
        return get_backend("ec2")[ACCOUNT][self.account.region]

    @property
    def _iam(self) -> Moto:
        return get_backend("iam")[ACCOUNT]["aws"]

    def _app_of(self, service: SERVICE_NAMES) -> Flask:
        made: dict[str, tuple[str, Callable[[], type[BaseResponse]]]] = {
            "ec2": ("/", lambda: self._bound(Ec2Bridge)),
            "ssm": ("/", lambda: self._bound(SsmBridge)),
            "iam": ("/", lambda: IamBridge),
            "pricing": ("/", lambda: self._bound(PricingBridge)),
            "arc-zonal-shift": (
                "/managedresources/<path:resource>",
                lambda: self._bound(ZonalShiftBridge),
            ),
        }
        if service not in made:
            return create_backend_app(service)
        path, bind = made[service]
        return _app(path, bind())

    def _bound(self, bridge: type[BaseResponse]) -> type[BaseResponse]:
        """Return a subclass of a bridge with the tables of this server."""
        return type(bridge.__name__, (bridge,), {"tables": self.tables, "written": {}})

    def _empty(self) -> None:
        """Clear the state that an earlier server has left in moto."""
        os.environ["MOTO_EC2_LOAD_DEFAULT_AMIS"] = "false"
        for service in ("ec2", "iam", "eks", "sqs", "ssm", "events"):
            accounts: Moto = get_backend(service)
            for account in list(accounts.values()):
                for backend in list(account.values()):
                    backend.reset()

    def _seed(self) -> None:
        account, region = self.account, self.account.region
        cluster = account.cluster
        ec2 = self._ec2
        subnets = [each for some in ec2.subnets.values() for each in some.values()]
        groups = ec2.describe_security_groups(filters={"group-name": ["default"]})
        ids = [each.id for each in (*subnets, *groups)]
        ec2.create_tags(ids, {DISCOVERY: cluster, f"kubernetes.io/cluster/{cluster}": "owned"})
        for path in _ALIASES:
            seed = image_of_parameter(path.format(account.kubernetes), self.tables.release)
            if seed is not None:
                add_image(ec2, seed)
        trust = json.dumps({"Version": "2012-10-17", "Statement": []})
        self._iam.create_role(f"KarpenterNodeRole-{cluster}", trust, "/", None, "", [], None)
        get_backend("eks")[ACCOUNT][region].create_cluster(
            cluster,
            f"arn:aws:iam::{ACCOUNT}:role/eks-{cluster}",
            {"subnetIds": [subnets[0].id]},
            version=account.kubernetes,
            kubernetes_network_config={"serviceIpv4Cidr": "10.100.0.0/16"},
        )
        get_backend("sqs")[ACCOUNT][region].create_queue(cluster)
        self._route_events()

    def _route_events(self) -> None:
        """Route events from EventBridge to the queue."""
        region, cluster = self.account.region, self.account.cluster
        events = get_backend("events")[ACCOUNT][region]
        queue = f"arn:aws:sqs:{region}:{ACCOUNT}:{cluster}"
        for index, (source, detail_type) in enumerate(_EVENTS):
            name = f"{cluster}-{index}"
            pattern = json.dumps({"source": [source], "detail-type": [detail_type]})
            events.put_rule(name=name, event_pattern=pattern, state="ENABLED")
            events.put_targets(name, None, [{"Id": "queue", "Arn": queue}])


class _Dispatcher(DomainDispatcherApplication):
    """Finds the services that moto lacks."""

    def get_backend_for_host(self, host: str | None) -> Moto:
        for service, prefix in _OWN.items():
            if host is not None and host.startswith(prefix):
                return service
        return super().get_backend_for_host(host)


class _QuietHandler(MotoRequestHandler):
    """Writes no line for each request."""

    protocol_version = "HTTP/1.1"

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Do nothing."""


def _app(path: str, answers: type[BaseResponse]) -> Flask:
    app = Flask("karpy aws fake")
    app.request_class = BackendRequest
    app.url_map = Map()
    app.url_map.converters["regex"] = RegexConverter
    view = convert_to_flask_response(answers.dispatch)
    app.add_url_rule(
        path, endpoint="dispatch", methods=HTTP_METHODS, view_func=view, strict_slashes=False
    )
    return app
