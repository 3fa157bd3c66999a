"""Which types and offerings a launch asks for, and how."""

import pytest
from msgspec.structs import replace

from karpy.core.aws.catalog import EC2_WELL_KNOWN, CatalogMaker
from karpy.core.aws.fleet import (
    OPTIONS_MAX,
    Wanted,
    choose_capacity_type,
    choose_tenancy,
    choose_types,
    fleet_request,
    is_thin_fallback,
    overrides_everywhere,
    overrides_of,
    reservations_in,
    trial_tenancy,
)
from karpy.core.aws.launchtemplates import LaunchTemplate, TemplateKind, split_by_template
from karpy.model.ec2 import CapacityReservation, Device, InstanceSettings, InstanceTypeInfo, Region
from karpy.model.instances import InstanceType
from karpy.model.labels import (
    CAPACITY_TYPE,
    INSTANCE_TYPE,
    MIN_VALUES_RELAXED,
    ON_DEMAND,
    PRICE_OVERLAID,
    RESERVED,
    SPOT,
    ZONE,
)
from karpy.model.requirements import Requirement, Requirements, collect, one_of
from tests.builders.ec2 import (
    C6G_LARGE,
    M5_LARGE,
    M5_METAL,
    M5_XLARGE,
    T3_LARGE,
    ZONE_IDS,
    ZONES,
    JsonAnything,
    market,
    region,
)
from tests.builders.ec2classes import node_class, types_of

MAY_LACK = EC2_WELL_KNOWN
GPU = replace(M5_LARGE, name="g5.xlarge", gpus=(Device("a10g", "NVIDIA", 1, 24576),))
SUBNETS = {"eu-west-1a": "subnet-a", "eu-west-1b": "subnet-b"}
RESERVATION = "karpenter.k8s.aws/capacity-reservation-id"


def asking(*requirements: Requirement) -> Requirements:
    return collect(requirements)


def names(types: list[InstanceType]) -> list[str]:
    return [each.name for each in types]


def chosen(types: list[InstanceType], *requirements: Requirement) -> list[InstanceType]:
    return choose_types(types, Wanted(asking(*requirements)), MAY_LACK)


def places(types: list[InstanceType]) -> set[tuple[str, str]]:
    return {(offer.capacity_type, offer.zone) for each in types for offer in each.offerings}


def test_types_that_fit_and_are_allowed_are_chosen_cheapest_first() -> None:
    made = CatalogMaker().make(
        Region(
            "eu-west-1",
            (M5_LARGE, M5_XLARGE, C6G_LARGE),
            replace(
                market(M5_LARGE, M5_XLARGE, C6G_LARGE),
                on_demand={"m5.large": 96_000, "m5.xlarge": 192_000, "c6g.large": 68_000},
                spot={},
            ),
        ),
        {},
        usual=InstanceSettings(),
    )

    wanted = Wanted(asking(one_of(ZONE, ZONES[0])), {"cpu": 1500})
    found = choose_types(made.types, wanted, MAY_LACK)

    assert names(found) == ["c6g.large", "m5.large", "m5.xlarge"]
    assert places(found) == {(ON_DEMAND, ZONES[0])}
    assert names(choose_types(made.types, Wanted({}, {"cpu": 3000}), MAY_LACK)) == ["m5.xlarge"]
    assert chosen(list(made.types), one_of(INSTANCE_TYPE, "z1.large")) == []


def test_labels_of_the_nodepool_do_not_rule_out_types() -> None:
    found = chosen(types_of(M5_LARGE), one_of("example.com/team", "shop"))

    assert names(found) == ["m5.large"]


def test_metal_and_accelerators_are_left_out_where_others_do() -> None:
    types = types_of(M5_LARGE, M5_METAL, GPU)

    assert names(chosen(types)) == ["m5.large"]
    assert names(chosen(types, one_of(INSTANCE_TYPE, "m5.metal"))) == ["m5.metal"]
    assert set(names(chosen(types, one_of(INSTANCE_TYPE, "m5.metal", "g5.xlarge")))) == {
        "m5.metal",
        "g5.xlarge",
    }


def sold(*prices: tuple[InstanceTypeInfo, int, int]) -> list[InstanceType]:
    """Sell types at a price on demand and as spot."""
    infos = [each for each, _, _ in prices]
    priced = replace(
        market(*infos),
        on_demand={each.name: price for each, price, _ in prices},
        spot={each.name: dict.fromkeys(ZONES, price) for each, _, price in prices},
    )
    made = CatalogMaker().make(
        Region("eu-west-1", tuple(infos), priced), {}, usual=InstanceSettings()
    )
    return list(made.types)


def test_spot_that_costs_more_than_the_cheapest_on_demand_is_dropped() -> None:
    types = sold((M5_LARGE, 96, 40), (M5_XLARGE, 192, 97), (T3_LARGE, 99, 96))

    found = chosen(types)
    spot = {each.name for each in found for o in each.offerings if o.capacity_type == SPOT}
    on_spot_alone = chosen(types, one_of(CAPACITY_TYPE, SPOT))

    assert spot == {"m5.large", "t3.large"}
    assert set(names(on_spot_alone)) == {"m5.large", "m5.xlarge", "t3.large"}


def test_min_values_keep_what_is_exotic_or_dear() -> None:
    types = sold((M5_LARGE, 96, 40), (M5_METAL, 4000, 2000))
    varied = Requirement(INSTANCE_TYPE, complement=True, min_values=2)

    assert set(names(chosen(types, varied))) == {"m5.large", "m5.metal"}


def test_min_values_that_cannot_be_kept_forbid_a_launch_unless_they_are_wishes() -> None:
    varied = asking(Requirement(INSTANCE_TYPE, complement=True, min_values=2))
    types = types_of(M5_LARGE)

    assert choose_types(types, Wanted(varied), MAY_LACK) == []
    assert names(choose_types(types, Wanted(varied, is_strict=False), MAY_LACK)) == ["m5.large"]


def test_sixty_types_are_enough() -> None:
    many = [replace(M5_LARGE, name=f"m{number}.large") for number in range(70)]

    assert len(chosen(types_of(*many))) == OPTIONS_MAX


@pytest.mark.parametrize(
    ("allowed", "expected"),
    [((), SPOT), ((SPOT,), SPOT), ((ON_DEMAND,), ON_DEMAND), ((SPOT, ON_DEMAND), SPOT)],
)
def test_spot_goes_before_on_demand(allowed: tuple[str, ...], expected: str) -> None:
    asked = asking(one_of(CAPACITY_TYPE, *allowed)) if allowed else {}

    assert choose_capacity_type(types_of(M5_LARGE), asked) == expected


def test_on_demand_with_few_types_is_remarked_unless_spot_is_not_allowed() -> None:
    few, many = types_of(M5_LARGE), types_of(M5_LARGE) * 5
    both, dear = asking(one_of(CAPACITY_TYPE, SPOT, ON_DEMAND)), one_of(CAPACITY_TYPE, ON_DEMAND)

    assert is_thin_fallback(few, ON_DEMAND, both)
    assert is_thin_fallback(few, ON_DEMAND, {})
    assert not is_thin_fallback(many, ON_DEMAND, both)
    assert not is_thin_fallback(few, SPOT, both)
    assert not is_thin_fallback(few, ON_DEMAND, asking(dear))


def test_a_trial_is_on_dedicated_machines_if_some_nodepool_names_them() -> None:
    key = "karpenter.k8s.aws/instance-tenancy"

    assert choose_tenancy(trial_tenancy([{}, asking(one_of(key, "default"))])) == "default"
    assert choose_tenancy(trial_tenancy([{}, asking(one_of(key, "dedicated"))])) == "dedicated"


def test_the_tenancy_is_shared_if_that_is_allowed() -> None:
    key = "karpenter.k8s.aws/instance-tenancy"

    assert choose_tenancy({}) == "default"
    assert choose_tenancy(asking(one_of(key, "default", "dedicated"))) == "default"
    assert choose_tenancy(asking(one_of(key, "dedicated"))) == "dedicated"


def test_prices_and_resources_of_overlays_count_for_types_that_were_decided_on() -> None:
    types = sold((M5_LARGE, 96, 40), (T3_LARGE, 99, 50))
    asked = {"example.com/device": 1}
    decided = {("t3.large", ZONES[0], SPOT): 7}

    found = choose_types(types, Wanted({}, asked, prices=decided), MAY_LACK)

    assert names(found) == ["t3.large"]
    prices = {(o.zone, o.capacity_type): o.price for o in found[0].offerings}
    assert prices[ZONES[0], SPOT] == 7
    assert prices[ZONES[1], SPOT] == 50


# --- capacity reservations ---------------------------------------------------------------------


def reserved(*reservations: CapacityReservation) -> list[InstanceType]:
    settings = InstanceSettings(zones=ZONE_IDS, reservations=reservations)
    made = CatalogMaker().make(region(M5_LARGE, M5_XLARGE), {}, usual=settings)
    return list(made.types)


def test_a_reservation_goes_before_everything_else() -> None:
    types = reserved(CapacityReservation("cr-1", "m5.large", ZONES[0], left=3))

    found = chosen(types)

    assert choose_capacity_type(found, {}) == RESERVED
    assert [(each.name, each.offerings[0].reservation_id) for each in found] == [
        ("m5.large", "cr-1")
    ]
    assert reservations_in(found, "m5.large", ZONES[0]) == ["cr-1"]
    on_demand = chosen(types, one_of(CAPACITY_TYPE, ON_DEMAND))
    assert choose_capacity_type(on_demand, {}) == ON_DEMAND


def test_in_each_zone_the_reservation_with_most_left_is_taken() -> None:
    found = chosen(
        reserved(
            CapacityReservation("cr-1", "m5.large", ZONES[0], left=1),
            CapacityReservation("cr-2", "m5.large", ZONES[0], left=5),
            CapacityReservation("cr-3", "m5.large", ZONES[1], left=1),
        )
    )

    (only,) = found
    assert [each.reservation_id for each in only.offerings] == ["cr-2", "cr-3"]


def test_of_capacity_blocks_one_alone_is_asked_for() -> None:
    found = chosen(
        reserved(
            CapacityReservation("cr-1", "m5.xlarge", ZONES[0], type="capacity-block", left=1),
            CapacityReservation("cr-2", "m5.xlarge", ZONES[1], type="capacity-block", left=1),
        )
    )

    assert [each.reservation_id for each in found[0].offerings] == ["cr-1"]


def test_plain_reservations_go_before_blocks_and_those_before_interruptible_ones() -> None:
    plain = CapacityReservation("cr-plain", "m5.large", ZONES[0], left=1)
    block = replace(plain, id="cr-block", type="capacity-block")
    interruptible = replace(plain, id="cr-int", is_interruptible=True)

    def first(*some: CapacityReservation) -> str:
        return chosen(reserved(*some))[0].offerings[0].reservation_id

    assert first(interruptible, block, plain) == "cr-plain"
    assert first(interruptible, block) == "cr-block"
    assert first(interruptible) == "cr-int"


def test_each_reservation_has_a_launch_template() -> None:
    types = chosen(
        reserved(
            CapacityReservation("cr-1", "m5.large", ZONES[0], left=1),
            CapacityReservation("cr-2", "m5.large", ZONES[1], left=1),
        )
    )

    kinds = split_by_template(node_class(), types, RESERVED, wants_efa=False)

    assert [each.reservation for each in kinds] == ["cr-1", "cr-2"]
    first = overrides_of(LaunchTemplate("lt", kinds[0], {}), RESERVED, SUBNETS, {})
    assert [(each.zone, each.subnet) for each in first] == [(ZONES[0], "subnet-a")]


# --- the request -------------------------------------------------------------------------------


def template(types: list[InstanceType], **kind: JsonAnything) -> LaunchTemplate:
    return LaunchTemplate("karpenter.k8s.aws/1", TemplateKind("ami-amd", tuple(types), **kind), {})


def test_overrides_are_each_type_in_each_zone_that_has_a_subnet() -> None:
    types = chosen(types_of(M5_LARGE, T3_LARGE), one_of(CAPACITY_TYPE, SPOT))

    found = overrides_of(template(types), SPOT, {"eu-west-1b": "subnet-b"}, {})

    assert [(each.instance_type, each.zone, each.subnet) for each in found] == [
        ("m5.large", "eu-west-1b", "subnet-b"),
        ("t3.large", "eu-west-1b", "subnet-b"),
    ]
    only_a = asking(one_of(ZONE, ZONES[0]))
    assert overrides_of(template(types), SPOT, {"eu-west-1b": "subnet-b"}, only_a) == []


def test_a_trial_asks_for_every_subnet() -> None:
    found = overrides_everywhere(template(types_of(M5_LARGE)), node_class().status.subnets)

    assert [each.subnet for each in found] == ["subnet-a", "subnet-b"]


def request(
    capacity_type: str, wanted: Wanted | None = None, **kind: JsonAnything
) -> dict[str, object]:
    made = template(chosen(types_of(M5_LARGE)), **kind)
    overrides = overrides_of(made, ON_DEMAND, SUBNETS, {})
    tags = {"team": "a"}
    return fleet_request([(made, overrides)], capacity_type, wanted or Wanted({}), tags, "ctx")


def test_a_fleet_is_one_machine_at_once() -> None:
    asked = request(ON_DEMAND)

    assert asked["Type"] == "instant"
    assert asked["TargetCapacitySpecification"] == {
        "DefaultTargetCapacityType": "on-demand",
        "TotalTargetCapacity": 1,
    }
    assert asked["OnDemandOptions"] == {"AllocationStrategy": "lowest-price"}
    assert asked["Context"] == "ctx"
    assert asked["LaunchTemplateConfigs"] == [
        {
            "LaunchTemplateSpecification": {
                "LaunchTemplateName": "karpenter.k8s.aws/1",
                "Version": "$Latest",
            },
            "Overrides": [
                {
                    "InstanceType": "m5.large",
                    "ImageId": "ami-amd",
                    "AvailabilityZone": zone,
                    "Priority": 0.096,
                    "SubnetId": SUBNETS[zone],
                }
                for zone in ZONES
            ],
        }
    ]
    assert asked["TagSpecifications"] == [
        {"ResourceType": each, "Tags": [{"Key": "team", "Value": "a"}]}
        for each in ("instance", "volume", "fleet")
    ]


def test_spot_is_allocated_by_price_and_capacity() -> None:
    assert request(SPOT)["SpotOptions"] == {"AllocationStrategy": "price-capacity-optimized"}


def test_prices_of_overlays_become_priorities() -> None:
    overlaid = Wanted({}, {}, {PRICE_OVERLAID: "true"})

    assert request(SPOT, overlaid)["SpotOptions"] == {
        "AllocationStrategy": "capacity-optimized-prioritized"
    }
    assert request(ON_DEMAND, overlaid)["OnDemandOptions"] == {"AllocationStrategy": "prioritized"}


def test_a_relaxed_claim_has_no_context() -> None:
    assert "Context" not in request(ON_DEMAND, Wanted({}, {}, {MIN_VALUES_RELAXED: "true"}))


@pytest.mark.parametrize(
    ("kind", "target", "options"),
    [
        ({"reservation": "cr-1", "reservation_type": "default"}, "on-demand", "OnDemandOptions"),
        ({"reservation": "cr-1", "reservation_type": "capacity-block"}, "capacity-block", ""),
        (
            {"reservation": "cr-1", "reservation_type": "default", "is_interruptible": True},
            "reserved-capacity",
            "ReservedCapacityOptions",
        ),
    ],
)
def test_reserved_machines_are_asked_for_by_their_kind(
    kind: dict[str, JsonAnything], target: str, options: str
) -> None:
    asked = request(RESERVED, **kind)

    specification = asked["TargetCapacitySpecification"]
    assert isinstance(specification, dict)
    assert specification["DefaultTargetCapacityType"] == target
    every = {"OnDemandOptions", "SpotOptions", "ReservedCapacityOptions"}
    assert every & asked.keys() == ({options} if options else set())
