"""Keys from passwords, beside OpenSSL's."""

import hashlib

import pytest

from periapt_ops.stand_ins import hashing


@pytest.mark.parametrize("name", ["sha1", "sha256", "sha512", "md5", "sha3_256"])
@pytest.mark.parametrize("iterations, length", [(1, None), (2, 1), (37, 20), (100, 64), (3, 300)])
def test_a_key_is_openssls(name, iterations, length):
    for password, salt in [(b"", b""), (b"password", b"salt"), (bytearray(200), memoryview(b"\0" * 40))]:
        expected = hashlib.pbkdf2_hmac(name, password, salt, iterations, length)
        assert hashing.pbkdf2_hmac(name, password, salt, iterations, length) == expected


def test_what_openssl_refuses_is_refused():
    for arguments in [("sha256", b"a", b"b", 0), ("sha256", b"a", b"b", 1, 0), ("no such hash", b"a", b"b", 1)]:
        with pytest.raises(ValueError):
            hashlib.pbkdf2_hmac(*arguments)
        with pytest.raises(ValueError):
            hashing.pbkdf2_hmac(*arguments)
    with pytest.raises(TypeError):
        hashing.pbkdf2_hmac("sha256", "a", b"b", 1)
