import re
from datetime import timedelta

import pytest

from karpy.adapters.clouds.aws.settings import AwsSettings, read_settings
from karpy.errors import OptionInvalid
from karpy.model.constraints import SpreadConstraint, WhenUnsatisfiable
from karpy.model.labels import HOSTNAME, ZONE
from karpy.model.settings import (
    Gates,
    LogLevel,
    MinValuesPolicy,
    Options,
    Packing,
    PreferencePolicy,
)
from karpy.wiring.flags import FLAGS, GATE_FIELDS, GATE_NOTES
from karpy.wiring.options import OptionsRead, read_options

EVERYTHING = {
    "KARPENTER_SERVICE": "karpenter",
    "METRICS_PORT": "8000",
    "HEALTH_PROBE_PORT": "8001",
    "BIND_ADDRESS": "::1",
    "KUBE_CLIENT_QPS": "20",
    "KUBE_CLIENT_BURST": "30",
    "ENABLE_PROFILING": "1",
    "DISABLE_CONTROLLER_WARMUP": "False",
    "DISABLE_LEADER_ELECTION": "T",
    "DISABLE_CLUSTER_STATE_OBSERVABILITY": "true",
    "LEADER_ELECTION_NAME": "lease",
    "LEADER_ELECTION_NAMESPACE": "kube-system",
    "MEMORY_LIMIT": "1073741824",
    "CPU_REQUESTS": "2000",
    "LOG_LEVEL": "debug",
    "LOG_OUTPUT_PATHS": "stdout, /var/log/karpy",
    "LOG_ERROR_OUTPUT_PATHS": "stdout",
    "BATCH_MAX_DURATION": "1m30s",
    "BATCH_IDLE_DURATION": "500ms",
    "PREFERENCE_POLICY": "Ignore",
    "MIN_VALUES_POLICY": "BestEffort",
    "IGNORE_DRA_REQUESTS": "f",
    "LEGACY_NODE_REPAIR": "t",
    "FEATURE_GATES": "NodeRepair=true, StaticCapacity = TRUE,,ReservedCapacity=0",
    "SCHEDULER_CONFIG": """
podTopologySpread:
  defaultConstraints:
  - {maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule}
  - {maxSkew: 2, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: ScheduleAnyway}
""",
    "INSTANCE_TYPES_FILE_PATH": "/types.json",
    "KARPY_PACKING": "Karpenter",
    "KARPY_PROFILING_PORT": "6061",
    "KARPY_JOURNAL": "/journal",
    "KARPY_JOURNAL_FILE_BYTES": "1000",
    "KARPY_JOURNAL_FILES": "3",
}
ALL_READ = Options(
    service="karpenter",
    metrics_port=8000,
    health_port=8001,
    bind_address="::1",
    kube_qps=20,
    kube_burst=30,
    has_profiling=True,
    has_warmup=True,
    has_leader_election=False,
    has_cluster_metrics=False,
    lease_name="lease",
    lease_namespace="kube-system",
    memory_limit_bytes=2**30,
    cpu_requests_milli=2000,
    log_level=LogLevel.DEBUG,
    log_outputs=("stdout", "/var/log/karpy"),
    log_error_outputs=("stdout",),
    batch_max=timedelta(seconds=90),
    batch_idle=timedelta(milliseconds=500),
    preference_policy=PreferencePolicy.IGNORE,
    min_values_policy=MinValuesPolicy.BEST_EFFORT,
    ignore_device_claims=False,
    has_legacy_repair=True,
    gates=Gates(node_repair=True, static_capacity=True, reserved_capacity=False),
    default_spreads=(
        SpreadConstraint(ZONE, 1),
        SpreadConstraint(HOSTNAME, 2, WhenUnsatisfiable.SCHEDULE_ANYWAY),
    ),
    instance_types_file="/types.json",
    packing=Packing.KARPENTER,
    profiling_port=6061,
    journal="/journal",
    journal_file_bytes=1000,
    journal_files=3,
)


def test_nothing_given_is_the_default() -> None:
    assert read_options([], {}) == OptionsRead(Options())


def test_the_environment_can_say_everything() -> None:
    assert read_options([], EVERYTHING) == OptionsRead(ALL_READ)


def test_flags_can_say_everything() -> None:
    words = [
        "--kubeconfig=/kube",
        "--context=here",
        "--karpenter-service",
        "karpenter",
        "-metrics-port",
        "8000",
        "-feature-gates=StaticCapacity=true",
        "--enable-profiling",
        "--disable-controller-warmup=false",
        "--batch-max-duration=0",
        "--batch-idle-duration=0s",
        "--packing=Karpenter",
        "--journal=/journal",
    ]

    assert read_options(words, {}) == OptionsRead(
        Options(
            kubeconfig="/kube",
            context="here",
            service="karpenter",
            metrics_port=8000,
            gates=Gates(static_capacity=True),
            has_profiling=True,
            has_warmup=True,
            batch_max=timedelta(),
            batch_idle=timedelta(),
            packing=Packing.KARPENTER,
            journal="/journal",
        )
    )


def test_a_flag_goes_before_its_variable() -> None:
    read = read_options(["--metrics-port=1"], {"METRICS_PORT": "2", "HEALTH_PROBE_PORT": "3"})

    assert read == OptionsRead(Options(metrics_port=1, health_port=3))


def test_the_last_of_equal_flags_counts() -> None:
    assert read_options(["--metrics-port=1", "--metrics-port=2"], {}).options.metrics_port == 2


@pytest.mark.parametrize("flag", FLAGS, ids=lambda flag: flag.name)
def test_writing_a_default_out_changes_nothing(flag: object) -> None:
    given = next(each for each in FLAGS if each is flag)

    assert read_options([f"--{given.name}={given.default}"], {}).options == Options()


@pytest.mark.parametrize(
    ("name", "text", "remark"),
    [
        (
            "METRICS_PORT",
            "80a",
            "`METRICS_PORT` is `80a`, which is no whole number; it is ignored and 8080 is used",
        ),
        (
            "DISABLE_CONTROLLER_WARMUP",
            "no",
            (
                "`DISABLE_CONTROLLER_WARMUP` is `no`, which is neither true nor false; "
                "it is ignored and true is used"
            ),
        ),
        (
            "BATCH_MAX_DURATION",
            "10",
            "`BATCH_MAX_DURATION` is `10`, which is no duration; it is ignored and 10s is used",
        ),
        (
            "FEATURE_GATES",
            "Turbo=true",
            "there is no feature gate `Turbo`; it is ignored",
        ),
        (
            "FEATURE_GATES",
            "NodeRepairs=true",
            "there is no feature gate `NodeRepairs`; it is ignored; did you mean NodeRepair?",
        ),
    ],
)
def test_values_that_karpenter_ignores_are_reported(name: str, text: str, remark: str) -> None:
    assert read_options([], {name: text}) == OptionsRead(Options(), (remark,))


@pytest.mark.parametrize(
    ("words", "remark"),
    [
        (
            ["--batch-idle-duration=1m"],
            "`batch-idle-duration` is longer than `batch-max-duration` and has no effect",
        ),
        (
            ["--feature-gates=TerminateFirstRepair=true"],
            "the gate `TerminateFirstRepair` has no effect without `NodeRepair`",
        ),
        (
            ["--legacy-node-repair"],
            "`legacy-node-repair` has no effect without the gate `NodeRepair`",
        ),
        (
            ["--legacy-node-repair", "--feature-gates=NodeRepair=true,TerminateFirstRepair=true"],
            "the gate `TerminateFirstRepair` has no effect with `legacy-node-repair`",
        ),
    ],
)
def test_options_without_effect_are_reported(words: list[str], remark: str) -> None:
    assert read_options(words, {}).remarks == (remark,)


@pytest.mark.parametrize("text", ["0", "-5"])
def test_no_cpu_counts_as_one_core(text: str) -> None:
    assert read_options([], {"CPU_REQUESTS": text}).options == Options()


def test_no_log_level_is_info() -> None:
    assert read_options([], {"LOG_LEVEL": ""}).options.log_level is LogLevel.INFO


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (["--metric-port=1"], "`--metric-port` is no flag of `karpy run`", "write --metrics-port"),
        (["--zzz"], "`--zzz` is no flag of `karpy run`", "see docs/settings.md for all there are"),
        (
            ["verbose"],
            "`verbose` is no flag",
            "give flags only, as in --log-level=debug; quote values that have spaces",
        ),
        (
            ["--metrics-port"],
            "`--metrics-port` is given without a value",
            "write --metrics-port=8080",
        ),
        (["--journal"], "`--journal` is given without a value", "write --journal=DIR"),
        (
            ["--metrics-port=http"],
            "`--metrics-port` is `http`, which is no whole number",
            "write digits only, as in 8080",
        ),
        (
            ["--metrics-port=70000"],
            "`--metrics-port` is 70000",
            "write a whole number from 0 to 65535",
        ),
        (
            ["--bind-address=localhost"],
            "`--bind-address` is `localhost`, which is no IP address",
            "write an address of this machine, as in 127.0.0.1 or ::1; none is all of them",
        ),
        (["--journal-files=0"], "`--journal-files` is 0", "write a whole number from 1 or more"),
        (
            ["--enable-profiling=1"],
            "`--enable-profiling` is `1`, which is neither true nor false",
            "write true or false",
        ),
        (
            ["--batch-max-duration=10"],
            "`--batch-max-duration` is `10`, which is no duration",
            "add the unit: 10s",
        ),
        (
            ["--batch-max-duration=soon"],
            "`--batch-max-duration` is `soon`, which is no duration",
            "write it as 10s or 1m",
        ),
        (
            ["--batch-max-duration=-1s"],
            "`--batch-max-duration` is -1s",
            "write a duration of 0s or more",
        ),
        (
            ["--log-level=warn"],
            "`--log-level` is `warn`, which is none of debug, info, error",
            "use one of: debug, info, error",
        ),
        (
            ["--min-values-policy=besteffort"],
            "`--min-values-policy` is `besteffort`, which is none of Strict, BestEffort",
            "write BestEffort",
        ),
        (
            ["--packing=cheapest"],
            "`--packing` is `cheapest`, which is none of Karpenter, Cheapest",
            "write Cheapest",
        ),
        (
            ["--log-output-paths=,"],
            "`--log-output-paths` names no place",
            "write stdout, stderr or the path of a file",
        ),
        (
            ["--feature-gates=NodeRepair"],
            "`--feature-gates` has `NodeRepair` without a value",
            "write NodeRepair=true or =false",
        ),
        (
            ["--feature-gates=NodeRepair=yes"],
            "`--feature-gates` has `NodeRepair=yes`",
            "write NodeRepair=true or NodeRepair=false",
        ),
        (
            ["--scheduler-config=a: 1"],
            "`--scheduler-config` is wrong: `a` is unknown",
            "use only podTopologySpread",
        ),
        (
            ['--scheduler-config={"podTopologySpread":{"defaultConstraints":[{"maxSkew":0}]}}'],
            (
                "`--scheduler-config` is wrong: `podTopologySpread.defaultConstraints[0].maxSkew` "
                "is missing or less than 1"
            ),
            "write a maxSkew of 1 or more",
        ),
    ],
)
def test_a_flag_that_cannot_be_is_refused(words: list[str], message: str, hint: str) -> None:
    with pytest.raises(OptionInvalid) as caught:
        read_options(words, {})

    assert (caught.value.message, caught.value.hint) == (message, hint)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("METRICS_PORT", "-1"),
        ("LOG_LEVEL", "INFO"),
        ("PREFERENCE_POLICY", ""),
        ("FEATURE_GATES", "NodeRepair=maybe"),
        ("SCHEDULER_CONFIG", "spread: yes"),
        ("KUBE_CLIENT_QPS", "0"),
    ],
)
def test_a_variable_that_cannot_be_is_refused_by_its_name(name: str, text: str) -> None:
    with pytest.raises(OptionInvalid, match=f"`{name}` "):
        read_options([], {name: text})


def test_every_option_has_one_flag() -> None:
    fields = sorted(flag.field for flag in FLAGS)
    assert fields == sorted({*Options.__struct_fields__} - {"cloud"})


def test_a_provider_that_does_not_exist_is_refused_by_its_name() -> None:
    with pytest.raises(OptionInvalid, match="`azure` is no provider"):
        read_options(["--provider", "azure"], {})
    with pytest.raises(OptionInvalid, match="`azure` is no provider"):
        read_options([], {"KARPY_PROVIDER": "azure"})


@pytest.mark.parametrize("words", [["--provider=kwok"], ["-provider", "kwok"], []])
def test_kwok_is_the_provider_by_default_and_by_name(words: list[str]) -> None:
    options = read_options(words, {}).options

    assert (options.provider, options.cloud) == ("kwok", {})


def test_every_gate_is_explained() -> None:
    assert [each.name for each in GATE_NOTES] == list(GATE_FIELDS)


def test_no_gate_is_accepted_without_effect() -> None:
    gates = ",".join(f"{name}=true" for name in GATE_FIELDS)

    read = read_options([f"--feature-gates={gates}"], {})

    assert read.remarks == ()
    assert not [each.name for each in GATE_NOTES if "no effect" in each.help]


@pytest.mark.parametrize(
    ("words", "environ"),
    [
        (["--provider=aws"], {}),
        (["--cluster-name", "shop"], {}),
        ([], {"CLUSTER_NAME": "shop"}),
        ([], {"KARPY_PROVIDER": "aws", "CLUSTER_NAME": "shop"}),
    ],
)
def test_settings_that_only_one_provider_has_name_it(
    words: list[str], environ: dict[str, str]
) -> None:
    assert read_options(words, environ).options.provider == "aws"


def test_a_provider_that_is_named_counts_whatever_is_set() -> None:
    options = read_options(["--provider=kwok"], {"CLUSTER_NAME": "shop"}).options

    assert options.provider == "kwok"


def test_aws_takes_the_settings_of_karpenter() -> None:
    environ = {
        "CLUSTER_NAME": "shop",
        "CLUSTER_ENDPOINT": "https://api",
        "CLUSTER_CA_BUNDLE": "Q0E=",
        "ISOLATED_VPC": "true",
        "EKS_CONTROL_PLANE": "true",
        "DISABLE_DRY_RUN": "true",
        "ENABLE_ZONAL_SHIFT": "true",
        "VM_MEMORY_OVERHEAD_PERCENT": "0.05",
        "INTERRUPTION_QUEUE": "shop-queue",
        "RESERVED_ENIS": "1",
        "AMI_REFRESH_INTERVAL": "2m",
        "SUBNET_REFRESH_INTERVAL": "90s",
    }

    settings = read_settings(read_options([], environ).options.cloud, reserves=True)

    assert settings == AwsSettings(
        cluster_name="shop",
        cluster_endpoint="https://api",
        ca_bundle="Q0E=",
        isolated_vpc=True,
        eks_control_plane=True,
        disable_dry_run=True,
        enable_zonal_shift=True,
        vm_memory_overhead=0.05,
        interruption_queue="shop-queue",
        reserved_enis=1,
        image_refresh=timedelta(minutes=2),
        subnet_refresh=timedelta(seconds=90),
    )


def test_aws_has_the_defaults_of_karpenter() -> None:
    settings = read_settings(read_options(["--provider=aws"], {}).options.cloud, reserves=True)

    assert settings == AwsSettings()
    assert (settings.vm_memory_overhead, settings.reserved_enis) == (0.075, 0)
    assert settings.image_refresh == settings.subnet_refresh == timedelta(minutes=1)


@pytest.mark.parametrize(
    "words",
    [
        ["--ami-refresh-interval=59s"],
        ["--subnet-refresh-interval=1s"],
        ["--reserved-enis=-1"],
        ["--vm-memory-overhead-percent=-0.1"],
    ],
)
def test_settings_of_aws_that_cannot_be_are_refused(words: list[str]) -> None:
    with pytest.raises(OptionInvalid, match=re.escape(words[0].partition("=")[0])):
        read_options(["--provider=aws", *words], {})
