"""Certificates for tests: an authority, and the certificates it signs."""

import ssl
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from msgspec import Struct

_DAY: Final = timedelta(days=1)


class Pair(Struct, frozen=True):
    """A certificate and its key, as PEM."""

    cert: str
    key: str


class Authority:
    """Signs certificates."""

    def __init__(self, name: str = "authority") -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _named(name)
        builder = _builder(self._name, self._name, self._key)
        builder = builder.add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        )
        self.pem = _pem(builder.sign(self._key, hashes.SHA256()))

    def sign(self, name: str, *hosts: str, address: str = "127.0.0.1", days_left: int = 1) -> Pair:
        """Return a certificate for host names and one address."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = [*map(x509.DNSName, hosts), x509.IPAddress(ip_address(address))]
        builder = _builder(_named(name), self._name, key, days_left)
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        private = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        return Pair(_pem(builder.sign(self._key, hashes.SHA256())), private.decode())


def server_context(pair: Pair, folder: Path, client_ca: str = "") -> ssl.SSLContext:
    """Return a server's TLS context; with `client_ca` it requires client certificates."""
    file = folder / "server.pem"
    file.write_text(pair.cert + pair.key, encoding="utf-8")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(file)
    if client_ca:
        context.load_verify_locations(cadata=client_ca)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, days_left: int = 1
) -> x509.CertificateBuilder:
    end = datetime.now(UTC) + days_left * _DAY
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(end - 10 * _DAY)
        .not_valid_after(end)
    )


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()
