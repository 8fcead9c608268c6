"""One authority and three certificates for a cluster: servers, the API server as a client, and the signer of tokens.

A cluster lives for a day on one machine, so all servers share a certificate; keys are readable by their owner only.
"""

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

SERVER_NAMES: Final = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
_LIFETIME: Final = timedelta(days=365)
_AUTHORITY_USAGE: Final = x509.KeyUsage(
    key_cert_sign=True,
    crl_sign=True,
    digital_signature=True,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    encipher_only=False,
    decipher_only=False,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pki:
    """The files of one cluster's certificates."""

    folder: Path

    @property
    def authority(self) -> Path:
        """The certificate that signs all others."""
        return self.folder / "ca.crt"

    @property
    def server(self) -> Path:
        """The certificate of every server; its key lies beside it."""
        return self.folder / "server.crt"

    @property
    def server_key(self) -> Path:
        """The key of every server."""
        return self.folder / "server.key"

    @property
    def client(self) -> Path:
        """How the API server shows etcd and the nodes who it is."""
        return self.folder / "client.crt"

    @property
    def client_key(self) -> Path:
        """The key of `client`."""
        return self.folder / "client.key"

    @property
    def token_key(self) -> Path:
        """Signs the tokens of ServiceAccounts."""
        return self.folder / "service-account.key"


def create(folder: Path, *, addresses: Iterable[str]) -> Pki:
    """Make all keys and certificates; servers may be reached by `addresses` and by `SERVER_NAMES`."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    pki = Pki(folder=folder)
    authority_key = ec.generate_private_key(ec.SECP256R1())
    authority = _certificate("fish-local", authority_key, None, authority_key)
    pki.authority.write_bytes(authority.public_bytes(serialization.Encoding.PEM))
    names = [
        *(x509.DNSName(name) for name in SERVER_NAMES),
        *(x509.IPAddress(ipaddress.ip_address(address)) for address in addresses),
    ]
    for path, common_name, alternatives in (
        (pki.server, "fish-local-server", names),
        (pki.client, "fish-local-apiserver", []),
    ):
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = _certificate(common_name, key, authority, authority_key, alternatives)
        path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        _write_key(path.with_suffix(".key"), key)
    _write_key(pki.token_key, ec.generate_private_key(ec.SECP256R1()))
    return pki


def _certificate(
    common_name: str,
    key: ec.EllipticCurvePrivateKey,
    issuer: x509.Certificate | None,
    issuer_key: ec.EllipticCurvePrivateKey,
    alternatives: Iterable[x509.GeneralName] = (),
) -> x509.Certificate:
    """Sign a certificate; without an issuer it is an authority, signed by itself."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(issuer.subject if issuer else name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + _LIFETIME)
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    if issuer is None:
        builder = builder.add_extension(_AUTHORITY_USAGE, critical=True)
    else:
        # etcd calls itself with its server certificate, so it must do for both directions.
        usages = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
        builder = builder.add_extension(usages, critical=False)
        # From Python 3.13 on, TLS clients insist on this extension.
        issuer_id = x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key())
        builder = builder.add_extension(issuer_id, critical=False)
    if names := list(alternatives):
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return builder.sign(issuer_key, hashes.SHA256())


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    path.touch(mode=0o600)
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
        )
    )
