"""`karpy run`: the autoscaler itself."""

import asyncio
import os
import signal
from typing import Annotated

from cyclopts import Parameter

from karpy.cli.options import DONE, FAILED, Injected
from karpy.wiring.flags import FLAGS
from karpy.wiring.options import read_options
from karpy.wiring.process import Crashed, run_process


def run(
    *flags: Annotated[
        str, Parameter(allow_leading_hyphen=True, help="See docs/settings.md.", metavar="FLAG")
    ],
    terminal: Injected,
) -> int:
    """
    Run the autoscaler on a cluster, until Ctrl-C.

    Flags and environment variables are Karpenter's, written as it takes them. For example:

        $ karpy run --kubeconfig cluster.yaml --disable-leader-election
        $ LOG_LEVEL=debug FEATURE_GATES=StaticCapacity=true karpy run --metrics-port 0
        $ karpy run --journal decisions/      every decision recorded, for `karpy replay`

    Without a kubeconfig it works for the cluster whose pod it is. Logs go to stdout as JSON lines,
    metrics to :8080/metrics, /healthz and /readyz to :8081. Only one replica acts at a time: the
    one that holds the lease `karpenter-leader-election`, whether it is Karpy or Karpenter.
    docs/settings.md lists every flag with its variable and its default; the flags are:
    """
    del terminal
    read = read_options(flags, os.environ)

    async def live() -> None:
        end = asyncio.Event()
        loop = asyncio.get_running_loop()
        for each in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(each, end.set)
        await run_process(read, os.environ, end)

    try:
        asyncio.run(live())
    except Crashed:
        return FAILED
    return DONE


def _flag_lines() -> str:
    """Return a line for each flag with its purpose, for `--help`."""
    width = max(len(flag.name) for flag in FLAGS)
    return "\n".join(f"        --{flag.name:{width}}  {flag.help}" for flag in FLAGS)


run.__doc__ = f"{run.__doc__ or ''}\n{_flag_lines()}\n"
