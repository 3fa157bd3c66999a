import pytest

from karpy.codec.aws.automode import read_auto_mode_spec
from karpy.codec.fields import Fields, JsonObject
from karpy.model.ec2nodeclass import Disk, DiskMapping, Ec2NodeClassSpec


@pytest.mark.parametrize(
    ("spec", "size"), [({}, "80Gi"), ({"ephemeralStorage": {"size": "200Gi"}}, "200Gi")]
)
def test_nodes_of_auto_mode_run_bottlerocket_on_a_disk_of_their_own(
    spec: JsonObject, size: str
) -> None:
    assert read_auto_mode_spec(Fields({"spec": spec})) == Ec2NodeClassSpec(
        image_family="Bottlerocket", disks=(DiskMapping("/dev/xvdb", Disk(size=size)),)
    )
