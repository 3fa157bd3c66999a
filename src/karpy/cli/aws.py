"""`karpy aws`: what users of AWS need beside the autoscaler."""

from collections.abc import Sequence
from importlib import import_module
from typing import Annotated, Final

from cyclopts import App, Parameter, Token
from cyclopts.validators import Number

from karpy.cli.options import DONE, Injected
from karpy.errors import OptionInvalid

_HELP: Final = """\
Work with AWS beside the autoscaler.

`karpy run --provider aws` is the autoscaler itself, for a cluster of EKS."""
_PORT_MAX: Final = 65_535

aws: Final = App(name="aws", help=_HELP, help_format="plaintext")


def _families(_kind: object, tokens: Sequence[Token]) -> tuple[str, ...]:
    return tuple(each for token in tokens for each in token.value.split(",") if each)


@aws.command
def fake(
    *,
    port: Annotated[
        int,
        Parameter(
            help="The port to listen on. [default: any that is free]",
            metavar="N",
            show_default=False,
            validator=Number(gte=0, lte=_PORT_MAX),
        ),
    ] = 0,
    region: Annotated[str, Parameter(help="The region it is.", metavar="NAME")] = "us-west-2",
    cluster: Annotated[
        str, Parameter(help="The EKS cluster that it has.", metavar="NAME")
    ] = "demo",
    kubernetes: Annotated[
        str, Parameter(help="The version of that cluster.", metavar="VERSION")
    ] = "1.34",
    families: Annotated[
        tuple[str, ...],
        Parameter(
            help="Families of instance types to sell, as `m5,c7g`. [default: all]",
            metavar="NAME",
            converter=_families,
            negative="",
            show_default=False,
        ),
    ] = (),
    terminal: Injected,
) -> int:
    """
    Run an AWS on this machine, to try Karpy with: no account, no cost, until Ctrl-C.

    It answers what the autoscaler asks of EC2, IAM, SSM, EKS, SQS and Pricing over HTTP, for every
    client of AWS that takes AWS_ENDPOINT_URL. Subnets and the security group carry the tag
    `karpenter.sh/discovery: CLUSTER`, there is a role KarpenterNodeRole-CLUSTER and a queue for
    interruptions. Instances run, and no machine boots: nodes join only if a kubelet makes them.
    For example:

        $ karpy aws fake --port 5000 &
        $ karpy cluster --kubeconfig cluster.yaml &
        $ export AWS_ENDPOINT_URL=http://127.0.0.1:5000 AWS_REGION=us-west-2
        $ export AWS_ACCESS_KEY_ID=fake AWS_SECRET_ACCESS_KEY=fake
        $ karpy run --provider aws --cluster-name demo --kubeconfig cluster.yaml

    Everything is gone afterwards.
    """
    try:
        serving = import_module("karpy.cli.awsfake")
    except ModuleNotFoundError as error:
        raise OptionInvalid(
            name="karpy aws fake",
            problem=f"needs the package `{error.name}`",
            hint="install it: pip install 'karpy[aws,aws-fake]'",
        ) from error
    serving.serve(terminal, port, serving.Account(region, cluster, kubernetes, families))
    return DONE
