"""The CEL library, and how a function of ours is told to it."""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from itertools import groupby
from typing import Any, Final, Protocol

from msgspec import Struct

CEL: Final[Any] = import_module("cel_expr_python.cel")
"""The package says nothing about its types, so nothing is known about them here."""

_TYPE: Final = CEL.Type
_TYPES: Final[dict[str, Any]] = {
    "bool": _TYPE.BOOL,
    "int": _TYPE.INT,
    "double": _TYPE.DOUBLE,
    "string": _TYPE.STRING,
    "dyn": _TYPE.DYN,
    "list": _TYPE.List(_TYPE.DYN),
    "object": _TYPE.Map(_TYPE.STRING, _TYPE.DYN),
}
ERROR: Final[object] = _TYPE.ERROR


class Answer(Protocol):
    """What an expression comes to; an error is an answer too, and its value is its message."""

    def value(self) -> object: ...

    def type(self) -> object: ...


class Expression(Protocol):
    """A compiled expression."""

    def eval(self, *, data: Mapping[str, object]) -> Answer:
        """Evaluate it with these values for its variables."""


class Environment(Protocol):
    """What expressions are compiled in."""

    def compile(self, expression: str) -> Expression:
        """Compile an expression; raise RuntimeError if it makes no sense."""


class CelFunction(Struct, frozen=True):
    """A function that rules may call; types are named as in `_TYPES`."""

    name: str
    parameters: tuple[str, ...]
    result: str
    call: Callable[..., object]
    is_method: bool = False


def method(
    name: str, parameters: Sequence[str], result: str, call: Callable[..., object]
) -> CelFunction:
    """Make a function that is called on its first parameter."""
    return CelFunction(name, tuple(parameters), result, call, is_method=True)


def new_environment(functions: Sequence[CelFunction]) -> Environment:
    """Return what rules are compiled in: `self`, `oldSelf`, and all that Kubernetes adds to CEL."""
    extensions = [
        getattr(import_module(f"cel_expr_python.ext.ext_{name}"), f"Ext{name.capitalize()}")()
        for name in ("strings", "optional", "bindings")
    ]
    by_name = groupby(sorted(functions, key=_name), key=_name)
    made: Environment = CEL.NewEnv(
        variables={"self": _TYPE.DYN, "oldSelf": _TYPE.DYN, "olds": _TYPES["list"]},
        functions=[_declared(name, tuple(group)) for name, group in by_name],
        extensions=extensions,
    )
    return made


def _name(function: CelFunction) -> str:
    return function.name


def _declared(name: str, functions: Sequence[CelFunction]) -> object:
    overloads = [
        CEL.Overload(
            f"{name}_{'_'.join(each.parameters)}",
            _TYPES[each.result],
            [_TYPES[parameter] for parameter in each.parameters],
            each.is_method,
            each.call,
        )
        for each in functions
    ]
    return CEL.FunctionDecl(name, overloads)
