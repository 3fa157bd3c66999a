"""
The order of claims: fewest pods first, and equals as Go's sort leaves them.

How pods pack depends on it. Up to a dozen elements that sort is stable. A longer list is sorted by
a quicksort that looks for patterns, and where equals end up follows from each of its steps.
"""

from collections.abc import Sequence
from typing import Final

FEW: Final = 12
"""So many are sorted by insertion, which is stable."""
_MANY: Final = 50
"""From so many on, a longer look is taken before anything is moved."""
_REPAIRS_MAX: Final = 5
_UNEVEN: Final = 8
"""A part is small that has less than one in so many elements."""
_WORD: Final = (1 << 64) - 1


class ClaimOrder:
    """Claims by how many pods they have; sorted after each change as Go would sort them."""

    # Parity: Karpenter sorts its list of claims before each pod. A claim that has just grown stays
    # ahead of those that had as many pods before, as long as there are few.
    def __init__(self, stable_max: int = FEW) -> None:
        """Take how many claims at most are sorted so that equals stay in their order."""
        self._stable_max = stable_max
        self.claims: list[int] = []
        self._counts: list[int] = []

    @property
    def is_stable(self) -> bool:
        """Whether equals stay in their order, whatever becomes of others."""
        return len(self.claims) <= self._stable_max

    def add(self, claim: int, count: int) -> None:
        """Take a new claim with its first pods."""
        counts = self._counts
        self.claims.append(claim)
        counts.append(count)
        last = len(counts) - 1
        if last < self._stable_max:
            self._sink(last, 0)
        elif count < counts[last - 1]:
            self._sort(0, last + 1, (last + 1).bit_length())

    def grow(self, claim: int, count: int) -> None:
        """Note that a claim has more pods than before."""
        claims, counts = self.claims, self._counts
        index, size = claims.index(claim), len(claims)
        counts[index] = count
        after = index + 1
        if after == size or count <= counts[after]:
            return
        if size > self._stable_max:
            self._sort(0, size, size.bit_length())
            return
        while after < size and counts[after] < count:
            after += 1
        claims.insert(after - 1, claims.pop(index))
        counts.insert(after - 1, counts.pop(index))

    def _swap(self, one: int, other: int) -> None:
        claims, counts = self.claims, self._counts
        claims[one], claims[other] = claims[other], claims[one]
        counts[one], counts[other] = counts[other], counts[one]

    def _sort(self, start: int, stop: int, patience: int) -> None:
        is_even = is_in_place = True
        while stop - start > FEW:
            size = stop - start
            if not patience:
                # Nobody has seen so many bad pivots in a row in a list that was just sorted.
                self._insert(start, stop)
                return
            if not is_even:
                self._scatter(start, size)
                patience -= 1
            pivot, seems_sorted = self._pivot(start, size)
            if is_even and is_in_place and seems_sorted and self._repair(start, stop):
                return
            if start and self._counts[start - 1] >= self._counts[pivot]:
                # Nothing here is less than the pivot.
                start = self._part_equals(start, stop, pivot)
                continue
            middle, is_in_place = self._part(start, stop, pivot)
            is_even = min(middle - start, stop - middle) >= size // _UNEVEN
            if middle - start < stop - middle:
                self._sort(start, middle, patience)
                start = middle + 1
            else:
                self._sort(middle + 1, stop, patience)
                stop = middle
        self._insert(start, stop)

    def _insert(self, start: int, stop: int) -> None:
        for index in range(start + 1, stop):
            self._sink(index, start)

    def _sink(self, index: int, start: int) -> None:
        """Move an element to the left until none before it is greater."""
        counts = self._counts
        while index > start and counts[index] < counts[index - 1]:
            self._swap(index, index - 1)
            index -= 1

    def _pivot(self, start: int, size: int) -> tuple[int, bool]:
        """Choose a median, and say whether all that was looked at is in order."""
        quarter = size // 4
        places = [start + quarter, start + quarter * 2, start + quarter * 3]
        is_sorted = True
        if size >= _MANY:
            medians = [self._median((each - 1, each, each + 1)) for each in places]
            places = [place for place, _ in medians]
            is_sorted = all(was_sorted for _, was_sorted in medians)
        pivot, are_sorted = self._median(places)
        return pivot, is_sorted and are_sorted

    def _median(self, places: Sequence[int]) -> tuple[int, bool]:
        counts = self._counts
        low, middle, high = places
        is_sorted = counts[low] <= counts[middle] <= counts[high]
        if counts[middle] < counts[low]:
            low, middle = middle, low
        if counts[high] < counts[middle]:
            middle = high
        return (low if counts[middle] < counts[low] else middle), is_sorted

    def _repair(self, start: int, stop: int) -> bool:
        """Put a few elements in their places if the rest is sorted; say whether all is."""
        counts = self._counts
        index = start + 1
        for _ in range(_REPAIRS_MAX):
            while index < stop and counts[index] >= counts[index - 1]:
                index += 1
            if index == stop:
                return True
            if stop - start < _MANY:
                return False
            self._swap(index, index - 1)
            if index - start > 1:
                self._sink(index - 1, 0)
            if stop - index > 1:
                self._rise(index, stop)
        return False

    def _rise(self, index: int, stop: int) -> None:
        """Move an element to the right until none behind it is less."""
        counts = self._counts
        while index + 1 < stop and counts[index + 1] < counts[index]:
            self._swap(index, index + 1)
            index += 1

    def _part(self, start: int, stop: int, pivot: int) -> tuple[int, bool]:
        """Put what is less than the pivot before it; say where it is now, and if all was so."""
        counts = self._counts
        self._swap(start, pivot)
        bound, low, high = counts[start], start + 1, stop - 1
        is_in_place = True
        while True:
            while low <= high and counts[low] < bound:
                low += 1
            while low <= high and counts[high] >= bound:
                high -= 1
            if low > high:
                self._swap(high, start)
                return high, is_in_place
            self._swap(low, high)
            is_in_place = False
            low, high = low + 1, high - 1

    def _part_equals(self, start: int, stop: int, pivot: int) -> int:
        """Put what equals the pivot before what is greater; say where that begins."""
        counts = self._counts
        self._swap(start, pivot)
        bound, low, high = counts[start], start + 1, stop - 1
        while True:
            while low <= high and counts[low] <= bound:
                low += 1
            while low <= high and counts[high] > bound:
                high -= 1
            if low > high:
                return low
            self._swap(low, high)
            low, high = low + 1, high - 1

    def _scatter(self, start: int, size: int) -> None:
        """Move three elements about, the same ones each time, to get out of a bad pattern."""
        number, mask = size, (1 << size.bit_length()) - 1
        middle = start + size // 4 * 2
        for index in (middle - 1, middle, middle + 1):
            number ^= number << 13 & _WORD
            number ^= number >> 7
            number ^= number << 17 & _WORD
            other = number & mask
            self._swap(index, start + (other - size if other >= size else other))
