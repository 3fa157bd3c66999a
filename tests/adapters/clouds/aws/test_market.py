"""Prices, images, shifts and the cluster, as they are asked for again and again."""

import asyncio

import pytest

from karpy.adapters.clouds.aws.cluster import ClusterWatch
from karpy.adapters.clouds.aws.finders import Finders, FoundImages
from karpy.adapters.clouds.aws.marketplace import Marketplace
from karpy.adapters.clouds.aws.parametercontroller import ParameterController
from karpy.adapters.clouds.aws.soldout import SoldOut
from karpy.core.lifecycle.changes import Remark
from karpy.errors import AwsRefused, CloudUnavailable
from karpy.model.ec2 import Ec2Market
from karpy.model.ec2nodeclass import (
    Ec2NodeClassSpec,
    ImageTerm,
    PlacementGroupTerm,
    ReservationTerm,
    SecurityGroupTerm,
    SubnetTerm,
)
from karpy.sim.loop import run
from tests.adapters.clouds.aws.accounts import Account, account

ESTIMATES = {"c6a.large": 70_000, "c6a.xlarge": 140_000}


def marketplace(some: Account, *, asks_prices: bool = True) -> Marketplace:
    sold_out = SoldOut(some.clock)
    return Marketplace(
        some.calls,
        some.clock,
        sold_out,
        ESTIMATES,
        on_trouble=some.trouble,
        asks_prices=asks_prices,
    )


def market(of: Marketplace) -> Ec2Market:
    return of.region().market


def test_prices_are_estimates_until_they_were_asked_for() -> None:
    async def story(some: Account) -> list[object]:
        prices = marketplace(some)
        told: list[object] = [market(prices).on_demand["c6a.large"], market(prices).spot]
        await prices.refresh_types()
        await prices.refresh_prices()
        spot = market(prices).spot
        assert spot is not None
        return [*told, market(prices).on_demand["c6a.large"], set(spot)]

    with account() as some:
        told = run(story(some))

    assert told == [70_000, None, 76_500, {"c6a.large", "c6a.xlarge"}]


def test_prices_that_cannot_be_asked_for_stay_as_they_were() -> None:
    async def story(some: Account) -> list[object]:
        prices = marketplace(some)
        await prices.refresh_prices()
        before = market(prices)
        some.tables.refuse("GetProducts", times=2)
        some.tables.refuse("DescribeSpotPriceHistory")
        some.tables.market.set_price("c6a.large", 99_000)
        await prices.refresh_prices()
        return [market(prices) == before]

    with account() as some:
        assert run(story(some)) == [True]
        assert {what for what, _ in some.troubles} == {
            "refresh spot prices",
            "refresh on-demand prices",
        }


def test_empty_lists_of_prices_are_reported_and_change_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def nothing(**_: object) -> list[object]:
        return []

    async def story(some: Account) -> bool:
        prices = marketplace(some)
        await prices.refresh_prices()
        before = market(prices)
        for call in ("get_products", "describe_spot_price_history"):
            monkeypatch.setattr(some.calls, call, nothing, raising=False)
        await prices.refresh_prices()
        return market(prices) == before

    with account() as some:
        assert run(story(some))
        assert sorted(some.troubles) == [
            ("refresh on-demand prices", "`pricing:GetProducts` failed: it lists no prices"),
            (
                "refresh spot prices",
                "`ec2:DescribeSpotPriceHistory` failed: it lists no spot prices",
            ),
        ]


def test_a_leader_asks_for_what_is_old_and_for_nothing_else() -> None:
    """A replica may have waited for days since it asked at its start."""

    async def story(some: Account) -> list[tuple[int, int]]:
        prices, made = marketplace(some), []
        await prices.refresh_types()
        await prices.refresh_prices()
        for _ in range(2):
            await prices.renew_types()
            await prices.renew_prices()
            made.append((some.made("DescribeInstanceTypes"), some.made("GetProducts")))
            await asyncio.sleep(3601)
        return made

    with account() as some:
        assert run(story(some)) == [(1, 2), (2, 4)]


def test_an_isolated_vpc_asks_for_no_prices_on_demand() -> None:
    async def story(some: Account) -> int:
        prices = marketplace(some, asks_prices=False)
        await prices.refresh_prices()
        assert market(prices).on_demand == ESTIMATES
        assert market(prices).spot is not None
        return some.made("GetProducts")

    with account() as some:
        assert run(story(some)) == 0


def test_the_region_is_the_same_object_until_something_has_changed() -> None:
    async def story(some: Account) -> list[bool]:
        sold_out = SoldOut(some.clock)
        prices = Marketplace(some.calls, some.clock, sold_out, ESTIMATES)
        await prices.refresh_types()
        first = prices.region()
        told = [prices.region() is first]
        sold_out.offerings.add(("spot", "c6a.large", "us-west-2a"))
        told.append(prices.region() is first)
        second = prices.region()
        told.append(prices.region() is second)
        await asyncio.sleep(181)
        return [*told, prices.region().market == first.market]

    with account() as some:
        assert run(story(some)) == [True, False, True, True]


def test_an_instance_type_that_cannot_be_read_is_named_and_the_others_are_sold() -> None:
    async def story(some: Account) -> int:
        prices = marketplace(some)
        broken = {**some.tables.types["c6a.large"], "InstanceType": "c6a.odd", "VCpuInfo": "two"}
        some.tables.types["c6a.odd"] = broken
        await prices.refresh_types()
        return len(prices.region().types)

    with account() as some:
        assert run(story(some)) == 2
        ((what, problem),) = some.troubles

    assert what == "read an instance type, it is left aside"
    assert "c6a.odd" in problem


def test_a_region_that_sells_nothing_is_an_error() -> None:
    async def story(some: Account) -> None:
        some.tables.types.clear()
        with pytest.raises(CloudUnavailable, match="lists no instance types"):
            await marketplace(some).refresh_types()

    with account() as some:
        run(story(some))


ALIAS = Ec2NodeClassSpec(image_terms=(ImageTerm(alias="al2023@latest"),))


def test_images_of_an_alias_are_found_by_parameters_that_are_asked_for_once_a_day() -> None:
    async def story(some: Account) -> tuple[int, int, int]:
        finders = Finders(some.calls, some.clock)
        found = await finders.images(ALIAS, "1.34")
        first = some.made("GetParameter")
        await finders.images(ALIAS, "1.34")
        assert some.made("GetParameter") - first <= 5
        return len(found.chosen), first, len(finders.parameters.mutable())

    with account() as some:
        images, asked, mutable = run(story(some))

    assert images >= 3
    assert asked == 5
    assert mutable >= 3


def test_a_parameter_is_asked_for_anew_once_its_image_is_deprecated() -> None:
    async def story(some: Account) -> list[int]:
        finders = Finders(some.calls, some.clock)
        await finders.images(ALIAS, "1.34")
        controller = ParameterController(finders.parameters, some.calls, some.clock)
        counts = [len(finders.parameters.mutable())]
        await controller.invalidate()
        counts.append(len(finders.parameters.mutable()))
        image = next(iter(some.cloud.images.values()))
        image["DeprecationTime"] = "2025-01-01T00:00:00.000Z"
        await controller.invalidate()
        return [*counts, len(finders.parameters.mutable())]

    with account() as some:
        before, same, after = run(story(some))

    assert before == same
    assert after < before


def test_terms_that_name_nothing_find_nothing() -> None:
    spec = Ec2NodeClassSpec(
        subnet_terms=(SubnetTerm(id="subnet-none"), SubnetTerm({"a": "b"})),
        security_group_terms=(SecurityGroupTerm(id="sg-none"),),
        reservation_terms=(ReservationTerm(id="cr-none"),),
        placement_group=PlacementGroupTerm("none"),
        image_terms=(ImageTerm(ssm_parameter="/none"),),
    )

    async def story(some: Account) -> list[object]:
        finders = Finders(some.calls, some.clock)
        return [
            await finders.subnets(spec),
            await finders.security_groups(spec),
            await finders.reservations(spec),
            await finders.placement_group(spec),
            await finders.images(spec, "1.34"),
        ]

    with account() as some:
        assert run(story(some)) == [[], [], [], None, FoundImages((), ())]


def test_images_without_an_architecture_are_named_and_not_chosen() -> None:
    spec = Ec2NodeClassSpec(image_family="AL2023", image_terms=(ImageTerm(id="ami-1"),))

    async def story(some: Account) -> FoundImages:
        some.cloud.images["ami-1"] = {"ImageId": "ami-1", "Name": "bare", "State": "available"}
        return await Finders(some.calls, some.clock).images(spec, "1.34")

    with account() as some:
        assert run(story(some)) == FoundImages((), ("ami-1",))


def test_a_subnet_that_two_terms_select_is_found_once() -> None:
    both = (
        SubnetTerm(id="subnet-00000001"),
        SubnetTerm({"karpenter.sh/discovery": "demo"}),
        SubnetTerm({"karpenter.sh/discovery": "*"}),
    )

    async def story(some: Account) -> list[str]:
        found = await Finders(some.calls, some.clock).subnets(Ec2NodeClassSpec(subnet_terms=both))
        return sorted(each.id for each in found)

    with account() as some:
        assert run(story(some)) == [each["SubnetId"] for each in some.cloud.subnets]


def test_the_version_of_the_control_plane_is_followed() -> None:
    async def story(some: Account) -> list[str]:
        watch = ClusterWatch(some.calls, "demo")
        await watch.refresh()
        told = [watch.facts.kubernetes, watch.facts.cidr]
        some.cloud.kubernetes = "1.35"
        some.tables.refuse("DescribeCluster", "InternalError")
        trouble = await watch.refresh_if_possible()
        assert isinstance(trouble, AwsRefused)
        told.append(watch.facts.kubernetes)
        await watch.refresh()
        return [*told, watch.facts.kubernetes]

    with account() as some:
        assert run(story(some)) == ["1.34", "10.100.0.0/16", "1.34", "1.35"]


def test_an_untested_version_is_reported_once() -> None:
    async def story(some: Account) -> list[str]:
        said, told = ["1.25", "1.25", "1.36", "1.37", "1.37"], list[str]()

        async def server_version() -> str:
            return said.pop(0)

        def hear(remark: Remark) -> None:
            told.append(remark.fields["version"])

        watch = ClusterWatch(some.calls, "demo", server_version, hear)
        for _ in range(5):
            await watch.refresh()
        return told

    with account() as some:
        assert run(story(some)) == ["1.25", "1.37"]


def test_the_api_server_knows_the_version_best() -> None:
    async def story(some: Account) -> list[str]:
        said = ["1.36", "", "1.37", "1.38"]

        async def server_version() -> str:
            return said.pop(0)

        watch, told = ClusterWatch(some.calls, "demo", server_version), []
        for _ in range(3):
            await watch.refresh()
            told.append(watch.facts.kubernetes)
        some.tables.refuse("DescribeCluster", "InternalError")
        await watch.refresh_if_possible()
        return [*told, watch.facts.kubernetes]

    with account() as some:
        assert run(story(some)) == ["1.36", "1.34", "1.37", "1.38"]
