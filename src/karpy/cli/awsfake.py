"""`karpy aws fake`; needs moto."""

import asyncio
import signal
from contextlib import AsyncExitStack
from functools import partial
from typing import Final

from karpy.adapters.clock import WallClock
from karpy.adapters.clouds.awsfake.market import ANY
from karpy.adapters.clouds.awsfake.server import AwsFake, FakeAccount
from karpy.adapters.kube.connection import connect
from karpy.cli.terminal import Line, Span, Style, Terminal, line
from karpy.errors import KarpyError, OptionInvalid, SystemRefused
from karpy.model.labels import ON_DEMAND, SPOT
from karpy.sim.ec2.joining import JoiningMachines
from karpy.sim.ec2.machines import SimulatedMachines, keep_running

__all__ = ["FakeAccount", "serve"]

_CAPACITY_TYPES: Final = frozenset({ANY, ON_DEMAND, SPOT})
_PLACE_PARTS: Final = 2


def serve(terminal: Terminal, port: int, account: FakeAccount, kubeconfig: str = "") -> None:
    """
    Serve AWS until SIGINT or SIGTERM; raise OptionInvalid for an unknown region.

    With a kubeconfig the machines join that cluster.
    """
    fake = _made(account, port)
    try:
        fake.start()
    except OSError as error:
        raise SystemRefused(error=error) from error
    try:
        asyncio.run(_live(terminal, fake, kubeconfig))
    finally:
        fake.stop()


async def _live(terminal: Terminal, fake: AwsFake, kubeconfig: str) -> None:
    end = asyncio.Event()
    for each in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(each, end.set)
    async with AsyncExitStack() as stack:
        if kubeconfig:
            connection = await stack.enter_async_context(connect(kubeconfig=kubeconfig))
            joining = JoiningMachines(connection.objects, WallClock(), partial(_report, terminal))
            stack.callback(joining.close)
            machines = SimulatedMachines(joining, fake.tables.types.values())
            following = asyncio.create_task(keep_running(machines, fake.instances))
            stack.callback(following.cancel)
        terminal.answer(_usage(fake))
        await end.wait()


def _report(terminal: Terminal, node: str, error: KarpyError) -> None:
    terminal.report(line(f"node {node}: {error.message} ({error.code})"))


def _made(account: FakeAccount, port: int) -> AwsFake:
    for each in account.sold_out:
        capacity_type, *place = each.split("/")
        if len(place) != _PLACE_PARTS or capacity_type not in _CAPACITY_TYPES:
            raise OptionInvalid(
                name="--sold-out",
                problem=f"is `{each}`, which names no capacity type, instance type and zone",
                hint="write `spot/m5.large/us-west-2a`, with `*` for all of them",
            )
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
