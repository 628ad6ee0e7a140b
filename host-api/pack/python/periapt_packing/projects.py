"""What pyproject.toml requires, and where it takes what from. Nothing else in it counts: the charm is not built."""

from __future__ import annotations

import bisect
import pathlib
import re
from collections.abc import Iterator

from . import direct, markers, poetry
from .lines import Placed, RequirementError, name_of
from .locks import Commit, Directory, Member, Other, Source, toml, wheel_at
from .repository import Repository
from .requirements import MOST, checked, read
from .unpacked import normalised

#: What brings in no repository by a name that moves.
_COMMIT = re.compile("[0-9a-f]{40}")

#: How deep groups include others.
_MOST_WITHIN = 50

#: Strings and keys, as most are written.
_SAID = re.compile(r'"([^"\n]*)"|\'([^\'\n]*)\'|^[ \t]*([A-Za-z0-9_.-]+)[ \t]*=', re.MULTILINE)


class Project:
    """A pyproject.toml."""

    def __init__(self, file: pathlib.Path, charm: pathlib.Path | None = None, root: pathlib.Path | None = None):
        """Read a file below `root`. What it is called in messages begins at the charm, or else at the root."""
        charm = charm or file.parent
        self.directory = file.parent
        self._text = read(charm, file, MOST, root)
        self._name = Repository.of(charm, root).shown(file.resolve())
        try:
            self.document = toml().loads(self._text)
        except (ValueError, RecursionError) as error:
            raise RequirementError(f"{self._name}: {error}") from None
        # Where lines begin, and what stands in them first: each is looked for once, however many ask.
        self._begins = [0, *(found.end() for found in re.finditer("\n", self._text))]
        self._places: dict[str, int] = {}
        for found in _SAID.finditer(self._text):
            self._places.setdefault(next(filter(None, found.groups()), ""), found.start())
        self._project = _table(self.document, "project")
        tool = _table(self.document, "tool")
        self._poetry, self._uv = _table(tool, "poetry"), _table(tool, "uv")

    @property
    def name(self) -> str:
        """What it calls itself, as indexes compare names; empty if it does not say."""
        said = self._project.get("name", self._poetry.get("name"))
        return normalised(said) if isinstance(said, str) else ""

    @property
    def is_poetrys(self) -> bool:
        """Whether poetry keeps it."""
        return bool(self._poetry)

    @property
    def is_uvs(self) -> bool:
        """Whether uv keeps it."""
        return bool(self._uv)

    @property
    def overridden(self) -> frozenset[str]:
        """What [tool.uv] takes in other versions than packages ask for."""
        listed = self._uv.get("override-dependencies")
        return frozenset(name_of(line) for line in (listed if isinstance(listed, list) else ()) if isinstance(line, str))

    @property
    def default_groups(self) -> list[str]:
        """The groups that uv brings in without being told, but `dev`, which charmcraft leaves out."""
        named = self._uv.get("default-groups")
        groups = _table(self.document, "dependency-groups") if named == "all" else _texts(named)
        return [group for group in groups if group != "dev"]

    def dependencies(self) -> Iterator[Placed]:
        """What it requires in any case."""
        listed = self._project.get("dependencies")
        if listed is not None:
            yield from self._of_list(listed, "dependencies")
            return
        named = _table(self._poetry, "dependencies")
        dynamic = self._project.get("dynamic")
        if not named and isinstance(dynamic, list) and "dependencies" in dynamic:
            raise RequirementError(
                f"{self._line('dynamic')}: what a build backend finds to be required is not: name it in requirements.txt"
            )
        yield from self._of_poetry(named)

    def of_group(self, group: str) -> Iterator[Placed]:
        """What a group requires, be it of the standard's or of poetry's, with the groups that it includes."""
        yield from self._of_group(group, (), set())

    def _of_group(self, group: str, within: tuple[str, ...], done: set[str]) -> Iterator[Placed]:
        if group in within:
            raise RequirementError(f"{self._line(group)}: group {group} includes itself")
        if len(within) > _MOST_WITHIN:
            raise RequirementError(f"{self._line(group)}: groups include others at most {_MOST_WITHIN} deep")
        if group in done:
            return
        done.add(group)
        groups = _table(self.document, "dependency-groups")
        ours = next((name for name in groups if normalised(name) == normalised(group)), None)
        poetrys = _table(_table(self._poetry, "group"), group)
        if ours is None and not poetrys:
            raise RequirementError(f"{self._name}: there is no group {group}")
        yield from self._of_poetry(_table(poetrys, "dependencies"))
        for line in self._lines(groups[ours] if ours is not None else [], group):
            if isinstance(line, dict) and set(line) == {"include-group"}:
                yield from self._of_group(str(line["include-group"]), (*within, group), done)
            else:
                yield from self._of_list([line], group)

    def of_extra(self, extra: str) -> Iterator[Placed]:
        """What an extra requires."""
        extras = _table(self._project, "optional-dependencies")
        ours = next((name for name in extras if normalised(name) == normalised(extra)), None)
        if ours is not None:
            yield from self._of_list(extras[ours], extra)
            return
        listed = _table(self._poetry, "extras").get(extra)
        if not isinstance(listed, list):
            raise RequirementError(f"{self._name}: there is no extra {extra}")
        named = _table(self._poetry, "dependencies")
        for name in named:
            if normalised(name) in {normalised(str(one)) for one in listed}:
                yield from self._of_poetry({name: named[name]}, even_optional=True)

    def source_of(self, line: str) -> tuple[Source, str]:
        """Where the project takes what a line requires from, and where it says so; no source is an index.

        What is said to come from elsewhere is not taken by its name: who packs would take what another has put by it.
        """
        if isinstance(line, Placed) and line.source is not None:
            return line.source, line.place
        name = name_of(line)
        for key, said in _table(self._uv, "sources").items():
            if normalised(key) == name:
                place = self._line(f"{key} = ", key)
                return self._of_uv(key, said, place), place
        for key, said in self._poetrys():
            if normalised(key) == name:
                found = next((one for one in _several(said) if poetry.is_elsewhere(one) and _is_meant(one)), None)
                if found is not None:
                    place = self._line(key)
                    return self._source_of_poetrys(key, found, place), place
        return None, ""

    def workspace(self) -> tuple[list[str], list[str]] | None:
        """The patterns of a workspace's members, and of those that are none of them; nothing, if it is no workspace's root."""
        found = self._uv.get("workspace")
        if not isinstance(found, dict):
            return None
        members, others = (found.get(key) for key in ("members", "exclude"))
        return _texts(members), _texts(others)

    def findings(self) -> Iterator[dict]:
        """Indexes that it names: where packages come from is for the packer's own pip to know."""
        for key, listed in (("[[tool.uv.index]]", self._uv.get("index")), ("[[tool.poetry.source]]", self._poetry.get("source"))):
            if listed:
                file, _, number = self._line(key).rpartition(":")
                message = "packages come from where the packer's pip is told to look, and from no index that the project names"
                yield {"file": file, "line": int(number), "severity": "warning", "message": message}

    def place_of(self, said: str) -> str:
        """The line in which something is said."""
        return self._line(said)

    def _of_uv(self, name: str, said, place: str) -> Source:
        """One source of [tool.uv.sources], or the one of several that counts in the sandbox."""
        listed = said if isinstance(said, list) else [said]
        for one in listed:
            if not isinstance(one, dict):
                raise RequirementError(f"{place}: {name}: a source is a table")
            try:
                counts = markers.applies(str(one.get("marker", "")))
            except markers.UnreadableError as error:
                raise RequirementError(f"{place}: {name}: {error}") from None
            if not counts or "group" in one or "extra" in one and len(listed) > 1:
                continue
            if one.get("workspace") is True:
                return Member(str(self.directory))
            return self._source(name, one, place)
        return None

    def _source_of_poetrys(self, name: str, said: dict, place: str) -> Source:
        if "source" in said:
            return Other(
                f"index {said['source']} is not asked: packages come from where the packer's pip is told to look; lock it, and"
                " its digest says what it is"
            )
        return self._source(name, said, place)

    def _source(self, name: str, said: dict, place: str) -> Source:
        if isinstance(said.get("path", said.get("file")), str):
            path = said.get("path", said.get("file"))
            if path.endswith((".whl", ".tar.gz", ".zip")):
                return Other(f"{path} is a file; wheels come from where the packer's pip is told to look")
            return Directory(str(self.directory / path))
        if isinstance(said.get("git"), str):
            commit = next((str(said[key]) for key in ("rev", "tag", "branch") if said.get(key)), "")
            return Commit(said["git"], commit, str(said.get("subdirectory", "")))
        if isinstance(said.get("url"), str):
            return wheel_at(said["url"])
        if "index" in said:
            return Other(
                f"index {said['index']} is not asked: packages come from where the packer's pip is told to look; lock it, and its"
                " digest says what it is"
            )
        return Other("its source is not known here")

    def _poetrys(self) -> Iterator[tuple[str, object]]:
        """All dependencies in poetry's words, of groups as well."""
        yield from _table(self._poetry, "dependencies").items()
        for group in _table(self._poetry, "group").values():
            if isinstance(group, dict):
                yield from _table(group, "dependencies").items()

    def _of_poetry(self, named: dict, even_optional: bool = False) -> Iterator[Placed]:
        for name, wanted in named.items():
            if name == "python":
                continue
            place = self._line(name)
            for one in _several(wanted):
                if even_optional and isinstance(one, dict):
                    one = {key: value for key, value in one.items() if key != "optional"}
                line = poetry.requirement(name, one, place)
                if line is not None:
                    yield Placed.at(checked(line, place), place)

    def _of_list(self, listed, what: str) -> Iterator[Placed]:
        for line in self._lines(listed, what):
            if not isinstance(line, str):
                raise RequirementError(f"{self._line(what)}: {line!r} is no requirement")
            place = self._line(line)
            yield direct.repository(line, place) or Placed.at(checked(line, place), place)

    def _lines(self, listed, what: str) -> list:
        if not isinstance(listed, list):
            raise RequirementError(f"{self._line(what)}: {what} is no list")
        return listed

    def _line(self, *said: str) -> str:
        """The line in which something is said: the first of several texts that is found."""
        for text in said:
            # As a whole, or else within something longer.
            place = self._places.get(text, -1)
            place = place if place >= 0 else self._text.find(text)
            if place >= 0:
                return f"{self._name}:{bisect.bisect_right(self._begins, place)}"
        return f"{self._name}:1"


def is_commit(said: str) -> bool:
    """Whether a revision is one that never means another: a full commit."""
    return _COMMIT.fullmatch(said) is not None


def _is_meant(said) -> bool:
    """Whether one of several choices of poetry's counts in the sandbox."""
    try:
        return not isinstance(said, dict) or markers.applies(str(said.get("markers", "")))
    except markers.UnreadableError:
        return True


def _several(wanted) -> list:
    """poetry takes one choice or a list of them, each with markers of its own."""
    return wanted if isinstance(wanted, list) and all(isinstance(one, dict) for one in wanted) else [wanted]


def _texts(listed) -> list[str]:
    return [one for one in listed if isinstance(one, str)] if isinstance(listed, list) else []


def _table(document, key: str) -> dict:
    found = document.get(key)
    return found if isinstance(found, dict) else {}
