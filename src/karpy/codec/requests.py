"""The total requests and limits of a pod, as the API server and kube-scheduler compute them."""

from karpy.codec.fields import AMOUNTS, NO_AMOUNT, Fields, JsonObject
from karpy.model.resources import CPU, HUGEPAGES_PREFIX, MEMORY, PODS, add, largest


def plain_requests(resources: JsonObject | None) -> dict[str, int] | None:
    """Read the most common case, one container with nothing but requests; else return None."""
    if not resources or len(resources) != 1:
        return None
    requests = resources.get("requests")
    if not requests:
        return None
    amounts = {}
    try:
        for name, text in requests.items():
            amount = amounts[name] = AMOUNTS[name][text]
            if amount <= 0:
                return None
    except NO_AMOUNT:
        return None
    amounts[PODS] = 1
    return amounts


def effective_requests(spec: Fields, status: Fields) -> dict[str, int]:
    """
    Sum up the requests of a pod, with `pods: 1`; amounts of zero are left out.

    Containers run together and add up. An init container runs alone, next to the sidecars started
    before it. Pod-level requests replace the sum; the overhead comes on top.
    """
    # Parity: what a pod requests: the same as PodRequests of Kubernetes' component-helpers, with
    # the resources of its status.
    reported = _Reported(status)
    parts = [reported.needs(each) for each in spec.children("containers")]
    total = parts[0] if len(parts) == 1 else add(*parts)
    if "initContainers" in spec:
        total = _with_init_containers(spec, total, reported)
    if "resources" in spec:
        total |= _pod_level(spec.child("resources"), total)
    if "overhead" in spec:
        total = add(total, spec.quantities("overhead"))
    total = {name: amount for name, amount in total.items() if amount}
    total[PODS] = 1
    return total


def effective_limits(spec: Fields) -> dict[str, int]:
    """
    Sum up the limits of a pod, by the rules of its requests.

    A resource without a limit stays unlimited; the overhead raises the limits of the others.
    """
    # Parity: what a pod is limited to: the same as PodLimits of Kubernetes' component-helpers.
    total = add(*(_limits(each) for each in spec.children("containers")))
    sidecars: dict[str, int] = {}
    peak: dict[str, int] = {}
    for container in spec.children("initContainers"):
        limits = _limits(container)
        if container.text("restartPolicy") == "Always":
            total, sidecars = add(total, limits), add(sidecars, limits)
            peak = largest((peak, sidecars))
        else:
            peak = largest((peak, add(limits, sidecars)))
    total = largest((total, peak))
    whole = spec.child("resources").quantities("limits")
    total |= {name: amount for name, amount in whole.items() if _is_pod_level(name)}
    overhead = spec.quantities("overhead")
    limited = {name: amount for name, amount in total.items() if amount}
    return add(limited, {name: overhead.get(name, 0) for name in limited})


class _Reported:
    """The container statuses with resources, which differ from the spec during a resize."""

    def __init__(self, status: Fields) -> None:
        self._containers = {
            each.text("name"): each
            for key in ("initContainerStatuses", "containerStatuses")
            for each in status.children(key)
            if "resources" in each
        }
        self._is_infeasible = any(
            each.text("type") == "PodResizePending" and each.text("reason") == "Infeasible"
            for each in status.children("conditions")
        )

    def needs(self, container: Fields) -> dict[str, int]:
        """Return the maximum of requested (unless infeasible), actual and allocated resources."""
        requested = _requested(container)
        status = self._containers.get(container.text("name"))
        if status is None:
            return requested
        actual = status.child("resources").quantities("requests")
        allocated = status.quantities("allocatedResources")
        return largest(
            (actual, allocated) if self._is_infeasible else (requested, actual, allocated)
        )


def _requested(container: Fields) -> dict[str, int]:
    resources = container.child("resources")
    requested = resources.quantities("requests")
    return {**resources.quantities("limits"), **requested} if "limits" in resources else requested


def _limits(container: Fields) -> dict[str, int]:
    return container.child("resources").quantities("limits")


def _with_init_containers(
    spec: Fields, total: dict[str, int], reported: _Reported
) -> dict[str, int]:
    sidecars: dict[str, int] = {}
    peak: dict[str, int] = {}
    for container in spec.children("initContainers"):
        if container.text("restartPolicy") == "Always":
            needs = reported.needs(container)
            total = add(total, needs)
            sidecars = add(sidecars, needs)
            peak = largest((peak, sidecars))
        else:
            peak = largest((peak, add(_requested(container), sidecars)))
    return largest((total, peak))


def _pod_level(resources: Fields, total: dict[str, int]) -> dict[str, int]:
    requests = resources.quantities("requests")
    for name, amount in resources.quantities("limits").items():
        if name not in total:
            requests.setdefault(name, amount)
    return {name: amount for name, amount in requests.items() if _is_pod_level(name)}


def _is_pod_level(name: str) -> bool:
    return name in {CPU, MEMORY} or name.startswith(HUGEPAGES_PREFIX)
