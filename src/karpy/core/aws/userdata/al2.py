"""Amazon Linux 2: a shell script that calls the bootstrap script of the image."""

from typing import Final

from karpy.core.aws.userdata.bootstrap import RAID0, Bootstrap, kubelet_flags
from karpy.core.aws.userdata.mime import SHELL, Part, is_mime, read_parts, write_parts

_SCRIPT: Final = """\
#!/bin/bash -xe
exec > >(tee /var/log/user-data.log|logger -t user-data -s 2>/dev/console) 2>&1
"""


def user_data(bootstrap: Bootstrap) -> str:
    """Return the user's parts, then the script that has the machine join."""
    parts = []
    if bootstrap.user_data:
        written = bootstrap.user_data
        parts = read_parts(written) if is_mime(written) else [Part(SHELL, written)]
    return write_parts([*parts, Part(SHELL, _SCRIPT + _command(bootstrap))]).replace("\r", "")


def _command(bootstrap: Bootstrap) -> str:
    head = (
        f"/etc/eks/bootstrap.sh '{bootstrap.cluster}' --apiserver-endpoint '{bootstrap.endpoint}'"
    )
    lines = [f"{head} --b64-cluster-ca '{bootstrap.ca_bundle}'"]
    if bootstrap.is_ipv6:
        lines.append("--ip-family ipv6")
    if bootstrap.kubelet.cluster_dns:
        lines.append(f"--dns-cluster-ip '{bootstrap.kubelet.cluster_dns[0]}'")
    lines.append("--use-max-pods false")
    lines.append(f"--kubelet-extra-args '{' '.join(kubelet_flags(bootstrap))}'")
    if bootstrap.instance_store_policy == RAID0:
        lines.append("--local-disks raid0")
    return " \\\n".join(lines)
