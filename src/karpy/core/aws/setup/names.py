"""Names that a set-up is written with: what AWS allows, and nothing that a shell would read."""

import re
from typing import Final

from karpy.core.aws.setup.plan import Plan

_FORMS: Final = {
    "cluster": (re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]{0,99}", re.ASCII), "the name of the cluster"),
    "namespace": (re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", re.ASCII), "a namespace"),
    "service_account": (
        re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?", re.ASCII),
        "the name of a ServiceAccount",
    ),
    "role": (re.compile(r"[0-9A-Za-z_+=,.@-]{1,64}", re.ASCII), "the name of a role"),
    "queue_name": (re.compile(r"[0-9A-Za-z_-]{1,80}", re.ASCII), "the name of a queue"),
    "oidc": (
        re.compile(r"([0-9A-Za-z.-]+(/[0-9A-Za-z_-]+)*)?", re.ASCII),
        "an OIDC provider without https://",
    ),
}


def find_misnomer(plan: Plan) -> tuple[str, str, str] | None:
    """Return field, value and what it should be of the first name that cannot be; or None."""
    for field, (form, meaning) in _FORMS.items():
        value = getattr(plan, field)
        if not form.fullmatch(value):
            return field, value, meaning
    return None
