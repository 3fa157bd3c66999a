"""Instance types that meet criteria, and equivalent requirements."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from karpy.adapters.clouds.aws.builtin import builtin_region
from karpy.codec.catalogs import kwok_catalog
from karpy.core.aws.catalog import CatalogMaker
from karpy.core.instancechoice import Criteria, NumberRange, choose, label, requirements_of
from karpy.model.ec2 import AUTO_MODE_DOMAIN, EC2_DOMAIN, InstanceSettings
from karpy.model.labels import ARCH, CAPACITY_TYPE, INSTANCE_TYPE, ON_DEMAND, SPOT, ZONE
from karpy.model.requirements import Operator, Requirement, collect, merge, one_of, require

REGION = builtin_region("eu-west-1")
EC2 = CatalogMaker().make(REGION, {}, usual=InstanceSettings()).types
AUTO = CatalogMaker().make(REGION, {}, usual=InstanceSettings(label_domain=AUTO_MODE_DOMAIN)).types
SMALL = {"t4g.medium", "t4g.large", "m5.large", "c6g.large", "g4dn.xlarge", "g5.12xlarge"}
SOME = [*EC2[::15], *(each for each in EC2 if each.name.startswith(("g6f.", "t3.", "g4")))]
ARM = ["t4g.medium", "t4g.large", "c6g.large"]
FEW = tuple(each for each in EC2 if each.name in SMALL)


def names(criteria: Criteria) -> list[str]:
    return [each.type.name for each in choose(FEW, criteria)]


def test_types_are_in_the_order_of_their_prices() -> None:
    choices = choose(EC2, Criteria())

    prices = [(each.price, each.type.name) for each in choices]
    assert prices == sorted(prices)
    # Images of Amazon Linux 2023 do not boot the first Arm family.
    assert {each.name for each in EC2} - {each.type.name for each in choices} == {
        f"a1.{size}" for size in ("medium", "large", "xlarge", "2xlarge", "4xlarge", "metal")
    }
    assert names(Criteria()) == [
        "t4g.medium",
        "t4g.large",
        "c6g.large",
        "m5.large",
        "g4dn.xlarge",
        "g5.12xlarge",
    ]


@pytest.mark.parametrize(
    ("criteria", "found"),
    [
        (Criteria(vcpus=NumberRange(4)), ["g4dn.xlarge", "g5.12xlarge"]),
        (
            Criteria(vcpus=NumberRange(2, 2), memory_mib=NumberRange(8192, 8192)),
            ["t4g.large", "m5.large"],
        ),
        (Criteria(memory_mib=NumberRange(most=4096)), ["t4g.medium", "c6g.large"]),
        (Criteria(gpus=NumberRange(1)), ["g4dn.xlarge", "g5.12xlarge"]),
        (Criteria(gpus=NumberRange(4, 4)), ["g5.12xlarge"]),
        (Criteria(gpus=NumberRange(0, 0), architectures=frozenset({"amd64"})), ["m5.large"]),
        (Criteria(gpu_names=frozenset({"t4"})), ["g4dn.xlarge"]),
        (Criteria(generation=NumberRange(6)), ["c6g.large"]),
        (Criteria(categories=frozenset({"c", "m"})), ["c6g.large", "m5.large"]),
        (Criteria(families=frozenset({"m5"})), ["m5.large"]),
        (Criteria(is_burstable=True), ["t4g.medium", "t4g.large"]),
        (Criteria(is_burstable=False, vcpus=NumberRange(2, 2)), ["c6g.large", "m5.large"]),
        (Criteria(price_max=20_000), ["t4g.medium"]),
        (Criteria(zones=frozenset({"eu-west-1z"})), []),
        (Criteria(pool={ARCH: one_of(ARCH, "arm64")}), ARM),
        (Criteria(labels={ARCH: one_of(ARCH, "arm64")}), ARM),
        (Criteria(pool={"team": one_of("team", "a")}, families=frozenset({"m5"})), ["m5.large"]),
    ],
)
def test_criteria_leave_the_types_that_meet_them(criteria: Criteria, found: list[str]) -> None:
    assert names(criteria) == found


def test_only_offerings_that_meet_the_criteria_count() -> None:
    criteria = Criteria(
        zones=frozenset({"eu-west-1a"}),
        capacity_types=frozenset({ON_DEMAND}),
        families=frozenset({"m5"}),
    )

    (choice,) = choose(FEW, criteria)

    assert [(each.zone, each.capacity_type) for each in choice.offerings] == [
        ("eu-west-1a", ON_DEMAND)
    ]
    assert (choice.price_as(ON_DEMAND), choice.price_as(SPOT)) == (choice.price, None)


def test_a_pool_that_asks_for_spot_pays_for_spot() -> None:
    pool = {CAPACITY_TYPE: one_of(CAPACITY_TYPE, SPOT)}

    (choice,) = choose(FEW, Criteria(pool=pool, families=frozenset({"m5"})))

    assert choice.price_as(ON_DEMAND) is None


def test_a_choice_has_the_properties_of_its_type() -> None:
    (choice,) = choose(FEW, Criteria(families=frozenset({"g5"})))

    assert (choice.vcpus, choice.memory_mib, choice.gpus) == (48, 196608, 4)
    assert (choice.gpu_name, choice.architecture) == ("a10g", "amd64")


def test_types_without_labels_of_ec2_are_chosen_by_their_capacity() -> None:
    choices = choose(
        kwok_catalog().types, Criteria(vcpus=NumberRange(4, 4), memory_mib=NumberRange(8192, 8192))
    )

    assert {each.type.name.split("-")[0] for each in choices} == {"c"}
    assert label(choices[0].type, "instance-family") == ""
    assert requirements_of(Criteria(), choices) == [
        one_of(INSTANCE_TYPE, *(each.type.name for each in choices))
    ]


def test_criteria_become_label_requirements() -> None:
    criteria = Criteria(
        vcpus=NumberRange(4, 8),
        memory_mib=NumberRange(16384),
        gpus=NumberRange(0, 0),
        generation=NumberRange(7, 7),
        architectures=frozenset({"arm64"}),
        categories=frozenset({"m"}),
        zones=frozenset({"eu-west-1a"}),
        capacity_types=frozenset({SPOT}),
        is_burstable=False,
    )

    assert requirements_of(criteria, choose(EC2, criteria)) == [
        Requirement(EC2_DOMAIN + "instance-cpu", complement=True, gte=4, lte=8),
        Requirement(EC2_DOMAIN + "instance-memory", complement=True, gte=16384),
        one_of(EC2_DOMAIN + "instance-generation", "7"),
        require(EC2_DOMAIN + "instance-gpu-count", Operator.DOES_NOT_EXIST),
        one_of(EC2_DOMAIN + "instance-category", "m"),
        require(EC2_DOMAIN + "instance-category", Operator.NOT_IN, ["t"]),
        one_of(ARCH, "arm64"),
        one_of(ZONE, "eu-west-1a"),
        one_of(CAPACITY_TYPE, SPOT),
    ]


def test_eks_auto_mode_has_labels_of_its_own() -> None:
    criteria = Criteria(gpus=NumberRange(1), is_burstable=None)

    assert requirements_of(criteria, choose(AUTO, criteria)) == [
        Requirement(AUTO_MODE_DOMAIN + "instance-gpu-count", complement=True, gte=1)
    ]


@pytest.mark.parametrize(
    ("criteria", "is_cut"),
    [(Criteria(price_max=50_000), False), (Criteria(vcpus=NumberRange(2, 2)), True)],
)
def test_types_are_named_if_labels_cannot_express_the_criteria(
    criteria: Criteria, *, is_cut: bool
) -> None:
    choices = choose(FEW, criteria)[:2]

    (named,) = requirements_of(criteria, choices, is_cut=is_cut)

    assert named == one_of(INSTANCE_TYPE, *(each.type.name for each in choices))


spans = st.builds(NumberRange, st.none() | st.integers(0, 16), st.none() | st.integers(4, 64))
criteria = st.builds(
    Criteria,
    vcpus=spans,
    memory_mib=st.builds(NumberRange, st.none() | st.integers(0, 65536), st.none()),
    gpus=st.sampled_from(
        [NumberRange(), NumberRange(0, 0), NumberRange(1), NumberRange(1, 4), NumberRange(0, 1)]
    ),
    generation=st.sampled_from(
        [NumberRange(), NumberRange(6), NumberRange(5, 6), NumberRange(4, 4)]
    ),
    architectures=st.sampled_from([frozenset(), frozenset({"arm64"})]),
    categories=st.sampled_from([frozenset(), frozenset({"c", "m", "g"})]),
    is_burstable=st.sampled_from([None, True, False]),
)


@given(criteria)
def test_requirements_allow_exactly_the_chosen_types(criteria: Criteria) -> None:
    """In a NodePool they must neither allow other types nor exclude chosen ones."""
    chosen = choose(SOME, criteria)
    assume(chosen)

    wanted = requirements_of(criteria, chosen)

    assert choose(SOME, Criteria(pool=merge(collect(wanted)))) == chosen
