"""Wheels that pip has fetched and not yet unpacked: bounded, nothing but wheels, and each itself alone."""

from __future__ import annotations

import dataclasses
import pathlib
import re
import zipfile
from collections.abc import Iterable

#: The most bytes that all wheels of a charm have when they are unpacked; an archive takes twice as many, with sources and component.
MOST_BYTES = 256 << 20

#: The most files in them, which an archive takes at most.
MOST_FILES = 10_000

#: A wheel's file: name and version, and which interpreters it is for.
_WHEEL = re.compile(
    r"(?P<name>[A-Za-z0-9](?:[A-Za-z0-9._]*[A-Za-z0-9])?)-(?P<version>[A-Za-z0-9][A-Za-z0-9._+!]*)(?:-[A-Za-z0-9._]+){3,4}\.whl"
)

#: What pip takes from the beginning of a path: files in such directories come to lie beside the others.
_MOVED = re.compile(r"^[^/]+\.data/(?:purelib|platlib|data/lib/python)/+", re.IGNORECASE)

#: What installed packages are known by.
_METADATA = (".dist-info", ".egg-info", ".egg")


class UnpackError(Exception):
    """Wheels that are not unpacked; for the author to read."""


@dataclasses.dataclass(frozen=True)
class Wheel:
    """A wheel that was looked at, by what its file is called. Whatever it says of itself within counts for nothing."""

    name: str
    version: str
    #: The directory with its metadata, once it is unpacked.
    info: str
    #: All its files, where they are once it is unpacked.
    files: tuple[str, ...]
    #: What the wheel itself is called; empty, if there is none.
    file: str = ""

    @property
    def pinned(self) -> str:
        """What names it among others: NAME==VERSION."""
        return f"{self.name}=={self.version}"


def normalised(name: str) -> str:
    """A distribution's name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def checked(directory: pathlib.Path) -> list[Wheel]:
    """The wheels of a directory, if they can be unpacked; sorted.

    What a wheel's own directory says of sizes binds: zipfile, by which pip unpacks, takes no more of a file.
    """
    wheels, size, files = [], 0, 0
    for path in sorted(directory.iterdir()):
        said = _WHEEL.fullmatch(path.name)
        if said is None:
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
        names = [entry.filename for entry in entries]
        info = _info(path.name, normalised(said["name"]), names)
        placed = tuple(_MOVED.sub("", name) for name in names if not name.endswith("/"))
        wheels.append(Wheel(said["name"], said["version"], info, placed, path.name))
    return wheels


def _info(wheel: str, own: str, entries: Iterable[str]) -> str:
    """The directory of a wheel's metadata. What would unpack another's beside it could pass for any other package."""
    found = set()
    for entry in entries:
        first, *others = entry.replace("\\", "/").split("/")
        if ".." in (first, *others):
            raise UnpackError(f"{wheel}: {entry!r} leads out of a directory")
        if first.lower().endswith(_METADATA):
            found.add(first)
        # What lies in these is moved to where the wheel itself is.
        if first.lower().endswith(".data") and any(part.lower().endswith(_METADATA) for part in others):
            raise UnpackError(f"{wheel}: {entry!r} is metadata of another package")
    if len(found) != 1:
        raise UnpackError(f"{wheel}: it has metadata of {len(found)} packages, and a wheel has its own alone")
    (info,) = found
    if not info.endswith(".dist-info") or normalised(info.removesuffix(".dist-info").rpartition("-")[0]) != own:
        raise UnpackError(f"{wheel}: its metadata is that of {info!r}")
    return info
