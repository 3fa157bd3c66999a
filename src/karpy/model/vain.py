"""Launches that gave a pod no place, and when the next one may be made."""

from datetime import datetime
from enum import Enum

from msgspec import Struct


class Vain(Enum):
    """How a launch was in vain; the value completes a sentence about the pod."""

    LEFT_OUT = "kube-scheduler left it out"
    PUSHED_OUT = "it got to its node and was pushed out again; kube-scheduler left it out since"
    NODE_GONE = "its node was gone before it got there; kube-scheduler left it out"


class VainLaunches(Struct, frozen=True, gc=False):
    """How often nodes were launched in vain for the pods of one group, one time after the other."""

    group: str
    """`Pod.group` of the pods."""
    count: int
    last: datetime
    """When the last launch turned out to be in vain."""
    retry_at: datetime
    """Before that nothing is launched for these pods."""
    why: Vain
    message: str = ""
    """What kube-scheduler said of a pod that it left out."""
