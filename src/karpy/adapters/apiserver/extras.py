"""Resources without stored objects: access reviews, bindings, absent metrics."""

from typing import Final

from msgspec import Struct

from karpy.model.kinds import Kind

_CREATE: Final = ("create",)


class Extra(Struct, frozen=True):
    """A resource without stored objects."""

    kind: Kind
    verbs: tuple[str, ...] = _CREATE
    """Without verbs, `kubectl api-resources` does not list it."""


def _reviews(group: str, *names: str) -> tuple[Extra, ...]:
    return tuple(
        Extra(Kind(group, "v1", name, f"{name.lower()}s", is_namespaced=name.startswith("Local")))
        for name in names
    )


BINDINGS: Final = Extra(Kind("", "v1", "Binding", "bindings"))
METRICS: Final = (
    Extra(Kind("metrics.k8s.io", "v1beta1", "NodeMetrics", "nodes", is_namespaced=False), ()),
    Extra(Kind("metrics.k8s.io", "v1beta1", "PodMetrics", "pods"), ()),
)
"""Served so that `kubectl top` sends its request, and shows why there are no metrics."""
REVIEWS: Final = (
    *_reviews("authentication.k8s.io", "SelfSubjectReview", "TokenReview"),
    *_reviews(
        "authorization.k8s.io",
        "LocalSubjectAccessReview",
        "SelfSubjectAccessReview",
        "SelfSubjectRulesReview",
        "SubjectAccessReview",
    ),
)
EXTRAS: Final = (BINDINGS, *REVIEWS, *METRICS)

CONTAINER_SUBRESOURCES: Final = {
    "attach": Kind("", "v1", "PodAttachOptions", ""),
    "exec": Kind("", "v1", "PodExecOptions", ""),
    "log": Kind("", "v1", "Pod", ""),
    "portforward": Kind("", "v1", "PodPortForwardOptions", ""),
    "proxy": Kind("", "v1", "PodProxyOptions", ""),
}
"""Subresources that need running containers; of services and nodes it is `proxy` only."""
