"""TLS: which certificates we trust, and which one we show."""

import os
import ssl
import tempfile
from pathlib import Path

from karpy.adapters.kube.access import Access
from karpy.adapters.kube.auth import Identity
from karpy.errors import CredentialsRefused, KubeconfigInvalid


class TlsContexts:
    """Makes TLS contexts, a new one whenever the certificate we show has changed."""

    def __init__(self, access: Access) -> None:
        self._endpoint = access.endpoint
        self._source = access.source
        self._shown = ("", "")
        self._context: ssl.SSLContext | None = None

    def context(self, identity: Identity) -> ssl.SSLContext:
        """Return the context for an identity; the same one as long as its certificate stays."""
        shown = (identity.cert_pem, identity.key_pem)
        if self._context is None or shown != self._shown:
            context = self._trusting()
            if identity.cert_pem or identity.key_pem:
                self._show(context, identity)
            self._context, self._shown = context, shown
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
        # Python 3.13 began to refuse certificates without key identifiers; clusters have such.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if not endpoint.is_verified:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context

    def _show(self, context: ssl.SSLContext, identity: Identity) -> None:
        # The module takes certificates from files only; this one is ours alone and gone at once.
        handle, path = tempfile.mkstemp(prefix="karpy-", suffix=".pem")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(f"{identity.cert_pem}\n{identity.key_pem}\n")
            # A key behind a passphrase would make OpenSSL ask at the terminal.
            context.load_cert_chain(path, password="")
        except (ssl.SSLError, ValueError) as error:
            raise CredentialsRefused(
                source=self._source,
                problem=f"the client certificate and its key cannot be used: {error}",
                hint="check that both are PEM, belong together and have no passphrase",
            ) from error
        finally:
            Path(path).unlink()
