from karpy.codec.memos import Memo


def test_the_latest_values_are_kept_and_old_ones_dropped() -> None:
    memo: Memo[int, str] = Memo(3)
    put = [memo.put(number, str(number)) for number in range(8)]

    got = [memo.get(number) for number in (7, 6, 5, 2, 1, 0)]

    assert put == ["0", "1", "2", "3", "4", "5", "6", "7"]
    assert got == ["7", "6", "5", None, None, None]


def test_fewer_values_with_large_keys_are_kept() -> None:
    memo: Memo[tuple[bytes, ...], int] = Memo(100)
    keys = [(bytes([number]) * 50_000, b"more" * 10_000) for number in range(20)]
    put = [memo.put(key, number) for number, key in enumerate(keys)]

    got = [memo.get(key) for key in (keys[19], *keys[:15])]

    assert put == list(range(20))
    assert got == [19, *[None] * 15]


def test_a_value_that_is_looked_up_is_kept() -> None:
    memo: Memo[str, int] = Memo(3)
    memo.put("web", 1)

    asked = [(memo.put(f"job-{number}", number), memo.get("web")) for number in range(100)]

    assert asked == [(number, 1) for number in range(100)]


def test_equal_values_become_one() -> None:
    memo: Memo[str, tuple[int, ...]] = Memo(1)
    first, second, other = (int("1"), 2), (int("1"), 2), (3,)

    shared = [memo.share("a", first), memo.share("b", other), memo.share("a", second)]

    assert [id(each) for each in shared] == [id(first), id(other), id(first)]
