"""A machine reads in its user data what the provider wrote there, whatever its image."""

import base64

import pytest
from msgspec.structs import replace

from karpy.core.aws.bootstrap import Bootstrap
from karpy.core.aws.userdata import encoded_user_data, family_of
from karpy.model.constraints import Taint
from karpy.model.ec2nodeclass import Ec2NodeClassSpec, ImageTerm, Kubelet
from karpy.sim.ec2.userdata import Joining, read_user_data

MIME = (
    'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="b"\n\n'
    "--b\nContent-Type: text/x-shellscript\n\n#!/bin/bash\necho hello\n\n--b--\n"
)
BOOTSTRAP = Bootstrap(
    "demo",
    "https://eks.example.com",
    "Y2E=",
    kubelet=Kubelet(max_pods=29, cluster_dns=("10.100.0.10",)),
    taints=(Taint("team", "NoSchedule", "shop"), Taint("karpenter.sh/unregistered", "NoExecute")),
    labels={"karpenter.sh/capacity-type": "spot", "team": "shop"},
    cidr="10.100.0.0/16",
)
EXPECTED = Joining(
    "demo",
    "https://eks.example.com",
    {"karpenter.sh/capacity-type": "spot", "team": "shop"},
    (
        {"key": "team", "value": "shop", "effect": "NoSchedule"},
        {"key": "karpenter.sh/unregistered", "effect": "NoExecute"},
    ),
    29,
)


@pytest.mark.parametrize(
    ("alias", "own"),
    [
        ("al2", ""),
        ("al2", MIME),
        ("al2023", ""),
        ("al2023", MIME),
        ("bottlerocket", "[settings.host]\nname = 'a'"),
        ("windows2022", "Write-Host hello"),
    ],
)
def test_the_user_data_of_the_provider_is_read_back(alias: str, own: str) -> None:
    spec = Ec2NodeClassSpec(image_terms=(ImageTerm(alias=f"{alias}@latest"),))
    bootstrap = replace(BOOTSTRAP, user_data=own)

    written = base64.b64decode(encoded_user_data(family_of(spec), bootstrap)).decode()

    assert read_user_data(written) == EXPECTED


@pytest.mark.parametrize("text", ["", "#!/bin/bash\necho hello", "[settings.host]\nname = 'a'"])
def test_user_data_of_an_unknown_form_joins_no_cluster(text: str) -> None:
    assert not read_user_data(text).cluster


_OWN_PART = """\
apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  kubelet: {config: {maxPods: 5}, flags: ["--v=2"]}
"""
_LAST_PART = """\
apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  cluster: {name: shop, apiServerEndpoint: "https://shop"}
  kubelet: {flags: ['--node-labels="a=b"']}
"""


def _parts_of(*configs: str) -> str:
    head = 'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="//"\n\n'
    kind = "--//\nContent-Type: application/node.eks.aws\n\n"
    return head + "".join(f"{kind}{each}\n" for each in configs) + "--//--\n"


def test_node_configs_are_merged_as_a_part_alone_names_no_cluster() -> None:
    read = read_user_data(_parts_of(_OWN_PART, _LAST_PART))

    assert read == Joining("shop", "https://shop", {"a": "b"}, (), 5)


def test_a_node_config_that_cannot_be_read_joins_no_cluster() -> None:
    assert read_user_data(_parts_of("kind: [", _LAST_PART)) == Joining()
    assert read_user_data(_parts_of("just text")) == Joining()
