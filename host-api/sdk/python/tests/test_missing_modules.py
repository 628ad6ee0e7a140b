"""Modules of the standard library that WASI's CPython lacks, over the stand-ins for their native parts."""

import importlib
import struct
import sys

import pytest

from periapt_ops.stand_ins import tls, xz

TEXT = b"".join(b"line %d of a dashboard\n" % (number % 7) for number in range(2000))


@pytest.fixture
def ssl(monkeypatch):
    """The standard library's `ssl`, over the stand-in."""
    monkeypatch.setitem(sys.modules, "_ssl", tls.ssl_module())
    monkeypatch.delitem(sys.modules, "ssl", raising=False)
    # Older releases ask for one more.
    sys.modules["_ssl"].RAND_pseudo_bytes = None
    yield importlib.import_module("ssl")
    del sys.modules["ssl"]


def test_a_context_can_be_set_up_and_never_used(ssl):
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.options |= ssl.OP_NO_TICKET
    assert (context.minimum_version, context.verify_mode, context.check_hostname) == (
        ssl.TLSVersion.TLSv1_3,
        ssl.CERT_REQUIRED,
        True,
    )
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with pytest.raises(FileNotFoundError):
        context.load_verify_locations("/nowhere")
    with pytest.raises(ssl.SSLError, match="no network in the sandbox"):
        context.wrap_bio(ssl.MemoryBIO(), ssl.MemoryBIO(), server_hostname="a")


def test_what_is_stored_is_read_by_everybody():
    lzma = pytest.importorskip("lzma")
    for content in (b"", b"a", TEXT, bytes(range(256)) * 600):
        stored = xz.Compressor()
        stored.compress(content[:10])
        stored.compress(content[10:])
        packed = stored.flush()
        assert lzma.decompress(packed) == content
        assert xz.Decompressor().decompress(packed) == content


@pytest.mark.parametrize("options", [{}, {"preset": 0}, {"preset": 9, "check": 0}, {"check": 10}, {"format": 2}])
@pytest.mark.parametrize("content", [b"", b"a", TEXT, bytes(range(256)) * 300])
def test_what_others_compress_is_read(options, content):
    lzma = pytest.importorskip("lzma")
    packed = lzma.compress(content, **options)
    reader = xz.Decompressor()
    read = b"".join(reader.decompress(packed[at : at + 100]) for at in range(0, len(packed), 100))
    assert (read, reader.eof, reader.unused_data) == (content, True, b"")


@pytest.mark.parametrize("check", ["CHECK_CRC32", "CHECK_CRC64", "CHECK_SHA256"])
def test_a_content_that_is_not_what_its_check_says_is_refused(check):
    lzma = pytest.importorskip("lzma")
    packed = bytearray(lzma.compress(b"0123456789" * 9, check=getattr(lzma, check)))
    reader = xz.Decompressor()
    assert (reader.decompress(bytes(packed)), reader.check) == (b"0123456789" * 9, getattr(lzma, check))
    # The check stands before the index and the footer.
    size = {"CHECK_CRC32": 4, "CHECK_CRC64": 8, "CHECK_SHA256": 32}[check]
    index = (struct.unpack_from("<I", packed, len(packed) - 8)[0] + 1) * 4
    packed[len(packed) - 12 - index - size] ^= 1
    with pytest.raises(xz.LZMAError, match="Corrupt input data"):
        xz.Decompressor().decompress(bytes(packed))


def test_nothing_is_decoded_before_all_of_it_is_there(monkeypatch):
    lzma = pytest.importorskip("lzma")
    packed, decoded, original = lzma.compress(TEXT), [], xz._lzma2
    monkeypatch.setattr(xz, "_lzma2", lambda data, at: decoded.append(len(data)) or original(data, at))
    reader = xz.Decompressor()
    assert b"".join(reader.decompress(packed[at : at + 1]) for at in range(len(packed))) == TEXT
    assert decoded == [len(packed)]


@pytest.mark.parametrize("filters", [[{"id": 3, "dist": 4}, {"id": 0x21, "preset": 1}], [{"id": 4}, {"id": 0x21, "preset": 1}]])
def test_filters_before_the_compression_are_refused(filters):
    lzma = pytest.importorskip("lzma")
    with pytest.raises(xz.LZMAError, match="Unsupported filter chain"):
        xz.Decompressor().decompress(lzma.compress(TEXT, filters=filters))


@pytest.mark.parametrize("place", [3, 9, 20, 40, 60, -9])
def test_what_is_damaged_is_refused_or_waited_for_and_nothing_else(place):
    lzma = pytest.importorskip("lzma")
    packed = bytearray(lzma.compress(TEXT, check=lzma.CHECK_CRC32))
    packed[place] ^= 0x55
    try:
        assert xz.Decompressor().decompress(bytes(packed)) in (b"", TEXT)
    except xz.LZMAError:
        pass
