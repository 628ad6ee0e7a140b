"""What lock files say, whichever tool wrote them: packages in exact versions, with digests, and what each of them needs.

A lock is a stranger's: it is read within bounds, and what is wrong in it is told by its line.
"""

from __future__ import annotations

import dataclasses
import pathlib
import re
from collections.abc import Iterator, Mapping

from .lines import RequirementError
from .unpacked import normalised

#: The most bytes of a lock. That of a charm with two hundred packages has 1 MiB.
MOST = 8 << 20

#: The most packages in a lock.
MOST_PACKAGES = 5_000

#: A package's name and version, as they go into lines for pip.
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_VERSION = re.compile(r"[0-9A-Za-z][0-9A-Za-z.+!_-]*")

#: What stands for the name of an archive of sources, where a lock has none.
SDIST = "sdist"

_ARCHIVES = (".tar.gz", ".zip")

#: The address of a wheel: one word, of which pip fills in nothing from the packer's environment.
_WHEEL = re.compile(r"https://[^\s#$\\]+\.whl(?:#[^\s$\\]*)?")

_DIGEST = re.compile(r"sha(?:256|384|512):[0-9a-f]{64,128}")


@dataclasses.dataclass(frozen=True)
class Directory:
    """A project's sources in a directory, by its whole path, which may have links in it."""

    path: str


@dataclasses.dataclass(frozen=True)
class Member:
    """A project of the workspace around a directory, known by its name."""

    base: str


@dataclasses.dataclass(frozen=True)
class Virtual:
    """A project that is no package: only what it needs is brought in."""


@dataclasses.dataclass(frozen=True)
class Commit:
    """A project's sources in a repository, at one commit."""

    url: str
    commit: str
    subdirectory: str = ""


@dataclasses.dataclass(frozen=True)
class Wheel:
    """One wheel, by its address."""

    url: str


@dataclasses.dataclass(frozen=True)
class Other:
    """A source that is not fetched, with the reason."""

    reason: str


#: Where a package comes from; `None` is an index.
Source = Directory | Member | Virtual | Commit | Wheel | Other | None


@dataclasses.dataclass(frozen=True)
class Need:
    """What a package needs, if its marker holds."""

    name: str
    extras: tuple[str, ...] = ()
    marker: str = ""
    #: Which versions will do.
    specifier: str = ""
    #: The one that is meant, where a lock has several.
    version: str | None = None


@dataclasses.dataclass(frozen=True)
class Entry:
    """A package in a lock."""

    name: str
    #: Empty, where the project's own files say it.
    version: str
    source: Source
    #: `FILE:LINE`
    place: str
    needs: tuple[Need, ...] = ()
    extras: Mapping[str, tuple[Need, ...]] = dataclasses.field(default_factory=dict)
    #: Of which one holds where this entry counts; without any it counts everywhere.
    markers: tuple[str, ...] = ()
    #: Names of files and their digests; a name may be empty.
    files: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @property
    def wheels(self) -> list[str]:
        """The files of it that are wheels."""
        return [file for file in self.files if file.endswith(".whl")]

    @property
    def source_digests(self) -> list[str]:
        """The digests of its archives of sources, sorted."""
        return sorted({digest for file, digest in self.files.items() if digest and (file == SDIST or file.endswith(_ARCHIVES))})

    @property
    def digests(self) -> list[str]:
        """Those of its wheels, sorted: what only others have is not taken."""
        return sorted({self.files[file] for file in self.wheels})


@dataclasses.dataclass(frozen=True)
class Lock:
    """A lock file."""

    #: How it is called in messages.
    name: str
    #: The directory that its paths begin at.
    directory: pathlib.Path
    #: What makes it anew.
    command: str
    #: All entries of a package, by its name as indexes compare it.
    packages: Mapping[str, tuple[Entry, ...]]

    def entries(self) -> Iterator[Entry]:
        """All of them."""
        for entries in self.packages.values():
            yield from entries


class Reader:
    """A lock in TOML, while it is read: each answer is of the kind that is expected, or an error by its line."""

    def __init__(self, name: str, text: str):
        self.name = name
        self._lines = [
            number for number, line in enumerate(text.splitlines(), 1) if re.fullmatch(r"\[\[\s*package\s*\]\]\s*(#.*)?", line)
        ]
        try:
            self.document = toml().loads(text)
        except (ValueError, RecursionError) as error:
            raise RequirementError(f"{name}: {error}") from None

    def packages(self) -> Iterator[tuple[dict, str]]:
        """The tables of packages, and the place of each."""
        found = self.document.get("package", [])
        if not isinstance(found, list) or not all(isinstance(package, dict) for package in found):
            raise RequirementError(f"{self.name}: package is no list of tables")
        if len(found) > MOST_PACKAGES:
            raise RequirementError(f"{self.name}: a lock has at most {MOST_PACKAGES} packages")
        lines = self._lines if len(self._lines) == len(found) else [1] * len(found)
        for package, line in zip(found, lines, strict=True):
            yield package, f"{self.name}:{line}"

    def package_name(self, package: dict, place: str) -> str:
        """The name of a package, as indexes compare it."""
        return normalised(self.matching(package.get("name"), _NAME, "name", place))

    def version(self, package: dict, place: str) -> str:
        """The version of a package; empty if it has none."""
        if package.get("version") is None:
            return ""
        return self.matching(package["version"], _VERSION, "version", place)

    def files(self, listed, name_of, place: str) -> dict[str, str]:
        """Files with their digests; `name_of` tells a file's name by its table."""
        files = {}
        for file in self.tables(listed, "files", place):
            digest = file.get("hash")
            if digest is None:
                continue
            if not isinstance(digest, str) or _DIGEST.fullmatch(digest) is None:
                raise RequirementError(f"{place}: {digest!r} is no digest of a file: sha256, sha384 or sha512 is")
            files[str(name_of(file))] = digest
        return files

    def tables(self, listed, what: str, place: str) -> list[dict]:
        """A list of tables; nothing is an empty one."""
        if listed is None:
            return []
        if not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
            raise RequirementError(f"{place}: {what} is no list of tables")
        return listed

    def table(self, said, what: str, place: str) -> dict:
        """A table; nothing is an empty one."""
        if said is None:
            return {}
        if not isinstance(said, dict):
            raise RequirementError(f"{place}: {what} is no table")
        return said

    def texts(self, listed, what: str, place: str) -> tuple[str, ...]:
        """A list of texts; nothing is an empty one."""
        if listed is None:
            return ()
        if not isinstance(listed, list) or not all(isinstance(one, str) for one in listed):
            raise RequirementError(f"{place}: {what} is no list of texts")
        return tuple(listed)

    def text(self, said, what: str, place: str) -> str:
        """A text; nothing is an empty one."""
        if said is None:
            return ""
        if not isinstance(said, str):
            raise RequirementError(f"{place}: {what} is no text")
        return said

    def matching(self, said, pattern: re.Pattern, what: str, place: str) -> str:
        """A text of some form."""
        if not isinstance(said, str) or pattern.fullmatch(said) is None or len(said) > 200:
            raise RequirementError(f"{place}: {what} {str(said)[:80]!r} is none")
        return said


def wheel_at(url: str) -> Wheel | Other:
    """The wheel at an address, or why nothing is fetched from there."""
    if url.isprintable() and _WHEEL.fullmatch(url):
        return Wheel(url)
    return Other(f"{url[:200]!r} is no wheel at an https:// address; nothing else is fetched, as it would be built")


def toml():
    """The module that reads TOML."""
    try:
        import tomllib
    except ImportError:
        # Python 3.10: pip brings one along.
        from pip._vendor import tomli as tomllib
    return tomllib


def by_name(entries: Iterator[Entry]) -> dict[str, tuple[Entry, ...]]:
    """Entries of a lock by the names of their packages."""
    packages: dict[str, tuple[Entry, ...]] = {}
    for entry in entries:
        packages[entry.name] = (*packages.get(entry.name, ()), entry)
    return packages
