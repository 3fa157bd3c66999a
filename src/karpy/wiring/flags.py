"""Every flag of `karpy run`, as data: the reader, the help and docs/settings.md share it."""

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from karpy.model.options import LogFormat, LogLevel, Options
from karpy.model.settings import MinValuesPolicy, Packing, PodNomination, PreferencePolicy
from karpy.wiring.forms import (
    ADDRESS,
    DURATION,
    FILE,
    FOLDER,
    GATES,
    LIST,
    PORT,
    SPREADS,
    SWITCH,
    TEXT,
    Form,
    choice,
    number,
)

_OURS: Final = "KARPY_"


class Flag(Struct, frozen=True):
    """A flag, its variable in the environment, and the field of Options that it fills."""

    name: str
    field: str
    form: Form
    help: str
    env: str = ""
    """Empty if there is none."""
    is_negated: bool = False
    """Whether the flag says the opposite of the field."""
    of: Callable[[], object] = Options
    """Makes the options that the field is one of, with their defaults."""

    @property
    def default(self) -> str:
        """How one would write the value that it has without being given."""
        value = getattr(self.of(), self.field)
        return self.form.write(not value if self.is_negated else value)


class Gate(Struct, frozen=True):
    """A feature gate, for people."""

    name: str
    stage: str
    help: str


def shared(name: str, field: str, form: Form, meaning: str, *, is_negated: bool = False) -> Flag:
    """Make a flag that Karpenter has as well, with its variable."""
    return Flag(name, field, form, meaning, name.upper().replace("-", "_"), is_negated)


def _own(name: str, form: Form, meaning: str) -> Flag:
    field = name.replace("-", "_")
    return Flag(name, field, form, meaning, _OURS + field.upper())


PROVIDER: Final = _own(
    "provider",
    TEXT,
    "The cloud to work with: `kwok` or `aws`. Not given, `--cluster-name` makes it `aws`.",
)
FLAGS: Final = (
    Flag(
        "kubeconfig",
        "kubeconfig",
        FILE,
        "The kubeconfig. Default: `KUBECONFIG`, `~/.kube/config`, the pod's service account.",
    ),
    Flag("context", "context", TEXT, "Which context of the kubeconfig."),
    PROVIDER,
    shared("karpenter-service", "service", TEXT, "Has no effect: Karpy needs no Service."),
    shared("metrics-port", "metrics_port", PORT, "Where `/metrics` is served; 0 takes any port."),
    shared(
        "health-probe-port",
        "health_port",
        PORT,
        "Where `/healthz` and `/readyz` are served; 0 takes any port.",
    ),
    Flag(
        "bind-address",
        "bind_address",
        ADDRESS,
        "The address of this machine that metrics and probes are served on. Empty is all of them.",
        "BIND_ADDRESS",
    ),
    shared(
        "kube-client-qps",
        "kube_qps",
        number(least=1),
        "Requests a second to the API server in the long run.",
    ),
    shared(
        "kube-client-burst",
        "kube_burst",
        number(least=1),
        "Requests to the API server at once.",
    ),
    shared("enable-profiling", "has_profiling", SWITCH, "Serve `/debug/pprof`, on loopback alone."),
    shared(
        "disable-controller-warmup",
        "has_warmup",
        SWITCH,
        "Has no effect: replicas always watch before they lead, to know the cluster by then.",
        is_negated=True,
    ),
    shared(
        "disable-leader-election",
        "has_leader_election",
        SWITCH,
        "Work without a lease. Only for a single replica.",
        is_negated=True,
    ),
    shared(
        "disable-cluster-state-observability",
        "has_cluster_metrics",
        SWITCH,
        "Leave out the metrics about single pods, nodes and NodePools.",
        is_negated=True,
    ),
    shared("leader-election-name", "lease_name", TEXT, "The lease by which one replica leads."),
    shared(
        "leader-election-namespace",
        "lease_namespace",
        TEXT,
        "The namespace of the lease. Empty is the namespace of the process.",
    ),
    shared(
        "memory-limit",
        "memory_limit_bytes",
        number(),
        "Has no effect: Karpenter collects garbage more often near it, while Python frees objects "
        "at once. Caches are bounded; limit the memory of the container.",
    ),
    shared(
        "cpu-requests",
        "cpu_requests_milli",
        number(),
        "The CPU request of the container, in thousandths of a core; more CPU gives more workers.",
    ),
    shared(
        "log-level",
        "log_level",
        choice(LogLevel, empty=LogLevel.INFO),
        "The lowest level of lines that are logged.",
    ),
    _own(
        "log-format",
        choice(LogFormat),
        "`json` for machines, in Karpenter's shape, or `console` for people.",
    ),
    shared("log-output-paths", "log_outputs", LIST, "Where lines go: `stdout`, `stderr` or files."),
    shared(
        "log-error-output-paths",
        "log_error_outputs",
        LIST,
        "Where errors of the log itself are written.",
    ),
    shared(
        "batch-max-duration",
        "batch_max",
        DURATION,
        "The longest time to gather pending pods for a decision; a longer one finds better nodes.",
    ),
    shared(
        "batch-idle-duration",
        "batch_idle",
        DURATION,
        "The time without a new pending pod after which the decision is made.",
    ),
    shared(
        "preference-policy",
        "preference_policy",
        choice(PreferencePolicy),
        "Whether preferences of pods count as long as they can be met.",
    ),
    shared(
        "min-values-policy",
        "min_values_policy",
        choice(MinValuesPolicy),
        "Whether minValues must hold, or may be lowered to what the catalog has.",
    ),
    shared(
        "ignore-dra-requests",
        "ignore_device_claims",
        SWITCH,
        "Ignore pods that request devices by ResourceClaim.",
    ),
    shared(
        "legacy-node-repair",
        "has_legacy_repair",
        SWITCH,
        "Repair nodes as Karpenter did before v1.15. Needs the gate NodeRepair.",
    ),
    shared("feature-gates", "gates", GATES, "Features to switch on or off; see below."),
    shared(
        "scheduler-config",
        "default_spreads",
        SPREADS,
        "YAML or JSON with `podTopologySpread.defaultConstraints` as kube-scheduler has them.",
    ),
    shared(
        "instance-types-file-path",
        "instance_types_file",
        FILE,
        "The instance types of KWOK, as JSON. Empty is its 144 types.",
    ),
    _own(
        "packing",
        choice(Packing),
        "Whether to launch the plan of Karpenter's order, or the cheapest of several plans.",
    ),
    _own(
        "nominate-pods",
        choice(PodNomination),
        "Whether pods get the name of the node that was made for them (`status.nominatedNodeName`)"
        " where pods of several sizes need several nodes.",
    ),
    _own(
        "profiling-port", PORT, "Where `/debug/pprof` is served if it is enabled; 0 takes any port."
    ),
    _own(
        "decision-timeout",
        DURATION,
        "The time after which a decision about pods or nodes returns what it has decided so far.",
    ),
    _own("journal", FOLDER, "Record every decision in this folder, for `karpy replay`."),
    _own("journal-file-bytes", number(least=1), "The largest size of a file of the journal."),
    _own("journal-files", number(least=1), "How many files of the journal are kept."),
)

BY_NAME: Final = {flag.name: flag for flag in FLAGS}

GATE_NOTES: Final = (
    Gate(
        "NodeRepair", "alpha", "Replace or reboot nodes that the cloud's policies call unhealthy."
    ),
    Gate("ReservedCapacity", "beta", "Launch into capacity reservations, before anything else."),
    Gate(
        "SpotToSpotConsolidation",
        "alpha",
        "Replace spot nodes by cheaper spot nodes; a single one only if 15 cheaper types could "
        "take its place.",
    ),
    Gate("NodeOverlay", "alpha", "Let NodeOverlays correct prices and capacity."),
    Gate("StaticCapacity", "alpha", "Keep NodePools with `spec.replicas` at that many nodes."),
    Gate("CapacityBuffer", "alpha", "Keep spare capacity as CapacityBuffers describe it."),
    Gate(
        "TerminateFirstDrift",
        "alpha",
        "Delete a drifted node before its replacement, if there is no room for both.",
    ),
    Gate(
        "TerminateFirstRepair",
        "alpha",
        "Delete an unhealthy node before its replacement, if there is no room for both. Needs "
        "NodeRepair.",
    ),
    Gate(
        "PodDeletionCostManagement",
        "alpha",
        "Write `controller.kubernetes.io/pod-deletion-cost` on pods of ReplicaSets, so that a "
        "scale-in empties the nodes that go next; it is no disruption cost then. Needs the "
        "ClusterRole `karpy-pod-deletion-cost`.",
    ),
)
