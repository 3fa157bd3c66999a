"""Imports of modules that need an extra of the package."""

from importlib import import_module
from types import ModuleType

from karpy.errors import ControlPlaneMissing, OptionInvalid


def import_embedded(name: str) -> ModuleType:
    """Import a module that needs the embedded cluster; the error names the extra to install."""
    try:
        return import_module(name)
    except ImportError as error:
        raise ControlPlaneMissing(
            problem=f"the embedded one needs more than is installed: {error}",
            hint="install what it needs: pip install 'karpy[embedded]'",
        ) from error


def import_viewer(name: str) -> ModuleType:
    """Import a module that draws on a whole terminal; the error names the extra to install."""
    try:
        return import_module(name)
    except ImportError as error:
        raise OptionInvalid(
            name="karpy top",
            problem=f"needs more than is installed to stay up to date: {error}",
            hint="install what it needs: pip install 'karpy[tui]'; or print it once: --once",
        ) from error


def import_aws_fake(name: str) -> ModuleType:
    """Import a module that needs the fake AWS; the error names the extra to install."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise OptionInvalid(
            name="the fake AWS",
            problem=f"needs the package `{error.name}`",
            hint="install it: pip install 'karpy[aws,aws-fake,embedded]'",
        ) from error
