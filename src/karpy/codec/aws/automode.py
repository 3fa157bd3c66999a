"""NodeClasses of EKS Auto Mode, as far as they change instance types."""

from typing import Final

from karpy.codec.fields import Fields
from karpy.model.ec2nodeclass import Disk, DiskMapping, Ec2NodeClassSpec

_IMAGES: Final = "Bottlerocket"
_DISK: Final = "80Gi"
_DEVICE: Final = "/dev/xvdb"


def read_auto_mode_spec(fields: Fields) -> Ec2NodeClassSpec:
    """Read a NodeClass as an EC2NodeClass whose nodes have the same capacity."""
    size = fields.child("spec").child("ephemeralStorage").text("size")
    disk = DiskMapping(_DEVICE, Disk(size=size or _DISK))
    return Ec2NodeClassSpec(image_family=_IMAGES, disks=(disk,))
