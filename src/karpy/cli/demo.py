"""`karpy demo`: a cluster and the autoscaler, live; or the plan of a larger shop."""

from importlib import import_module
from typing import Annotated, Final, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from karpy.cli.extras import import_aws_fake
from karpy.cli.options import DONE, Injected, Output
from karpy.cli.shopplan import write_manifests, write_plan

SPEED: Final = 3.0
_SPEED_MAX: Final = 20.0


def demo(
    *,
    plan: Annotated[
        bool,
        Parameter(
            negative="",
            show_default=False,
            help="Show instead how a larger shop would be placed; nothing is launched.",
        ),
    ] = False,
    manifests: Annotated[
        bool,
        Parameter(negative="", show_default=False, help="Print that shop's manifests instead."),
    ] = False,
    speed: Annotated[
        float,
        Parameter(
            help="How many seconds pass in the cluster for one on the wall.",
            metavar="N",
            validator=Number(gte=1, lte=_SPEED_MAX),
        ),
    ] = SPEED,
    provider: Annotated[
        Literal["kwok", "aws"],
        Parameter(help="Whether nodes are on paper, or instances of a fake AWS."),
    ] = "kwok",
    output: Output = "text",
    terminal: Injected,
) -> int:
    """
    Watch nodes come and go, in a cluster that lives in this process for a while.

    A small web shop moves in; a deployment called inflate goes from 0 to 20 pods and to 3. Empty
    nodes go, the pods of others move closer together, and all nodes are replaced when the NodePool
    changes. Each decision has a line, and the end says what it came to. It takes 45 seconds and
    leaves nothing behind. For example:

        $ karpy demo
        $ karpy demo --provider aws               the same, on a fake AWS over HTTP
        $ karpy demo --plan                       a larger shop: the plan, its price, and why not
        $ karpy demo --manifests > shop.yaml
        $ karpy explain shop/web-0 shop.yaml

    Instance types and prices are KWOK's, and machines boot in two seconds. Exits with 0, also for
    the plan: the pending pod is part of the show.
    """
    if manifests:
        write_manifests(terminal)
        return DONE
    if plan:
        write_plan(terminal, is_json=output == "json")
        return DONE
    # The simulated cluster takes a second to import; a plan does not need it.
    show = import_module("karpy.cli.show.performance")
    is_json = output == "json"
    if provider == "aws":
        venue = import_aws_fake("karpy.cli.show.awsvenue").ON_AWS
        return int(show.run_show(terminal, speed, is_json=is_json, venue=venue))
    return int(show.run_show(terminal, speed, is_json=is_json))
