"""
Every error a user may see, with a stable code and a hint.

    KarpyError
    ├── ConfigError      the user can fix it
    │   ├── ManifestInvalid      KP1001  a file, document or field cannot be read
    │   ├── FileUnreadable       KP1002  a file is missing or not text
    │   ├── WorkloadInvalid      KP1003  a karpbench file is malformed
    │   ├── CatalogInvalid       KP1004  a catalog file is malformed
    │   ├── ObjectNotFound       KP1005  a name given on the command line does not exist
    │   └── FileUnwritable       KP1006  a file cannot be written
    └── Bug              we can fix it
        ├── Unexpected           KP9000  something happened that nobody thought of
        └── LimitPassed          KP9001  a loop ran longer than it ever should
"""

from typing import ClassVar


class KarpyError(Exception):
    """Base of every error that reaches a user. Raise a subclass, never this."""

    code: ClassVar[str]

    def __init__(self, message: str, *, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        """Say what happened, its code, and the way out."""
        return f"{self.message} ({self.code})\n\nhint: {self.hint}"


class ConfigError(KarpyError):
    """Something the user wrote; the user can fix it."""


class Bug(KarpyError):
    """Something we got wrong; the message asks for a report."""


class ManifestInvalid(ConfigError):
    """A document or a field of it cannot be read; the rest of the input is kept."""

    code = "KP1001"

    def __init__(self, *, where: str, path: str, problem: str, hint: str) -> None:
        what = f"`{path}` {problem}" if path else problem
        super().__init__(f"{where}: {what}", hint=hint)
        self.where = where
        self.path = path
        self.problem = problem


class FileUnreadable(ConfigError):
    """A file is missing, is a directory, or is not text."""

    code = "KP1002"

    def __init__(self, *, path: str, problem: str) -> None:
        super().__init__(
            f"cannot read `{path}`: {problem}", hint="check the path and its permissions"
        )


class WorkloadInvalid(ConfigError):
    """A karpbench file is malformed."""

    code = "KP1003"

    def __init__(self, *, path: str, problem: str) -> None:
        super().__init__(
            f"`{path}` is no karpbench/v1 workload: {problem}",
            hint="make one with `karpy workload NAME`, or see docs/benchmarks.md for the format",
        )


class CatalogInvalid(ConfigError):
    """A catalog file is malformed."""

    code = "KP1004"

    def __init__(self, *, path: str, problem: str) -> None:
        super().__init__(
            f"`{path}` is no catalog of instance types: {problem}",
            hint="give a JSON list of instance types as docs/catalog.md shows",
        )


class ObjectNotFound(ConfigError):
    """A name given on the command line does not exist in the input."""

    code = "KP1005"

    def __init__(self, *, kind: str, name: str, known: str) -> None:
        super().__init__(f"there is no {kind} `{name}`", hint=f"name one of: {known}")


class FileUnwritable(ConfigError):
    """A file cannot be written: no such place, no room, or not allowed."""

    code = "KP1006"

    def __init__(self, *, path: str, problem: str) -> None:
        super().__init__(f"cannot write `{path}`: {problem}", hint="name a folder you may write to")


class Unexpected(Bug):
    """Something happened that nobody thought of."""

    code = "KP9000"

    def __init__(self, *, error: BaseException) -> None:
        super().__init__(
            f"karpy made a mistake: {error!r}",
            hint="report this with the input that caused it; "
            "KARPY_DEBUG=1 adds the traceback we need",
        )


class LimitPassed(Bug):
    """A loop ran longer than it ever should."""

    code = "KP9001"

    def __init__(self, *, what: str) -> None:
        super().__init__(
            f"gave up: {what}", hint="report this with the input that caused it; it is our mistake"
        )
