"""Tokens, by the numbers of their specifications."""

import importlib.util

import pytest

from periapt_ops.packing import native


@pytest.fixture(scope="module")
def fernet():
    path = native.REPLACED["cryptography"] / "cryptography/fernet.py"
    spec = importlib.util.spec_from_file_location("replaced_fernet", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


#: Of the specification of Fernet: a key, a token of it, when it was made, and what it holds.
KEY = "cw_0x689RpI-jtRR7oE8h_eQsKImvJapLeSbXpwF4e4="
TOKEN = "gAAAAAAdwJ6wAAECAwQFBgcICQoLDA0ODy021cpGVWKZ_eEwCGM4BLLF_5CV9dOPmrhuVUPgJobwOz7JcbmrR64jVmpU4IwqDA=="


def test_a_block_is_that_of_the_standard(fernet):
    keys = fernet._expanded(bytes(range(16)))
    block = bytes.fromhex("00112233445566778899aabbccddeeff")
    assert fernet._encrypted(block, keys).hex() == "69c4e0d86a7b0430d8cdb78070b4c55a"
    assert fernet._decrypted(fernet._encrypted(block, keys), keys) == block


def test_the_token_of_the_specification_is_made_and_read(fernet):
    own = fernet.Fernet(KEY)
    assert own._made(b"hello", 499162800, bytes(range(16))).decode() == TOKEN
    assert own.decrypt_at_time(TOKEN, ttl=60, current_time=499162801) == b"hello"
    assert own.extract_timestamp(TOKEN) == 499162800
    for now in (499162800 + 61, 499162800 - 61):
        with pytest.raises(fernet.InvalidToken):
            own.decrypt_at_time(TOKEN, ttl=60, current_time=now)


@pytest.mark.parametrize("length", [0, 1, 15, 16, 17, 500])
def test_what_is_encrypted_is_read_again_and_by_no_other_key(fernet, length):
    own = fernet.Fernet(fernet.Fernet.generate_key())
    content = bytes(number % 251 for number in range(length))
    token = own.encrypt(content)
    assert own.decrypt(token) == own.decrypt(token.decode()) == content
    other = fernet.Fernet(fernet.Fernet.generate_key())
    both = fernet.MultiFernet([other, own])
    assert (both.decrypt(token), other.decrypt(both.rotate(token))) == (content, content)
    damaged = bytearray(token)
    damaged[20] ^= 1
    for reader, given in ((other, token), (own, bytes(damaged)), (own, b"x"), (own, token[:-4])):
        with pytest.raises(fernet.InvalidToken):
            reader.decrypt(given)
    with pytest.raises(ValueError, match="32 url-safe"):
        fernet.Fernet(b"short")
