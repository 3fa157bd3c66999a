from tests.cli.conftest import karpy

__all__ = ["karpy"]
