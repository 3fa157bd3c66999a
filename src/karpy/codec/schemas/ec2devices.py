"""Disks, network interfaces and other hardware of an EC2NodeClass."""

from typing import Annotated, Final, Literal

from msgspec import Meta

from karpy.codec.schemas.wire import Int64, Natural32, SchemaRule, Wire, about, number_format, rules

_MAPPINGS_MAX: Final = 50
_INTERFACES_MAX: Final = 150
_VOLUME_SIZE: Final = (
    r"^((?:[1-9][0-9]{0,3}|[1-4][0-9]{4}|[5][0-8][0-9]{3}|59000)Gi"
    r"|(?:[1-9][0-9]{0,3}|[1-5][0-9]{4}|[6][0-3][0-9]{3}|64000)G"
    r"|([1-9]||[1-5][0-7]|58)Ti|([1-9]||[1-5][0-9]|6[0-3]|64)T)$"
)
_Switch = Literal["enabled", "disabled"]


class BlockDevice(Wire, frozen=True):
    """An EBS volume."""

    delete_on_termination: Annotated[
        bool | None, about("Whether the volume goes when the machine goes.")
    ] = None
    encrypted: Annotated[bool | None, about("Whether the volume is encrypted.")] = None
    iops: Annotated[Int64 | None, about("I/O operations per second; for io1, io2 and gp3.")] = None
    kms_key_id: Annotated[str | None, about("The key to encrypt with, by id, alias or ARN.")] = None
    snapshot_id: Annotated[str | None, about("The snapshot that the volume starts from.")] = None
    throughput: Annotated[Int64 | None, about("MiB per second; for gp3.")] = None
    volume_initialization_rate: Annotated[
        Annotated[int, number_format("int32"), Meta(ge=100, le=300)] | None,
        about("MiB per second to fetch the snapshot with."),
    ] = None
    volume_size: Annotated[
        Annotated[str, Meta(pattern=_VOLUME_SIZE)] | None,
        about("The size, as 20Gi, 20G, 2Ti or 2T; that of the snapshot if there is one."),
    ] = None
    volume_type: Annotated[
        Literal["standard", "io1", "io2", "gp2", "sc1", "st1", "gp3"] | None,
        about("The kind of volume."),
    ] = None


class BlockDeviceMapping(Wire, frozen=True):
    """A disk of the machine."""

    device_name: Annotated[str | None, about("What the machine calls the disk: /dev/xvda.")] = None
    ebs: Annotated[
        BlockDevice | None,
        rules(
            SchemaRule(
                "has(self.snapshotID) || has(self.volumeSize)",
                "snapshotID or volumeSize must be defined",
            ),
            SchemaRule(
                "!has(self.volumeInitializationRate) || "
                "(has(self.snapshotID) && self.snapshotID != '')",
                "snapshotID must be set when volumeInitializationRate is set",
            ),
        ),
    ] = None
    root_volume: Annotated[
        bool | None, about("Whether pods' ephemeral storage is on this disk.")
    ] = None


BlockDeviceMappings = Annotated[
    list[BlockDeviceMapping],
    Meta(max_length=_MAPPINGS_MAX),
    rules(
        SchemaRule(
            "self.filter(x, has(x.rootVolume) && x.rootVolume).size() <= 1",
            "must have only one blockDeviceMappings with rootVolume",
        )
    ),
]


class NetworkInterface(Wire, frozen=True):
    """A network interface of the machine."""

    device_index: Annotated[Natural32, about("Its number on the network card.")]
    interface_type: Annotated[
        Literal["interface", "efa-only"], about("A usual interface, or one for EFA traffic alone.")
    ]
    network_card_index: Annotated[Natural32, about("The number of the network card.")]


NetworkInterfaces = Annotated[
    list[NetworkInterface],
    Meta(max_length=_INTERFACES_MAX),
    rules(
        SchemaRule(
            "self.size() == 0 || self.exists(x, x.deviceIndex == 0 && x.networkCardIndex == 0 && "
            "x.interfaceType == 'interface')",
            "networkInterfaces must include device 0 of card 0 with interfaceType 'interface'",
        ),
        SchemaRule(
            "self.all(x, self.filter(y, x.networkCardIndex == y.networkCardIndex && "
            "x.deviceIndex == y.deviceIndex).size() == 1 && (x.interfaceType != 'efa-only' || "
            "self.filter(y, x.networkCardIndex == y.networkCardIndex && "
            "y.interfaceType == 'efa-only').size() == 1))",
            "networkInterfaces must not repeat a pair of networkCardIndex and deviceIndex, "
            "nor have more than one efa-only interface on a card",
        ),
    ),
]


class MetadataOptions(Wire, frozen=True):
    """How programs on the machine may ask the instance metadata service."""

    http_endpoint: Annotated[_Switch, about("Whether the service answers at all.")] = "enabled"
    http_protocol_ipv6: Annotated[_Switch, about("Whether it answers over IPv6.")] = "disabled"
    http_put_response_hop_limit: Annotated[
        int,
        number_format("int64"),
        Meta(ge=1, le=64),
        about("How many hops an answer may travel; 1 keeps it from pods."),
    ] = 1
    http_tokens: Annotated[
        Literal["required", "optional"], about("Whether a session token is needed (IMDSv2).")
    ] = "required"


METADATA_DEFAULT: Final = {
    "httpEndpoint": "enabled",
    "httpProtocolIPv6": "disabled",
    "httpPutResponseHopLimit": 1,
    "httpTokens": "required",
}


class ConnectionTracking(Wire, frozen=True):
    """How long idle connections are remembered, in seconds."""

    tcp_established_timeout: Annotated[
        Annotated[int, number_format("int32"), Meta(ge=60, le=432_000)] | None,
        about("For established TCP connections."),
    ] = None
    udp_stream_timeout: Annotated[
        Annotated[int, number_format("int32"), Meta(ge=60, le=180)] | None,
        about("For UDP flows that have seen more than one request and answer."),
    ] = None
    udp_timeout: Annotated[
        Annotated[int, number_format("int32"), Meta(ge=30, le=60)] | None,
        about("For UDP flows with traffic in one direction or one answer."),
    ] = None


CONNECTION_RULES: Final = rules(
    SchemaRule(
        "has(self.tcpEstablishedTimeout) || has(self.udpStreamTimeout) || has(self.udpTimeout)",
        "at least one of tcpEstablishedTimeout, udpStreamTimeout, or udpTimeout must be set",
    )
)


class CPUOptions(Wire, frozen=True):
    """Features of the processor."""

    nested_virtualization: Annotated[
        _Switch | None, about("Whether virtual machines may run inside the machine.")
    ] = None
