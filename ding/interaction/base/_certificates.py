"""Certificates of a run's certificate authority, whose private key is derived from the run's key.

Only this module imports ``cryptography``; import it when a certificate is needed.
"""

from collections.abc import Sequence
from datetime import datetime

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

#: Validity is not limited, because clocks of hosts may differ or be wrong; the lifetime of a run's
#: key limits trust. RFC 5280 (4.1.2.5) defines this end for certificates without an expiry date.
_BEGIN = datetime(1970, 1, 1)
_END = datetime(9999, 12, 31, 23, 59, 59)
_PURPOSE = b"ding: private key of a run's certificate authority, 1"


class Authority:
    """The certificate authority of one run; each part derives it from the run's key."""

    def __init__(self, key: str) -> None:
        derivation = HKDF(hashes.SHA256(), 32, salt=None, info=_PURPOSE)
        self._private = Ed25519PrivateKey.from_private_bytes(derivation.derive(key.encode()))
        self._name = _named("authority of a ding run")

    def certificate(self) -> str:
        """The authority's certificate as PEM, identical in all parts."""
        public = self._private.public_key()
        return (
            self._builder(self._name, public)
            .serial_number(1)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(signs_certificates=True), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
            .sign(self._private, None)
            .public_bytes(Encoding.PEM)
            .decode()
        )

    def issue(
        self, names: Sequence[str] = (), begin: datetime = _BEGIN, end: datetime = _END
    ) -> tuple[bytes, bytes]:
        """Create a private key and its certificate, both as PEM.

        Args:
            names: DNS names of a server; empty for a client.
            begin, end: Validity of the certificate, in UTC.
        """
        private = Ed25519PrivateKey.generate()
        public = private.public_key()
        purpose = ExtendedKeyUsageOID.SERVER_AUTH if names else ExtendedKeyUsageOID.CLIENT_AUTH
        issuer = self._private.public_key()
        builder = (
            self._builder(_named("part of a ding run"), public, begin, end)
            .serial_number(x509.random_serial_number())
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([purpose]), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer), critical=False
            )
        )
        if names:
            alternatives = x509.SubjectAlternativeName([x509.DNSName(name) for name in names])
            builder = builder.add_extension(alternatives, critical=False)
        certificate = builder.sign(self._private, None).public_bytes(Encoding.PEM)
        secret = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        return secret, certificate

    def _builder(
        self, subject: x509.Name, public: object, begin: datetime = _BEGIN, end: datetime = _END
    ) -> x509.CertificateBuilder:
        builder = x509.CertificateBuilder(issuer_name=self._name, subject_name=subject)
        return builder.public_key(public).not_valid_before(begin).not_valid_after(end)  # type: ignore[arg-type]


def _named(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _usage(signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )
