"""Settings that all tests share."""

import signal

from hypothesis import settings

# A shell that starts us in the background ignores SIGINT, and so would every program we start.
signal.signal(signal.SIGINT, signal.default_int_handler)

# A busy machine is slow, not wrong; how fast things are is measured by `make bench`.
settings.register_profile("karpy", deadline=None, print_blob=True)
settings.load_profile("karpy")
