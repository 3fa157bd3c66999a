"""Pods in a row that ask for little: placed in one go, where a packer would take one by one."""

from bisect import bisect_left
from collections.abc import Sequence

from karpy.core.scheduling.instancetypes import members
from karpy.core.scheduling.packers.fitting import Ask
from karpy.core.scheduling.packers.greedy import Packer
from karpy.core.scheduling.podclasses import PodClass
from karpy.core.scheduling.signatures import NEVER
from karpy.model.pods import Pod

_Queue = Sequence[tuple[Pod, PodClass]]


class Rows:
    """Takes short cuts; the packer places the pods that are left."""

    def __init__(self, packer: Packer) -> None:
        self._packer = packer
        self._planned = packer.planned
        self._asks = packer.asks
        self._fitter = packer.fitter
        self._signatures = packer.signatures

    def place(self, queue: _Queue, start: int, stop: int) -> int:
        """Place the next pods of a queue as long as that is easy; return how many."""
        if queue[start][1].is_simple and self._fitter.is_plain:
            return self._fill(queue, start, stop)
        return 0

    def _fill(self, queue: _Queue, start: int, stop: int) -> int:
        """Put pods on nodes and claims that ask for room and labels, and to be spread at most."""
        planned = self._planned
        turn = start
        while turn < stop:
            pod, pod_class = queue[turn]
            if not pod_class.is_simple:
                break
            ask = self._refreshed(pod_class)
            claims = ask.alive
            if claims & planned.existing_mask:
                if pod_class.spread is not None:
                    break
                if placed := self._fill_nodes(queue, turn, stop, ask):
                    turn += placed
                    continue
                claims = ask.alive
            if not claims:
                break
            put = self._put if pod_class.spread is None else self._put_in_turn
            node = put(pod, pod_class, claims, ask)
            if node is None:
                break
            turn += 1
            if pod_class.is_counted:
                self._fitter.count(pod_class, node)
            elif turn < stop and queue[turn][1].asks[0] is ask:
                turn += self._fill_up(queue, turn, stop, node)
        return turn - start

    def _refreshed(self, pod_class: PodClass) -> Ask:
        """Return the ask of a class, all claims considered."""
        ask = pod_class.asks[0] or self._packer.ask_of(pod_class, 0)
        if ask.seen < self._planned.size:
            self._asks.refresh(ask)
        return ask

    def _fill_nodes(self, queue: _Queue, start: int, stop: int, ask: Ask) -> int:
        """Put pods in a row that ask alike on existing nodes with room; return how many."""
        packer, planned, mask = self._packer, self._planned, self._planned.existing_mask
        turn = start
        while turn < stop:
            pod, pod_class = queue[turn]
            if not pod_class.is_simple or pod_class.spread is not None:
                break
            if (pod_class.asks[0] or packer.ask_of(pod_class, 0)) is not ask:
                break
            node = packer.first_existing(pod_class, ask, ask.alive & mask)
            if node is None:
                break
            planned.put(node, pod, pod_class.requests)
            if pod_class.is_counted:
                self._fitter.count(pod_class, node)
            turn += 1
        return turn - start

    def _fill_up(self, queue: _Queue, start: int, stop: int, node: int) -> int:
        """Put more pods like the last where it is, while that claim is due; return how many."""
        planned, signature = self._planned, self._planned.signature[node]
        ask: Ask = queue[start - 1][1].asks[0]
        due = planned.turns_of(node, ask.alive, stop - start)
        if not due or self._signatures.join(signature, ask.alternatives[0]) != signature:
            return 0
        most = 0
        while most < due and _asks_only_for(ask, queue[start + most][1]):
            most += 1
        if not most:
            return 0

        def types_with(count: int) -> int:
            return planned.types_left(node, {name: n * count for name, n in ask.requests.items()})

        if not types_with(most):
            most = bisect_left(range(1, most), 1, key=lambda count: not types_with(count))
        if most:
            planned.types[node] = types_with(most)
            pods = [pod for pod, _ in queue[start : start + most]]
            planned.put_more(node, pods, ask.requests)
        return most

    def _put(self, pod: Pod, pod_class: PodClass, claims: int, ask: Ask) -> int | None:
        """Put a pod on the first of some claims that can take it; the ask forgets the others."""
        planned, requests = self._planned, pod_class.requests
        want = pod_class.steps.first.alternatives[0]
        by_count, tight_at = planned.by_count, planned.tight.get
        for count in planned.counts:
            candidates = by_count[count] & claims
            if not candidates:
                continue
            for node in members(candidates):
                tight = tight_at(node)
                if tight is None or requests.get(tight[0], 0) <= tight[1]:
                    before = planned.signature[node]
                    signature = want.joined.get(before)
                    if signature is None:
                        signature = self._signatures.join(before, want)
                    is_same = signature == before
                    if is_same or self._may_become(before, signature):
                        mask = self._signatures.masks[signature]
                        if planned.take(node, pod, requests, mask):
                            if not is_same:
                                planned.retype(node, signature)
                            return node
                ask.alive ^= 1 << node
        return None

    def _may_become(self, before: int, after: int) -> bool:
        return after != NEVER and not self._signatures.adds_watched_label(before, after)

    def _put_in_turn(self, pod: Pod, pod_class: PodClass, claims: int, ask: Ask) -> int | None:
        """Put a pod that is to be spread on the first node that takes it."""
        planned, signatures, spread = self._planned, self._signatures, pod_class.spread
        assert spread is not None
        want, table = pod_class.steps.first.alternatives[0], spread.table
        requests = pod_class.requests
        failure = pod_class.failures[0]
        if failure is not None and not failure.is_outdated():
            return None
        domains, _ = spread.open_domains()
        claims &= table.nodes_in(domains)
        for count in planned.counts:
            candidates = planned.by_count[count] & claims
            for node in members(candidates):
                before = planned.signature[node]
                signature = signatures.join(before, want)
                if signature != NEVER:
                    homes: Sequence[int] = (signature,)
                    if not table.certain_domain(signature) & domains:
                        homes = self._homes(pod_class, node, signature, domains)
                    for each in homes:
                        is_same = each == before
                        may_be = is_same or self._may_become(before, each)
                        if may_be and planned.take(node, pod, requests, signatures.masks[each]):
                            if not is_same:
                                planned.retype(node, each)
                            return node
                if not self._types_left(pod_class, node, signature):
                    ask.alive ^= 1 << node
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
        types = self._planned.types_left(node, pod_class.requests)
        return types & self._signatures.masks[signature]


def _asks_only_for(ask: Ask, pod_class: PodClass) -> bool:
    is_more = pod_class.is_counted or pod_class.spread is not None
    return pod_class.asks[0] is ask and pod_class.is_simple and not is_more
