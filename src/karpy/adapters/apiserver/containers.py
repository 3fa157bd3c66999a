"""Errors for requests that need running containers, metrics or tokens, which do not exist."""

from typing import Final

from karpy.errors import BadRequest, ServerFault

_NOTHING: Final = {
    "attach": "nothing to attach to",
    "ephemeralcontainers": "nothing to debug",
    "exec": "nothing to run a command in",
    "log": "nothing that writes logs",
    "portforward": "nothing that listens on a port",
    "proxy": "nothing that listens on a port",
}


def leads_into_containers(subresource: str) -> bool:
    """Say whether a subresource of a pod needs running containers."""
    return subresource in _NOTHING


def no_containers(subresource: str, name: str) -> BadRequest:
    """Return the error for a subresource that needs containers."""
    return BadRequest(
        f'pod "{name}" is simulated: there are no containers here, hence {_NOTHING[subresource]}',
        status=400,
        hint="look at the pod itself: kubectl describe pod",
    )


def no_metrics() -> ServerFault:
    """Return the error for a request for metrics."""
    return ServerFault(
        "pods and nodes are simulated: there are no containers here, hence nothing to measure",
        status=503,
        hint="look at what pods ask for: kubectl describe node",
    )


def no_tokens(name: str) -> BadRequest:
    """Return the error for a request for a service account's token."""
    return BadRequest(
        f'service account "{name}" gets no token: there is one for all, in the kubeconfig',
        status=400,
    )
