"""`uv.lock`, as uv writes it: one graph for every platform and every version of Python that the project is for."""

from __future__ import annotations

import pathlib
import urllib.parse
from collections.abc import Iterator

from .lines import RequirementError, address
from .locks import SDIST, Commit, Directory, Entry, Lock, Need, Other, Reader, Source, Virtual, by_name, wheel_at

NAME = "uv.lock"


def read(text: str, name: str, directory: pathlib.Path) -> Lock:
    """A lock by its text. `name` is what it is called in messages, `directory` where it lies."""
    reader = Reader(name, text)
    version = reader.document.get("version")
    if version != 1:
        raise RequirementError(
            f"{name}:1: version {version!r} of locks is not known here, only 1: write it by a uv that does, or name what is"
            " required in requirements.txt"
        )
    if reader.document.get("conflicts"):
        raise RequirementError(
            f"{name}: extras and groups that exclude each other ([tool.uv] conflicts) are not known here: name what is required"
            " in requirements.txt"
        )
    return Lock(name, directory, "uv lock", by_name(_entries(reader, directory)))


def _entries(reader: Reader, directory: pathlib.Path) -> Iterator[Entry]:
    for package, place in reader.packages():
        extras = reader.table(package.get("optional-dependencies"), "optional-dependencies", place)
        files = reader.files(
            package.get("wheels"),
            lambda file, place=place: _file_of(str(file.get("url") or file.get("path") or file.get("filename") or ""), place),
            place,
        )
        sdist = reader.table(package.get("sdist"), "sdist", place)
        yield Entry(
            name=reader.package_name(package, place),
            version=reader.version(package, place),
            source=_source(reader.table(package.get("source"), "source", place), directory, place),
            place=place,
            needs=tuple(_needs(reader, package.get("dependencies"), place)),
            extras={str(extra): tuple(_needs(reader, listed, place)) for extra, listed in extras.items()},
            markers=reader.texts(package.get("resolution-markers"), "resolution-markers", place),
            files={**files, **({SDIST: str(sdist.get("hash") or "")} if sdist else {})},
        )


def _needs(reader: Reader, listed, place: str) -> Iterator[Need]:
    for need in reader.tables(listed, "dependencies", place):
        yield Need(
            name=reader.package_name(need, place),
            extras=reader.texts(need.get("extra"), "extra", place),
            marker=reader.text(need.get("marker"), "marker", place),
            version=reader.version(need, place) or None,
        )


def _source(said: dict, directory: pathlib.Path, place: str) -> Source:
    """Where a package comes from. An index that the lock names is not asked: pip knows its own."""
    if "registry" in said or not said:
        return None
    if "virtual" in said:
        return Virtual()
    for kind in ("directory", "editable"):
        if isinstance(said.get(kind), str):
            return Directory(str(directory / said[kind]))
    if isinstance(said.get("git"), str):
        return _commit(said["git"], place)
    if isinstance(said.get("url"), str):
        return wheel_at(said["url"])
    if isinstance(said.get("path"), str):
        return Other(f"{said['path']} is a file; wheels come from where the packer's pip is told to look")
    raise RequirementError(f"{place}: source {sorted(map(str, said))} is not known here")


def _commit(said: str, place: str) -> Commit:
    """`URL?subdirectory=...&rev=...#COMMIT`"""
    parts = address(said, place)
    asked = urllib.parse.parse_qs(parts.query)
    url = urllib.parse.urlunsplit((parts.scheme, parts.netloc, parts.path, "", ""))
    return Commit(url, parts.fragment, asked.get("subdirectory", [""])[0])


def _file_of(url: str, place: str) -> str:
    return urllib.parse.unquote(address(url, place).path.rpartition("/")[2])
