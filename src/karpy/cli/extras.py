"""Parts of the program that need more than the plain package installs."""

from importlib import import_module
from types import ModuleType

from karpy.errors import ControlPlaneMissing


def import_embedded(name: str) -> ModuleType:
    """Import a module that needs the embedded cluster, or say what to install."""
    try:
        return import_module(name)
    except ImportError as error:
        raise ControlPlaneMissing(
            problem=f"the embedded one needs more than is installed: {error}",
            hint="install what it needs: pip install 'karpy[embedded]'",
        ) from error
