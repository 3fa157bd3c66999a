"""Claims come in the order that Go's sort leaves them in; expected is what Go 1.27 made of it."""

import pytest

from karpy.core.scheduling.claimorder import FEW, ClaimOrder


def _played(size: int, reach: int) -> ClaimOrder:
    """Make so many claims and let one of the first few grow, by draws that are the same in Go."""
    order, counts = ClaimOrder(), list[int]()
    state = size
    for _ in range(size * 6):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        draw = state >> 33
        if not counts or (len(counts) < size and draw % 3 == 0):
            order.add(len(counts), 1)
            counts.append(1)
        else:
            claim = order.claims[draw // 3 % min(reach, len(counts))]
            counts[claim] += 1
            order.grow(claim, counts[claim])
    assert sorted(order.claims, key=counts.__getitem__) == order.claims
    return order


@pytest.mark.parametrize(
    ("size", "reach", "expected"),
    [
        (
            12,
            3,
            "3 2 5 9 7 8 11 6 10 0 1 4",
        ),
        (
            12,
            1000,
            "10 9 6 11 4 2 8 0 3 7 1 5",
        ),
        (
            13,
            3,
            "10 9 11 2 8 7 1 5 4 0 3 12 6",
        ),
        (
            13,
            1000,
            "9 10 12 2 5 4 8 6 11 7 1 3 0",
        ),
        (
            25,
            3,
            "23 20 12 19 21 4 16 11 0 1 13 2 18 17 22 14 10 5 8 7 9 6 24 15 3",
        ),
        (
            25,
            1000,
            "18 12 15 23 9 19 6 13 4 11 21 22 24 17 14 2 7 8 5 20 1 16 3 0 10",
        ),
        (
            49,
            3,
            (
                "32 2 15 6 8 34 31 13 5 11 24 44 1 29 40 35 48 47 23 22 12 39 3 9 42 10 26 46 "
                "17 28 4 27 16 20 7 30 45 38 14 25 21 18 37 19 33 36 41 43 0"
            ),
        ),
        (
            49,
            1000,
            (
                "30 46 40 36 12 43 28 47 32 27 29 16 18 20 11 48 2 31 35 37 22 44 42 33 26 38 "
                "21 45 41 34 15 10 24 19 9 6 39 14 5 13 25 17 8 3 23 7 4 1 0"
            ),
        ),
        (
            50,
            3,
            (
                "27 2 15 21 16 9 17 25 10 18 19 42 14 24 7 4 12 23 3 8 47 43 5 0 28 22 26 6 11 "
                "32 37 48 45 41 49 34 40 13 44 1 31 46 36 33 39 30 20 35 38 29"
            ),
        ),
        (
            50,
            1000,
            (
                "32 28 24 36 47 9 26 44 40 37 41 16 48 11 33 39 23 22 46 8 12 25 49 29 43 6 27 "
                "14 19 31 45 30 18 35 34 17 1 21 7 10 38 13 42 20 3 4 0 2 15 5"
            ),
        ),
        (
            80,
            3,
            (
                "1 2 42 4 12 34 10 25 19 36 26 18 20 38 3 47 8 31 23 46 16 17 29 27 21 40 30 22 "
                "13 32 11 15 45 9 7 55 50 56 54 52 57 53 51 48 41 28 35 44 24 58 43 62 37 33 14 "
                "66 39 60 68 61 59 71 70 72 65 76 67 79 73 75 78 77 63 64 74 69 49 5 6 0"
            ),
        ),
        (
            80,
            1000,
            (
                "37 49 71 45 66 56 60 50 28 79 52 76 30 59 78 75 32 58 67 43 39 25 69 21 7 62 "
                "70 38 73 63 31 15 65 24 35 47 72 77 34 44 40 41 53 68 48 10 46 74 61 16 5 22 "
                "29 13 18 54 23 51 3 55 64 33 20 2 12 6 57 14 19 4 36 27 26 42 9 11 17 0 8 1"
            ),
        ),
    ],
)
def test_equals_end_up_where_go_puts_them(size: int, reach: int, expected: str) -> None:
    assert _played(size, reach).claims == [int(each) for each in expected.split()]


def test_few_claims_stay_in_their_order() -> None:
    order = ClaimOrder()
    for claim in range(FEW):
        order.add(claim, 1)

    assert order.is_stable
    order.grow(0, 2)
    order.grow(5, 2)

    assert order.claims == [1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 5, 0]


def test_more_claims_do_not() -> None:
    order = ClaimOrder()
    for claim in range(FEW + 1):
        order.add(claim, 1)

    assert not order.is_stable
    order.grow(0, 2)

    assert order.claims[-1] == 0
    assert order.claims[:-1] != list(range(1, FEW + 1))


def test_a_claim_that_overtakes_nobody_moves_nobody() -> None:
    order = ClaimOrder()
    for claim in range(20):
        order.add(claim, 1)

    order.grow(19, 2)

    assert order.claims == list(range(20))
