"""What pyproject.toml requires. Nothing else in it counts: the charm is not built."""

from __future__ import annotations

import pathlib
import re

from .requirements import MOST, Placed, RequirementError, checked, read


def dependencies(project: pathlib.Path) -> list[str]:
    """The dependencies of a project, or those of poetry's, as requirements."""
    text = read(project.parent, project, MOST)
    try:
        document = _toml().loads(text)
    except (ValueError, RecursionError) as error:
        raise RequirementError(f"{project.name}: {error}") from None
    listed = _table(document, "project").get("dependencies")
    if listed is not None:
        return [_placed(project, text, str(line), str(line)) for line in listed]
    named = _table(_table(_table(document, "tool"), "poetry"), "dependencies")
    return [_placed(project, text, _of_poetry(project, name, wanted), name) for name, wanted in named.items() if name != "python"]


def _table(document, key: str) -> dict:
    found = document.get(key)
    return found if isinstance(found, dict) else {}


def _placed(project: pathlib.Path, text: str, line: str, said: str) -> Placed:
    """A requirement with the line in which it is said."""
    number = next((number for number, written in enumerate(text.splitlines(), 1) if said in written), 1)
    place = f"{project.name}:{number}"
    return Placed.at(checked(line, place), place)


def _of_poetry(project: pathlib.Path, name: str, wanted) -> str:
    """A dependency in poetry's words: a version, or a table with one and with extras and markers."""
    extras, marker = "", ""
    if isinstance(wanted, dict):
        if not set(wanted) <= {"version", "extras", "markers", "optional", "python"}:
            raise RequirementError(f"{project.name}: {name}: directories, repositories and sources are not brought in")
        extras = f"[{','.join(map(str, wanted['extras']))}]" if wanted.get("extras") else ""
        marker = f"; {wanted['markers']}" if wanted.get("markers") else ""
        wanted = wanted.get("version", "*")
    if not isinstance(wanted, str):
        raise RequirementError(f"{project.name}: {name}: several choices of a version: write them to requirements.txt")
    return f"{name}{extras}{','.join(_version(part.strip()) for part in wanted.split(',') if part.strip() != '*')}{marker}"


def _version(said: str) -> str:
    """One bound: `^1.2` and `~1.2` are poetry's own."""
    caret = re.fullmatch(r"([\^~])\s*(\d+(?:\.\d+)*)(.*)", said)
    if caret is None:
        return said if said[:1] in "<>=!~" else f"=={said}"
    numbers = [int(number) for number in caret[2].split(".")]
    if caret[1] == "~":
        place = min(1, len(numbers) - 1)
    else:
        place = next((place for place, number in enumerate(numbers) if number), len(numbers) - 1)
    upper = [*numbers[:place], numbers[place] + 1]
    return f">={caret[2]}{caret[3]},<{'.'.join(map(str, upper))}"


def _toml():
    try:
        import tomllib
    except ImportError:
        # Python 3.10: pip brings one along.
        from pip._vendor import tomli as tomllib
    return tomllib
