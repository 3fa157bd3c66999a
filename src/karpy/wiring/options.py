"""Read Options: a flag overrides its environment variable, and that the default."""

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from itertools import pairwise
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from karpy.errors import OptionInvalid
from karpy.model.settings import CPU_REQUESTS, Gates, Options
from karpy.wiring.clouds.registry import IMPLYING, find_cloud
from karpy.wiring.flags import (
    FLAGS,
    GATE_FIELDS,
    PROVIDER,
    SWITCH,
    Flag,
    Unfit,
    read_literal,
    unknown_gates,
)


class OptionsRead(Struct, frozen=True):
    """The options, and log lines about doubtful ones."""

    options: Options
    remarks: tuple[str, ...] = ()


def read_options(words: Sequence[str], environ: Mapping[str, str]) -> OptionsRead:
    """
    Read the options of the operator; raise OptionInvalid.

    Flags are written as Go programs take them: `--name value`, `--name=value`, one dash or two.
    """
    provider = _provider(words, environ)
    own = find_cloud(provider).FLAGS
    given = _flags_of(words, {each.name: each for each in (*FLAGS, *own)})
    remarks: list[str] = []
    values = _values_of(FLAGS, given, environ, remarks)
    values["provider"] = provider
    values["cloud"] = _values_of(own, given, environ, remarks)
    named = values.pop("gates", {})
    remarks += unknown_gates(named)
    gates = {GATE_FIELDS[name]: value for name, value in named.items() if name in GATE_FIELDS}
    options = Options(gates=Gates(**gates), **values)
    if options.cpu_requests_milli <= 0:
        options = replace(options, cpu_requests_milli=CPU_REQUESTS)
    return OptionsRead(options, (*remarks, *_doubts(options)))


def _provider(words: Sequence[str], environ: Mapping[str, str]) -> str:
    """
    Return the provider that is asked for, which decides what other flags exist.

    Without `--provider`, a flag or variable that only one provider has implies it.
    """
    found, implied = environ.get(PROVIDER.env, ""), ""
    for flag, provider in IMPLYING.items():
        if environ.get(flag.upper().replace("-", "_")):
            implied = provider
    for word, following in pairwise((*words, "")):
        name, has_value, value = word.lstrip("-").partition("=")
        if name == PROVIDER.name and word.startswith("-"):
            found = value if has_value else following
        elif word.startswith("-"):
            implied = IMPLYING.get(name, implied)
    return found or implied or PROVIDER.default


def _values_of(
    flags: Iterable[Flag],
    given: Mapping[str, str],
    environ: Mapping[str, str],
    remarks: list[str],
) -> dict[str, Any]:
    """Return the values that flags and environment variables set, by field."""
    values: dict[str, Any] = {}
    for flag in flags:
        if flag.name in given:
            _take(values, flag, f"--{flag.name}", _from_flag(flag, given[flag.name]))
        elif flag.env in environ:
            value = _from_environment(flag, environ[flag.env], remarks)
            if value is not None:
                _take(values, flag, flag.env, value)
    return values


def _flags_of(words: Sequence[str], flags: Mapping[str, Flag]) -> dict[str, str]:
    """Split the command line into flags; the last of several equal flags counts."""
    given: dict[str, str] = {}
    rest = list(words)
    while rest:
        word = rest.pop(0)
        flag, has_value, value = _flag_of(word, flags)
        if has_value:
            given[flag.name] = value
        elif flag.form is SWITCH:
            given[flag.name] = "true"
        elif rest:
            given[flag.name] = rest.pop(0)
        else:
            raise OptionInvalid(
                name=word,
                problem="is given without a value",
                hint=f"write --{flag.name}={flag.default or flag.form.metavar}",
            )
    return given


def _flag_of(word: str, flags: Mapping[str, Flag]) -> tuple[Flag, bool, str]:
    name, has_value, value = word.partition("=")
    bare = name.removeprefix("-").removeprefix("-")
    if name == bare:
        raise OptionInvalid(
            name=word,
            problem="is no flag",
            hint="give flags only, as in --log-level=debug; quote values that have spaces",
        )
    flag = flags.get(bare)
    if flag is None:
        close = get_close_matches(bare, flags, 1)
        hint = f"write --{close[0]}" if close else "see docs/settings.md for all there are"
        raise OptionInvalid(name=name, problem="is no flag of `karpy run`", hint=hint)
    return flag, bool(has_value), value


def _from_flag(flag: Flag, text: str) -> object:
    # Parity: boolean flags: as in Karpenter, the command line takes `true` and `false` alone, and
    # the environment takes `1`, `t` and the like, too.
    read = read_literal if flag.form is SWITCH else flag.form.read
    try:
        return read(text)
    except Unfit as error:
        raise OptionInvalid(
            name=f"--{flag.name}", problem=error.problem, hint=error.hint
        ) from error


def _from_environment(flag: Flag, text: str, remarks: list[str]) -> object | None:
    try:
        return flag.form.read(text)
    except Unfit as error:
        # Parity: an environment variable that cannot be read: as Karpenter, Karpy starts with the
        # default; Karpy also logs it.
        if flag.form.is_forgiven:
            remarks.append(
                f"`{flag.env}` {error.problem}; it is ignored and {flag.default} is used"
            )
            return None
        raise OptionInvalid(name=flag.env, problem=error.problem, hint=error.hint) from error


def _take(values: dict[str, Any], flag: Flag, name: str, value: object) -> None:
    try:
        flag.form.check(value)
    except Unfit as error:
        raise OptionInvalid(name=name, problem=error.problem, hint=error.hint) from error
    values[flag.field] = not value if flag.is_negated else value


def _doubts(options: Options) -> list[str]:
    """Return remarks about options that are valid but have no effect."""
    doubts = []
    if options.batch_idle > options.batch_max:
        doubts.append("`batch-idle-duration` is longer than `batch-max-duration` and has no effect")
    if options.gates.terminate_first_repair and not options.gates.node_repair:
        doubts.append("the gate `TerminateFirstRepair` has no effect without `NodeRepair`")
    if options.has_legacy_repair and not options.gates.node_repair:
        doubts.append("`legacy-node-repair` has no effect without the gate `NodeRepair`")
    elif options.has_legacy_repair and options.gates.terminate_first_repair:
        doubts.append("the gate `TerminateFirstRepair` has no effect with `legacy-node-repair`")
    return doubts
