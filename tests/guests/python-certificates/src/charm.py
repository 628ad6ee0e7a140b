#!/usr/bin/env python3
"""Makes keys and issues certificates in a hook, as the option `mode` says; what comes of it is the unit's status."""

import datetime

import ops
from charmlibs.interfaces import tls_certificates
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509 import verification
from cryptography.x509.oid import NameOID

NAME = "unit.example"

#: Made while the component is built: whatever OpenSSL keeps for random numbers is in each hook's memory from then on.
PACKED_KEY = ec.generate_private_key(ec.SECP256R1())
PACKED_SIGNATURE = PACKED_KEY.sign(b"packed", ec.ECDSA(hashes.SHA256()))


class CertificatesCharm(ops.CharmBase):
    def __init__(self, framework: ops.Framework):
        super().__init__(framework)
        framework.observe(self.on.config_changed, self._on_config_changed)

    def _on_config_changed(self, _: ops.EventBase) -> None:
        done = getattr(self, f"_{self.config['mode']}")()
        self.unit.status = ops.ActiveStatus(done)

    def _key(self):
        kinds = {
            "ec": lambda: ec.generate_private_key(ec.SECP256R1()),
            "ed25519": ed25519.Ed25519PrivateKey.generate,
            "rsa": lambda: rsa.generate_private_key(public_exponent=65537, key_size=2048),
        }
        return kinds[self.config["key"]]()

    def _issue(self) -> str:
        """Ask for a certificate and issue it, as two charms would; then verify it as a client does."""
        ca_key, key = self._key(), self._key()
        ca = certificate(name("ca"), name("ca"), ca_key.public_key(), ca_key, x509.BasicConstraints(ca=True, path_length=None))
        request = x509.CertificateSigningRequestBuilder().subject_name(name(NAME))
        request = request.add_extension(x509.SubjectAlternativeName([x509.DNSName(NAME)]), critical=False).sign(key, hashes.SHA256())
        asked = x509.load_pem_x509_csr(request.public_bytes(serialization.Encoding.PEM))
        assert asked.is_signature_valid
        names = asked.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        issued = certificate(asked.subject, ca.subject, asked.public_key(), ca_key, names)
        issued = x509.load_pem_x509_certificate(issued.public_bytes(serialization.Encoding.PEM))
        chain = verifier(ca, NAME).verify(issued, [])
        assert chain == [issued, ca], chain
        try:
            verifier(ca, "other.example").verify(issued, [])
        except verification.VerificationError:
            return f"issued to {issued.subject.rfc4514_string()} by {issued.issuer.rfc4514_string()}"
        raise AssertionError("a certificate of another name was taken")

    def _relate(self) -> str:
        """Do the same by the library that such charms relate by."""
        validity = datetime.timedelta(days=9)
        ca_key, key = tls_certificates.PrivateKey.generate(), tls_certificates.PrivateKey.generate()
        attributes = tls_certificates.CertificateRequestAttributes(common_name="ca", is_ca=True)
        ca = tls_certificates.Certificate.generate_self_signed_ca(attributes, ca_key, validity)
        attributes = tls_certificates.CertificateRequestAttributes(common_name=NAME, sans_dns=[NAME], add_unique_id_to_subject_name=False)
        request = attributes.generate_csr(key)
        issued = request.sign(ca, ca_key, validity)
        assert issued.matches_private_key(key) and not issued.matches_private_key(ca_key)
        assert request.matches_certificate(issued)
        return f"issued to {issued.common_name}, key valid: {tls_certificates.PrivateKey.from_string(str(key)).is_valid()}"

    def _keep(self) -> str:
        """Write a key with a password, and all of it as PKCS 12, and read both again."""
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        kept = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.BestAvailableEncryption(b"secret")
        )
        assert serialization.load_pem_private_key(kept, b"secret").private_numbers() == key.private_numbers()
        try:
            serialization.load_pem_private_key(kept, b"wrong")
        except ValueError:
            pass
        else:
            raise AssertionError("a wrong password was taken")
        ca = certificate(name("ca"), name("ca"), key.public_key(), key, x509.BasicConstraints(ca=True, path_length=None))
        bundle = pkcs12.serialize_key_and_certificates(b"kept", key, ca, None, serialization.BestAvailableEncryption(b"secret"))
        assert pkcs12.load_key_and_certificates(bundle, b"secret")[1] == ca
        signature = key.sign(b"text", padding.PKCS1v15(), hashes.SHA256())
        try:
            key.public_key().verify(signature, b"another text", padding.PKCS1v15(), hashes.SHA256())
        except InvalidSignature:
            return kept.decode().splitlines()[0]
        raise AssertionError("a signature of another text was taken")

    def _token(self) -> str:
        own = Fernet(Fernet.generate_key())
        token = own.encrypt(b"kept")
        try:
            Fernet(Fernet.generate_key()).decrypt(token)
        except InvalidToken:
            return own.decrypt(token).decode()
        raise AssertionError("another key reads it")

    def _draw(self) -> str:
        """What must differ from hook to hook: a key, a serial number, and what a signature draws."""
        key = self._key()
        public = key.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
        digest = hashes.Hash(hashes.SHA256())
        digest.update(public)
        signature = PACKED_KEY.sign(b"drawn", ec.ECDSA(hashes.SHA256()))
        return f"{digest.finalize().hex()} {x509.random_serial_number():x} {signature.hex()}"

    def _packed(self) -> str:
        """What was made while the component was built is there, and can be used."""
        PACKED_KEY.public_key().verify(PACKED_SIGNATURE, b"packed", ec.ECDSA(hashes.SHA256()))
        return "verified"


def certificate(subject, issuer, public_key, key, extension):
    now = datetime.datetime.now(datetime.timezone.utc)
    builder = x509.CertificateBuilder(issuer, subject, public_key, x509.random_serial_number(), now, now + datetime.timedelta(days=9))
    is_ca = isinstance(extension, x509.BasicConstraints)
    builder = builder.add_extension(extension, critical=is_ca)
    builder = builder.add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key()), critical=False)
    if is_ca:
        usage = dict.fromkeys(
            ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement", "encipher_only", "decipher_only"), False
        )
        usage = x509.KeyUsage(digital_signature=True, key_cert_sign=True, crl_sign=True, **usage)
        builder = builder.add_extension(usage, critical=True)
        builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
    return builder.sign(key, hashes.SHA256())


def verifier(ca, host):
    store = verification.Store([ca])
    return verification.PolicyBuilder().store(store).build_server_verifier(x509.DNSName(host))


def name(text):
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


if __name__ == "__main__":
    ops.main(CertificatesCharm)
