"""Operator settings that decisions depend on, as one value."""

from enum import Enum

from msgspec import Struct

from karpy.model.constraints import SpreadConstraint


class PreferencePolicy(Enum):
    """Whether preferences are tried as if required, or left to kube-scheduler."""

    RESPECT = "Respect"
    IGNORE = "Ignore"


class MinValuesPolicy(Enum):
    """Whether a claim without enough variety is refused or launched with what there is."""

    STRICT = "Strict"
    BEST_EFFORT = "BestEffort"


class Packing(Enum):
    """Whose plan is taken: Karpenter's, or the cheapest of a few."""

    KARPENTER = "Karpenter"
    CHEAPEST = "Cheapest"


class PodNomination(Enum):
    """Whether pods get the name of the node that was made for them."""

    NEVER = "Never"
    ALWAYS = "Always"


class ReservedMode(Enum):
    """Whether a pod waits for a reservation it might get, or goes elsewhere."""

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
    """Whether Karpy writes `pod-deletion-cost` itself, so that it is not what a user asks for."""
