"""All that a charm requires: by its files of requirements or its project, its parts and its libraries."""

from __future__ import annotations

import ast
import dataclasses
import pathlib
from collections.abc import Iterator, Sequence

from . import projects, requirements
from .requirements import Placed


@dataclasses.dataclass(frozen=True)
class Parts:
    """What parts of charmcraft.yaml say of it."""

    #: Files in the place of those that there are by default.
    files: Sequence[str] = ()
    constraints: Sequence[str] = ()
    #: Requirements besides.
    packages: Sequence[str] = ()
    #: Of pyproject.toml.
    groups: Sequence[str] = ()
    extras: Sequence[str] = ()
    #: Whether it is pyproject.toml that counts, be there a requirements.txt or not.
    project: bool = False
    #: Whether libraries of charms bring in what they name.
    libraries: bool = False


def of(charm: pathlib.Path, parts: Parts) -> tuple[list[str], list[str], list[dict]]:
    """What a charm requires and what it constrains, in lines for pip; and what is told of it."""
    listed, project = charm / "requirements.txt", charm / "pyproject.toml"
    required, constraints, findings = [], [], []
    by_default = [] if parts.project or not listed.exists() else [listed]
    files = [charm / file for file in parts.files] or by_default
    if files:
        required, constraints = requirements.of_files(charm, files)
    if parts.project or (not files and project.exists()):
        more, findings = projects.dependencies(project, parts.groups, parts.extras)
        required = required + more
    if parts.constraints:
        bounds, more = requirements.of_files(charm, [charm / file for file in parts.constraints])
        constraints = constraints + bounds + more
    required = required + requirements.of_parts(charm, parts.packages)
    if parts.libraries:
        required = required + list(_of_libraries(charm))
    return required, constraints, findings


def _of_libraries(charm: pathlib.Path) -> Iterator[str]:
    """What libraries of charms name in PYDEPS, as charmcraft reads it: without running them."""
    for file in sorted((charm / "lib/charms").rglob("*.py")):
        text = requirements.read(charm, file, requirements.MOST)
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            # What is no Python is told when sources are checked.
            continue
        for statement in tree.body:
            if isinstance(statement, ast.Assign) and any(getattr(it, "id", None) == "PYDEPS" for it in statement.targets):
                yield from _named(statement, file.relative_to(charm).as_posix())


def _named(statement: ast.Assign, file: str) -> Iterator[str]:
    place = f"{file}:{statement.lineno}"
    try:
        named = ast.literal_eval(statement.value)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        named = None
    if not isinstance(named, (list, tuple)) or not all(isinstance(line, str) for line in named):
        raise requirements.RequirementError(f"{place}: PYDEPS is no list of texts")
    yield from (Placed.at(requirements.checked(line, place), place) for line in named)
