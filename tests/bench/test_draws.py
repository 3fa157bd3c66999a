"""The stream of draws is part of the file format: it may never change."""

from karpy.bench.draws import Draws


def test_a_seed_gives_the_same_draws_for_ever() -> None:
    draws = Draws("a", 1)

    drawn = (
        [draws.below(10) for _ in range(5)],
        draws.between(5, 6),
        draws.pick("abc"),
        draws.weighted((("often", 9), ("rarely", 1))),
        draws.heavy_tail(100),
        draws.uid(),
    )

    uid = "88a40a7c-93d6-4214-8044-ace4aa6acbb3"
    assert drawn == ([0, 3, 7, 9, 0], 5, "b", "often", 2, uid)


def test_other_seeds_give_other_draws() -> None:
    assert Draws("a", 1).uid() != Draws("a", 2).uid()


def test_draws_stay_within_their_bounds() -> None:
    draws = Draws("bounds")

    numbers = {draws.between(3, 5) for _ in range(200)}
    replicas = {draws.heavy_tail(7) for _ in range(500)}

    assert numbers == {3, 4, 5}
    assert replicas == set(range(1, 8))


def test_shuffling_keeps_every_item() -> None:
    items = list(range(100))

    Draws("shuffle").shuffle(items)

    assert items != list(range(100))
    assert sorted(items) == list(range(100))
