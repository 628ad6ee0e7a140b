"""LZMA: WASI's CPython is built without it, and dashboards travel between charms in it.

This is the `_lzma` that the standard library's own `lzma` stands on. It reads what others have compressed, as .xz or as
.lzma, and writes .xz whose content is stored as it is: the format allows that, and a reader sees no difference
but its size. Reading takes Python some microseconds a byte; a hook that reads much comes to its end by its fuel.
"""

import binascii
import hashlib
import struct
import sys
import types

from .coder import Coder, LZMAError

FORMAT_AUTO, FORMAT_XZ, FORMAT_ALONE, FORMAT_RAW = 0, 1, 2, 3
CHECK_NONE, CHECK_CRC32, CHECK_CRC64, CHECK_SHA256, CHECK_UNKNOWN = 0, 1, 4, 10, 16
FILTER_LZMA2 = 0x21

_MAGIC, _END = b"\xfd7zXZ\x00", b"YZ"
#: Bytes of a check, by its number.
_CHECK_SIZES = (0, 4, 4, 4, 8, 8, 8, 16, 16, 16, 32, 32, 32, 64, 64, 64)
#: The most that a chunk of stored bytes holds.
_CHUNK = 1 << 16


def install() -> None:
    """Add the module where it is missing."""
    try:
        import _lzma  # noqa: F401
    except ImportError:
        sys.modules["_lzma"] = lzma_module()


def lzma_module() -> types.ModuleType:
    """An `_lzma` that stores, and reads."""
    module = types.ModuleType("_lzma", "LZMA in Python.")
    constants = {name: value for name, value in globals().items() if name.startswith(("FORMAT_", "CHECK_", "FILTER_"))}
    constants.update({"FILTER_LZMA1": 0x4000000000000001, "FILTER_DELTA": 3, "FILTER_X86": 4, "FILTER_POWERPC": 5})
    constants.update({"FILTER_IA64": 6, "FILTER_ARM": 7, "FILTER_ARMTHUMB": 8, "FILTER_SPARC": 9, "CHECK_ID_MAX": 15})
    constants.update({"MF_HC3": 3, "MF_HC4": 4, "MF_BT2": 18, "MF_BT3": 19, "MF_BT4": 20, "MODE_FAST": 1, "MODE_NORMAL": 2})
    constants.update({"PRESET_DEFAULT": 6, "PRESET_EXTREME": 1 << 31})
    vars(module).update(constants)
    module.LZMAError, module.LZMACompressor, module.LZMADecompressor = LZMAError, Compressor, Decompressor
    module.is_check_supported = lambda check: check in (CHECK_NONE, CHECK_CRC32, CHECK_CRC64, CHECK_SHA256)
    module._encode_filter_properties = module._decode_filter_properties = _refuse
    return module


def _refuse(*arguments):
    raise LZMAError("filters are not known in the sandbox")


class Compressor:
    """As `lzma.LZMACompressor`, of one .xz stream."""

    def __init__(self, format=FORMAT_XZ, check=-1, preset=None, filters=None):
        if format != FORMAT_XZ or filters is not None:
            raise LZMAError("the sandbox writes .xz alone, without filters")
        self._content = bytearray()

    def compress(self, data):
        """Take some more."""
        self._content += data
        return b""

    def flush(self):
        """The whole stream."""
        return stored(bytes(self._content))


def stored(content: bytes) -> bytes:
    """An .xz stream that holds its content as it is."""
    flags = bytes((0, CHECK_CRC32))
    header = _MAGIC + flags + _crc(flags)
    # One filter, LZMA2, with a dictionary of 64 KiB: nothing in it refers back.
    block = bytes((2, 0, FILTER_LZMA2, 1, 8)) + b"\0\0\0"
    block += _crc(block)
    for at in range(0, len(content), _CHUNK):
        chunk = content[at : at + _CHUNK]
        block += (b"\x01" if at == 0 else b"\x02") + struct.pack(">H", len(chunk) - 1) + chunk
    block += b"\0"
    unpadded = len(block) + 4
    block += b"\0" * (-len(block) % 4) + _crc(content)
    index = b"\0\x01" + _number(unpadded) + _number(len(content))
    index += b"\0" * (-len(index) % 4)
    index += _crc(index)
    footer = struct.pack("<I", len(index) // 4 - 1) + flags
    return header + block + index + _crc(footer) + footer + _END


def _crc(content: bytes) -> bytes:
    return struct.pack("<I", binascii.crc32(content))


def _number(value: int) -> bytes:
    done = bytearray()
    while value >= 0x80:
        done.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*done, value])


class Decompressor:
    """As `lzma.LZMADecompressor`; it reads when all is there."""

    def __init__(self, format=FORMAT_AUTO, memlimit=None, filters=None):
        if filters is not None or format == FORMAT_RAW:
            _refuse()
        self._format, self._given, self._left = format, bytearray(), b""
        self.eof, self.needs_input, self.unused_data, self.check = False, True, b"", CHECK_UNKNOWN

    def decompress(self, data, max_length=-1):
        """Take some more; answers what it holds once that is whole."""
        if self.eof:
            raise EOFError("Already at end of stream")
        if not self._left:
            self._given += data
            given = bytes(self._given)
            try:
                self._left, used = _stream(given, self._format)
            except (IndexError, struct.error):
                # It goes on.
                return b""
            self.unused_data, self.check = given[used:], given[7] & 15 if given[:6] == _MAGIC else CHECK_NONE
        given = self._left if max_length < 0 else self._left[:max_length]
        self._left = self._left[len(given) :]
        self.eof, self.needs_input = not self._left, False
        return given


def _stream(data: bytes, format: int) -> tuple[bytes, int]:
    """The content of the first stream, and its size."""
    data[len(_MAGIC) - 1]
    if data[:6] == _MAGIC and format != FORMAT_ALONE:
        return _xz(data)
    if format == FORMAT_XZ or (len(data) >= 13 and (data[0] >= 225 or _MAGIC.startswith(data[:1]))):
        raise LZMAError("Input format not supported by decoder")
    return _alone(data)


def _xz(data: bytes) -> tuple[bytes, int]:
    data[11]
    kind = data[7] & 15
    if data[8:12] != _crc(data[6:8]):
        raise LZMAError("Corrupt input data")
    # All of it is there before anything is decoded, which takes long.
    blocks, end = _layout(data, _CHECK_SIZES[kind])
    content = bytearray()
    for begin, check in blocks:
        block, _ = _lzma2(data, begin)
        expected = _check_of(kind, block)
        if expected is not None and data[check : check + len(expected)] != expected:
            raise LZMAError("Corrupt input data")
        content += block
    return bytes(content), end


def _layout(data: bytes, check: int) -> tuple[list[tuple[int, int]], int]:
    """Where each block begins and where its check lies, and where the stream ends."""
    at, blocks = 12, []
    while data[at] != 0:
        size = (data[at] + 1) * 4
        if data[at + size - 4 : at + size] != _crc(data[at : at + size - 4]):
            data[at + size]
            raise LZMAError("Corrupt input data")
        place = at + 2
        for bit in (0x40, 0x80):
            if data[at + 1] & bit:
                _, place = _varint(data, place)
        filter_id, place = _varint(data, place)
        if data[at + 1] & 3 or filter_id != FILTER_LZMA2:
            raise LZMAError("Unsupported filter chain")
        begin = at + size
        at = _behind(data, begin)
        at += -(at - begin) % 4
        blocks.append((begin, at))
        at += check
    begin = at
    count, at = _varint(data, at + 1)
    if count != len(blocks):
        raise LZMAError("Corrupt input data")
    for _ in range(2 * count):
        _, at = _varint(data, at)
    at += -(at - begin) % 4 + 4 + 12
    if data[at - 2 : at] != _END:
        data[at - 1]
        raise LZMAError("Corrupt input data")
    return blocks, at


def _behind(data: bytes, at: int) -> int:
    """Where the chunks end that begin somewhere."""
    while data[at] != 0:
        control = data[at]
        if control >= 0x80:
            at += struct.unpack_from(">H", data, at + 3)[0] + 1 + (6 if control >= 0xC0 else 5)
        elif control <= 2:
            at += struct.unpack_from(">H", data, at + 1)[0] + 1 + 3
        else:
            raise LZMAError("Corrupt input data")
    return at + 1


def _check_of(kind: int, block: bytes) -> bytes | None:
    """What stands behind a block, if that is known; others are passed over, as the format allows."""
    if kind == CHECK_CRC32:
        return _crc(block)
    if kind == CHECK_CRC64:
        return _crc64(block)
    return hashlib.sha256(block).digest() if kind == CHECK_SHA256 else None


def _crc64(content: bytes) -> bytes:
    value = _FULL
    for byte in content:
        value = _CRC64[(value ^ byte) & 0xFF] ^ value >> 8
    return struct.pack("<Q", value ^ _FULL)


_FULL = (1 << 64) - 1


def _remainder(byte: int) -> int:
    for _ in range(8):
        byte = byte >> 1 ^ (0xC96C5795D7870F42 if byte & 1 else 0)
    return byte


#: The polynomial of ECMA-182, byte by byte.
_CRC64 = [_remainder(byte) for byte in range(256)]


def _varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80 or shift > 56:
            return value, at
        shift += 7


def _lzma2(data: bytes, at: int) -> tuple[bytes, int]:
    out = bytearray()
    coder = None
    while True:
        control = data[at]
        if control == 0:
            return bytes(out), at + 1
        if control < 0x80:
            if control > 2:
                raise LZMAError("Corrupt input data")
            size = struct.unpack_from(">H", data, at + 1)[0] + 1
            at += 3
            data[at + size - 1]
            out += data[at : at + size]
            at += size
            continue
        size = ((control & 0x1F) << 16) + struct.unpack_from(">H", data, at + 1)[0] + 1
        packed = struct.unpack_from(">H", data, at + 3)[0] + 1
        at += 5
        reset = control >> 5 & 3
        if reset >= 2:
            coder = Coder(data[at], out)
            at += 1
        elif coder is None:
            raise LZMAError("Corrupt input data")
        elif reset == 1:
            coder.reset()
        data[at + packed - 1]
        coder.run(data, at, len(out) + size)
        at += packed


def _alone(data: bytes) -> tuple[bytes, int]:
    size = struct.unpack_from("<Q", data, 5)[0]
    out = bytearray()
    coder = Coder(data[0], out)
    end = coder.run(data, 13, None if size == 0xFFFFFFFFFFFFFFFF else size)
    return bytes(out), end
