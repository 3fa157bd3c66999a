from karpy.sim.draws import SeededDraws


def test_the_same_seed_draws_the_same() -> None:
    one, other = SeededDraws("cloud", 7), SeededDraws("cloud", 7)

    assert [one.below(1000) for _ in range(50)] == [other.below(1000) for _ in range(50)]


def test_another_seed_draws_something_else() -> None:
    one, other = SeededDraws("cloud", 7), SeededDraws("cloud", 8)

    assert [one.below(1000) for _ in range(50)] != [other.below(1000) for _ in range(50)]


def test_a_spread_stays_within_its_bounds() -> None:
    draws = SeededDraws("x")

    drawn = [draws.spread(10, 20) for _ in range(500)]

    assert 8 <= min(drawn) < 8.5
    assert 11.5 < max(drawn) <= 12


def test_nothing_is_spread_without_a_percentage() -> None:
    assert SeededDraws("x").spread(10, 0) == 10


def test_probabilities_hold_over_many_draws() -> None:
    draws = SeededDraws("x")

    happened = sum(draws.happens(25) for _ in range(4000))

    assert 900 < happened < 1100


def test_every_item_is_picked_now_and_then() -> None:
    draws = SeededDraws("x")

    assert {draws.pick("abc") for _ in range(100)} == {"a", "b", "c"}


def test_hexadecimal_digits_are_as_many_as_asked_for() -> None:
    assert len(SeededDraws("x").hexadecimal(16)) == 16
