"""TLS: WASI's CPython is built without it, and HTTP clients import `ssl` wherever they are imported.

This is the `_ssl` that the standard library's own `ssl` stands on: numbers, errors, and contexts that can be set up as
clients do when they are made. There is no network to speak through, so no context is ever used for more, and what would
begin a conversation is refused.
"""

import os
import sys
import types

#: By name, as OpenSSL counts them.
NUMBERS = {
    "CERT_NONE": 0,
    "CERT_OPTIONAL": 1,
    "CERT_REQUIRED": 2,
    "ENCODING_PEM": 1,
    "ENCODING_DER": 2,
    "HOSTFLAG_ALWAYS_CHECK_SUBJECT": 1,
    "HOSTFLAG_NO_WILDCARDS": 2,
    "HOSTFLAG_NO_PARTIAL_WILDCARDS": 4,
    "HOSTFLAG_MULTI_LABEL_WILDCARDS": 8,
    "HOSTFLAG_SINGLE_LABEL_SUBDOMAINS": 16,
    "HOSTFLAG_NEVER_CHECK_SUBJECT": 32,
    "OPENSSL_VERSION_NUMBER": 0x30000000,
    "OP_ALL": 0x80000050,
    "OP_CIPHER_SERVER_PREFERENCE": 1 << 22,
    "OP_ENABLE_KTLS": 1 << 3,
    "OP_ENABLE_MIDDLEBOX_COMPAT": 1 << 20,
    "OP_IGNORE_UNEXPECTED_EOF": 1 << 7,
    "OP_LEGACY_SERVER_CONNECT": 1 << 2,
    "OP_NO_COMPRESSION": 1 << 17,
    "OP_NO_RENEGOTIATION": 1 << 30,
    "OP_NO_SSLv2": 0,
    "OP_NO_SSLv3": 1 << 25,
    "OP_NO_TICKET": 1 << 14,
    "OP_NO_TLSv1": 1 << 26,
    "OP_NO_TLSv1_1": 1 << 28,
    "OP_NO_TLSv1_2": 1 << 27,
    "OP_NO_TLSv1_3": 1 << 29,
    "OP_SINGLE_DH_USE": 0,
    "OP_SINGLE_ECDH_USE": 0,
    "PROTOCOL_SSLv23": 2,
    "PROTOCOL_TLS": 2,
    "PROTOCOL_TLSv1": 3,
    "PROTOCOL_TLSv1_1": 4,
    "PROTOCOL_TLSv1_2": 5,
    "PROTOCOL_TLS_CLIENT": 16,
    "PROTOCOL_TLS_SERVER": 17,
    "PROTO_MAXIMUM_SUPPORTED": -1,
    "PROTO_MINIMUM_SUPPORTED": -2,
    "PROTO_SSLv3": 768,
    "PROTO_TLSv1": 769,
    "PROTO_TLSv1_1": 770,
    "PROTO_TLSv1_2": 771,
    "PROTO_TLSv1_3": 772,
    "SSL_ERROR_SSL": 1,
    "SSL_ERROR_WANT_READ": 2,
    "SSL_ERROR_WANT_WRITE": 3,
    "SSL_ERROR_WANT_X509_LOOKUP": 4,
    "SSL_ERROR_SYSCALL": 5,
    "SSL_ERROR_ZERO_RETURN": 6,
    "SSL_ERROR_WANT_CONNECT": 7,
    "SSL_ERROR_EOF": 8,
    "SSL_ERROR_INVALID_ERROR_CODE": 10,
    "VERIFY_ALLOW_PROXY_CERTS": 64,
    "VERIFY_CRL_CHECK_CHAIN": 12,
    "VERIFY_CRL_CHECK_LEAF": 4,
    "VERIFY_DEFAULT": 0,
    "VERIFY_X509_PARTIAL_CHAIN": 0x80000,
    "VERIFY_X509_STRICT": 32,
    "VERIFY_X509_TRUSTED_FIRST": 32768,
    "ALERT_DESCRIPTION_CLOSE_NOTIFY": 0,
    "ALERT_DESCRIPTION_HANDSHAKE_FAILURE": 40,
    "ALERT_DESCRIPTION_BAD_CERTIFICATE": 42,
    "ALERT_DESCRIPTION_CERTIFICATE_EXPIRED": 45,
    "ALERT_DESCRIPTION_UNKNOWN_CA": 48,
    "ALERT_DESCRIPTION_INTERNAL_ERROR": 80,
}

#: What a library has, and what not.
FEATURES = {"HAS_SNI", "HAS_ECDH", "HAS_ALPN", "HAS_TLSv1_2", "HAS_TLSv1_3", "HAS_PHA"}
NO_FEATURES = {"HAS_NPN", "HAS_SSLv2", "HAS_SSLv3", "HAS_TLSv1", "HAS_TLSv1_1", "HAS_PSK", "HAS_TLS_UNIQUE"}

REFUSAL = "there is no network in the sandbox, and no TLS"


def install() -> None:
    """Add the module where it is missing."""
    try:
        import _ssl  # noqa: F401
    except ImportError:
        sys.modules["_ssl"] = ssl_module()


class SSLError(OSError):
    """As `ssl.SSLError`."""

    library = reason = None

    def __str__(self):
        return str(self.strerror or (self.args and self.args[-1]) or "")


class Context:
    """What there is to set in a context; nothing of it is ever used."""

    def __new__(cls, protocol, *arguments, **options):
        made = super().__new__(cls)
        made.__dict__.update(_settings(protocol), _protocol=int(protocol))
        return made

    # The standard library's own properties ask for these as its parent's.
    protocol = property(lambda self: self._protocol)
    verify_mode = property(lambda self: self._verify_mode, lambda self, value: setattr(self, "_verify_mode", value))
    verify_flags = property(lambda self: self._verify_flags, lambda self, value: setattr(self, "_verify_flags", value))
    options = property(lambda self: self._options, lambda self, value: setattr(self, "_options", value))
    minimum_version = property(lambda self: self._minimum, lambda self, value: setattr(self, "_minimum", value))
    maximum_version = property(lambda self: self._maximum, lambda self, value: setattr(self, "_maximum", value))
    _host_flags = 4
    _msg_callback = None

    @property
    def check_hostname(self):
        """Whether a host's name would be compared."""
        return self._checks

    @check_hostname.setter
    def check_hostname(self, value):
        self._checks = bool(value)
        if value and self._verify_mode == NUMBERS["CERT_NONE"]:
            self._verify_mode = NUMBERS["CERT_REQUIRED"]

    def set_ciphers(self, ciphers):
        """Do nothing: nothing is enciphered."""

    def set_alpn_protocols(self, protocols):
        """Do nothing."""

    _set_alpn_protocols = set_ecdh_curve = set_ciphers

    def set_default_verify_paths(self):
        """Do nothing: there are no certificates on no host."""

    def load_verify_locations(self, cafile=None, capath=None, cadata=None):
        """See that a file is there."""
        if cafile is not None:
            with open(cafile, "rb"):
                pass

    def load_cert_chain(self, certfile, keyfile=None, password=None):
        """See that files are there."""
        for file in (certfile, keyfile):
            if file is not None:
                with open(file, "rb"):
                    pass

    def get_ca_certs(self, binary_form=False):
        """None is known."""
        return []

    def get_ciphers(self):
        """None is known."""
        return []

    def cert_store_stats(self):
        """Nothing is kept."""
        return {"x509": 0, "crl": 0, "x509_ca": 0}

    def session_stats(self):
        """Nothing was said."""
        return {}

    def _refuse(self, *arguments, **options):
        raise SSLError(1, REFUSAL)

    _wrap_socket = _wrap_bio = _refuse


def _settings(protocol):
    is_client = protocol == NUMBERS["PROTOCOL_TLS_CLIENT"]
    return {
        "_verify_mode": NUMBERS["CERT_REQUIRED"] if is_client else NUMBERS["CERT_NONE"],
        "_checks": is_client,
        "_verify_flags": NUMBERS["VERIFY_X509_TRUSTED_FIRST"],
        "_options": NUMBERS["OP_ALL"] | NUMBERS["OP_NO_SSLv3"] | NUMBERS["OP_NO_COMPRESSION"],
        "_minimum": NUMBERS["PROTO_TLSv1_2"],
        "_maximum": NUMBERS["PROTO_MAXIMUM_SUPPORTED"],
        "sni_callback": None,
        "post_handshake_auth": False,
        "keylog_filename": None,
        "num_tickets": 2,
        "security_level": 2,
    }


def ssl_module() -> types.ModuleType:
    """An `_ssl` that speaks to nobody."""
    module = types.ModuleType("_ssl", "TLS without a network.")
    vars(module).update(NUMBERS)
    vars(module).update({name: name in FEATURES for name in FEATURES | NO_FEATURES})
    module.OPENSSL_VERSION = "none (the sandbox has no TLS)"
    module.OPENSSL_VERSION_INFO = module._OPENSSL_API_VERSION = (3, 0, 0, 0, 0)
    module._DEFAULT_CIPHERS = "DEFAULT"
    module.SSLError = SSLError
    for name in ("SSLZeroReturnError", "SSLWantReadError", "SSLWantWriteError", "SSLSyscallError", "SSLEOFError"):
        setattr(module, name, type(name, (SSLError,), {}))
    module.SSLCertVerificationError = type("SSLCertVerificationError", (SSLError, ValueError), {})
    module._SSLContext = Context
    module.MemoryBIO = type("MemoryBIO", (), {})
    module.SSLSession = type("SSLSession", (), {})
    module.txt2obj, module.nid2obj = _object, _object
    module.RAND_status, module.RAND_add, module.RAND_bytes = (lambda: True), (lambda *given: None), os.urandom
    module.get_default_verify_paths = lambda: ("SSL_CERT_FILE", "/etc/ssl/cert.pem", "SSL_CERT_DIR", "/etc/ssl/certs")
    module._test_decode_cert = Context._refuse
    return module


#: The purposes that the standard library's `ssl` knows by their identifiers.
_OBJECTS = {
    "1.3.6.1.5.5.7.3.1": (129, "serverAuth", "TLS Web Server Authentication", "1.3.6.1.5.5.7.3.1"),
    "1.3.6.1.5.5.7.3.2": (130, "clientAuth", "TLS Web Client Authentication", "1.3.6.1.5.5.7.3.2"),
}


def _object(given, name=False):
    for known in _OBJECTS.values():
        if given in known:
            return known
    raise ValueError(f"unknown object {given!r}")
