"""Pods and volume attachments as a drain sees them."""

from datetime import timedelta

from karpy.codec.constraints import read_tolerations
from karpy.codec.fields import Fields
from karpy.codec.pods import read_owners
from karpy.model.annotations import DO_NOT_DISRUPT
from karpy.model.leaving import DEFAULT_GRACE, Attachment, LeavingPod
from karpy.model.pods import DAEMON_SET, NODE
