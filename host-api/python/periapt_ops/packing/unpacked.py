"""Wheels that pip has fetched and not yet unpacked: bounded, and nothing but wheels."""

from __future__ import annotations

import pathlib
import zipfile

#: The most bytes that all wheels of a charm have when they are unpacked; an archive takes no more.
MOST_BYTES = 256 << 20

#: The most files in them.
MOST_FILES = 50_000


class UnpackError(Exception):
    """Wheels that are not unpacked; for the author to read."""


def checked(directory: pathlib.Path) -> list[pathlib.Path]:
    """The wheels of a directory, if they can be unpacked; sorted.

    What a wheel's own directory says of sizes binds: zipfile, by which pip unpacks, takes no more of a file.
    """
    wheels, size, files = [], 0, 0
    for path in sorted(directory.iterdir()):
        if path.suffix != ".whl":
            raise UnpackError(f"{path.name} is no wheel, and nothing is built")
        try:
            with zipfile.ZipFile(path) as wheel:
                entries = wheel.infolist()
        except (zipfile.BadZipFile, OSError, ValueError) as error:
            raise UnpackError(f"{path.name}: {error}") from None
        size += sum(entry.file_size for entry in entries)
        files += len(entries)
        if size > MOST_BYTES:
            raise UnpackError(f"{path.name}: the charm's dependencies have more than {MOST_BYTES >> 20} MiB unpacked")
        if files > MOST_FILES:
            raise UnpackError(f"{path.name}: the charm's dependencies have more than {MOST_FILES} files")
        wheels.append(path)
    return wheels


def pinned(wheel: pathlib.Path) -> str:
    """What names a wheel among others: NAME==VERSION."""
    name, version, *_ = wheel.name.split("-")
    return f"{name}=={version}"
