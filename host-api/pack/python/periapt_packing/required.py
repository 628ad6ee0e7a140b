"""All that a charm requires: by its lock, its files of requirements or its project, its parts and its libraries."""

from __future__ import annotations

import dataclasses
import os
import pathlib
from collections.abc import Iterator, Sequence

from . import libraries, locked, markers, poetrylock, requirements, uvlock
from .git import Checkouts
from .lines import Placed, RequirementError, name_of, place_of
from .locks import MOST as MOST_LOCK
from .locks import Commit, Directory, Lock, Member, Other, Virtual, Wheel
from .pinned import Pin
from .projects import Project
from .repository import Repository
from .trees import Tree, Trees, with_source
from .wanted import Choices, Parts, Wanted


def of(charm: pathlib.Path, parts: Parts, choices: Choices, checkouts: Checkouts, told: list[dict]) -> Wanted:
    """What a charm requires. Repositories are fetched if that is allowed; indexes are not asked. `told` gets its findings."""
    repository = Repository.of(charm, choices.repository)
    gathered = _Gathered(charm, Wanted(findings=told), Trees(repository, checkouts), repository)
    listed, project = charm / "requirements.txt", charm / "pyproject.toml"
    by_default = [] if parts.project or not os.path.lexists(listed) else [listed]
    files = [charm / file for file in parts.files] or by_default
    if (
        files
        and not any(map(os.path.lexists, files))
        and os.path.lexists(project)
        and _lock_of(charm, Project(project, charm, repository.root), repository)
    ):
        gathered.tell_of_missing(files)
        files = []
    if files:
        gathered.of_files(files)
    if parts.project or (not files and os.path.lexists(project)):
        gathered.of_project(Project(project, charm, repository.root), parts)
    if parts.constraints:
        bounds, more = requirements.of_files(charm, [charm / file for file in parts.constraints], repository.root)
        gathered.wanted.constraints += [line for line in bounds + more if line.source is None]
    gathered.besides(requirements.of_parts(charm, parts.packages))
    if parts.libraries:
        gathered.besides(libraries.required(charm, repository))
    return gathered.wanted


@dataclasses.dataclass
class _Gathered:
    """What is wanted, while it is put together."""

    charm: pathlib.Path
    wanted: Wanted
    trees: Trees
    repository: Repository
    #: What the charm calls itself, if something requires it.
    itself: set[str] = dataclasses.field(default_factory=set)

    def tell_of_missing(self, files: list[pathlib.Path]) -> None:
        """Tell that files of requirements are not there, which something makes that is not run here; the lock is."""
        name = files[0].relative_to(self.charm).as_posix()
        file = self.charm / "charmcraft.yaml"
        lines = requirements.read(self.charm, file, requirements.MOST).splitlines() if file.exists() else []
        named = [number for number, line in enumerate(lines, 1) if name in line]
        number = next((number for number in named if "-requirements" in lines[number - 1]), next(iter(named), 1))
        message = (
            f"{name} is not there, and nothing is run that would make it: what pyproject.toml and its lock say is brought in"
        )
        self.wanted.tell(f"{file.name}:{number}", message)

    def of_files(self, files: list[pathlib.Path]) -> None:
        """Bring in what files of requirements list. If each line is one version with digests, they are a lock."""
        lines, constraints = requirements.of_files(self.charm, files, self.repository.root)
        self.wanted.constraints += constraints
        self.wanted.own += lines
        if (
            lines
            and all(line.source is not None or _is_pinned(line) for line in lines)
            and any(_is_pinned(line) for line in lines)
        ):
            for line in lines:
                if _counts(line):
                    self._of_pinned_line(line)
        else:
            self._freely(lines)

    def _of_pinned_line(self, line: Placed) -> None:
        if line.source is not None:
            self._tree(line, "")
            return
        name, asked = name_of(line), markers.requirement_of(line)
        digests = tuple(word.removeprefix("--hash").lstrip("= ") for word in _hashes(line))
        known = self.wanted.pins.get(name)
        version = markers.exact_version(line) or ""
        if known and (known.version, known.url) != (version, asked.url):
            raise RequirementError(
                f"{place_of(line)}: {name} is required as {version or asked.url}, and as {known.version or known.url} at"
                f" {known.place}"
            )
        self.wanted.pins[name] = Pin(name, version, digests, place_of(line), url=asked.url, required_by=(place_of(line),))

    def of_project(self, project: Project, parts: Parts) -> None:
        """Bring in what pyproject.toml requires: as the lock beside it says, if there is one."""
        lines = _lines_of(project, parts)
        self.wanted.findings += project.findings()
        self.wanted.own += lines
        lock = _lock_of(self.charm, project, self.repository)
        if lock is None:
            self._freely([with_source(project, line) for line in lines])
            return
        self.wanted.lock = lock
        own = {project.name} - {""}
        chosen = locked.chosen(lock, [line for line in lines if name_of(line) not in own], project.overridden)
        for package in chosen.values():
            if package.name not in own:
                self._of_lock(package)
        for line in lines:
            if name_of(line) in own:
                for extra in markers.requirement_of(line).extras:
                    more = list(project.of_extra(extra))
                    self.wanted.own += more
                    for package in locked.chosen(lock, more, project.overridden).values():
                        self._of_lock(package)

    def _of_lock(self, package: locked.Chosen) -> None:
        entry, required_by = package.entry, tuple(package.required_by)
        if isinstance(entry.source, (Directory, Member, Commit)):
            if isinstance(entry.source, Directory):
                directory = self.repository.within(pathlib.Path(entry.source.path), f"{entry.place}: {entry.name}")
                if directory == self.repository.charm:
                    return
            self._take(
                self.trees.tree(entry.name, entry.version, entry.source, entry.place),
                tuple(f"{need.name}" for need in entry.needs),
            )
            return
        if isinstance(entry.source, Virtual):
            return
        if isinstance(entry.source, Other):
            raise RequirementError(f"{entry.place}: {entry.name}: {entry.source.reason}")
        url = entry.source.url.partition("#")[0] if isinstance(entry.source, Wheel) else None
        pin = Pin(
            entry.name,
            entry.version,
            tuple(entry.digests),
            entry.place,
            None if url else tuple(entry.wheels),
            url,
            required_by,
            tuple(sorted(package.extras)),
        )
        if not entry.files:
            raise RequirementError(
                f"{entry.place}: {f'{entry.name} {entry.version}'.strip()} is locked without a digest: run {self.wanted.lock.command} with a"
                " newer release of it"
            )
        if not pin.has_wheel():
            self.wanted.sources[entry.name] = dataclasses.replace(pin, digests=tuple(entry.source_digests))
            return
        self.wanted.pins[entry.name] = pin

    def besides(self, lines: Sequence[str] | Iterator[str]) -> None:
        """Bring in more. What is locked already is not chosen again."""
        free = []
        for line in lines:
            name = name_of(line)
            self.wanted.own.append(line)
            pin, tree = self.wanted.pins.get(name), self.wanted.trees.get(name)
            version = pin.version if pin else tree.version if tree else None
            if version is None:
                free.append(line)
            elif version and pin and _counts(line) and not markers.fits(version, str(markers.requirement_of(line).specifier)):
                raise RequirementError(
                    f"{place_of(line)}: {line} is required, and {pin.place} locks {name} {version}: lock one that fits"
                )
        self._freely(free)

    def _freely(self, lines: Sequence[str]) -> None:
        """Have pip choose versions; what comes from directories and repositories is taken as source, with what that requires."""
        waiting = list(lines)
        while waiting:
            line = waiting.pop(0)
            if getattr(line, "source", None) is None or isinstance(line.source, Wheel):
                self.wanted.required.append(_with_address(line))
            elif _counts(line):
                waiting += self._tree(line, "")

    def _tree(self, line: Placed, version: str) -> list[Placed]:
        """Take what a line requires as source; answers what that requires in turn."""
        tree = self.trees.tree(name_of(line), version, line.source, place_of(line))
        known = self.wanted.trees.get(tree.name)
        if (known and known.directory == tree.directory) or (tree.directory == self.repository.charm and tree.name in self.itself):
            return []
        required = list(self.trees.requirements_of(tree, tuple(markers.requirement_of(line).extras)))
        if tree.directory == self.repository.charm:
            # The charm is there; what it requires is not.
            self.itself.add(tree.name)
            return required
        self._take(tree, tuple(map(str, required)))
        return required

    def _take(self, tree: Tree, required: tuple[str, ...]) -> None:
        known = self.wanted.trees.get(tree.name)
        if known and known.directory != tree.directory:
            raise RequirementError(
                f"{tree.place}: {tree.name} is taken from {tree.directory}, and from {known.directory} at {known.place}"
            )
        self.wanted.trees[tree.name] = dataclasses.replace(tree, required=required)


def _lines_of(project: Project, parts: Parts) -> list[Placed]:
    """What of a project is asked for, in lines."""
    groups = list(dict.fromkeys([*project.default_groups, *parts.groups]))
    main = True
    if parts.only:
        groups, main = [group for group in parts.only if group != "main"], "main" in parts.only
    lines = list(project.dependencies()) if main and "main" not in parts.without else []
    for group in groups:
        if group not in parts.without and group != "main":
            lines += project.of_group(group)
    for extra in parts.extras:
        lines += project.of_extra(extra)
    return lines


def _lock_of(charm: pathlib.Path, project: Project, repository: Repository) -> Lock | None:
    """The lock that belongs to a project: beside it, or at the root of its workspace."""
    readers = [(uvlock.NAME, uvlock.read), (poetrylock.NAME, poetrylock.read)]
    for name, read in reversed(readers) if project.is_poetrys and not project.is_uvs else readers:
        file = charm / name
        if os.path.lexists(file):
            return _read(read, file, repository)
    for directory in charm.resolve().parents:
        if not directory.is_relative_to(repository.root):
            break
        file = directory / "pyproject.toml"
        if (
            file.is_file()
            and Project(file, repository.charm, repository.root).workspace() is not None
            and os.path.lexists(directory / uvlock.NAME)
        ):
            return _read(uvlock.read, directory / uvlock.NAME, repository)
    return None


def _read(read, file: pathlib.Path, repository: Repository) -> Lock:
    text = requirements.read(repository.charm, file, MOST_LOCK, repository.root)
    return read(text, repository.shown(file), file.parent)


def _with_address(line: Placed) -> str:
    """A line for pip, with the address of a wheel that the project names for it."""
    if not isinstance(getattr(line, "source", None), Wheel):
        return line
    asked = markers.requirement_of(line)
    extras = f"[{','.join(sorted(asked.extras))}]" if asked.extras else ""
    marker = f" ; {asked.marker}" if asked.marker else ""
    place = place_of(line)
    return Placed.at(requirements.checked(f"{asked.name}{extras} @ {line.source.url}{marker}", place), place)


def _counts(line: str) -> bool:
    """Whether a line's marker holds in the sandbox."""
    try:
        marker = markers.requirement_of(line).marker
        return marker is None or markers.applies(str(marker))
    except markers.UnreadableError as error:
        raise RequirementError(f"{place_of(line)}: {error}") from None


def _is_pinned(line: str) -> bool:
    """Whether a line allows one file set alone: by one version or an address, with digests."""
    if not _hashes(line):
        return False
    try:
        return markers.requirement_of(line).url is not None or markers.exact_version(line) is not None
    except markers.UnreadableError as error:
        raise RequirementError(f"{place_of(line)}: {error}") from None


def _hashes(line: str) -> list[str]:
    return [found[0] for found in requirements.HASH.finditer(line)]
