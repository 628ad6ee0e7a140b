"""Source archives (`.tar.gz`, `.zip`), unpacked within bounds: a stranger made them."""

from __future__ import annotations

import gzip
import pathlib
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from typing import IO

from .unpacked import MOST_BYTES, MOST_FILES

#: The most bytes of an archive that are read, once it is decompressed: its files, and what a tar file has around each.
_MOST_READ = MOST_BYTES + MOST_FILES * 2048

#: What unreadable archives raise.
_UNREADABLE = (tarfile.TarError, zipfile.BadZipFile, zlib.error, OSError, EOFError, ValueError, NotImplementedError, RuntimeError)


class ArchiveError(Exception):
    """Why an archive is not unpacked, as the end of a sentence about it."""


def unpack(archive: pathlib.Path, target: pathlib.Path) -> pathlib.Path:
    """Unpack an archive's files below a directory that is not there yet; answers the one directory that all of them are in.

    Links and devices are left out.
    """
    target.mkdir()
    try:
        with archive.open("rb") as opened:
            _write(_zipped(opened) if archive.name.endswith(".zip") else _tarred(opened), target)
    except _UNREADABLE:
        raise ArchiveError("cannot be read") from None
    entries = list(target.iterdir())
    if len(entries) != 1 or not entries[0].is_dir():
        raise ArchiveError("has no single directory with all its files")
    return entries[0]


def _write(files: Iterator[tuple[str, int, IO[bytes]]], target: pathlib.Path) -> None:
    """Write files, as far as they are no more than a charm may have."""
    size = 0
    for number, (name, length, content) in enumerate(files, 1):
        size += length
        if size > MOST_BYTES or number > MOST_FILES:
            raise ArchiveError(f"has more than {MOST_BYTES >> 20} MiB, or more than {MOST_FILES} files")
        parts = name.split("/")
        if ".." in parts or name.startswith("/") or not name.isprintable():
            raise ArchiveError(f"has a file that leads out of its directory: {name[:80]!r}")
        path = target.joinpath(*parts)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as opened:
            shutil.copyfileobj(content, opened)


def _tarred(opened: IO[bytes]) -> Iterator[tuple[str, int, IO[bytes]]]:
    with gzip.open(opened) as decompressed, tarfile.open(fileobj=_Bounded(decompressed), mode="r|") as tar:
        for member in tar:
            content = tar.extractfile(member) if member.isreg() else None
            if content is not None:
                yield member.name, member.size, content


def _zipped(opened: IO[bytes]) -> Iterator[tuple[str, int, IO[bytes]]]:
    with zipfile.ZipFile(opened) as archive:
        for entry in archive.infolist():
            if not entry.is_dir():
                with archive.open(entry) as content:
                    # zipfile gives no more of a file than its entry says.
                    yield entry.filename, entry.file_size, content


class _Bounded:
    """What an archive decompresses to, as far as it may."""

    def __init__(self, decompressed: IO[bytes]):
        self._decompressed, self._left = decompressed, _MOST_READ

    def read(self, size: int) -> bytes:
        """Read the next bytes."""
        content = self._decompressed.read(min(size, self._left + 1))
        self._left -= len(content)
        if self._left < 0:
            raise ArchiveError(f"has more than {MOST_BYTES >> 20} MiB, or more than {MOST_FILES} files")
        return content
