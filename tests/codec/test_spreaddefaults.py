import pytest

from karpy.codec.fields import FieldInvalid
from karpy.codec.spreaddefaults import read_spread_defaults
from karpy.model.constraints import SpreadConstraint
from karpy.model.labels import ZONE

ONE = f"{{maxSkew: 1, topologyKey: {ZONE}, whenUnsatisfiable: DoNotSchedule"


def _config(*constraints: str) -> str:
    return f"podTopologySpread: {{defaultConstraints: [{', '.join(constraints)}]}}"


@pytest.mark.parametrize("text", ["", " \n# nothing\n", "{}", "podTopologySpread:", _config()])
def test_nothing_is_no_constraint(text: str) -> None:
    assert read_spread_defaults(text) == ()


def test_all_fields_of_a_constraint_are_read() -> None:
    text = _config(ONE + ", minDomains: 3, nodeAffinityPolicy: Ignore, nodeTaintsPolicy: Honor}")

    assert read_spread_defaults(text) == (
        SpreadConstraint(ZONE, 1, min_domains=3, honors_affinity=False, honors_taints=True),
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1", "`a` is unknown"),
        ("podTopologySpread: {constraints: []}", "`podTopologySpread.constraints` is unknown"),
        ("[1]", "is a list, not an object"),
        ("{}\n---\n{}", "has more than one document"),
        ("a: [", "is not YAML"),
        (_config(ONE + ", weight: 1}"), "weight` is unknown"),
        (_config(ONE + ", labelSelector: {}}"), "labelSelector` is not allowed here"),
        (_config(ONE + ", matchLabelKeys: [a]}"), "matchLabelKeys` is not allowed here"),
        (_config(f"{{maxSkew: 1, topologyKey: {ZONE}}}"), "whenUnsatisfiable` is missing"),
        (_config("{maxSkew: 1, topologyKey: 'a b', whenUnsatisfiable: DoNotSchedule}"), "no label"),
        (_config(ONE + "}", ONE + "}"), f"repeats {ZONE} with DoNotSchedule"),
    ],
)
def test_a_configuration_that_kube_scheduler_refuses_is_refused(text: str, message: str) -> None:
    with pytest.raises(FieldInvalid) as caught:
        read_spread_defaults(text)

    assert message in str(caught.value)
