"""`karpy aws`: set-up of an account, a catalog of its prices, and a fake AWS."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import Annotated, Final, Literal

from cyclopts import App, Parameter, Token
from cyclopts.validators import Number

from karpy.cli.extras import import_aws_fake
from karpy.cli.options import DONE, Injected
from karpy.core.aws.setup import cloudformation, commands, eksctl, terraform
from karpy.core.aws.setup.plan import OperatorHost, SetupPlan, find_misnomer
from karpy.errors import OptionInvalid

_HELP: Final = """\
Work with AWS beside the autoscaler.

`karpy run --provider aws` is the autoscaler itself, for a cluster of EKS."""
_PORT_MAX: Final = 65_535

aws: Final = App(name="aws", help=_HELP, help_format="plaintext")


_HINTS: Final = {"role": "--node-role", "queue_name": "--queue", "oidc": "--oidc-provider"}


class Format(Enum):
    """The format of a set-up."""

    CLOUDFORMATION = "cloudformation"
    TERRAFORM = "terraform"
    EKSCTL = "eksctl"
    CLI = "cli"


_WRITERS: Final[Mapping[Format, Callable[[SetupPlan], str]]] = {
    Format.CLOUDFORMATION: cloudformation.text,
    Format.TERRAFORM: terraform.text,
    Format.EKSCTL: eksctl.text,
    Format.CLI: commands.text,
}


def _families(_kind: object, tokens: Sequence[Token]) -> tuple[str, ...]:
    return tuple(each for token in tokens for each in token.value.split(",") if each)


@Parameter(name="*")
@dataclass(frozen=True)
class Account:
    """The resources to set up, and their cluster."""

    cluster: Annotated[str, Parameter(help="The EKS cluster.", metavar="NAME")]
    partition: Annotated[
        Literal["aws", "aws-cn", "aws-us-gov"], Parameter(help="The partition of AWS.")
    ] = "aws"
    namespace: Annotated[
        str, Parameter(help="The namespace that Karpy runs in.", metavar="NAME")
    ] = "karpenter"
    service_account: Annotated[
        str, Parameter(help="The ServiceAccount that it runs as.", metavar="NAME")
    ] = "karpenter"
    node_role: Annotated[
        str,
        Parameter(
            help="The role of nodes. [default: KarpenterNodeRole-CLUSTER]",
            metavar="NAME",
            show_default=False,
        ),
    ] = ""
    queue: Annotated[
        str,
        Parameter(
            help="The queue of interruptions. [default: the name of the cluster]",
            metavar="NAME",
            show_default=False,
        ),
    ] = ""
    oidc_provider: Annotated[
        str,
        Parameter(
            help="The OIDC provider of the cluster without https://, to use IRSA instead of Pod"
            " Identity.",
            metavar="HOST/PATH",
            show_default=False,
        ),
    ] = ""
    private: Annotated[
        bool, Parameter(help="Add the VPC endpoints that a VPC without a way out needs.")
    ] = False
    host: Annotated[
        OperatorHost,
        Parameter(help="Add what Karpy itself runs on.", negative=""),
    ] = OperatorHost.ELSEWHERE


@aws.command
def setup(
    account: Account,
    *,
    form: Annotated[
        Format, Parameter(name="--format", help="How to write it.", negative="")
    ] = Format.CLOUDFORMATION,
    terminal: Injected,
) -> int:
    r"""
    Print what an AWS account needs for Karpy; nothing is run or changed.

    That is: policies of the operator with permissions as narrow as AWS lets them be, the role and
    the instance profile of nodes and their access entry, a queue with the rules of EventBridge that
    announce interruptions, the tags by which subnets and security groups are found, and the role of
    EC2 Spot. docs/clouds/aws.md says what each permission is for. For example:

        $ karpy aws setup --cluster demo > karpy.yaml
        $ aws cloudformation deploy --stack-name karpy-demo --template-file karpy.yaml \
            --capabilities CAPABILITY_NAMED_IAM

    With `--format eksctl`, policies and queue come from the stack of CloudFormation.
    """
    terminal.answer_text(_WRITERS[form](_plan_of(account)))
    return DONE


def _plan_of(account: Account) -> SetupPlan:
    """Return the plan of a set-up; raise OptionInvalid for an invalid name."""
    plan = SetupPlan(
        cluster=account.cluster,
        partition=account.partition,
        namespace=account.namespace,
        service_account=account.service_account,
        node_role=account.node_role,
        queue=account.queue,
        oidc=account.oidc_provider.removeprefix("https://"),
        is_private=account.private,
        host=account.host,
    )
    misnomer = find_misnomer(plan)
    if misnomer is not None:
        field, value, meaning = misnomer
        flag = _HINTS.get(field, f"--{field.replace('_', '-')}")
        hint = f"give {flag} {meaning}"
        raise OptionInvalid(name=flag, problem=f"cannot be `{value}`", hint=hint)
    return plan


@aws.command
def catalog(
    *,
    region: Annotated[
        str,
        Parameter(
            help="The region. [default: that of the environment or the profile]",
            metavar="NAME",
            show_default=False,
        ),
    ] = "",
    output: Annotated[
        Path | None,
        Parameter(
            name=["--output", "-o"],
            help="The file to write. [default: print it]",
            metavar="FILE",
            show_default=False,
        ),
    ] = None,
    terminal: Injected,
) -> int:
    """
    Write the instance types of a region with the prices of your account, as a catalog.

    `--catalog FILE` of other commands reads it. It takes the permissions
    ec2:DescribeInstanceTypes, ec2:DescribeInstanceTypeOfferings, ec2:DescribeSpotPriceHistory and
    pricing:GetProducts. For example:

        $ karpy aws catalog --region eu-west-1 -o ec2.json
        $ karpy solve --catalog ec2.json manifests/
    """
    try:
        asking = import_module("karpy.cli.awscatalog")
    except ModuleNotFoundError as error:
        raise OptionInvalid(
            name="karpy aws catalog",
            problem=f"needs the package `{error.name}`",
            hint="install it: pip install 'karpy[aws]'",
        ) from error
    asking.write(terminal, region, output)
    return DONE


@Parameter(name="*")
@dataclass(frozen=True)
class SetupContents:
    """The content of the fake account."""

    region: Annotated[str, Parameter(help="The region it is.", metavar="NAME")] = "us-west-2"
    cluster: Annotated[str, Parameter(help="The EKS cluster that it has.", metavar="NAME")] = "demo"
    kubernetes: Annotated[
        str, Parameter(help="The version of that cluster.", metavar="VERSION")
    ] = "1.34"
    families: Annotated[
        tuple[str, ...],
        Parameter(
            help="Families of instance types to sell, as `m5,c7g`. [default: all]",
            metavar="NAME",
            converter=_families,
            negative="",
            show_default=False,
        ),
    ] = ()
    sold_out: Annotated[
        tuple[str, ...],
        Parameter(
            help="What has no machines, as `spot/m5.large/us-west-2a`; `*` stands for all.",
            metavar="CAPACITY/TYPE/ZONE",
            negative="",
            show_default=False,
        ),
    ] = ()


USUAL: Final = SetupContents()


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
    contents: SetupContents = USUAL,
    kubeconfig: Annotated[
        str,
        Parameter(
            help="Have machines join this cluster. [default: no machine boots]",
            metavar="FILE",
            show_default=False,
        ),
    ] = "",
    terminal: Injected,
) -> int:
    """
    Run an AWS on this machine, to try Karpy with: no account, no cost, until Ctrl-C.

    It answers what the autoscaler asks of EC2, IAM, SSM, EKS, SQS and Pricing over HTTP, for every
    client of AWS that takes AWS_ENDPOINT_URL. Subnets and the security group carry the tag
    `karpenter.sh/discovery: CLUSTER`, there is a role KarpenterNodeRole-CLUSTER and a queue for
    interruptions. With a kubeconfig, machines read their user data and join as nodes; the embedded
    cluster and KWOK run their pods. For example:

        $ karpy cluster --kubeconfig cluster.yaml &
        $ karpy aws fake --port 5000 --kubeconfig cluster.yaml &
        $ export AWS_ENDPOINT_URL=http://127.0.0.1:5000 AWS_REGION=us-west-2
        $ export AWS_ACCESS_KEY_ID=fake AWS_SECRET_ACCESS_KEY=fake
        $ karpy run --provider aws --cluster-name demo --kubeconfig cluster.yaml

    Everything is gone afterwards.
    """
    serving = import_aws_fake("karpy.cli.awsfake")
    account = serving.FakeAccount(
        contents.region,
        contents.cluster,
        contents.kubernetes,
        contents.families,
        contents.sold_out,
    )
    serving.serve(terminal, port, account, kubeconfig)
    return DONE
