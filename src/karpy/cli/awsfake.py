"""What `karpy aws fake` does, for an installation that has moto."""

import signal
from threading import Event

from karpy.adapters.clouds.awsfake.server import Account, AwsFake
from karpy.cli.terminal import Line, Span, Style, Terminal, line
from karpy.errors import OptionInvalid

__all__ = ["Account", "serve"]


def serve(terminal: Terminal, port: int, account: Account) -> None:
    """Serve AWS until the process is asked to end; raise OptionInvalid for a strange region."""
    end = Event()
    before = {each: signal.signal(each, lambda *_: end.set()) for each in _ENDINGS}
    try:
        fake = _made(account, port)
        fake.start()
        terminal.answer(_usage(fake))
        end.wait()
        fake.stop()
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


_ENDINGS = (signal.SIGINT, signal.SIGTERM)


def _made(account: Account, port: int) -> AwsFake:
    try:
        return AwsFake(account, port)
    except FileNotFoundError as error:
        raise OptionInvalid(
            name="--region",
            problem=f"is `{account.region}`, which the fake AWS does not have",
            hint="name a region such as us-west-2 or eu-west-1",
        ) from error


def _usage(fake: AwsFake) -> list[Line]:
    cluster = fake.account.cluster
    return [
        line(Span("A fake AWS is up", Style.GOOD), f" at {fake.url}"),
        line(),
        *(line(Span(f"  export {key}={value}", Style.NAME)) for key, value in fake.environ.items()),
        line(),
        line(f"  karpy run --provider aws --cluster-name {cluster} --interruption-queue {cluster}"),
        line(),
        line(Span("Ctrl-C ends it, and everything in it.", Style.QUIET)),
    ]
