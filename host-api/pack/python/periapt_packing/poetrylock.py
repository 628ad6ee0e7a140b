"""`poetry.lock`, of poetry 1 and 2: one graph for every version of Python that the project is for."""

from __future__ import annotations

import pathlib
import re
from collections.abc import Iterator

from . import markers, poetry
from .lines import RequirementError
from .locks import Commit, Directory, Entry, Lock, Need, Other, Reader, Source, by_name, wheel_at

NAME = "poetry.lock"


def read(text: str, name: str, directory: pathlib.Path) -> Lock:
    """A lock by its text. `name` is what it is called in messages, `directory` where it lies."""
    reader = Reader(name, text)
    metadata = reader.table(reader.document.get("metadata"), "metadata", name)
    version = str(metadata.get("lock-version", ""))
    if re.fullmatch(r"[12]\.\d+", version) is None:
        raise RequirementError(
            f"{name}: lock-version {version!r} is not known here, only 1 and 2: write it by a poetry that does, or name what is"
            " required in requirements.txt"
        )
    # Before 1.2 (lock-version 2.0) digests stand apart.
    apart = reader.table(metadata.get("files"), "files", name)
    return Lock(name, directory, "poetry lock", by_name(_entries(reader, apart, directory)))


def _entries(reader: Reader, apart: dict, directory: pathlib.Path) -> Iterator[Entry]:
    for package, place in reader.packages():
        name = reader.package_name(package, place)
        listed = package.get("files") or next(
            (files for key, files in apart.items() if key.lower() == str(package.get("name")).lower()), None
        )
        needs, optional = [], {}
        for needed, said in reader.table(package.get("dependencies"), "dependencies", place).items():
            for one in said if isinstance(said, list) else [said]:
                need = _need(reader, needed, one, place)
                if isinstance(one, dict) and one.get("optional") is True:
                    optional.setdefault(need.name, []).append(need)
                else:
                    needs.append(need)
        extras = reader.table(package.get("extras"), "extras", place)
        yield Entry(
            name=name,
            version=reader.version(package, place),
            source=_source(reader.table(package.get("source"), "source", place), directory),
            place=place,
            needs=tuple(needs),
            extras={
                str(extra): tuple(_of_extra(reader.texts(names, "extras", place), optional, place))
                for extra, names in extras.items()
            },
            markers=_markers(package, place),
            files=reader.files(listed, lambda file: str(file.get("file", "")), place),
        )


def _need(reader: Reader, name: str, said, place: str) -> Need:
    """What poetry says of a dependency: a range, or a table with one."""
    table = said if isinstance(said, dict) else {"version": said}
    needed = reader.package_name({"name": name}, place)
    return Need(
        name=needed,
        extras=reader.texts(table.get("extras"), "extras", place),
        marker=reader.text(table.get("markers"), "markers", place),
        # The path or the repository is that of the package's own entry.
        specifier=_specifier(reader.text(table.get("version"), "version", place)),
    )


def _of_extra(names: tuple[str, ...], optional: dict[str, list[Need]], place: str) -> Iterator[Need]:
    """What an extra needs: its names are those of dependencies that are optional, with a range that these have as well."""
    for said in names:
        try:
            asked = markers.requirement_of(re.sub(r"\(([^()]*)\)", r"\1", said))
        except markers.UnreadableError as error:
            raise RequirementError(f"{place}: {error}") from None
        known = optional.get(re.sub(r"[-_.]+", "-", asked.name).lower())
        yield from known or [
            Need(
                re.sub(r"[-_.]+", "-", asked.name).lower(),
                tuple(sorted(asked.extras)),
                str(asked.marker or ""),
                str(asked.specifier),
            )
        ]


def _specifier(said: str) -> str:
    """A range in poetry's words; what has several choices is left to the lock."""
    return "" if "|" in said else ",".join(poetry.bounds(said)) if said else ""


def _markers(package: dict, place: str) -> tuple[str, ...]:
    """Where an entry counts. In lock-version 2.1 it may be said by group; one of them will do."""
    said = package.get("markers")
    if said is None:
        return ()
    listed = list(said.values()) if isinstance(said, dict) else [said]
    if not all(isinstance(marker, str) for marker in listed):
        raise RequirementError(f"{place}: markers are no texts")
    return tuple(listed)


def _source(said: dict, directory: pathlib.Path) -> Source:
    kind, url = said.get("type"), said.get("url")
    # An index of its own is not asked: pip knows its own.
    if not said or kind == "legacy":
        return None
    if kind == "directory":
        return Directory(str(directory / str(url)))
    if kind == "git":
        return Commit(str(url), str(said.get("resolved_reference", "")), str(said.get("subdirectory", "")))
    if kind == "url":
        return wheel_at(str(url))
    return Other(f"{url} is a {kind}; wheels come from where the packer's pip is told to look")
