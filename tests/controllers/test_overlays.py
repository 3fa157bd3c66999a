"""NodeOverlays hear whether they are applied, and launches go by them, on virtual time."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from msgspec.structs import replace

from karpy.adapters.clouds.overlaid import OverlaidCloud
from karpy.adapters.mirror.cluster import MirroredCluster
from karpy.adapters.mirror.mirror import Mirror
from karpy.codec.catalogs import kwok_catalog
from karpy.codec.fields import JsonObject
from karpy.controllers.desk import Desk
from karpy.controllers.keeper import Keeper
from karpy.controllers.lifecycle import LifecycleController
from karpy.controllers.overlays import OverlayController
from karpy.core.provisioning.decide import decide
from karpy.errors import CloudFault
from karpy.model.instances import Catalog
from karpy.model.kinds import NODE_CLAIM, NODE_OVERLAY, NODE_POOL, POD
from karpy.model.settings import Settings
from karpy.ports.cloud import CloudProvider
from karpy.ports.objects import Patch, PatchType
from karpy.sim.loop import run
from karpy.sim.world import World
from tests.controllers.operators import SMALL, Heard, claim, conditions
from tests.controllers.test_provisioning import pod, pool

READY = ("True", "ValidationSucceeded")
CONFLICT = ("False", "Conflict")
DONGLE = "example.com/dongle"
INSTANCE_TYPE = "node.kubernetes.io/instance-type"
