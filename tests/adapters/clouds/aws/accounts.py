"""An account of AWS in memory, on virtual time, and the adapters on it."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Final

from karpy.adapters.clouds.awsfake.tables import Tables
from karpy.adapters.clouds.awsfake.typetable import types_of, zones_of
from karpy.codec.fields import JsonObject
from karpy.core.lifecycle.changes import Count
from karpy.errors import KarpyError
from karpy.model.notices import Notice
from karpy.sim.clock import LoopClock
from karpy.sim.ec2.calls import MemoryCalls
from karpy.sim.ec2.cloud import Ec2Cloud
from karpy.sim.ec2.machines import SimulatedMachines

REGION: Final = "us-west-2"
START: Final = datetime(2026, 1, 5, 12, tzinfo=UTC)
SIZES: Final = ("c6a.large", "c6a.xlarge")


class NoMachines(SimulatedMachines):
    """Machines that never boot: what runs on them is of no interest here."""

    def __init__(self) -> None:
        """Have none."""

    def boot(self, instance: object) -> None:
        """Leave it switched off."""

    def halt(self, id_: str) -> None:
        """Do nothing."""


class Account:
    """The account, calls to it, a clock, and what was reported."""

    def __init__(self) -> None:
        types = {name: each for name, each in types_of(("c6a",)).items() if name in SIZES}
        prices = {"c6a.large": 76_500, "c6a.xlarge": 153_000}
        self.clock = LoopClock(START)
        self.tables = Tables(REGION, prices, types, zones_of(REGION))
        self.cloud = Ec2Cloud(self.tables, self.clock, NoMachines(), end_seconds=20)
        self.calls = MemoryCalls(self.cloud)
        self.troubles: list[tuple[str, str]] = []
        self.counts: list[Count] = []
        self.notices: list[Notice] = []

    def trouble(self, what: str, error: KarpyError) -> None:
        self.troubles.append((what, error.message))

    def counted(self, metric: str) -> list[tuple[dict[str, str], float]]:
        return [(dict(each.labels), each.value) for each in self.counts if each.metric == metric]

    def made(self, call: str) -> int:
        """Return how often a call was made."""
        return self.tables.calls.get(call, 0)

    def run_instance(self, **changes: object) -> JsonObject:
        """Have a machine that this cluster has launched."""
        id_ = f"i-{len(self.cloud.instances):017x}"
        made: JsonObject = {
            "InstanceId": id_,
            "InstanceType": "c6a.large",
            "ImageId": "ami-1",
            "LaunchTime": self.clock.now(),
            "Placement": {"AvailabilityZone": "us-west-2a"},
            "SecurityGroups": [{"GroupId": "sg-00000001"}],
            "SubnetId": "subnet-00000001",
            "State": {"Name": "running"},
            "Tags": [
                {"Key": "karpenter.sh/nodepool", "Value": "web"},
                {"Key": "karpenter.k8s.aws/ec2nodeclass", "Value": "default"},
                {"Key": "kubernetes.io/cluster/demo", "Value": "owned"},
            ],
            **changes,
        }
        self.cloud.instances[id_] = made
        return made


@contextmanager
def account() -> Iterator[Account]:
    """Enter an account."""
    made = Account()
    try:
        yield made
    finally:
        made.cloud.stop()
