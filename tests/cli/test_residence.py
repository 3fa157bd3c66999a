"""The report of a served cluster about an unexpected error of a request."""

import io

from karpy.cli.residence import report_error
from karpy.cli.terminal import Channel, Terminal


def test_a_bug_is_reported_with_its_traceback() -> None:
    err = io.StringIO()
    channel = Channel(err, has_colour=False)

    report_error(Terminal(io.StringIO(), channel, channel), ZeroDivisionError("by zero"))

    assert err.getvalue() == (
        "ZeroDivisionError: by zero\n"
        "error: karpy made a mistake: ZeroDivisionError('by zero') (KP9000)\n"
    )
