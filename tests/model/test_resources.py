import pytest
from hypothesis import given
from hypothesis import strategies as st

from karpy.model.resources import (
    CPU,
    EPHEMERAL_STORAGE,
    MEMORY,
    PODS,
    add,
    fits,
    format_quantity,
    largest,
    parse_quantity,
    subtract,
)

INT64_MAX = 2**63 - 1

amounts = st.integers(0, 2**50)
vectors = st.dictionaries(st.sampled_from([CPU, MEMORY, PODS, "example.com/gpu"]), amounts)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0),
        ("128974848", 128_974_848),
        ("1k", 10**3),
        ("1M", 10**6),
        ("1G", 10**9),
        ("1T", 10**12),
        ("1P", 10**15),
        ("1E", 10**18),
        ("1Ki", 2**10),
        ("1Mi", 2**20),
        ("1Gi", 2**30),
        ("1Ti", 2**40),
        ("1Pi", 2**50),
        ("1Ei", 2**60),
        ("129e6", 129_000_000),
        ("129E6", 129_000_000),
        ("1e+3", 1000),
        ("5000e-3", 5),
        ("1.5Gi", 3 * 2**29),
        ("0.5", 1),
        (".5Ki", 512),
        ("1.", 1),
        ("+2", 2),
        ("-2", -2),
    ],
)
def test_memory_is_read_in_bytes(text: str, expected: int) -> None:
    assert parse_quantity(text, MEMORY) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1", 1000),
        ("100m", 100),
        ("0.1", 100),
        ("1500m", 1500),
        ("2.5", 2500),
        ("1500000u", 1500),
        ("1500000000n", 1500),
        ("1k", 1_000_000),
        ("1Ki", 1_024_000),
        ("1e-3", 1),
    ],
)
def test_cpu_is_read_in_thousandths(text: str, expected: int) -> None:
    assert parse_quantity(text, CPU) == expected


@pytest.mark.parametrize(
    ("text", "resource", "expected"),
    [
        ("0.1m", CPU, 1),
        ("1n", CPU, 1),
        ("1001u", CPU, 2),
        ("0.1", MEMORY, 1),
        ("1500m", MEMORY, 2),
        ("0.1Ki", MEMORY, 103),
        ("1m", "example.com/gpu", 1),
        ("1e-999999999", MEMORY, 1),
        ("0e-999999999", MEMORY, 0),
    ],
)
def test_fractions_are_rounded_up(text: str, resource: str, expected: int) -> None:
    """A pod never gets less than it asked for."""
    assert parse_quantity(text, resource) == expected


@pytest.mark.parametrize(
    ("text", "resource", "expected"),
    [
        ("8Ei", MEMORY, INT64_MAX),
        ("9223372036854775807", MEMORY, INT64_MAX),
        ("9" * 200, MEMORY, INT64_MAX),
        ("1e999999999", MEMORY, INT64_MAX),
        ("-1e999999999", MEMORY, -INT64_MAX),
        ("1e999999999", CPU, INT64_MAX),
        ("0e999999999", MEMORY, 0),
    ],
)
def test_amounts_stop_at_what_64_bits_hold(text: str, resource: str, expected: int) -> None:
    """Kubernetes caps them too, and a manifest must not keep us busy with its exponent."""
    assert parse_quantity(text, resource) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "x",
        ".",
        "-",
        "m",
        "Ki",
        "1 ",
        " 1",
        "1\n",
        "1,5",
        "1.5.5",
        "1ki",
        "1K",
        "1mi",
        "1KiB",
        "1kk",
        "--1",
        "1e",
        "1e1.5",
        "1e3Ki",
        "0x10",
        "1_000",
        "१",
        "NaN",
        "Infinity",
        "1" * 257,
    ],
)
def test_what_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a quantity"):
        parse_quantity(text, MEMORY)


@pytest.mark.parametrize("resource", ["requests.cpu", "limits.cpu"])
def test_quota_names_of_cpu_count_in_thousandths_too(resource: str) -> None:
    assert parse_quantity("1", resource) == 1000
    assert format_quantity(1500, resource) == "1500m"


@pytest.mark.parametrize(
    ("amount", "resource", "expected"),
    [
        (0, CPU, "0"),
        (100, CPU, "100m"),
        (1500, CPU, "1500m"),
        (4000, CPU, "4"),
        (-500, CPU, "-500m"),
        (0, MEMORY, "0"),
        (1023, MEMORY, "1023"),
        (2**10, MEMORY, "1Ki"),
        (3 * 2**29, MEMORY, "1536Mi"),
        (2**31, MEMORY, "2Gi"),
        (2**40, EPHEMERAL_STORAGE, "1Ti"),
        (2**50, MEMORY, "1024Ti"),
        (-(2**31), MEMORY, "-2Gi"),
        (110, PODS, "110"),
    ],
)
def test_amounts_are_written_as_people_read_them(amount: int, resource: str, expected: str) -> None:
    assert format_quantity(amount, resource) == expected


@given(st.integers(-(2**53), 2**53), st.sampled_from([CPU, MEMORY, PODS]))
def test_what_is_written_reads_back(amount: int, resource: str) -> None:
    assert parse_quantity(format_quantity(amount, resource), resource) == amount


@given(st.integers(0, 10**6), st.sampled_from(["n", "u", "m", "", "k", "M", "Ki", "Mi"]))
def test_a_core_is_a_thousand_thousandths_up_to_rounding(number: int, suffix: str) -> None:
    cpu = parse_quantity(f"{number}{suffix}", CPU)
    plain = parse_quantity(f"{number}{suffix}", PODS)

    assert plain == -(-cpu // 1000)


def test_sums_and_differences_go_name_by_name() -> None:
    left = {CPU: 3000, MEMORY: 5}
    right = {CPU: 1000, PODS: 1}

    assert add(left, right, {PODS: 2}) == {CPU: 4000, MEMORY: 5, PODS: 3}
    assert subtract(left, right) == {CPU: 2000, MEMORY: 5, PODS: -1}
    assert add() == {}


def test_arithmetic_leaves_its_arguments_alone() -> None:
    left, right = {CPU: 1}, {CPU: 2}

    add(left, right)
    subtract(left, right)
    largest([left, right])

    assert (left, right) == ({CPU: 1}, {CPU: 2})


@given(vectors, vectors)
def test_subtraction_undoes_addition(left: dict[str, int], right: dict[str, int]) -> None:
    rest = subtract(add(left, right), right)

    assert {name: amount for name, amount in rest.items() if amount} == {
        name: amount for name, amount in left.items() if amount
    }


def test_the_largest_amount_of_each_name_is_kept() -> None:
    assert largest([{CPU: 1, MEMORY: 9}, {CPU: 2}, {PODS: 0}]) == {CPU: 2, MEMORY: 9}
    assert largest([]) == {}


@pytest.mark.parametrize(
    ("requests", "available", "expected"),
    [
        ({CPU: 1}, {CPU: 1}, True),
        ({CPU: 2}, {CPU: 1}, False),
        ({}, {}, True),
        ({"example.com/gpu": 1}, {CPU: 1}, False),
        ({"example.com/gpu": 0}, {CPU: 1}, True),
        ({CPU: 1}, {CPU: 1, MEMORY: 0}, True),
    ],
)
def test_requests_fit_if_each_is_there(
    requests: dict[str, int], available: dict[str, int], *, expected: bool
) -> None:
    assert fits(requests, available) is expected


def test_nothing_fits_where_anything_is_overdrawn() -> None:
    """A node that owes memory takes no pod, not even one that asks for none."""
    assert not fits({CPU: 1}, {CPU: 4000, MEMORY: -1})
    assert not fits({}, {MEMORY: -1})


@given(vectors, vectors, vectors)
def test_what_fits_leaves_room_for_what_is_left(
    requests: dict[str, int], more: dict[str, int], spare: dict[str, int]
) -> None:
    available = add(requests, more, spare)

    assert fits(requests, available)
    assert fits(more, subtract(available, requests))
