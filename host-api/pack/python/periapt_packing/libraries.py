"""What charms' libraries say that they require."""

from __future__ import annotations

import ast
import pathlib
from collections.abc import Iterator

from . import requirements
from .lines import Placed, RequirementError
from .repository import Repository


def required(charm: pathlib.Path, repository: Repository) -> Iterator[str]:
    """What libraries in lib/charms name in PYDEPS, as charmcraft reads it: without running them."""
    for file in sorted((charm / "lib/charms").rglob("*.py")):
        text = requirements.read(charm, file, requirements.MOST, repository.root)
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
        raise RequirementError(f"{place}: PYDEPS is no list of texts")
    yield from (Placed.at(requirements.checked(line, place), place) for line in named)
