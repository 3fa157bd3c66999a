"""Our CRDs as they are shipped."""

from karpy.codec.fields import JsonObject
from karpy.codec.schemas.definitions import CUSTOM_KINDS


def custom_resources() -> list[JsonObject]:
    """Return every CustomResourceDefinition of ours."""
    return [kind.to_json() for kind in CUSTOM_KINDS]
