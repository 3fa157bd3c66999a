import pytest
from hypothesis import given
from hypothesis import strategies as st

from karpy.model.resources import parse_quantity
from karpy.sim.store.quantities import canonical, canonical_amounts


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("1", "1"),
        (2, "2"),
        (0.5, "500m"),
        ("0.5", "500m"),
        ("1000m", "1"),
        ("1500m", "1500m"),
        ("1000", "1k"),
        ("100000", "100k"),
        ("0", "0"),
        ("0Gi", "0"),
        ("1024Mi", "1Gi"),
        ("1.5Gi", "1536Mi"),
        ("1000Mi", "1000Mi"),
        ("0.5Ki", "512"),
        ("128M", "128M"),
        ("1073741824", "1073741824"),
        ("1e3", "1e3"),
        ("1E3", "1e3"),
        ("-1", "-1"),
        ("+1", "1"),
        ("12345678901234567890", "12345678901234567890"),
        ("100E", "100E"),
        ("7Ei", "7Ei"),
        ("8Ei", "9223372036854775807"),
        ("-1000Ei", "-9223372036854775807"),
    ],
)
def test_a_quantity_has_one_form(given: object, expected: str) -> None:
    assert canonical(given) == expected


@pytest.mark.parametrize("given", ["", "many", "1 Gi", "1GiB", True, None, [], "1.2.3", "1" * 100])
def test_what_is_no_quantity_has_none(given: object) -> None:
    assert canonical(given) is None


@given(st.integers(0, 10**12), st.sampled_from(["", "m", "k", "M", "G", "Ki", "Mi", "Gi"]))
def test_the_form_changes_and_the_amount_does_not(number: int, unit: str) -> None:
    text = f"{number}{unit}"

    form = canonical(text)

    assert form is not None
    assert parse_quantity(form, "cpu") == parse_quantity(text, "cpu")
    assert canonical(form) == form


def test_amounts_that_are_written_well_are_shared() -> None:
    amounts = {"cpu": "1", "memory": "1Gi"}

    assert canonical_amounts(amounts) is amounts
    assert canonical_amounts({"cpu": "1.0", "x": "?"}) == {"cpu": "1", "x": "?"}
