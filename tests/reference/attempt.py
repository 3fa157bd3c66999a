"""One pod at one step of its ladder."""

from dataclasses import dataclass

from karpy.model.pods import Pod, PodRules
from karpy.model.requirements import Requirements
from karpy.model.storage import Storage
from tests.reference.ladder import contradicts_itself, full
from tests.reference.volumes import Attachments, attachments, volume_alternatives


@dataclass(frozen=True)
class Attempt:
    """A pod with its remaining preferences, and the requirements that follow."""

    pod: Pod
    rules: PodRules
    full: Requirements
    volume_alternatives: list[Requirements]
    attachments: Attachments


def make_attempt(pod: Pod, rules: PodRules, storage: Storage) -> Attempt:
    """Return the attempt of a pod at one step of its ladder."""
    return Attempt(
        pod=pod,
        rules=rules,
        full=full(rules),
        volume_alternatives=[] if contradicts_itself(rules) else volume_alternatives(pod, storage),
        attachments=attachments(pod, storage),
    )
