"""
Every error a user may see, with a stable code and a hint.

    KarpyError
    ├── ConfigError      the user can fix it
    │   ├── ManifestInvalid      KP1001  a file, document or field cannot be read
    │   ├── FileUnreadable       KP1002  a file is missing or not text
    │   ├── WorkloadInvalid      KP1003  a karpbench file is malformed
    │   ├── CatalogInvalid       KP1004  a catalog file is malformed
    │   ├── ObjectNotFound       KP1005  a name given on the command line does not exist
    │   ├── FileUnwritable       KP1006  a file cannot be written
    │   ├── KubeconfigInvalid    KP1007  a kubeconfig is missing something, or points nowhere
    │   ├── CredentialsRefused   KP1008  a command or file that should give credentials fails
    │   ├── ControlPlaneMissing  KP1009  the programs of a control plane cannot be found or built
    │   ├── OptionInvalid        KP1010  a flag or an environment variable is invalid
    │   ├── SystemRefused        KP1011  the operating system refuses: a full disk, a path too long
    │   ├── NotText              KP1012  a word of the command line or of a file is no UTF-8
    │   ├── CatalogMissing       KP1021  a manifest is about types of a catalog that is not loaded
    │   ├── LabelUnknown         KP1022  a requirement is about a label or value nothing has
    │   ├── NotRead              KP1023  a part of the input that may matter is not read
    │   └── QuotaExceeded        KP1024  a ResourceQuota keeps pods from being created
    ├── ClusterError     an API server refused a request, or did not answer
    │   ├── Unreachable          KP2001  no answer, or the connection broke
    │   ├── TlsRefused           KP2002  the server's certificate is not trusted
    │   ├── Unauthorized         KP2003  401: the client is not known
    │   ├── Forbidden            KP2004  403: the client has no permission
    │   ├── NotFound             KP2005  404
    │   ├── AlreadyExists        KP2006  409 on create
    │   ├── Conflict             KP2007  409: another client was faster, or a precondition failed
    │   ├── Expired              KP2008  410: the resource version is too old
    │   ├── Invalid              KP2009  422: schema, rules or immutable fields
    │   ├── Throttled            KP2010  429: a budget forbids the eviction, or too many requests
    │   ├── BadRequest           KP2011  400, 405, 406, 413, 415: the request is wrong
    │   ├── ServerFault          KP2012  5xx
    │   ├── AnswerMalformed      KP2013  not what an API server answers
    │   ├── LeadershipLost       KP2014  another replica leads now
    │   └── LeadershipUncertain  KP2015  a write was not sent: another replica may lead by now
    ├── CloudError       a cloud refused a request
    │   ├── NoCapacity           KP3001  every option is sold out
    │   ├── MachineNotFound      KP3002  there is no such machine
    │   ├── NodeClassNotReady    KP3003  a node class is not ready for a launch
    │   ├── CloudUnavailable     KP3004  the cloud does not answer, or asks to try again later
    │   ├── RebootUnsupported    KP3005  the cloud reboots no machines
    │   └── AwsRefused           KP3006  AWS refused a call
    └── Bug              a mistake in Karpy
        ├── Unexpected           KP9000  an error that no code expects
        ├── LimitPassed          KP9001  a loop has passed its limit
        └── SimulationStalled    KP9002  on virtual time, every task waits for another
"""

import errno
from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

_SYSTEM_HINTS: Final[Mapping[int, str]] = {
    errno.ENOSPC: "make room on the disk, or write elsewhere",
    errno.EDQUOT: "make room within your quota, or write elsewhere",
    errno.EROFS: "write elsewhere: the disk is read-only",
    errno.ENAMETOOLONG: "give a shorter path",
    errno.ELOOP: "mend the symbolic links, which lead back to themselves",
    errno.EMFILE: "allow more open files: ulimit -n 4096",
    errno.EBADF: "leave the standard streams open, or redirect them to /dev/null",
}


class KarpyError(Exception):
    """Base of every error that reaches a user. Raise a subclass, never this."""

    code: ClassVar[str]

    def __init__(self, message: str, *, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        """Write the message, the code and the hint."""
        return f"{self.message} ({self.code})\n\nhint: {self.hint}"


class ConfigError(KarpyError):
    """An error that the user can correct: in the input, an option or the environment."""


class ClusterError(KarpyError):
    """
    An API server refused a request, or did not answer.

    `status` is the HTTP status, 0 without an answer. `retry_after` is the number of seconds to wait
    before a retry, if the server gives one. `causes` are the reasons of the server in detail, such
    as `DisruptionBudget` for an eviction that a budget forbids.
    """

    is_worth_a_retry: ClassVar[bool] = False
    """Whether the same request may succeed a little later."""
    usual_hint: ClassVar[str] = "look at the message of the API server"

    def __init__(
        self,
        what: str,
        *,
        status: int = 0,
        retry_after: float | None = None,
        hint: str = "",
        causes: tuple[str, ...] = (),
    ) -> None:
        super().__init__(what, hint=hint or self.usual_hint)
        self.status = status
        self.retry_after = retry_after
        self.causes = causes


class CloudError(KarpyError):
    """
    A cloud refused a request; what to do about it depends on the subclass.

    `reason` is the reason of the condition Launched.
    """

    reason: str = "LaunchFailed"


class Bug(KarpyError):
    """A mistake in Karpy; the message asks for a report."""


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

    def __init__(
        self, *, path: str, problem: str, hint: str = "check the path and its permissions"
    ) -> None:
        super().__init__(f"cannot read `{path}`: {problem}", hint=hint)
        self.problem = problem


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
        hint = f"name one of: {known}" if known else f"add it: the input holds no {kind}"
        super().__init__(f"there is no {kind} `{name}`", hint=hint)


class FileUnwritable(ConfigError):
    """A file cannot be written: no such place, no room, or not allowed."""

    code = "KP1006"

    def __init__(self, *, path: str, problem: str) -> None:
        super().__init__(f"cannot write `{path}`: {problem}", hint="name a folder you may write to")


class KubeconfigInvalid(ConfigError):
    """A kubeconfig lacks a part, or names a file or server that does not exist."""

    code = "KP1007"

    def __init__(self, *, path: str, problem: str, hint: str) -> None:
        super().__init__(f"kubeconfig `{path}`: {problem}", hint=hint)


class CredentialsRefused(ConfigError):
    """A command or file that should give credentials fails."""

    code = "KP1008"

    def __init__(self, *, source: str, problem: str, hint: str) -> None:
        super().__init__(f"no credentials from `{source}`: {problem}", hint=hint)


class ControlPlaneMissing(ConfigError):
    """The programs of a control plane cannot be found or built."""

    code = "KP1009"

    def __init__(self, *, problem: str, hint: str, what: str = "control plane") -> None:
        super().__init__(f"no {what}: {problem}", hint=hint)


class OptionInvalid(ConfigError):
    """A flag or an environment variable is unknown, or has a value that is not allowed."""

    code = "KP1010"

    def __init__(self, *, name: str, problem: str, hint: str) -> None:
        super().__init__(f"`{name}` {problem}", hint=hint)


class SystemRefused(ConfigError):
    """The operating system refuses: a disk is full, a path is too long, a stream is closed."""

    code = "KP1011"

    def __init__(self, *, error: OSError) -> None:
        what = error.strerror or str(error) or type(error).__name__
        place = f"`{error.filename}`" if error.filename is not None else "a file or a stream"
        super().__init__(
            f"the operating system refuses {place}: {what}",
            hint=_SYSTEM_HINTS.get(error.errno or 0, "check the path and its permissions"),
        )


class NotText(ConfigError):
    """A word of the command line or of a file is not text in UTF-8."""

    code = "KP1012"

    def __init__(self, *, error: UnicodeEncodeError) -> None:
        shown = ascii(error.object[max(0, error.start - 20) : error.end + 20])
        super().__init__(
            f"{shown} is no text: it cannot be written as {error.encoding}",
            hint="write the names that you give in UTF-8",
        )


class CatalogMissing(ConfigError):
    """A manifest is about instance types of a provider whose catalog is not loaded."""

    code = "KP1021"

    def __init__(self, *, catalog: str, problem: str) -> None:
        super().__init__(
            f"{problem}, and the catalog `{catalog}` has none of them",
            hint="name a catalog that has them: `--catalog NAME` or `--catalog FILE`",
        )


class LabelUnknown(ConfigError):
    """A requirement is about a label or a value that nothing in the input or catalog has."""

    code = "KP1022"

    def __init__(self, *, problem: str, hint: str) -> None:
        super().__init__(problem, hint=hint)


class NotRead(ConfigError):
    """A part of the input that the answer may depend on is not read."""

    code = "KP1023"

    def __init__(self, *, problem: str, hint: str) -> None:
        super().__init__(problem, hint=hint)


class QuotaExceeded(ConfigError):
    """A ResourceQuota keeps pods of the input from being created."""

    code = "KP1024"

    def __init__(self, *, problem: str, hint: str) -> None:
        super().__init__(problem, hint=hint)


class Unreachable(ClusterError):
    """No answer, or the connection broke."""

    code = "KP2001"
    is_worth_a_retry = True
    usual_hint = "check that the API server runs and that the address in the kubeconfig is right"


class TlsRefused(ClusterError):
    """The server's certificate is not trusted."""

    code = "KP2002"
    usual_hint = "check `certificate-authority-data` in the kubeconfig against the server"


class Unauthorized(ClusterError):
    """The server does not know the client: a token is wrong or has expired."""

    code = "KP2003"
    usual_hint = "renew the credentials in the kubeconfig, or check the service account"


class Forbidden(ClusterError):
    """The server knows the client, which has no permission for the request."""

    code = "KP2004"
    usual_hint = "grant the missing verb: see deploy/rbac.yaml, or `kubectl auth can-i --list`"


class NotFound(ClusterError):
    """There is no such object, or no such kind."""

    code = "KP2005"
    usual_hint = "check the name and the namespace, or install the CRDs with `karpy crds`"


class AlreadyExists(ClusterError):
    """There is an object of that name already."""

    code = "KP2006"
    usual_hint = "choose another name, or change the object that is there"


class Conflict(ClusterError):
    """Another client was faster, or a precondition does not hold."""

    code = "KP2007"
    usual_hint = "read the object again and repeat the change"


class Expired(ClusterError):
    """The resource version is older than the history of the server."""

    code = "KP2008"
    usual_hint = "list the objects again"


class Invalid(ClusterError):
    """The object breaks its schema or a rule, or changes what must not change."""

    code = "KP2009"
    usual_hint = "mend the fields that the message names"


class Throttled(ClusterError):
    """A disruption budget forbids an eviction, or there are too many requests."""

    code = "KP2010"
    is_worth_a_retry = True
    usual_hint = "wait and try again; for evictions look at the PodDisruptionBudget"


class BadRequest(ClusterError):
    """The server does not understand the request."""

    code = "KP2011"
    usual_hint = "report this if you did not write the request yourself"


class ServerFault(ClusterError):
    """The server failed."""

    code = "KP2012"
    is_worth_a_retry = True
    usual_hint = "look at the log of the API server"


class AnswerMalformed(ClusterError):
    """The answer is not one of an API server."""

    code = "KP2013"
    usual_hint = "check that the address in the kubeconfig is an API server's, not a proxy's"


class LeadershipLost(ClusterError):
    """Another replica leads now, or the lease could not be renewed."""

    code = "KP2014"
    usual_hint = "start it again: it waits for the lease then; a Deployment does so by itself"


class LeadershipUncertain(ClusterError):
    """A write was not sent: the lease was not renewed in time, and another replica may lead."""

    code = "KP2015"
    usual_hint = "wait until the lease is renewed; look for what froze the process if it recurs"


class NoCapacity(CloudError):
    """Every option of a launch is sold out."""

    code = "KP3001"

    def __init__(self, *, claim: str, options: int) -> None:
        super().__init__(
            f"none of {options} offerings for NodeClaim `{claim}` can be had now",
            hint="allow more instance types, zones or capacity types in the NodePool",
        )


class MachineNotFound(CloudError):
    """The machine does not exist, or no longer exists."""

    code = "KP3002"

    def __init__(self, *, provider_id: str) -> None:
        super().__init__(
            f"there is no machine `{provider_id}`", hint="check it in the console of the cloud"
        )


class NodeClassNotReady(CloudError):
    """A node class is not ready for a launch."""

    code = "KP3003"

    def __init__(self, *, name: str, problem: str) -> None:
        super().__init__(
            f"node class `{name}` is not ready: {problem}",
            hint=f"look at its conditions: kubectl describe {name}",
        )


class CloudUnavailable(CloudError):
    """The cloud does not answer, or asks to try again later."""

    code = "KP3004"

    def __init__(self, *, call: str, problem: str, hint: str = "", reason: str = "") -> None:
        self.reason = reason or type(self).reason
        super().__init__(
            f"`{call}` failed: {problem}",
            hint=hint or "check the status page of the cloud and its quotas",
        )


class RebootUnsupported(CloudError):
    """The cloud reboots no machines."""

    code = "KP3005"

    def __init__(self, *, provider: str) -> None:
        super().__init__(
            f"reboot is not implemented by the provider `{provider}`",
            hint="have its repair policies replace nodes",
        )


class AwsRefused(CloudError):
    """AWS refused a call."""

    code = "KP3006"

    def __init__(
        self, *, call: str, aws_code: str, message: str, hint: str = "", reason: str = ""
    ) -> None:
        self.call = call
        self.reason = reason or type(self).reason
        self.aws_code = aws_code
        """The error code of AWS, such as `UnauthorizedOperation`."""
        self.aws_message = message
        super().__init__(
            f"`{call}` was refused: {aws_code}: {message}",
            hint=hint or "look the code up in the documentation of the AWS API",
        )


class Unexpected(Bug):
    """An error that no code expects: a mistake in Karpy."""

    code = "KP9000"

    def __init__(self, *, error: BaseException) -> None:
        super().__init__(
            f"karpy made a mistake: {error!r}",
            hint="report this with the input that caused it; "
            "KARPY_DEBUG=1 adds the traceback we need",
        )


class LimitPassed(Bug):
    """A loop has passed its limit."""

    code = "KP9001"

    def __init__(self, *, what: str) -> None:
        super().__init__(
            f"gave up: {what}", hint="report this with the input that caused it; it is our mistake"
        )


class SimulationStalled(Bug):
    """Every task on a virtual loop waits, and no timer will wake any of them."""

    code = "KP9002"

    def __init__(self, *, waiting: Sequence[str]) -> None:
        tasks = "".join(f"\n  {each}" for each in waiting)
        super().__init__(
            f"time stands still: every task waits and no timer is set{tasks}",
            hint="give one of these tasks a timeout, or find what should have woken it",
        )
