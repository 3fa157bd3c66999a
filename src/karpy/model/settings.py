"""Settings of the operator: those that decisions read, and all flags and variables."""

from collections.abc import Mapping
from datetime import timedelta
from enum import Enum
from typing import Any, Final

from msgspec import Struct

from karpy.model.constraints import SpreadConstraint

CPU_REQUESTS: Final = 1000
_MILLIS_PER_CORE: Final = 1000
_CORES_MAX: Final = 60
"""With this many cores a controller has its largest number of workers."""
_MEBIBYTE: Final = 1024**2


class PreferencePolicy(Enum):
    """Whether preferences of pods count as required as long as possible, or are ignored."""

    RESPECT = "Respect"
    IGNORE = "Ignore"


class MinValuesPolicy(Enum):
    """Whether a NodeClaim that cannot satisfy minValues is refused, or launched all the same."""

    STRICT = "Strict"
    BEST_EFFORT = "BestEffort"


class Packing(Enum):
    """Which plan is chosen: Karpenter's, or the cheapest of several."""

    KARPENTER = "Karpenter"
    CHEAPEST = "Cheapest"


class PodNomination(Enum):
    """Whether Karpy sets `status.nominatedNodeName` of the pods that it launches a node for."""

    NEVER = "Never"
    ALWAYS = "Always"


class ReservedMode(Enum):
    """Whether a pod waits for reserved capacity that is taken, or gets other capacity."""

    STRICT = "Strict"
    FALLBACK = "Fallback"


class Settings(Struct, frozen=True, gc=False):
    """Defaults are Karpenter's."""

    preference_policy: PreferencePolicy = PreferencePolicy.RESPECT
    min_values_policy: MinValuesPolicy = MinValuesPolicy.STRICT
    reserved_capacity: bool = True
    reserved_mode: ReservedMode = ReservedMode.STRICT
    node_overlay: bool = False
    ignore_device_claims: bool = True
    default_spreads: tuple[SpreadConstraint, ...] = ()
    packing: Packing = Packing.KARPENTER
    spot_to_spot_consolidation: bool = False
    terminate_first_drift: bool = False
    terminate_first_repair: bool = False
    manages_deletion_cost: bool = False
    """Whether Karpy writes `pod-deletion-cost`; decisions then do not read it as a user's cost."""


class LogLevel(Enum):
    """The lowest level of lines that are logged."""

    DEBUG = "debug"
    INFO = "info"
    ERROR = "error"


class LogFormat(Enum):
    """The format of log lines."""

    JSON = "json"
    """For machines, as Karpenter writes it."""
    CONSOLE = "console"
    """For people."""


class Gates(Struct, frozen=True, gc=False, kw_only=True):
    """Feature gates; the flag has their names in CamelCase."""

    node_repair: bool = False
    reserved_capacity: bool = True
    spot_to_spot_consolidation: bool = False
    node_overlay: bool = False
    static_capacity: bool = False
    capacity_buffer: bool = False
    terminate_first_drift: bool = False
    terminate_first_repair: bool = False
    pod_deletion_cost_management: bool = False


class Options(Struct, frozen=True, gc=False, kw_only=True):
    """The options of `karpy run`, from flags and environment."""

    kubeconfig: str = ""
    """Empty means `$KUBECONFIG` or the default path, then the pod's ServiceAccount."""
    context: str = ""
    provider: str = "kwok"
    """The name of the cloud provider."""
    cloud: Mapping[str, Any] = {}
    """The options of the cloud provider, by field."""
    service: str = ""
    metrics_port: int = 8080
    health_port: int = 8081
    bind_address: str = ""
    """The address of both ports; empty means all addresses."""
    profiling_port: int = 6060
    kube_qps: int = 200
    kube_burst: int = 300
    has_profiling: bool = False
    has_warmup: bool = False
    """Has no effect: watches are always started before the lease is won."""
    has_leader_election: bool = True
    has_cluster_metrics: bool = True
    """Whether there are metrics for each pod, node and NodePool."""
    lease_name: str = "karpenter-leader-election"
    lease_namespace: str = ""
    """Empty means the pod's own namespace."""
    memory_limit_bytes: int = -1
    cpu_requests_milli: int = CPU_REQUESTS
    log_level: LogLevel = LogLevel.INFO
    log_format: LogFormat = LogFormat.JSON
    log_outputs: tuple[str, ...] = ("stdout",)
    log_error_outputs: tuple[str, ...] = ("stderr",)
    batch_max: timedelta = timedelta(seconds=10)
    batch_idle: timedelta = timedelta(seconds=1)
    decision_timeout: timedelta = timedelta(seconds=60)
    """The longest time of a decision about pending pods, which then returns a partial verdict."""
    preference_policy: PreferencePolicy = PreferencePolicy.RESPECT
    min_values_policy: MinValuesPolicy = MinValuesPolicy.STRICT
    ignore_device_claims: bool = True
    has_legacy_repair: bool = False
    gates: Gates = Gates()
    default_spreads: tuple[SpreadConstraint, ...] = ()
    instance_types_file: str = ""
    """The instance types of KWOK; empty means the 144 built-in types."""
    packing: Packing = Packing.CHEAPEST
    """Not Karpenter's default: other orders of placing pods often leave less room unused."""
    nominate_pods: PodNomination = PodNomination.ALWAYS
    """Not Karpenter's default: a nominated pod does not take the room of other pods."""
    journal: str = ""
    """The folder for the journal of decisions; empty means no journal."""
    journal_file_bytes: int = 64 * _MEBIBYTE
    journal_files: int = 8

    def settings(self) -> Settings:
        """Return the settings that decisions read."""
        return Settings(
            preference_policy=self.preference_policy,
            min_values_policy=self.min_values_policy,
            reserved_capacity=self.gates.reserved_capacity,
            node_overlay=self.gates.node_overlay,
            ignore_device_claims=self.ignore_device_claims,
            default_spreads=self.default_spreads,
            packing=self.packing,
            spot_to_spot_consolidation=self.gates.spot_to_spot_consolidation,
            terminate_first_drift=self.gates.terminate_first_drift,
            terminate_first_repair=self.gates.terminate_first_repair,
            manages_deletion_cost=self.gates.pod_deletion_cost_management,
        )

    def workers(self, least: int, most: int) -> int:
        """Return the number of workers of a controller: it grows with the CPU, as in Karpenter."""
        cores = -(-self.cpu_requests_milli // _MILLIS_PER_CORE)
        more = int((most - least) / (_CORES_MAX - 1) * (cores - 1))
        return min(max(least + more, least), most)
