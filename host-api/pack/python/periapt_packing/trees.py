"""Projects whose sources lie in the charm's repository, or in another one at a commit: taken as they are, nothing is built."""

from __future__ import annotations

import ast
import dataclasses
import pathlib
import re
import shutil
from collections.abc import Iterator

from . import direct, layout, workspaces
from .direct import UNNAMED
from .git import Checkouts
from .lines import Placed, RequirementError, name_of, place_of
from .locks import Commit, Directory, Member, Other
from .projects import Project
from .repository import Repository
from .requirements import checked
from .unpacked import Wheel, normalised

#: The name of a package, and the most characters of it and its version together.
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_MOST_NAMED = 200

#: The version of a project that does not say it, or says that its build backend finds it.
_UNKNOWN_VERSION = "0"


@dataclasses.dataclass(frozen=True)
class Tree:
    """A project that is taken as source."""

    name: str
    version: str
    directory: pathlib.Path
    #: Out of which nothing of it may lead.
    repository: Repository
    #: Who asks for it.
    place: str
    document: dict = dataclasses.field(default_factory=dict, compare=False)
    #: What it requires, for its metadata.
    required: tuple[str, ...] = ()


class Trees:
    """Where trees are found: in the charm's repository, and in those that are fetched."""

    def __init__(self, repository: Repository, checkouts: Checkouts):
        self._repository, self._checkouts = repository, checkouts

    def directory_of(self, name: str, source: Directory | Member | Commit, place: str) -> tuple[pathlib.Path, Repository]:
        """Where the sources of a project lie, and the repository that they are of."""
        if isinstance(source, Commit):
            commit = self._checkouts.commit_of(name, source, place)
            project = self._checkouts.of(name, commit, place)
            return project, Repository.of(project, self._checkouts.root_of(commit))
        if isinstance(source, Member):
            return self.member(name, pathlib.Path(source.base), place), self._repository
        asked = place if name == UNNAMED else f"{place}: {name}"
        project = self._repository.within(pathlib.Path(source.path), asked)
        if not project.is_dir():
            raise RequirementError(f"{asked}: {self._repository.shown(pathlib.Path(source.path))} is no directory")
        return project, self._repository

    def member(self, name: str, base: pathlib.Path, place: str) -> pathlib.Path:
        """The project of that name in the workspace around a directory."""
        for directory in (base, *base.parents):
            if not directory.is_relative_to(self._repository.root):
                break
            file = directory / "pyproject.toml"
            workspace = self._project(file).workspace() if file.is_file() else None
            if workspace is None:
                continue
            for project in self._members(directory, *workspace):
                if self._project(project / "pyproject.toml").name == normalised(name):
                    return project
            if self._project(file).name == normalised(name):
                return directory
            raise RequirementError(f"{place}: {name} is no member of the workspace in {self._repository.shown(file)}")
        raise RequirementError(
            f"{place}: {name} is said to be of a workspace, and no pyproject.toml around the charm has [tool.uv.workspace] in the"
            " same repository"
        )

    def _project(self, file: pathlib.Path) -> Project:
        return Project(file, self._repository.charm, self._repository.root)

    def _members(self, root: pathlib.Path, members: list[str], others: list[str]) -> Iterator[pathlib.Path]:
        shown = self._repository.shown(root / "pyproject.toml")
        for project in workspaces.directories(root, members, others, shown):
            if (project / "pyproject.toml").is_file():
                yield self._repository.within(project, shown)

    def tree(self, name: str, version: str, source: Directory | Member | Commit, place: str) -> Tree:
        """A project by where it comes from. Its version is its own, unless a lock says it."""
        directory, repository = self.directory_of(name, source, place)
        file = directory / "pyproject.toml"
        project = Project(file, repository.charm, repository.root) if file.is_file() else None
        known = project.name if project else normalised(layout.setup_cfg(directory, place).get("metadata", "name", fallback=""))
        shown = repository.shown(directory)
        if name != UNNAMED and known and known != normalised(name):
            raise RequirementError(f"{place}: {name}: the project in {shown} calls itself {known[:80]!r}")
        if name == UNNAMED:
            name = known or re.sub(r"[^A-Za-z0-9]+", "-", directory.name).strip("-") or "unnamed"
        version = version or _version(directory, project, place)
        # The two make the name of a directory among the charm's packages.
        if _NAME.fullmatch(name) is None or len(name) + len(version) > _MOST_NAMED:
            raise RequirementError(f"{place}: the project in {shown} is called {name[:80]!r}, which is no name of a package")
        return Tree(
            name,
            version,
            directory,
            repository,
            place,
            project.document if project else {},
        )

    def requirements_of(self, tree: Tree, extras: Iterator[str] | tuple[str, ...]) -> Iterator[Placed]:
        """What a tree requires, as its files say without being run, each with its source."""
        file = tree.directory / "pyproject.toml"
        project = Project(file, tree.repository.charm, tree.repository.root) if file.is_file() else None
        if project is not None and (project.name or project.is_poetrys):
            lines = list(project.dependencies())
            for extra in extras:
                lines += project.of_extra(extra)
            yield from (with_source(project, line) for line in lines)
            return
        options = layout.setup_cfg(tree.directory, tree.place)
        for line in options.get("options", "install_requires", fallback="").splitlines():
            if line.strip() and not line.strip().startswith("#"):
                yield _checked(line.strip(), tree.place)
        setup = tree.directory / "setup.py"
        if setup.is_file():
            yield from (_checked(line, tree.place) for line in _of_setup(setup, tree))


def with_source(project: Project, line: str) -> Placed:
    """A requirement of a project's with where it is taken from."""
    source, said = project.source_of(line)
    if isinstance(source, Other):
        raise RequirementError(f"{said}: {name_of(line)}: {source.reason}")
    return Placed.at(str(line), said or place_of(line), source)


def take(tree: Tree, target: pathlib.Path) -> Wheel:
    """Copy a project's modules into a directory, with metadata as an installed package has it."""
    if why := layout.native_by(tree.directory, tree.document):
        raise RequirementError(f"{tree.place}: {tree.repository.shown(tree.directory)} {why}, and nothing is built")
    files = layout.files(tree.directory, tree.document, tree.name, tree.repository, tree.place)
    for name, source in files.items():
        path = target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, path)
    spelled = re.sub(r"[-_.]+", "_", tree.name)
    info = f"{spelled}-{tree.version}.dist-info"
    (target / info).mkdir(exist_ok=True)
    required = "".join(f"Requires-Dist: {line}\n" for line in tree.required)
    (target / info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {tree.name}\nVersion: {tree.version}\n{required}", encoding="utf-8"
    )
    points = entry_points(tree.document)
    if points:
        (target / info / "entry_points.txt").write_text(points, encoding="utf-8")
    return Wheel(tree.name, tree.version, info, (*files, f"{info}/METADATA"))


def _checked(line: str, place: str) -> Placed:
    return direct.repository(line, place) or Placed.at(checked(line, place), place)


def entry_points(document: dict) -> str:
    """The entry points of a project, as installed packages have them; not its programs."""
    groups = document.get("project", {}).get("entry-points", {}) if isinstance(document.get("project"), dict) else {}
    lines = []
    for group, points in groups.items() if isinstance(groups, dict) else ():
        if isinstance(points, dict):
            lines += [f"[{group}]", *(f"{name} = {point}" for name, point in points.items()), ""]
    return "\n".join(lines) if all(line.isprintable() for line in lines) else ""


def _version(directory: pathlib.Path, project: Project | None, place: str) -> str:
    document = project.document if project else {}
    for table in (
        document.get("project"),
        document.get("tool", {}).get("poetry") if isinstance(document.get("tool"), dict) else None,
    ):
        said = table.get("version") if isinstance(table, dict) else None
        if isinstance(said, str) and re.fullmatch(r"[0-9][0-9A-Za-z.+!_-]*", said):
            return said
    said = layout.setup_cfg(directory, place).get("metadata", "version", fallback="")
    return said if re.fullmatch(r"[0-9][0-9A-Za-z.+!_-]*", said) else _UNKNOWN_VERSION


def _of_setup(setup: pathlib.Path, tree: Tree) -> list[str]:
    """What setup.py says outright that it requires. It is not run."""
    shown = f"{tree.place}: {tree.repository.shown(setup)}"
    try:
        with setup.open("rb") as opened:
            parsed = ast.parse(opened.read(1 << 20))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise RequirementError(f"{shown} cannot be read") from None
    for node in ast.walk(parsed):
        if isinstance(node, ast.keyword) and node.arg == "install_requires":
            try:
                listed = ast.literal_eval(node.value)
            except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
                listed = None
            if not isinstance(listed, (list, tuple)) or not all(isinstance(line, str) for line in listed):
                raise RequirementError(
                    f"{shown} computes what it requires, and is not run: lock it, or name that in requirements.txt"
                )
            return list(listed)
    return []
