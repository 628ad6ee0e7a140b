"""Modules of the standard library that WASI's CPython lacks, over the stand-ins for their native parts."""

import importlib
import socket
import sys

import pytest

from periapt_ops.stand_ins import hosts, tls, xz

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


@pytest.mark.parametrize("options", [{}, {"preset": 0}, {"preset": 9, "check": 0}, {"format": 2}])
@pytest.mark.parametrize("content", [b"", b"a", TEXT, bytes(range(256)) * 300])
def test_what_others_compress_is_read(options, content):
    lzma = pytest.importorskip("lzma")
    packed = lzma.compress(content, **options)
    reader = xz.Decompressor()
    read = b"".join(reader.decompress(packed[at : at + 100]) for at in range(0, len(packed), 100))
    assert (read, reader.eof, reader.unused_data) == (content, True, b"")


@pytest.mark.parametrize("place", [3, 9, 20, 40, 60, -9])
def test_what_is_damaged_is_refused_or_waited_for_and_nothing_else(place):
    lzma = pytest.importorskip("lzma")
    packed = bytearray(lzma.compress(TEXT, check=lzma.CHECK_CRC32))
    packed[place] ^= 0x55
    try:
        assert xz.Decompressor().decompress(bytes(packed)) in (b"", TEXT)
    except xz.LZMAError:
        pass


def test_a_host_is_called_after_its_unit(monkeypatch):
    monkeypatch.setenv("JUJU_UNIT_NAME", "web/3")
    assert (hosts.hostname(), hosts.fqdn(), hosts.fqdn("localhost"), hosts.fqdn("db")) == ("web-3", "web-3", "web-3", "db")
    assert (hosts.address("web-3"), hosts.address("10.1.2.3")) == ("127.0.0.1", "10.1.2.3")
    with pytest.raises(socket.gaierror):
        hosts.address("db")
    monkeypatch.delenv("JUJU_UNIT_NAME")
    assert hosts.hostname() == "localhost"
