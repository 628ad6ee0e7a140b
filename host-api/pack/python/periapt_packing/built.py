"""Native code that was built for the sandbox's interpreter: wheels that `tools/wheels` leaves in a directory, found by name
and version, and used by digest (decision 52)."""

from __future__ import annotations

import functools
import hashlib
import pathlib
import re
import zipfile
from collections.abc import Iterable

from .unpacked import Wheel, normalised

#: What the interpreter looks for behind the name of a module in native code.
SUFFIX = ".cpython-314-wasm32-wasi.so"

#: A wheel's file: name and version.
_WHEEL = re.compile(r"(?P<name>[A-Za-z0-9._]+)-(?P<version>[A-Za-z0-9._+!]+)-cp314-cp314-wasi_wasm32\.whl")

#: The most versions that one message names.
_NAMED = 6

#: The packages and versions of which `tools/wheels` can make wheels.
_SOURCES = pathlib.Path(__file__).with_name("native_sources.txt")


class BuiltError(Exception):
    """A wheel that is there and cannot be used; for the operator who packs to read."""


class Built:
    """The wheels of some directories; of two with one name and version the first is taken."""

    def __init__(self, directories: Iterable[pathlib.Path] = ()):
        self._wheels: dict[tuple[str, str], tuple[pathlib.Path, str]] = {}
        for directory in directories:
            for name, digest in _listed(directory):
                said = _WHEEL.fullmatch(name)
                if said is not None:
                    known_as = normalised(said["name"]), said["version"]
                    self._wheels.setdefault(known_as, (directory / name, digest))

    def versions(self, name: str) -> list[str]:
        """The versions of a package that there are, the newest first."""
        name = normalised(name)
        return sorted((version for other, version in self._wheels if other == name), key=_order, reverse=True)

    def has(self, name: str, version: str) -> bool:
        """Whether there is exactly this version."""
        return (normalised(name), version) in self._wheels

    def unpack(self, wheel: Wheel, target: pathlib.Path) -> None:
        """Unpack the one of a wheel's name and version into a directory, if its digest is as listed."""
        path, digest = self._wheels[normalised(wheel.name), wheel.version]
        try:
            content = path.read_bytes()
            if hashlib.sha256(content).hexdigest() != digest:
                raise BuiltError(f"{path} has another digest than {_LIST} beside it says: build it again with tools/wheels")
            with zipfile.ZipFile(path) as archive:
                archive.extractall(target)
        except (OSError, zipfile.BadZipFile) as error:
            raise BuiltError(f"{path}: {error}") from None

    def lacking(self, wheel: Wheel) -> str:
        """What is to be told where this version is wanted, and is not there; empty, if nothing of the kind can be built."""
        known = _buildable().get(normalised(wheel.name))
        if known is None:
            return ""
        name, there = normalised(wheel.name), self.versions(wheel.name)
        said = "there is no wheel of it for the sandbox" + (f", but of {' and '.join(there)}" if there else "")
        if wheel.version in known:
            builds = f"`tools/wheels {name} {wheel.version}` of Periapt's repository builds one into $PERIAPT_CACHE/wheels"
            return f"{said}; {builds} (~/.cache/periapt/wheels), where packing looks; PERIAPT_WHEELS names another directory"
        newest = sorted(known, key=_order, reverse=True)
        more = f" and {len(newest) - _NAMED} older" if len(newest) > _NAMED else ""
        return f"{said}; those that `tools/wheels` of Periapt's repository can build are {', '.join(newest[:_NAMED])}{more}"


#: The digests of a directory's wheels, as sha256sum writes them.
_LIST = "SHA256SUMS"


def _listed(directory: pathlib.Path) -> list[tuple[str, str]]:
    """Names and digests of a directory's wheels. A directory that is not there has none."""
    try:
        lines = (directory / _LIST).read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as error:
        raise BuiltError(f"{directory / _LIST}: {error}") from None
    pairs = [line.split(maxsplit=1) for line in lines]
    return [(name.lstrip("*"), digest) for digest, name in pairs if (directory / name.lstrip("*")).is_file()]


@functools.cache
def _buildable() -> dict[str, list[str]]:
    """The versions that can be built, by package."""
    known: dict[str, list[str]] = {}
    for line in _SOURCES.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            name, version, *_ = line.split()
            known.setdefault(name, []).append(version)
    return known


def _order(version: str) -> tuple:
    """Orders the versions of releases, which are all that is built."""
    return tuple(int(part) if part.isdigit() else -1 for part in re.split("[.+]", version))
