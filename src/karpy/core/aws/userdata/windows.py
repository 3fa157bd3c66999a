"""Windows: PowerShell that calls the bootstrap script of the image."""

from typing import Final

from karpy.core.aws.userdata.bootstrap import Bootstrap, kubelet_flags

_SCRIPT_FILE: Final = r"$env:ProgramFiles\Amazon\EKS\Start-EKSBootstrap.ps1"


def user_data(bootstrap: Bootstrap) -> str:
    """Return the user's lines, then the call that has the machine join."""
    own = f"{bootstrap.user_data}\n" if bootstrap.user_data else ""
    call = (
        f"& $EKSBootstrapScriptFile -EKSClusterName '{bootstrap.cluster}'"
        f" -APIServerEndpoint '{bootstrap.endpoint}' -Base64ClusterCA '{bootstrap.ca_bundle}'"
        f" -KubeletExtraArgs '{' '.join(kubelet_flags(bootstrap))}'"
    )
    if bootstrap.kubelet.cluster_dns:
        call += f" -DNSClusterIP '{bootstrap.kubelet.cluster_dns[0]}'"
    return (
        f"<powershell>\n{own}"
        f'[string]$EKSBootstrapScriptFile = "{_SCRIPT_FILE}"\n{call}\n</powershell>'
    )
