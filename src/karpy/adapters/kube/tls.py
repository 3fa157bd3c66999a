"""TLS contexts: the authorities to trust, and the client certificate."""

import os
import ssl
import tempfile
from pathlib import Path

from karpy.adapters.kube.access import Access
from karpy.adapters.kube.auth import RequestCredentials
from karpy.errors import CredentialsRefused, KubeconfigInvalid


class TlsContexts:
    """Makes TLS contexts, a new one whenever the client certificate has changed."""

    def __init__(self, access: Access) -> None:
        self._endpoint = access.endpoint
        self._source = access.source
        self._certificate = ("", "")
        self._context: ssl.SSLContext | None = None

    def context(self, identity: RequestCredentials) -> ssl.SSLContext:
        """Return the context for an identity; the same one until its certificate changes."""
        certificate = (identity.cert_pem, identity.key_pem)
        if self._context is None or certificate != self._certificate:
            context = self._trusting()
            if identity.cert_pem or identity.key_pem:
                self._load_certificate(context, identity)
            self._context, self._certificate = context, certificate
        return self._context

    def _trusting(self) -> ssl.SSLContext:
        endpoint = self._endpoint
        try:
            context = ssl.create_default_context(cadata=endpoint.ca_pem or None)
        except (ssl.SSLError, ValueError) as error:
            raise KubeconfigInvalid(
                path=self._source,
                problem=f"the certificate authority is no PEM certificate: {error}",
                hint="copy `certificate-authority-data` anew, whole",
            ) from error
        # Since Python 3.13 certificates without key identifiers are refused; clusters use them.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if not endpoint.is_verified:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context

    def _load_certificate(self, context: ssl.SSLContext, identity: RequestCredentials) -> None:
        # `ssl` loads certificates from files only; this file is private and removed at once.
        handle, path = tempfile.mkstemp(prefix="karpy-", suffix=".pem")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(f"{identity.cert_pem}\n{identity.key_pem}\n")
            # Without a password, OpenSSL would ask for the one of an encrypted key at the terminal.
            context.load_cert_chain(path, password="")
        except (ssl.SSLError, ValueError) as error:
            raise CredentialsRefused(
                source=self._source,
                problem=f"the client certificate and its key cannot be used: {error}",
                hint="check that both are PEM, belong together and have no passphrase",
            ) from error
        finally:
            Path(path).unlink()
