"""How much memory nodes really have: less than EC2 says, and only they know how much less."""

from collections.abc import Iterable, Mapping

from karpy.model.ec2nodeclass import Ec2NodeClass
from karpy.model.labels import INSTANCE_TYPE, REGISTERED
from karpy.model.records import ClaimRecord, NodeRecord
from karpy.model.resources import MEMORY


def memory_by_type(
    node_class: Ec2NodeClass, pairs: Iterable[tuple[ClaimRecord, NodeRecord]]
) -> Mapping[str, int]:
    """
    Return the bytes that nodes report by instance type, the least of each.

    Only nodes with an image that the class has now count: another image may leave another amount.
    """
    images = {each.id for each in node_class.status.images}
    found: dict[str, int] = {}
    for claim, node in pairs:
        type_ = node.meta.labels.get(INSTANCE_TYPE, "")
        memory = node.capacity.get(MEMORY, 0)
        is_registered = node.meta.labels.get(REGISTERED) == "true"
        if claim.image_id in images and is_registered and type_ and memory:
            found[type_] = min(found.get(type_, memory), memory)
    return found
