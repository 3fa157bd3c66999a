"""The CEL library, and the registration of further functions with it."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module
from itertools import groupby
from types import ModuleType
from typing import Any, Protocol

from msgspec import Struct


@cache
def _library() -> ModuleType:
    """Import the package on first use; it has no type annotations."""
    return import_module("cel_expr_python.cel")


@cache
def _types() -> Mapping[str, Any]:
    each = _library().Type
    return {
        "bool": each.BOOL,
        "int": each.INT,
        "double": each.DOUBLE,
        "string": each.STRING,
        "dyn": each.DYN,
        "list": each.List(each.DYN),
        "object": each.Map(each.STRING, each.DYN),
    }


class CelAnswer(Protocol):
    """The result of an expression; an error is an answer too, and its value is its message."""

    def value(self) -> object: ...

    def type(self) -> object: ...


def is_error(answer: CelAnswer) -> bool:
    """Say whether an answer is an error."""
    return bool(answer.type() == _library().Type.ERROR)


class CelExpression(Protocol):
    """A compiled expression."""

    def eval(self, *, data: Mapping[str, object]) -> CelAnswer:
        """Evaluate it with these values for its variables."""


class Environment(Protocol):
    """The variables and functions with which expressions are compiled."""

    def compile(self, expression: str) -> CelExpression:
        """Compile an expression; raise RuntimeError if it is invalid."""


class CelFunction(Struct, frozen=True):
    """A function that rules may call; types are named as in `_types`."""

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
    """Return an environment with `self`, `oldSelf`, and the functions that Kubernetes adds."""
    types = _types()
    extensions = [
        getattr(import_module(f"cel_expr_python.ext.ext_{name}"), f"Ext{name.capitalize()}")()
        for name in ("strings", "optional", "bindings")
    ]
    by_name = groupby(sorted(functions, key=_name), key=_name)
    made: Environment = _library().NewEnv(
        variables={"self": types["dyn"], "oldSelf": types["dyn"], "olds": types["list"]},
        functions=[_declared(name, tuple(group)) for name, group in by_name],
        extensions=extensions,
    )
    return made


def _name(function: CelFunction) -> str:
    return function.name


def _declared(name: str, functions: Sequence[CelFunction]) -> object:
    cel, types = _library(), _types()
    overloads = [
        cel.Overload(
            f"{name}_{'_'.join(each.parameters)}",
            types[each.result],
            [types[parameter] for parameter in each.parameters],
            each.is_method,
            each.call,
        )
        for each in functions
    ]
    return cel.FunctionDecl(name, overloads)
