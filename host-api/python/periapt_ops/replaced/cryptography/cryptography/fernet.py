"""`cryptography.fernet` in Python: tokens that only who has the key can read and make.

Libraries of charms keep values in relation data in it. Of all that `cryptography` does in native code this alone is here:
AES with 128 bits in CBC mode, by FIPS 197, and HMAC-SHA256, which the standard library has. It takes no care of how long
it takes for which key; a hook is alone with itself.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import os
import struct
import time

_VERSION = 0x80
#: The most seconds that another clock may be ahead.
_MAX_CLOCK_SKEW = 60


class InvalidToken(Exception):
    """A token that was not made with this key, or is too old."""


class Fernet:
    """Makes and reads tokens with one key: 32 bytes in base64, half of them to sign, half to encrypt."""

    def __init__(self, key, backend=None):
        try:
            plain = base64.urlsafe_b64decode(key)
        except binascii.Error as error:
            raise ValueError("Fernet key must be 32 url-safe base64-encoded bytes.") from error
        if len(plain) != 32:
            raise ValueError("Fernet key must be 32 url-safe base64-encoded bytes.")
        self._signing_key, self._schedule = plain[:16], _expanded(plain[16:])

    @classmethod
    def generate_key(cls) -> bytes:
        """A new key."""
        return base64.urlsafe_b64encode(os.urandom(32))

    def encrypt(self, data: bytes) -> bytes:
        """A token of the present time."""
        return self.encrypt_at_time(data, int(time.time()))

    def encrypt_at_time(self, data: bytes, current_time: int) -> bytes:
        """A token of some time."""
        return self._made(_bytes("data", data), current_time, os.urandom(16))

    def _made(self, data: bytes, current_time: int, begin: bytes) -> bytes:
        padding = 16 - len(data) % 16
        blocks, before = bytearray(), begin
        data += bytes([padding]) * padding
        for at in range(0, len(data), 16):
            before = _encrypted(_xor(data[at : at + 16], before), self._schedule)
            blocks += before
        token = struct.pack(">BQ", _VERSION, current_time) + begin + bytes(blocks)
        return base64.urlsafe_b64encode(token + self._signature(token))

    def decrypt(self, token, ttl: int | None = None) -> bytes:
        """What a token holds, if it is no older than some seconds."""
        return self._read(token, None if ttl is None else (ttl, int(time.time())))

    def decrypt_at_time(self, token, ttl: int, current_time: int) -> bytes:
        """What a token holds, if it is no older at some time than some seconds."""
        if ttl is None:
            raise ValueError("decrypt_at_time() can only be used with a non-None ttl")
        return self._read(token, (ttl, current_time))

    def extract_timestamp(self, token) -> int:
        """When a token was made."""
        return struct.unpack_from(">Q", self._checked(token), 1)[0]

    def _checked(self, token) -> bytes:
        if not isinstance(token, (str, bytes)):
            raise TypeError("token must be bytes or str")
        try:
            data = base64.urlsafe_b64decode(token)
        except (TypeError, ValueError):
            raise InvalidToken from None
        if len(data) < 73 or data[0] != _VERSION or (len(data) - 57) % 16:
            raise InvalidToken
        if not hmac.compare_digest(self._signature(data[:-32]), data[-32:]):
            raise InvalidToken
        return data

    def _read(self, token, limits: tuple[int, int] | None) -> bytes:
        data = self._checked(token)
        made = struct.unpack_from(">Q", data, 1)[0]
        if limits is not None:
            ttl, now = limits
            if made + ttl < now or now + _MAX_CLOCK_SKEW < made:
                raise InvalidToken
        before, blocks, done = data[9:25], data[25:-32], bytearray()
        for at in range(0, len(blocks), 16):
            block = blocks[at : at + 16]
            done += _xor(_decrypted(block, self._schedule), before)
            before = block
        padding = done[-1]
        if not 1 <= padding <= 16 or done[-padding:] != bytes([padding]) * padding:
            raise InvalidToken
        return bytes(done[:-padding])

    def _signature(self, data: bytes) -> bytes:
        return hmac.digest(self._signing_key, data, "sha256")


class MultiFernet:
    """Makes tokens with the first of some keys, and reads those of all."""

    def __init__(self, fernets):
        self._fernets = list(fernets)
        if not self._fernets:
            raise ValueError("MultiFernet requires at least one Fernet instance")

    def encrypt(self, data: bytes) -> bytes:
        """A token of the present time."""
        return self._fernets[0].encrypt(data)

    def decrypt(self, token, ttl: int | None = None) -> bytes:
        """What a token of any of the keys holds."""
        for fernet in self._fernets:
            try:
                return fernet.decrypt(token, ttl)
            except InvalidToken:
                continue
        raise InvalidToken

    def rotate(self, token) -> bytes:
        """The same with the first key, of the time that it was made."""
        for fernet in self._fernets:
            try:
                return self._fernets[0].encrypt_at_time(fernet.decrypt(token), fernet.extract_timestamp(token))
            except InvalidToken:
                continue
        raise InvalidToken


def _bytes(name: str, value) -> bytes:
    if not isinstance(value, (bytes, bytearray, memoryview)):
        raise TypeError(f"{name} must be bytes")
    return bytes(value)


def _xor(one: bytes, other: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(one, other))


def _double(byte: int) -> int:
    return (byte << 1 ^ (0x1B if byte & 0x80 else 0)) & 0xFF


def _boxes() -> tuple[bytes, bytes]:
    """The substitution of AES: inverses in its field, then turned; and the way back."""
    box, p, q = bytearray(256), 1, 1
    while True:
        # `p` goes through the field by its generator, and `q` is its inverse.
        p = p ^ _double(p)
        q ^= q << 1
        q ^= q << 2
        q ^= q << 4
        q &= 0xFF
        q ^= 0x09 if q & 0x80 else 0
        turned = q
        for shift in range(1, 5):
            turned ^= (q << shift | q >> (8 - shift)) & 0xFF
        box[p] = turned ^ 0x63
        if p == 1:
            break
    box[0] = 0x63
    back = bytearray(256)
    for value, substituted in enumerate(box):
        back[substituted] = value
    return bytes(box), bytes(back)


_BOX, _BACK = _boxes()
#: Where each byte of a block goes when rows are shifted, and comes back.
_SHIFT = tuple((place + 4 * (place % 4)) % 16 for place in range(16))
_UNSHIFT = tuple((place - 4 * (place % 4)) % 16 for place in range(16))


def _times(factor: int) -> bytes:
    done = bytearray(256)
    for value in range(256):
        product, doubled, left = 0, value, factor
        while left:
            product ^= doubled if left & 1 else 0
            doubled, left = _double(doubled), left >> 1
        done[value] = product
    return bytes(done)


_BY = {factor: _times(factor) for factor in (1, 2, 3, 9, 11, 13, 14)}


def _expanded(key: bytes) -> list[bytes]:
    """The keys of all rounds."""
    words = [key[at : at + 4] for at in range(0, 16, 4)]
    constant = 1
    for number in range(4, 44):
        word = words[-1]
        if number % 4 == 0:
            word = bytes(_BOX[byte] for byte in (*word[1:], word[0]))
            word = bytes([word[0] ^ constant]) + word[1:]
            constant = _double(constant)
        words.append(_xor(word, words[number - 4]))
    return [b"".join(words[at : at + 4]) for at in range(0, 44, 4)]


def _mixed(block: bytes, factors: tuple[int, int, int, int]) -> bytes:
    """Each column, multiplied by a polynomial."""
    one, two, three, four = (_BY[factor] for factor in factors)
    done = bytearray()
    for at in range(0, 16, 4):
        a, b, c, d = block[at : at + 4]
        done += bytes(
            (
                one[a] ^ two[b] ^ three[c] ^ four[d],
                four[a] ^ one[b] ^ two[c] ^ three[d],
                three[a] ^ four[b] ^ one[c] ^ two[d],
                two[a] ^ three[b] ^ four[c] ^ one[d],
            )
        )
    return bytes(done)


def _encrypted(block: bytes, keys: list[bytes]) -> bytes:
    block = _xor(block, keys[0])
    for number in range(1, 11):
        block = bytes(_BOX[block[place]] for place in _SHIFT)
        if number < 10:
            block = _mixed(block, (2, 3, 1, 1))
        block = _xor(block, keys[number])
    return block


def _decrypted(block: bytes, keys: list[bytes]) -> bytes:
    for number in range(10, 0, -1):
        block = _xor(block, keys[number])
        if number < 10:
            block = _mixed(block, (14, 11, 13, 9))
        block = bytes(_BACK[block[place]] for place in _UNSHIFT)
    return _xor(block, keys[0])
