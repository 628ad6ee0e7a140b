"""What pyproject.toml requires. Nothing else in it counts: the charm is not built."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator, Sequence

from . import poetry
from .requirements import MOST, Placed, RequirementError, checked, name_of, read
from .unpacked import normalised


def dependencies(file: pathlib.Path, groups: Sequence[str] = (), extras: Sequence[str] = ()) -> tuple[list[str], list[dict]]:
    """The dependencies of a project with some of its groups and extras, or those of poetry's, as requirements; and what is told."""
    project = _Project(file)
    required = list(project.dependencies())
    for group in groups:
        required += project.of_group(group)
    for extra in extras:
        required += project.of_extra(extra)
    for line in required:
        project.require_no_source_of(line)
    return required, list(project.findings())


class _Project:
    """A pyproject.toml."""

    def __init__(self, file: pathlib.Path):
        self._name = file.name
        self._text = read(file.parent, file, MOST)
        try:
            self._document = _toml().loads(self._text)
        except (ValueError, RecursionError) as error:
            raise RequirementError(f"{self._name}: {error}") from None
        self._project = _table(self._document, "project")
        tool = _table(self._document, "tool")
        self._poetry, self._uv = _table(tool, "poetry"), _table(tool, "uv")

    def dependencies(self) -> Iterator[Placed]:
        """What it requires in any case."""
        listed = self._project.get("dependencies")
        if listed is not None:
            yield from self._of_list(listed, "dependencies")
            return
        named = _table(self._poetry, "dependencies")
        dynamic = self._project.get("dynamic")
        if not named and isinstance(dynamic, list) and "dependencies" in dynamic:
            raise RequirementError(f"{self._line('dynamic')}: what a build backend finds to be required is not: name it in requirements.txt")
        yield from self._of_poetry(named)

    def of_group(self, group: str, within: tuple[str, ...] = ()) -> Iterator[Placed]:
        """What a group requires, be it of the standard's or of poetry's."""
        if group in within:
            raise RequirementError(f"{self._line(group)}: group {group} includes itself")
        groups = _table(self._document, "dependency-groups")
        ours = next((name for name in groups if normalised(name) == normalised(group)), None)
        poetrys = _table(_table(self._poetry, "group"), group)
        if ours is None and not poetrys:
            raise RequirementError(f"{self._name}: there is no group {group}")
        yield from self._of_poetry(_table(poetrys, "dependencies"))
        for line in self._lines(groups[ours] if ours is not None else [], group):
            if isinstance(line, dict) and set(line) == {"include-group"}:
                yield from self.of_group(str(line["include-group"]), (*within, group))
            else:
                yield from self._of_list([line], group)

    def of_extra(self, extra: str) -> Iterator[Placed]:
        """What an extra requires."""
        extras = _table(self._project, "optional-dependencies")
        ours = next((name for name in extras if normalised(name) == normalised(extra)), None)
        if ours is None:
            raise RequirementError(f"{self._name}: there is no extra {extra}")
        yield from self._of_list(extras[ours], extra)

    def require_no_source_of(self, line: str) -> None:
        """See that a requirement is not said to come from elsewhere: who packs would take what another has put by that name."""
        for name in _table(self._uv, "sources"):
            if normalised(name) == name_of(line):
                raise self._elsewhere(f"{name} = ", name)
        named = _table(self._poetry, "dependencies")
        for name, wanted in named.items():
            if normalised(name) == name_of(line) and any(poetry.is_elsewhere(one) for one in _several(wanted)):
                raise self._elsewhere(name, name)

    def findings(self) -> Iterator[dict]:
        """Indexes that it names: where packages come from is for the packer's own pip to know."""
        for key, listed in (("[[tool.uv.index]]", self._uv.get("index")), ("[[tool.poetry.source]]", self._poetry.get("source"))):
            if listed:
                file, _, number = self._line(key).rpartition(":")
                message = "packages come from where the packer's pip is told to look, and from no index that the project names"
                yield {"file": file, "line": int(number), "severity": "warning", "message": message}

    def _elsewhere(self, said: str, name: str) -> RequirementError:
        return RequirementError(f"{self._line(said)}: {name}: directories, repositories and sources of its own are not brought in")

    def _of_poetry(self, named: dict) -> Iterator[Placed]:
        for name, wanted in named.items():
            if name == "python":
                continue
            place = self._line(name)
            for one in _several(wanted):
                line = poetry.requirement(name, one, place)
                if line is not None:
                    yield Placed.at(checked(line, place), place)

    def _of_list(self, listed, what: str) -> Iterator[Placed]:
        for line in self._lines(listed, what):
            if not isinstance(line, str):
                raise RequirementError(f"{self._line(what)}: {line!r} is no requirement")
            place = self._line(line)
            yield Placed.at(checked(line, place), place)

    def _lines(self, listed, what: str) -> list:
        if not isinstance(listed, list):
            raise RequirementError(f"{self._line(what)}: {what} is no list")
        return listed

    def _line(self, said: str) -> str:
        """The line in which something is said."""
        number = next((number for number, written in enumerate(self._text.splitlines(), 1) if said in written), 1)
        return f"{self._name}:{number}"


def _several(wanted) -> list:
    """poetry takes one choice or a list of them, each with markers of its own."""
    return wanted if isinstance(wanted, list) and all(isinstance(one, dict) for one in wanted) else [wanted]


def _table(document, key: str) -> dict:
    found = document.get(key)
    return found if isinstance(found, dict) else {}


def _toml():
    try:
        import tomllib
    except ImportError:
        # Python 3.10: pip brings one along.
        from pip._vendor import tomli as tomllib
    return tomllib
