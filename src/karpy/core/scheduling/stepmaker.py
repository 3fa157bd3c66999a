"""Makes the steps of ladders when pods get there; knows none of the pods."""

from collections.abc import Sequence

from msgspec import Struct

from karpy.core.scheduling.effort import Effort
from karpy.core.scheduling.existing import ExistingNodes
from karpy.core.scheduling.groups import HostGroup, Kind
from karpy.core.scheduling.ladder import Footing
from karpy.core.scheduling.signatures import Signatures, Want, contradicts
from karpy.core.scheduling.steps import Ground, KeyRule, Marked, Reach, Step
from karpy.core.scheduling.templates import Template
from karpy.core.scheduling.topology import Topology
from karpy.core.scheduling.volumes import NO_VOLUMES, VolumeFacts
from karpy.model.constraints import Toleration, first_untolerated
from karpy.model.requirements import Requirements, collect


class About(Struct, frozen=True):
    """What else than its ladder the steps of a class depend on."""

    volumes: VolumeFacts
    settling: tuple[str, ...]
    """Keys of which one domain must be chosen, for others count on the pods being there."""
    has_ports: bool


class StepMaker:
    """Turns rungs into steps; steps keep it for those that are made later."""

    def __init__(
        self,
        signatures: Signatures,
        topology: Topology,
        existing: ExistingNodes,
        templates: Sequence[Template],
        effort: Effort,
    ) -> None:
        self._signatures = signatures
        self._topology = topology
        self._existing = existing
        self._templates = templates
        self._effort = effort
        self._reaches: dict[tuple[Toleration, ...], Reach] = {}

    def ground(self, volumes: VolumeFacts, footing: Footing) -> Ground:
        """Make ready what some steps ask of a node."""
        wants = self._wants(footing, volumes)
        return Ground(footing, self._reach(footing.tolerations), wants)

    def step(self, about: About, ground: Ground, held: Sequence[Marked]) -> Step:
        """Make one step of some pods."""
        self._effort.spend(len(held))
        step = Step(ground)
        rules: dict[str, KeyRule] = {}
        for marked in held:
            group = marked[0]
            if isinstance(group, HostGroup):
                step.hosts.append((group, marked[1]))
                if group.kind is Kind.AFFINITY:
                    step.watched.append(group)
                continue
            rule = rules.get(group.key)
            if rule is None:
                rule = rules[group.key] = KeyRule(group.domains, ground.footing)
            rule.hold(group, marked[1])
            step.watched.append(group)
        for key in about.settling:
            if key not in rules:
                rules[key] = KeyRule(self._topology.table(key), ground.footing)
            rules[key].settles = True
        for rule in rules.values():
            rule.may_appear = any(rule.table.key in want.requirements for want in step.wants)
            step.is_patient = step.is_patient or not rule.table.is_well_known
        step.keys = [rules[key] for key in sorted(rules)]
        _sum_up(step, about)
        return step

    def _wants(self, footing: Footing, facts: VolumeFacts) -> tuple[Want, ...]:
        if not footing.is_possible:
            return ()
        if facts is NO_VOLUMES:
            return (self._want(footing.full),)
        wants = []
        # Differs: Karpenter takes a label that the pod only shuns for defined when it looks at the
        # volumes, and would write the value they ask for on a node that is somewhere else.
        for alternative in facts.alternatives:
            asked = collect(alternative)
            if not contradicts(footing.full, asked):
                wants.append(self._want(collect((*footing.full.values(), *alternative))))
        return tuple(wants)

    def _want(self, requirements: Requirements) -> Want:
        want = self._signatures.want(requirements)
        if not requirements:
            return want
        well_known = self._signatures.table.well_known
        have = [self._signatures.requirements[each.signature] for each in self._templates]
        want.is_patient = any(
            not requirement.is_negative
            and key not in well_known
            and any(key not in each for each in have)
            for key, requirement in requirements.items()
        )
        return want

    def _reach(self, tolerations: tuple[Toleration, ...]) -> Reach:
        reach = self._reaches.get(tolerations)
        if reach is None:
            templates = tuple(
                each
                for each in self._templates
                if first_untolerated(each.taints, tolerations) is None
            )
            nodes = self._existing.tolerated_by(tolerations)
            reach = self._reaches[tolerations] = Reach(len(self._reaches), templates, nodes)
            reach.has_every_template = len(templates) == len(self._templates)
        return reach


def _sum_up(step: Step, about: About) -> None:
    """Say what is special about a step, now that all is known that it asks for."""
    if len(step.keys) == 1 and step.keys[0].spreads and not step.keys[0].may_appear:
        step.spread = step.keys[0]
    step.is_simple = (
        (not step.keys or step.spread is not None)
        and not step.hosts
        and len(step.wants) == 1
        and not step.wants[0].is_patient
        and not about.has_ports
        and not about.volumes.attachments
    )
