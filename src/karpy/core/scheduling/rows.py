"""Pods in a row that ask for little: placed in one go, where a packer would take one by one."""

from bisect import bisect_left
from collections.abc import Sequence

from karpy.core.scheduling.bits import members
from karpy.core.scheduling.greedy import Packer
from karpy.core.scheduling.shapes import Shape
from karpy.core.scheduling.signatures import NEVER
from karpy.core.scheduling.steps import PodClass
from karpy.model.pods import Pod
from karpy.model.resources import Resources

_Queue = Sequence[tuple[Pod, PodClass]]


class Rows:
    """Takes short cuts; whoever is not placed here has to ask the packer."""

    def __init__(self, packer: Packer) -> None:
        self._packer = packer
        self._fleet = packer.fleet
        self._shapes = packer.shapes
        self._fitter = packer.fitter
        self._signatures = packer.signatures
        self._has_nodes = packer.fleet.existing_mask > 0

    def place(self, queue: _Queue, start: int, stop: int) -> int:
        """Place the next pods of a queue as long as that is easy; return how many."""
        first = queue[start][1]
        if first.is_simple:
            if not self._fitter.is_plain:
                return 0
            fill = self._fill_one_by_one if first.is_alone and not self._has_nodes else self._fill
            return fill(queue, start, stop)
        return self._open_again(queue, start, stop) if first.reopening is not None else 0

    def _fill(self, queue: _Queue, start: int, stop: int) -> int:
        """Put pods on nodes and claims that ask for room and labels, and to be spread at most."""
        fleet = self._fleet
        turn = start
        while turn < stop:
            pod, pod_class = queue[turn]
            if not pod_class.is_simple:
                break
            shape, claims = self._look_for(pod_class)
            if claims & fleet.existing_mask:
                if shape is None or pod_class.spread is not None:
                    break
                if placed := self._fill_nodes(queue, turn, stop, shape):
                    turn += placed
                    continue
                claims = shape.alive
            if not claims:
                break
            put = self._put if pod_class.spread is None else self._put_in_turn
            node = put(pod, pod_class, claims, shape)
            if node is None:
                break
            turn += 1
            if pod_class.is_counted:
                self._fitter.count(pod_class, node)
            elif shape is not None and turn < stop and queue[turn][1].shapes[0] is shape:
                turn += self._fill_up(queue, turn, stop, node)
        return turn - start

    def _fill_one_by_one(self, queue: _Queue, start: int, stop: int) -> int:
        """Put pods on claims that ask for room alone, and each for another amount."""
        put = self._put_anywhere
        for turn in range(start, stop):
            pod, pod_class = queue[turn]
            if not pod_class.is_alone or not put(pod, pod_class.requests):
                return turn - start
        return stop - start

    def _put_anywhere(self, pod: Pod, requests: Resources) -> bool:
        """Put a pod on the first claim that has room; say whether there is one."""
        # Nobody will ask again, so that it is not worth while to remember who said no.
        fleet = self._fleet
        by_count, tight_at = fleet.by_count, fleet.tight.get
        for count in fleet.counts:
            claims = by_count[count]
            alone = (claims.bit_length() - 1,)
            for node in members(claims) if claims & (claims - 1) else alone:
                tight = tight_at(node)
                if tight is not None and requests.get(tight[0], 0) > tight[1]:
                    continue
                if fleet.take(node, pod, requests, fleet.types[node]):
                    return True
        return False

    def _look_for(self, pod_class: PodClass) -> tuple[Shape | None, int]:
        """Return the shape of a class, if it has to have one, and who may take it."""
        fleet, shape = self._fleet, pod_class.shapes[0]
        is_alone = shape is None and pod_class.is_single and not self._has_nodes
        if is_alone and pod_class.steps.first.takes_any_claim:
            return None, (1 << fleet.size) - 1
        shape = shape or self._packer.shape_of(pod_class, 0)
        if shape.seen < fleet.size:
            self._shapes.refresh(shape)
        return shape, shape.alive

    def _fill_nodes(self, queue: _Queue, start: int, stop: int, shape: Shape) -> int:
        """Put pods in a row that ask alike on existing nodes with room; return how many."""
        packer, pods_on, demands = self._packer, self._fleet.pods, shape.demands
        turn = start
        while turn < stop:
            pod, pod_class = queue[turn]
            if not pod_class.is_simple or pod_class.spread is not None:
                break
            if (pod_class.shapes[0] or packer.shape_of(pod_class, 0)) is not shape:
                break
            node = packer.next_existing(pod_class, shape)
            if node is None:
                break
            pods_on[node].append(pod)
            for free, amount in demands:
                free[node] -= amount
            if pod_class.is_counted:
                self._fitter.count(pod_class, node)
            turn += 1
        self._fleet.moment += turn - start
        return turn - start

    def _fill_up(self, queue: _Queue, start: int, stop: int, node: int) -> int:
        """Put more pods like the last where it is, while that claim is due; return how many."""
        fleet, signature = self._fleet, self._fleet.signature[node]
        shape: Shape = queue[start - 1][1].shapes[0]
        due = fleet.turns_of(node, shape.alive, stop - start)
        if not due or self._signatures.join(signature, shape.wants[0]) != signature:
            return 0
        most = 0
        while most < due and _asks_only_for(shape, queue[start + most][1]):
            most += 1
        if not most:
            return 0

        def types_with(count: int) -> int:
            return fleet.types_left(node, {name: n * count for name, n in shape.requests.items()})

        if not types_with(most):
            most = bisect_left(range(1, most), 1, key=lambda count: not types_with(count))
        if most:
            fleet.types[node] = types_with(most)
            pods = [pod for pod, _ in queue[start : start + most]]
            fleet.put_more(node, pods, shape.requests)
        return most

    def _put(self, pod: Pod, pod_class: PodClass, claims: int, shape: Shape | None) -> int | None:
        """Put a pod on the first of some claims that can take it; the shape forgets the others."""
        fleet, want, requests = self._fleet, pod_class.steps.first.wants[0], pod_class.requests
        by_count, tight_at = fleet.by_count, fleet.tight.get
        for count in fleet.counts:
            candidates = by_count[count] & claims
            if not candidates:
                continue
            several = candidates & (candidates - 1)
            alone = (candidates.bit_length() - 1,)
            for node in members(candidates) if several else alone:
                tight = tight_at(node)
                if tight is None or requests.get(tight[0], 0) <= tight[1]:
                    before = fleet.signature[node]
                    signature = want.joined.get(before)
                    if signature is None:
                        signature = self._signatures.join(before, want)
                    is_same = signature == before
                    if is_same or self._may_become(before, signature):
                        mask = self._signatures.masks[signature]
                        if fleet.take(node, pod, requests, mask):
                            if not is_same:
                                fleet.retype(node, signature)
                            return node
                if shape is not None:
                    shape.alive ^= 1 << node
        return None

    def _may_become(self, before: int, after: int) -> bool:
        return after != NEVER and not self._signatures.bestows(before, after)

    def _put_in_turn(
        self, pod: Pod, pod_class: PodClass, claims: int, shape: Shape | None
    ) -> int | None:
        """Do the same for a pod that is to be spread."""
        fleet, signatures, spread = self._fleet, self._signatures, pod_class.spread
        assert spread is not None
        want, table, requests = pod_class.steps.first.wants[0], spread.table, pod_class.requests
        failure = pod_class.failures[0]
        if failure is not None and not failure.may_have_passed():
            return None
        domains, _ = spread.open_domains()
        claims &= table.nodes_in(domains)
        for count in fleet.counts:
            candidates = fleet.by_count[count] & claims
            for node in members(candidates):
                before = fleet.signature[node]
                signature = signatures.join(before, want)
                if signature != NEVER:
                    homes: Sequence[int] = (signature,)
                    if not table.settled(signature) & domains:
                        homes = self._homes(pod_class, node, signature, domains)
                    for each in homes:
                        is_same = each == before
                        may_be = is_same or self._may_become(before, each)
                        if may_be and fleet.take(node, pod, requests, signatures.masks[each]):
                            if not is_same:
                                fleet.retype(node, each)
                            return node
                if shape is not None and not self._types_left(pod_class, node, signature):
                    shape.alive ^= 1 << node
        return None

    def _homes(self, pod_class: PodClass, node: int, signature: int, domains: int) -> Sequence[int]:
        """List what a claim may become that has to choose a domain, first choice first."""
        spread, types = pod_class.spread, self._types_left(pod_class, node, signature)
        if spread is None or not types:
            return ()
        table = spread.table
        allowed = domains & table.of_signature(signature)
        preferred = self._fitter.preferred(spread, allowed, signature, types)
        return [table.narrow(signature, domain) for domain in preferred]

    def _types_left(self, pod_class: PodClass, node: int, signature: int) -> int:
        """Return the types with room for a pod that a claim with new requirements can be."""
        if signature == NEVER:
            return 0
        types = self._fleet.types_left(node, pod_class.requests)
        return types & self._signatures.masks[signature]

    def _open_again(self, queue: _Queue, start: int, stop: int) -> int:
        """Make claims like the last for more pods of its class, if nothing came between."""
        fleet, fitter = self._fleet, self._fitter
        pod, pod_class = queue[start]
        opening = pod_class.reopening
        if (
            opening is None
            or opening.moment != fleet.moment
            or pod_class.may_succeed(opening.index)
        ):
            return 0
        node = fleet.open_claims(opening.template, opening.signature, opening.types, 1)
        fitter.record(pod_class, node, pod)
        end = start + 1
        # What one claim more has not changed, another will not change either.
        if not pod_class.pod.rules.ports and not pod_class.may_succeed(opening.index):
            while end < stop and queue[end][1] is pod_class:
                end += 1
            pods = [pod for pod, _ in queue[start + 1 : end]]
            if pods:
                node = fleet.open_claims(
                    opening.template, opening.signature, opening.types, len(pods)
                )
                fitter.record_each(pod_class, node, pods)
        opening.moment = fleet.moment
        self._packer.steps_down += opening.index * (end - start)
        return end - start


def _asks_only_for(shape: Shape, pod_class: PodClass) -> bool:
    is_more = pod_class.is_counted or pod_class.spread is not None
    return pod_class.shapes[0] is shape and pod_class.is_simple and not is_more
