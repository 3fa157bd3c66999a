"""What a decision says: what to do, and why not for everything left alone."""

from msgspec import Struct

from karpy.model.refusals import Exclusion, NodeRefusal, Refusal
from karpy.model.requirements import Requirements
from karpy.model.resources import Resources


class LaunchOption(Struct, frozen=True, gc=False):
    """An instance type a claim may become, with its cheapest offering."""

    instance_type: str
    price: int
    """Micro-dollars per hour."""
    zone: str
    capacity_type: str


class Launch(Struct, frozen=True, gc=False):
    """A NodeClaim to create."""

    name: str
    """Stands for the claim within the verdict; the cluster gives the real name."""
    pool: str
    pods: tuple[str, ...]
    """Pods expected there, as `namespace/name`, in the order they were placed."""
    requirements: Requirements
    resources: Resources
    """Requests of the pods and of the daemons that come along."""
    options: tuple[LaunchOption, ...]
    """Cheapest first, at most 600; without any the cloud chooses by the requirements."""
    reservations: tuple[str, ...] = ()
    is_min_values_relaxed: bool = False

    @property
    def price(self) -> int:
        """Micro-dollars per hour if the cheapest option is had; nothing if none is known."""
        return self.options[0].price if self.options else 0


class Nomination(Struct, frozen=True, gc=False):
    """Pods expected on a node that exists or is on its way."""

    node: str
    pods: tuple[str, ...]


class PoolNotice(Struct, frozen=True, gc=False):
    """A NodePool that took no part in the decision, and why."""

    pool: str
    why: Exclusion


class Verdict(Struct, frozen=True, gc=False):
    """Launches and nominations, and a refusal for every pod considered and left alone."""

    launches: tuple[Launch, ...] = ()
    nominations: tuple[Nomination, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    pools: tuple[PoolNotice, ...] = ()
    is_complete: bool = True
    """False if time ran out; refusals then name the pods without a decision."""

    @property
    def price(self) -> int:
        """Micro-dollars per hour of all launches."""
        return sum(launch.price for launch in self.launches)


class PoolVerdict(Struct, frozen=True, gc=False):
    """Nodes that a NodePool of a fixed size gets or gives up, and why not what it lacks."""

    pool: str
    creates: int = 0
    """How many NodeClaims to create, all alike."""
    launch: Launch | None = None
    """What each of them is."""
    withheld: Exclusion | None = None
    """How many are lacking that cannot be created, and why."""
    deletes: tuple[str, ...] = ()
    """NodeClaims to give up, those without pods first."""
    refusals: tuple[NodeRefusal, ...] = ()
    """Why the other nodes stay, if some are given up."""
