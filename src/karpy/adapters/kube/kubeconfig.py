"""Kubeconfig files, merged as kubectl merges them, and the access that a context names."""

import base64
import binascii
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeVar

from msgspec import Struct

from karpy.adapters.kube.access import (
    ALWAYS,
    EXEC_V1,
    EXEC_V1BETA1,
    IF_AVAILABLE,
    NEVER,
    Access,
    Endpoint,
    ExecPlugin,
    User,
)
from karpy.adapters.kube.addresses import ADDRESS_HINT, is_address
from karpy.codec.fields import FieldInvalid, Fields
from karpy.codec.limits import Unparsable
from karpy.codec.yamltext import parse_yaml
from karpy.errors import KubeconfigInvalid

T = TypeVar("T")

_DEFAULT_FILE: Final = "~/.kube/config"
_EXEC_EXTENSION: Final = "client.authentication.k8s.io/exec"


class _Entry(Struct, frozen=True):
    """A cluster, user or context, and its file, to which its paths are relative."""

    fields: Fields
    file: Path


class _Merged:
    """The merged files of a kubeconfig; of entries with the same name the first one counts."""

    def __init__(self, files: Sequence[Path]) -> None:
        self._documents = [(file, _read_file(file)) for file in files]
        self.source = os.pathsep.join(str(file) for file in files)

    def current_context(self) -> str:
        names = (document.text("current-context") for _, document in self._documents)
        name = next(filter(None, names), "")
        if not name:
            known = self._known("contexts")
            raise KubeconfigInvalid(
                path=self.source,
                problem="no `current-context` is set",
                hint=f"choose one with `kubectl config use-context`: {known}",
            )
        return name

    def find(self, plural: str, name: str) -> _Entry:
        for file, document in self._documents:
            for each in document.children(plural):
                if each.text("name") == name:
                    return _Entry(each.child(plural.removesuffix("s")), file)
        raise KubeconfigInvalid(
            path=self.source,
            problem=f"there is no `{name}` among its {plural}",
            hint=f"name one of: {self._known(plural)}",
        )

    def _known(self, plural: str) -> str:
        names = {
            each.text("name")
            for _, document in self._documents
            for each in document.children(plural)
        }
        return ", ".join(sorted(names)) or f"(it has no {plural})"


def kubeconfig_files(kubeconfig: str | None, env: Mapping[str, str]) -> list[Path]:
    """
    List the files that exist.

    The file given as an option must exist; of the files in `KUBECONFIG` at least one must.
    """
    named = [kubeconfig] if kubeconfig else env.get("KUBECONFIG", "").split(os.pathsep)
    paths = [Path(each).expanduser() for each in named if each]
    files = [path for path in paths if path.exists()]
    if paths and not files:
        raise KubeconfigInvalid(
            path=os.pathsep.join(str(path) for path in paths),
            problem="there is no such file",
            hint="check the path, or `KUBECONFIG` in the environment",
        )
    if paths:
        return files
    default = Path(_DEFAULT_FILE).expanduser()
    return [default] if default.exists() else []


def read_kubeconfig(files: Sequence[Path], context: str | None = None) -> Access:
    """Read the access of the given context, or of the current context."""
    source = files[0]
    try:
        merged = _Merged(files)
        entry = merged.find("contexts", context or merged.current_context())
        source = entry.file
        cluster, user = entry.fields.needed("cluster"), entry.fields.text("user")
        return Access(
            endpoint=_read_entry(merged.find("clusters", cluster), _read_endpoint),
            user=_read_entry(merged.find("users", user), _read_user) if user else User(),
            namespace=entry.fields.text("namespace") or "default",
            source=str(source),
        )
    except FieldInvalid as error:
        raise KubeconfigInvalid(path=str(source), problem=str(error), hint=error.hint) from error


def _read_entry(entry: _Entry, read: Callable[[_Entry], T]) -> T:
    try:
        return read(entry)
    except FieldInvalid as error:
        raise KubeconfigInvalid(
            path=str(entry.file), problem=str(error), hint=error.hint
        ) from error


def _read_file(file: Path) -> Fields:
    try:
        document = parse_yaml(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise KubeconfigInvalid(
            path=str(file), problem=f"cannot be read: {error}", hint="check the file's permissions"
        ) from error
    except Unparsable as error:
        # The message of the YAML parser quotes the text around the error, which may be a token.
        place = f" in line {error.line}" if error.line else ""
        raise KubeconfigInvalid(
            path=str(file),
            problem=f"is not YAML{place}",
            hint="mend the file, or fetch a new one from an administrator of the cluster",
        ) from None
    try:
        return Fields({} if document is None else document)
    except FieldInvalid as error:
        raise KubeconfigInvalid(path=str(file), problem=str(error), hint=error.hint) from error


def _read_endpoint(entry: _Entry) -> Endpoint:
    fields = entry.fields
    server = fields.needed("server").rstrip("/")
    if "://" not in server:
        server = f"https://{server}"
    if not is_address(server):
        fields.fail("server", "is no address of http:// or https://", ADDRESS_HINT)
    ca_pem = _pem(entry, "certificate-authority-data")
    if not ca_pem and (file := _file(entry, "certificate-authority")):
        ca_pem = _text_of(fields, "certificate-authority", file)
    is_insecure = fields.flag("insecure-skip-tls-verify")
    if is_insecure and ca_pem:
        fields.fail(
            "insecure-skip-tls-verify",
            "is true though a certificate authority is given",
            "remove one of the two",
        )
    proxy = fields.text("proxy-url")
    if proxy and not is_address(proxy):
        fields.fail("proxy-url", "is no address of an http:// or https:// proxy", ADDRESS_HINT)
    return Endpoint(
        server=server,
        ca_pem=ca_pem,
        is_verified=not is_insecure,
        tls_name=fields.text("tls-server-name"),
        proxy=proxy,
        exec_config=_exec_config(fields),
    )


def _exec_config(fields: Fields) -> dict[str, object] | None:
    for each in fields.children("extensions"):
        if each.text("name") == _EXEC_EXTENSION and "extension" in each:
            return each.child("extension").obj
    return None


def _read_user(entry: _Entry) -> User:
    fields = entry.fields
    if "auth-provider" in fields:
        fields.fail(
            "auth-provider",
            "is a way of old that Kubernetes has given up",
            "use the exec plugin of your cloud: `gke-gcloud-auth-plugin`, `kubelogin`",
        )
    name = fields.text("username")
    return User(
        token=_secret(fields, "token"),
        token_file=_file(entry, "tokenFile"),
        basic=(name, _secret(fields, "password")) if name else None,
        cert_pem=_pem(entry, "client-certificate-data"),
        key_pem=_pem(entry, "client-key-data"),
        cert_file=_file(entry, "client-certificate"),
        key_file=_file(entry, "client-key"),
        plugin=_read_plugin(entry, fields.child("exec")) if "exec" in fields else None,
        headers=_impersonation(fields),
    )


def _impersonation(fields: Fields) -> tuple[tuple[str, str], ...]:
    headers = [("Impersonate-User", name)] if (name := fields.text("as")) else []
    headers += [("Impersonate-Group", group) for group in fields.texts("as-groups")]
    if uid := fields.text("as-uid"):
        headers.append(("Impersonate-Uid", uid))
    extra = fields.child("as-user-extra")
    for key in sorted(extra.obj):
        headers += [(f"Impersonate-Extra-{key}", value) for value in extra.texts(key)]
    return tuple(headers)


def _read_plugin(entry: _Entry, fields: Fields) -> ExecPlugin:
    version = fields.choice("apiVersion", (EXEC_V1, EXEC_V1BETA1))
    # v1beta1 has a default for interactiveMode; v1 requires the field.
    default = IF_AVAILABLE if version == EXEC_V1BETA1 else ""
    command = fields.needed("command")
    if "/" in command or os.sep in command:
        # Absolute: `./plugin` beside a kubeconfig in this folder must not become a name in PATH.
        command = str((entry.file.parent / command).absolute())
    return ExecPlugin(
        command=command,
        args=_secrets(fields, "args"),
        env=tuple((each.needed("name"), _secret(each, "value")) for each in fields.children("env")),
        api_version=version,
        install_hint=fields.text("installHint"),
        interactive_mode=fields.choice("interactiveMode", (NEVER, IF_AVAILABLE, ALWAYS), default),
        has_cluster_info=fields.flag("provideClusterInfo"),
    )


def _file(entry: _Entry, key: str) -> str:
    path = entry.fields.text(key)
    return str(entry.file.parent / path) if path else ""


def _secret(fields: Fields, key: str) -> str:
    """Return a text; the error for a wrong value does not show it."""
    value = fields.obj.get(key)
    if not isinstance(value, str | None):
        fields.fail(key, "is not text", "put it between quotes")
    return value or ""


def _secrets(fields: Fields, key: str) -> tuple[str, ...]:
    """Return a list of texts; the error for a wrong value does not show them."""
    if not all(isinstance(each, str) for each in fields.items(key)):
        fields.fail(key, "is a list of more than texts", "put each of them between quotes")
    return fields.texts(key)


def _pem(entry: _Entry, key: str) -> str:
    text = _secret(entry.fields, key)
    try:
        return base64.b64decode("".join(text.split()), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        entry.fields.fail(key, "is not the base64 of a certificate or key", "copy it anew, whole")


def _text_of(fields: Fields, key: str, file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        fields.fail(key, f"names a file that cannot be read: {error}", "check the path")
