"""How the provider of AWS is opened: what it checks, finds out and reports."""

import ast

import pytest

from karpy.codec.fields import JsonObject
from karpy.controllers.context import ControllerContext
from karpy.errors import AwsRefused, KarpyError, OptionInvalid
from karpy.model.kinds import DAEMON_SET
from karpy.model.notices import Notice
from karpy.model.settings import Options
from karpy.sim.loop import run
from karpy.sim.world import World
from karpy.wiring.clouds.aws import METRICS, open_with, well_known
from karpy.wiring.clouds.registry import Cloud, ProviderInputs
from tests.adapters.clouds.aws.accounts import Account, account
from tests.controllers.operators import Heard, context_of
from tests.tidy.repository import ROOT, product_files, tree


class Told:
    """Listens to notices."""

    def __init__(self) -> None:
        self.notices: list[Notice] = []

    def emit(self, notice: Notice) -> None:
        self.notices.append(notice)


def site(world: World, some: Account, cloud: dict[str, str]) -> ProviderInputs:
    options = Options(provider="aws", cloud=cloud)
    return ProviderInputs(
        world.objects,
        world.objects,
        some.clock,
        Told(),
        options,
        on_trouble=some.trouble,
        on_count=some.counts.append,
    )


async def opened(some: Account, world: World | None = None, **cloud: str) -> Cloud:
    given = {"cluster_name": "demo", **cloud}
    return await open_with(site(world or World(), some, given), some.calls)


def names_of(cloud: Cloud) -> set[str]:
    return {each.name for each in cloud.follows}


def test_the_provider_opens_with_the_name_of_a_cluster_alone() -> None:
    with account() as some:
        cloud = run(opened(some))

        assert cloud.provider.name == "aws"
        assert names_of(cloud) == {"aws.ec2nodeclasses", "aws.nodepools"}
        # Metrics of nodes are made with the one, and collected with the other.
        assert cloud.provider.catalog().well_known == well_known(Options())
        assert some.made("DescribeInstanceTypes") == 2
        assert some.troubles == []


@pytest.mark.parametrize(
    ("cloud", "flag"),
    [({"cluster_name": ""}, "--cluster-name"), ({"cluster_endpoint": "api"}, "--cluster-endpoint")],
)
def test_settings_that_cannot_be_end_the_start(cloud: dict[str, str], flag: str) -> None:
    with account() as some, pytest.raises(OptionInvalid, match=flag):
        run(opened(some, None, **cloud))


def test_a_cluster_that_eks_does_not_know_needs_endpoint_and_authority() -> None:
    with account() as some, pytest.raises(AwsRefused, match="ResourceNotFound"):
        run(opened(some, cluster_name="other"))


def test_endpoint_and_authority_do_without_eks() -> None:
    with account() as some:
        run(opened(some, cluster_name="other", cluster_endpoint="https://a", ca_bundle="Q0E="))

        assert [what for what, _ in some.troubles] == [
            "ask EKS for version and addresses of the cluster"
        ]


def test_ec2_that_cannot_be_asked_ends_the_start() -> None:
    with account() as some:
        some.tables.refuse("DescribeInstanceTypes", "UnauthorizedOperation", "no", times=9)
        with pytest.raises(KarpyError, match="UnauthorizedOperation"):
            run(opened(some))


def daemon_set(name: str) -> JsonObject:
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": "kube-system"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "c", "image": "i"}]},
            },
        },
    }


def test_another_one_that_drains_nodes_on_interruptions_is_reported() -> None:
    async def story(some: Account, queue: str) -> None:
        world = World()
        world.store.create(DAEMON_SET, daemon_set("aws-node-termination-handler"))
        world.store.create(DAEMON_SET, daemon_set("kube-proxy"))
        await opened(some, world, interruption_queue=queue)

    with account() as some:
        run(story(some, ""))
        assert some.troubles == []
        run(story(some, "demo"))
        ((what, message),) = some.troubles

    assert what == "act on interruptions alone"
    assert "DaemonSet kube-system/aws-node-termination-handler drains nodes, too" in message


@pytest.mark.parametrize(
    ("queue", "loops"),
    [
        ("demo", {"interruption.queue", "interruption.instancestatus"}),
        ("", {"interruption.instancestatus"}),
    ],
)
def test_every_loop_that_hears_of_interruptions_is_observed(queue: str, loops: set[str]) -> None:
    """What is observed is part of `/healthz`."""

    async def story(some: Account) -> set[str]:
        world, names = World(), set[str]()
        cloud = await opened(some, world, interruption_queue=queue)
        async with context_of(world, Heard()) as context:

            def named(name: str) -> ControllerContext:
                names.add(name)
                return context

            list(cloud.parts(named))
        return {each for each in names if each.startswith("interruption")}

    with account() as some:
        assert run(story(some)) == loops


def _counted() -> set[str]:
    """Find the metrics that the provider counts, by the constants that name them."""
    found = set()
    for path in product_files():
        if "aws" not in path.relative_to(ROOT).parts and path.name != "aws.py":
            continue
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.AnnAssign) and isinstance(node.value, ast.Constant):
                text = str(node.value.value)
                if text.startswith(("cloudprovider_", "interruption_", "ec2nodeclasses_")):
                    found.add(f"karpenter_{text}")
                if text.startswith("aws_sdk_"):
                    found.add(text)
    return found


def test_every_metric_that_is_counted_is_described_and_no_other() -> None:
    named = {each.name for each in METRICS}

    assert _counted() == {each for each in named if not each.startswith("operator_")}
