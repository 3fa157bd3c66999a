"""User data of every image family, whole: what a machine is started with."""

import tomllib
from base64 import b64decode
from datetime import timedelta

import pytest
import yaml
from msgspec.structs import replace

from karpy.core.aws.bootstrap import (
    Bootstrap,
    UserDataInvalid,
    is_ipv6,
    kubelet_flags,
    node_labels,
    registration_taints,
)
from karpy.core.aws.userdata import FAMILIES, encoded_user_data, family_name, family_of
from karpy.model.constraints import NO_EXECUTE, NO_SCHEDULE, Taint
from karpy.model.ec2nodeclass import Ec2NodeClassSpec, ImageTerm, Kubelet

UNREGISTERED = Taint("karpenter.sh/unregistered", NO_EXECUTE)
SHOP = Bootstrap(
    cluster="shop",
    endpoint="https://api.shop",
    ca_bundle="Q0E=",
    kubelet=Kubelet(cluster_dns=("172.20.0.10",), max_pods=29),
    taints=(Taint("team", NO_SCHEDULE, "a"), UNREGISTERED),
    labels={"karpenter.sh/capacity-type": "spot", "team": "a"},
    cidr="172.20.0.0/16",
)
ALL = Kubelet(
    cluster_dns=("10.0.0.10",),
    max_pods=20,
    pods_per_core=4,
    system_reserved={"memory": "1Gi", "cpu": "100m"},
    kube_reserved={"cpu": "200m"},
    eviction_hard={"memory.available": "5%"},
    eviction_soft={"memory.available": "10%"},
    eviction_soft_grace_period={"memory.available": timedelta(minutes=1)},
    eviction_max_pod_grace_period=30,
    image_gc_high=80,
    image_gc_low=70,
    cpu_cfs_quota=False,
)


def data(family: str, bootstrap: Bootstrap = SHOP) -> str:
    return b64decode(encoded_user_data(FAMILIES[family], bootstrap)).decode()


def test_al2_calls_the_bootstrap_script() -> None:
    assert data("AL2") == (
        "MIME-Version: 1.0\n"
        'Content-Type: multipart/mixed; boundary="//"\n'
        "\n"
        "--//\n"
        'Content-Type: text/x-shellscript; charset="us-ascii"\n'
        "\n"
        "#!/bin/bash -xe\n"
        "exec > >(tee /var/log/user-data.log|logger -t user-data -s 2>/dev/console) 2>&1\n"
        "/etc/eks/bootstrap.sh 'shop' --apiserver-endpoint 'https://api.shop'"
        " --b64-cluster-ca 'Q0E=' \\\n"
        "--dns-cluster-ip '172.20.0.10' \\\n"
        "--use-max-pods false \\\n"
        '--kubelet-extra-args \'--node-labels="karpenter.sh/capacity-type=spot,team=a"'
        ' --register-with-taints="team=a:NoSchedule,karpenter.sh/unregistered:NoExecute"'
        " --max-pods=29'\n"
        "--//--"
    )


def test_al2_puts_own_scripts_first_and_has_no_carriage_returns() -> None:
    written = data("AL2", replace(SHOP, user_data="#!/bin/bash\r\necho mine\r\n"))

    assert written.index("echo mine") < written.index("/etc/eks/bootstrap.sh")
    assert "\r" not in written


def test_al2_of_ipv6_and_local_disks_says_so() -> None:
    written = data("AL2", replace(SHOP, is_ipv6=True, instance_store_policy="RAID0"))

    assert "--ip-family ipv6 \\\n" in written
    assert written.endswith("--local-disks raid0\n--//--")


def node_config(written: str) -> tuple[str, dict[str, object]]:
    """Return the head and the decoded last part of the user data of AL2023."""
    head, _, rest = written.rpartition("Content-Type: application/node.eks.aws\n\n")
    text = rest.removesuffix("\n--//--")
    assert text.startswith("# Karpenter Generated NodeConfig\n")
    return head, yaml.safe_load(text)


def test_al2023_has_a_node_config() -> None:
    _, config = node_config(data("AL2023"))

    assert config == {
        "apiVersion": "node.eks.aws/v1alpha1",
        "kind": "NodeConfig",
        "metadata": {},
        "spec": {
            "cluster": {
                "apiServerEndpoint": "https://api.shop",
                "certificateAuthority": "Q0E=",
                "cidr": "172.20.0.0/16",
                "name": "shop",
            },
            "containerd": {},
            "instance": {"localStorage": {}},
            "kubelet": {
                "config": {
                    "clusterDNS": ["172.20.0.10"],
                    "maxPods": 29,
                    "registerWithTaints": [
                        {"effect": "NoSchedule", "key": "team", "value": "a"},
                        {"effect": "NoExecute", "key": "karpenter.sh/unregistered"},
                    ],
                },
                "flags": ['--node-labels="karpenter.sh/capacity-type=spot,team=a"'],
            },
        },
    }


def test_al2023_writes_every_setting_of_kubelets() -> None:
    _, config = node_config(
        data("AL2023", replace(SHOP, kubelet=ALL, instance_store_policy="RAID0"))
    )

    spec = config["spec"]
    assert isinstance(spec, dict)
    assert spec["instance"] == {"localStorage": {"strategy": "RAID0"}}
    kubelet = dict(spec["kubelet"]["config"])
    del kubelet["registerWithTaints"]
    assert kubelet == {
        "clusterDNS": ["10.0.0.10"],
        "cpuCFSQuota": False,
        "evictionHard": {"memory.available": "5%"},
        "evictionMaxPodGracePeriod": 30,
        "evictionSoft": {"memory.available": "10%"},
        "evictionSoftGracePeriod": {"memory.available": "1m0s"},
        "imageGCHighThresholdPercent": 80,
        "imageGCLowThresholdPercent": 70,
        "kubeReserved": {"cpu": "200m"},
        "maxPods": 20,
        "podsPerCore": 4,
        "systemReserved": {"memory": "1Gi", "cpu": "100m"},
    }


@pytest.mark.parametrize(
    ("own", "kind"),
    [
        ("#!/bin/bash\necho mine", 'text/x-shellscript; charset="us-ascii"'),
        ("kind: NodeConfig\nspec: {}", "application/node.eks.aws"),
        ("- a\n- list", 'text/x-shellscript; charset="us-ascii"'),
    ],
)
def test_al2023_tells_a_node_config_from_a_script(own: str, kind: str) -> None:
    head, _ = node_config(data("AL2023", replace(SHOP, user_data=own)))

    assert f"--//\nContent-Type: {kind}\n\n{own}\n" in head


def test_al2023_keeps_the_parts_of_own_mime() -> None:
    own = (
        'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="B"\n\n'
        "--B\nContent-Type: text/cloud-config\nMerge-Type: list()\n\npackages: [x]\n"
        "--B\nContent-Type: text/x-shellscript\n\necho mine\n--B--"
    )

    head, _ = node_config(data("AL2023", replace(SHOP, user_data=own)))

    assert "--//\nMerge-Type: list()\nContent-Type: text/cloud-config\n\npackages: [x]\n" in head
    assert "--//\nContent-Type: text/x-shellscript\n\necho mine\n" in head


@pytest.mark.parametrize("family", ["AL2", "AL2023"])
@pytest.mark.parametrize(
    "own",
    [
        "MIME-Version: 1.0\n\nno boundary",
        'Content-Type: multipart/mixed; boundary="B"\n\n--B\nContent-Type: text/plain\n\nno end',
    ],
)
def test_mime_that_cannot_be_read_is_refused(family: str, own: str) -> None:
    with pytest.raises(UserDataInvalid):
        data(family, replace(SHOP, user_data=own))


def test_bottlerocket_merges_settings() -> None:
    own = """
[settings.kubernetes]
max-pods = 5
log-level = 3
[settings.kubernetes.node-labels]
team = "b"
mine = "1"
[settings.kubernetes.node-taints]
mine = ["x:NoSchedule"]
[settings.host-containers.admin]
enabled = true
"""

    settings = tomllib.loads(data("Bottlerocket", replace(SHOP, user_data=own)))["settings"]

    assert settings["host-containers"] == {"admin": {"enabled": True}}
    kubernetes = settings["kubernetes"]
    assert kubernetes["max-pods"] == 29
    assert kubernetes["log-level"] == 3
    assert kubernetes["cluster-dns-ip"] == "172.20.0.10"
    assert (kubernetes["api-server"], kubernetes["cluster-name"]) == ("https://api.shop", "shop")
    assert kubernetes["cluster-certificate"] == "Q0E="
    assert kubernetes["node-labels"] == {
        "karpenter.sh/capacity-type": "spot",
        "team": "a",
        "mine": "1",
    }
    assert kubernetes["node-taints"] == {
        "team": ["a:NoSchedule"],
        "karpenter.sh/unregistered": [":NoExecute"],
    }


def test_bottlerocket_writes_settings_of_kubelets() -> None:
    written = tomllib.loads(data("Bottlerocket", replace(SHOP, kubelet=ALL)))
    kubernetes = written["settings"]["kubernetes"]

    assert kubernetes["system-reserved"] == {"memory": "1Gi", "cpu": "100m"}
    assert kubernetes["eviction-hard"] == {"memory.available": "5%"}
    assert kubernetes["eviction-soft"] == {"memory.available": "10%"}
    assert kubernetes["eviction-soft-grace-period"] == {"memory.available": "1m0s"}
    assert kubernetes["eviction-max-pod-grace-period"] == 30
    assert kubernetes["image-gc-high-threshold-percent"] == "80"
    assert kubernetes["cpu-cfs-quota-enforced"] is False


@pytest.mark.parametrize(
    ("version", "binds"),
    [
        ("v1.46.0", []),
        ("latest", []),
        (
            "v1.45.1",
            ["--dirs", "/var/lib/containerd", "/var/lib/kubelet", "/var/log/pods"],
        ),
        ("", ["--dirs", "/var/lib/containerd", "/var/lib/kubelet", "/var/log/pods"]),
    ],
)
def test_bottlerocket_mounts_local_disks(version: str, binds: list[str]) -> None:
    raid = replace(SHOP, instance_store_policy="RAID0", image_version=version)

    settings = tomllib.loads(data("Bottlerocket", raid))["settings"]

    assert settings["bootstrap-commands"]["000-mount-instance-storage"] == {
        "commands": [
            ["apiclient", "ephemeral-storage", "init"],
            ["apiclient", "ephemeral-storage", "bind", *binds],
        ],
        "essential": True,
        "mode": "always",
    }


@pytest.mark.parametrize("own", ["[settings", "settings = 1", "[settings]\nkubernetes = 1"])
def test_bottlerocket_refuses_what_is_no_table(own: str) -> None:
    with pytest.raises(UserDataInvalid):
        data("Bottlerocket", replace(SHOP, user_data=own))


def test_windows_calls_its_bootstrap_script() -> None:
    assert data("Windows2022", replace(SHOP, user_data="Write-Host mine")) == (
        "<powershell>\n"
        "Write-Host mine\n"
        "[string]$EKSBootstrapScriptFile ="
        ' "$env:ProgramFiles\\Amazon\\EKS\\Start-EKSBootstrap.ps1"\n'
        "& $EKSBootstrapScriptFile -EKSClusterName 'shop' -APIServerEndpoint 'https://api.shop'"
        " -Base64ClusterCA 'Q0E='"
        ' -KubeletExtraArgs \'--node-labels="karpenter.sh/capacity-type=spot,team=a"'
        ' --register-with-taints="team=a:NoSchedule,karpenter.sh/unregistered:NoExecute"'
        " --max-pods=29' -DNSClusterIP '172.20.0.10'\n"
        "</powershell>"
    )


def test_custom_images_get_what_was_written_and_nothing_else() -> None:
    assert data("Custom", replace(SHOP, user_data="anything")) == "anything"
    assert data("Custom") == ""


def test_flags_are_in_the_order_of_karpenter() -> None:
    assert kubelet_flags(replace(SHOP, kubelet=ALL, labels={}, taints=())) == [
        '--register-with-taints=""',
        "--max-pods=20",
        "--pods-per-core=4",
        '--system-reserved="cpu=100m,memory=1Gi"',
        '--kube-reserved="cpu=200m"',
        '--eviction-hard="memory.available<5%"',
        '--eviction-soft="memory.available<10%"',
        '--eviction-soft-grace-period="memory.available=1m0s"',
        "--eviction-max-pod-grace-period=30",
        "--image-gc-high-threshold=80",
        "--image-gc-low-threshold=70",
        "--cpu-cfs-quota=false",
    ]


def test_kubelets_set_no_labels_of_kubernetes() -> None:
    labels = {
        "kubernetes.io/arch": "amd64",
        "topology.kubernetes.io/zone": "a",
        "x.k8s.io/y": "z",
        "a.node-restriction.kubernetes.io/b": "c",
        "example.com/kubernetes.io": "kept",
        "plain": "kept",
    }

    assert node_labels(labels, "on-demand") == {
        "example.com/kubernetes.io": "kept",
        "karpenter.sh/capacity-type": "on-demand",
        "karpenter.sh/do-not-sync-taints": "true",
        "plain": "kept",
    }
    assert "karpenter.sh/do-not-sync-taints" not in node_labels({}, "spot", is_custom=True)


def test_nodes_register_with_the_taint_that_keeps_pods_off() -> None:
    team, startup = Taint("team", NO_SCHEDULE, "a"), Taint("init", NO_SCHEDULE)

    assert registration_taints([team], [startup]) == (team, startup, UNREGISTERED)
    assert registration_taints([UNREGISTERED], []) == (UNREGISTERED,)


@pytest.mark.parametrize(
    ("address", "expected"), [("fd00::a", True), ("10.0.0.10", False), ("", False)]
)
def test_the_address_of_the_dns_tells_the_version_of_ip(address: str, expected: object) -> None:
    assert is_ipv6(address) is expected


def alias(text: str) -> Ec2NodeClassSpec:
    return Ec2NodeClassSpec(image_terms=(ImageTerm(alias=text),))


def test_the_family_is_that_of_the_alias_unless_another_is_named() -> None:
    assert family_name(alias("windows2025@latest")) == "Windows2025"
    assert family_name(replace(alias("al2023@latest"), image_family="Custom")) == "Custom"
    assert family_of(Ec2NodeClassSpec(image_family="Solaris")).name == "AL2"
