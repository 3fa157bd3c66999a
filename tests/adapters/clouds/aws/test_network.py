"""Subnets, launch templates and instance profiles as they are kept in AWS."""

import asyncio

import pytest
from msgspec.structs import replace

from karpy.adapters.clouds.aws.profiles import Profiles
from karpy.adapters.clouds.aws.soldout import SoldOut
from karpy.adapters.clouds.aws.subnets import Subnets
from karpy.adapters.clouds.aws.templates import Templates
from karpy.core.aws.launchtemplates import LaunchTemplate, TemplateKind
from karpy.core.nodepool.hash import hash_text
from karpy.errors import AwsRefused
from karpy.model.ec2nodeclass import Ec2NodeClass, FoundSubnet
from karpy.sim.loop import run
from tests.adapters.clouds.aws.accounts import Account, account
from tests.builders.ec2classes import SPEC, STATUS, node_class

TAGS = [{"Key": "eks:eks-cluster-name", "Value": "demo"}]


def two_in_a(some: Account) -> Ec2NodeClass:
    """Have a second subnet in the first zone, with fewer addresses; one in another zone."""
    some.cloud.subnets[0]["AvailableIpAddressCount"] = 100
    fewer = {**some.cloud.subnets[0], "SubnetId": "subnet-small", "AvailableIpAddressCount": 60}
    some.cloud.subnets.append(fewer)
    found = tuple(
        FoundSubnet(str(each["SubnetId"]), str(each["AvailabilityZone"]))
        for each in (*some.cloud.subnets[:2], fewer)
    )
    return node_class(status=replace(STATUS, subnets=found))


def test_in_each_zone_the_subnet_with_most_addresses_is_taken() -> None:
    async def story(some: Account) -> list[dict[str, str]]:
        subnets, class_ = Subnets(some.calls, some.clock, SoldOut(some.clock)), two_in_a(some)
        told = [await subnets.by_zone(class_)]
        subnets.take(["subnet-00000001"], 50)
        told.append(await subnets.by_zone(class_))
        subnets.give_back(["subnet-00000001"], 50)
        told.append(await subnets.by_zone(class_))
        return told

    with account() as some:
        told = run(story(some))

    first = {"us-west-2a": "subnet-00000001", "us-west-2b": "subnet-00000002"}
    assert told == [first, {**first, "us-west-2a": "subnet-small"}, first]


def test_an_answer_of_ec2_replaces_what_was_reckoned() -> None:
    async def story(some: Account) -> tuple[str, int]:
        subnets, class_ = Subnets(some.calls, some.clock, SoldOut(some.clock)), two_in_a(some)
        await subnets.by_zone(class_)
        subnets.take(["subnet-00000001"], 50)
        await subnets.by_zone(class_)
        asked = some.made("DescribeSubnets")
        await asyncio.sleep(61)
        return (await subnets.by_zone(class_))["us-west-2a"], asked

    with account() as some:
        assert run(story(some)) == ("subnet-00000001", 1)


def test_a_full_subnet_is_left_out_for_a_while() -> None:
    async def story(some: Account) -> list[object]:
        subnets, class_ = Subnets(some.calls, some.clock, SoldOut(some.clock)), two_in_a(some)
        subnets.note_full("subnet-00000001")
        told: list[object] = [await subnets.by_zone(class_), subnets.full_zones(class_)]
        subnets.note_full("subnet-small")
        told += [await subnets.by_zone(class_), subnets.full_zones(class_)]
        await asyncio.sleep(181)
        return [*told, subnets.full_zones(class_)]

    with account() as some:
        told = run(story(some))

    b = {"us-west-2b": "subnet-00000002"}
    assert told == [
        {**b, "us-west-2a": "subnet-small"},
        frozenset(),
        b,
        frozenset({"us-west-2a"}),
        frozenset(),
    ]


def template(name: str = "karpenter.k8s.aws/1") -> LaunchTemplate:
    return LaunchTemplate(name, TemplateKind("ami-1", ()), {"ImageId": "ami-1"})


def test_a_template_is_made_once_and_deleted_when_nothing_needs_it() -> None:
    async def story(some: Account) -> list[int]:
        templates, counts = Templates(some.calls, some.clock, "demo"), []
        for _ in range(3):
            await templates.ensure(template(), TAGS)
        await asyncio.sleep(40)
        await templates.ensure(template(), TAGS)
        await asyncio.sleep(40)
        await templates.delete_unused()
        counts.append(len(some.cloud.templates))
        await asyncio.sleep(30)
        await templates.delete_unused()
        return [*counts, len(some.cloud.templates), some.made("CreateLaunchTemplate")]

    with account() as some:
        assert run(story(some)) == [1, 0, 1]


def test_another_process_takes_over_the_templates_of_the_one_before() -> None:
    async def story(some: Account) -> tuple[int, int]:
        templates = Templates(some.calls, some.clock, "demo")
        await templates.ensure(template("karpenter.k8s.aws/old"), TAGS)
        some.cloud.templates.clear()
        await asyncio.sleep(1)
        await Templates(some.calls, some.clock, "demo").ensure(template(), TAGS)
        # It leads again: what it knew of may be gone, and others were made meanwhile.
        await templates.adopt()
        await templates.ensure(template(), TAGS)
        await asyncio.sleep(61)
        await templates.delete_unused()
        return some.made("CreateLaunchTemplate"), some.made("DeleteLaunchTemplate")

    with account() as some:
        assert run(story(some)) == (2, 1)
        assert some.cloud.templates == {}


def test_a_template_that_is_made_while_others_are_taken_over_is_deleted_in_time() -> None:
    async def story(some: Account) -> int:
        templates = Templates(some.calls, some.clock, "demo")
        await asyncio.gather(templates.ensure(template(), []), templates.adopt())
        await asyncio.sleep(61)
        await templates.delete_unused()
        return len(some.cloud.templates)

    with account() as some:
        assert run(story(some)) == 0


def test_a_template_that_was_deleted_meanwhile_is_made_again() -> None:
    async def story(some: Account) -> int:
        templates = Templates(some.calls, some.clock, "demo")
        await templates.ensure(template(), TAGS)
        some.cloud.templates.clear()
        templates.forget([template().name])
        await templates.ensure(template(), TAGS)
        return len(some.cloud.templates)

    with account() as some:
        assert run(story(some)) == 1


def test_a_template_that_ec2_does_not_list_yet_is_taken_for_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def nothing(**_: object) -> list[object]:
        return []

    async def story(some: Account) -> int:
        await Templates(some.calls, some.clock, "demo").ensure(template(), TAGS)
        monkeypatch.setattr(some.calls, "describe_launch_templates", nothing, raising=False)
        await Templates(some.calls, some.clock, "demo").ensure(template(), TAGS)
        return len(some.cloud.templates)

    with account() as some:
        assert run(story(some)) == 1


def test_all_templates_of_a_node_class_go_with_it() -> None:
    async def story(some: Account) -> list[str]:
        templates = Templates(some.calls, some.clock, "demo")
        for name, class_ in (("a", "default"), ("b", "other"), ("c", "default")):
            tag = {"Key": "karpenter.k8s.aws/ec2nodeclass", "Value": class_}
            await templates.ensure(template(name), [*TAGS, tag])
        await templates.delete_of("default")
        return sorted(some.cloud.templates)

    with account() as some:
        assert run(story(some)) == ["b"]


ROLE = replace(SPEC, role="KarpenterNodeRole-demo")
MANAGED = node_class(ROLE)


def test_a_profile_is_made_for_a_role_and_found_again() -> None:
    async def story(some: Account) -> tuple[str, str]:
        first = await Profiles(some.calls, some.clock, "demo").ensure(MANAGED)
        second = await Profiles(some.calls, some.clock, "demo").ensure(MANAGED)
        return first, second

    with account() as some:
        first, second = run(story(some))
        (profile,) = some.cloud.profiles.values()

    assert first == second == profile["InstanceProfileName"]
    assert first.startswith("demo_")
    assert profile["Path"] == "/karpenter/us-west-2/demo/uid-1/"
    assert profile["Roles"] == [{"RoleName": "KarpenterNodeRole-demo"}]
    tags = {each["Key"]: each["Value"] for each in profile["Tags"]}
    assert tags["kubernetes.io/cluster/demo"] == "owned"
    assert tags["topology.kubernetes.io/region"] == "us-west-2"


def test_the_profile_that_karpenter_has_made_is_kept_as_long_as_its_role_is() -> None:
    async def story(some: Account) -> tuple[str, str]:
        path = "/karpenter/us-west-2/demo/uid-1/"
        role = {"RoleName": "KarpenterNodeRole-demo"}
        theirs = {"InstanceProfileName": "demo_42", "Path": path, "Roles": [role], "Tags": []}
        some.cloud.profiles["demo_42"] = theirs
        some.cloud.roles.add("other")
        status = replace(STATUS, instance_profile="demo_42")
        profiles = Profiles(some.calls, some.clock, "demo")
        kept = await profiles.ensure(node_class(ROLE, status))
        other = await profiles.ensure(node_class(replace(ROLE, role="other"), status))
        return kept, other

    with account() as some:
        kept, other = run(story(some))

    assert kept == "demo_42"
    assert other.startswith("demo_")
    assert other != kept


def test_a_profile_of_the_class_is_taken_as_it_is() -> None:
    async def story(some: Account) -> str:
        own = node_class(replace(SPEC, role="", instance_profile="mine"))
        return await Profiles(some.calls, some.clock, "demo").ensure(own)

    with account() as some:
        assert run(story(some)) == "mine"
        assert some.cloud.profiles == {}


def test_the_path_of_a_role_is_no_part_of_its_name() -> None:
    async def story(some: Account) -> None:
        pathed = node_class(replace(ROLE, role="team/KarpenterNodeRole-demo"))
        await Profiles(some.calls, some.clock, "demo").ensure(pathed)

    with account() as some:
        run(story(some))
        (profile,) = some.cloud.profiles.values()

    assert profile["Roles"] == [{"RoleName": "KarpenterNodeRole-demo"}]


def test_a_role_that_does_not_exist_is_not_asked_for_all_the_time() -> None:
    async def story(some: Account) -> list[int]:
        profiles = Profiles(some.calls, some.clock, "demo")
        missing, counts = node_class(replace(ROLE, role="nobody")), []
        for pause in (0, 30, 31):
            await asyncio.sleep(pause)
            with pytest.raises(AwsRefused, match="cannot be found"):
                await profiles.ensure(missing)
            counts.append(some.made("AddRoleToInstanceProfile"))
        return counts

    with account() as some:
        assert run(story(some)) == [1, 1, 2]
        assert some.cloud.profiles == {}


def test_another_role_has_another_profile_and_the_old_one_is_collected_later() -> None:
    async def story(some: Account) -> list[int]:
        profiles = Profiles(some.calls, some.clock, "demo")
        some.cloud.roles.add("other")
        old = await profiles.ensure(MANAGED)
        status = replace(STATUS, instance_profile=old)
        new = await profiles.ensure(node_class(replace(ROLE, role="other"), status))
        counts = []
        for pause, used in ((0, {new}), (3601, {new, old}), (0, {new})):
            await asyncio.sleep(pause)
            await profiles.collect(used)
            counts.append(len(some.cloud.profiles))
        assert list(some.cloud.profiles) == [new]
        return counts

    with account() as some:
        assert run(story(some)) == [2, 2, 1]


def test_profiles_go_with_their_class_and_those_of_others_stay() -> None:
    async def story(some: Account) -> list[str]:
        profiles = Profiles(some.calls, some.clock, "demo")
        await profiles.ensure(MANAGED)
        kept = await profiles.ensure(node_class(ROLE, uid="uid-2", name="other"))
        await profiles.delete_of(MANAGED)
        return [kept, *some.cloud.profiles]

    with account() as some:
        kept, *left = run(story(some))

    assert left == [kept]


def test_the_profile_of_an_old_karpenter_goes_with_its_class_if_it_is_of_this_cluster() -> None:
    async def story(some: Account) -> None:
        profiles = Profiles(some.calls, some.clock, "demo")
        for region_and_class, cluster in (("us-west-2default", "demo"), ("us-west-2other", "shop")):
            name = f"demo_{hash_text(region_and_class)}"
            tags = [{"Key": f"kubernetes.io/cluster/{cluster}", "Value": "owned"}]
            role = {"RoleName": "KarpenterNodeRole-demo"}
            made = {"InstanceProfileName": name, "Path": "/", "Roles": [role], "Tags": tags}
            some.cloud.profiles[name] = made
        await profiles.delete_of(MANAGED)
        await profiles.delete_of(node_class(ROLE, uid="uid-2", name="other"))

    with account() as some:
        run(story(some))
        assert list(some.cloud.profiles) == [f"demo_{hash_text('us-west-2other')}"]


def test_a_subnet_that_was_just_deleted_does_not_hide_the_others() -> None:
    async def story(some: Account) -> list[dict[str, str]]:
        subnets, class_ = Subnets(some.calls, some.clock, SoldOut(some.clock)), two_in_a(some)
        told = [await subnets.by_zone(class_)]
        del some.cloud.subnets[0]
        await asyncio.sleep(61)
        return [*told, await subnets.by_zone(class_)]

    with account() as some:
        b = {"us-west-2b": "subnet-00000002"}
        first = {**b, "us-west-2a": "subnet-00000001"}
        assert run(story(some)) == [first, {**b, "us-west-2a": "subnet-small"}]


def test_subnets_that_cannot_be_asked_for_stay_as_they_were_last() -> None:
    async def story(some: Account) -> list[dict[str, str]]:
        subnets, class_ = Subnets(some.calls, some.clock, SoldOut(some.clock)), two_in_a(some)
        some.tables.refuse("DescribeSubnets")
        with pytest.raises(AwsRefused):
            await subnets.by_zone(class_)
        told = [await subnets.by_zone(class_)]
        await asyncio.sleep(61)
        some.tables.refuse("DescribeSubnets")
        return [*told, await subnets.by_zone(class_)]

    with account() as some:
        first, second = run(story(some))

    assert first == second == {"us-west-2a": "subnet-00000001", "us-west-2b": "subnet-00000002"}
