"""Keys from passwords: `hashlib.pbkdf2_hmac` is OpenSSL's, and WASI's CPython is built without that.

`hashlib.scrypt` is OpenSSL's as well. It is made to need much memory and time, more than a hook has in Python, and stays
out.
"""

from __future__ import annotations

import hashlib
import hmac


def install() -> None:
    """Add the function where it is missing."""
    if not hasattr(hashlib, "pbkdf2_hmac"):
        hashlib.pbkdf2_hmac = pbkdf2_hmac


def pbkdf2_hmac(hash_name: str, password: bytes, salt: bytes, iterations: int, dklen: int | None = None) -> bytes:
    """As `hashlib.pbkdf2_hmac`: PBKDF2 of PKCS #5 with HMAC."""
    if iterations < 1:
        raise ValueError("iteration value must be greater than 0.")
    keyed = hmac.new(bytes(password), digestmod=hash_name)
    length = keyed.digest_size if dklen is None else dklen
    if length < 1:
        raise ValueError("key length must be greater than 0.")
    key = bytearray()
    block = 0
    while len(key) < length:
        block += 1
        last = _digest(keyed, bytes(salt) + block.to_bytes(4, "big"))
        mixed = int.from_bytes(last, "big")
        for _ in range(iterations - 1):
            last = _digest(keyed, last)
            mixed ^= int.from_bytes(last, "big")
        key += mixed.to_bytes(keyed.digest_size, "big")
    return bytes(key[:length])


def _digest(keyed: hmac.HMAC, message: bytes) -> bytes:
    copy = keyed.copy()
    copy.update(message)
    return copy.digest()
