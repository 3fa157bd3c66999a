"""Settings that all tests share."""

from hypothesis import settings

# A busy machine is slow, not wrong; how fast things are is measured by `make bench`.
settings.register_profile("karpy", deadline=None, print_blob=True)
settings.load_profile("karpy")
