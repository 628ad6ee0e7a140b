"""Dependencies in poetry's words, as requirements."""

from __future__ import annotations

import re

from .lines import RequirementError

#: What a dependency says of where it comes from.
_ELSEWHERE = frozenset({"branch", "develop", "file", "git", "path", "rev", "source", "subdirectory", "tag", "url"})

_KNOWN = frozenset({"allow-prereleases", "extras", "markers", "optional", "python", "version"})


def is_elsewhere(wanted) -> bool:
    """Whether a dependency is said to come from anywhere but an index."""
    return isinstance(wanted, dict) and not _ELSEWHERE.isdisjoint(wanted)


def requirement(name: str, wanted, place: str) -> str | None:
    """A dependency: a version, or a table with one and with extras and markers. None, if it is for an extra alone."""
    extras, markers = "", []
    if isinstance(wanted, dict):
        # Where it comes from is told by the project (`projects.Project.source_of`).
        unknown = sorted(set(wanted) - _KNOWN - _ELSEWHERE)
        if unknown:
            raise RequirementError(f"{place}: {name}: {unknown[0]} is not known here: write what is required to requirements.txt")
        if wanted.get("optional") is True:
            return None
        named = wanted.get("extras") or []
        if not isinstance(named, list):
            raise RequirementError(f"{place}: {name}: extras are no list")
        extras = f"[{','.join(map(str, named))}]" if named else ""
        markers = [str(wanted["markers"])] if wanted.get("markers") else []
        markers += [_of_python(str(wanted["python"]), place)] if wanted.get("python") else []
        wanted = wanted.get("version", "*")
    if not isinstance(wanted, (str, list)):
        raise RequirementError(f"{place}: {name}: {wanted!r} is neither a version nor a table with one")
    if isinstance(wanted, list) or "|" in wanted:
        raise RequirementError(f"{place}: {name}: several choices of a version: write them to requirements.txt")
    said = " and ".join(markers if len(markers) < 2 else (f"({marker})" for marker in markers))
    return f"{name}{extras}{','.join(bounds(wanted))}{f'; {said}' if said else ''}"


def _of_python(said: str, place: str) -> str:
    """For which versions of Python a dependency is, as a marker."""
    choices = []
    for choice in said.split("||"):
        said_bounds = []
        for bound in bounds(choice):
            found = re.fullmatch(r"(===|==|~=|!=|<=|>=|<|>)\s*([0-9.*]+)", bound)
            if found is None:
                raise RequirementError(f"{place}: python = {said[:80]!r}: no versions of Python")
            exact = found[2].count(".") > 1 or "*" in found[2]
            said_bounds.append(f"{'python_full_version' if exact else 'python_version'} {found[1]} '{found[2]}'")
        choices.append(" and ".join(said_bounds) or "python_version >= '3'")
    return choices[0] if len(choices) == 1 else " or ".join(f"({choice})" for choice in choices)


def bounds(said: str) -> list[str]:
    """A range in poetry's words, as specifiers of the standard."""
    parts = (part.strip() for part in said.split(","))
    return [bound for part in parts if part != "*" for bound in _version(part).split(",")]


def _version(said: str) -> str:
    """One bound: `^1.2` and `~1.2` are poetry's own."""
    caret = re.fullmatch(r"([\^~])\s*(\d{1,18}(?:\.\d{1,18})*)([^0-9.].*)?", said)
    if caret is None:
        return said if said[:1] in "<>=!~" else f"=={said}"
    numbers = [int(number) for number in caret[2].split(".")]
    if caret[1] == "~":
        place = min(1, len(numbers) - 1)
    else:
        place = next((place for place, number in enumerate(numbers) if number), len(numbers) - 1)
    upper = [*numbers[:place], numbers[place] + 1]
    return f">={caret[2]}{caret[3] or ''},<{'.'.join(map(str, upper))}"
