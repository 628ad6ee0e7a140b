"""Requirements as lines that know where they stand."""

from __future__ import annotations

import re
import urllib.parse

from .unpacked import normalised


class RequirementError(Exception):
    """A line that is not passed on; for the author to read."""


class Placed(str):
    """A requirement, and where it stands."""

    #: `FILE:LINE`
    place: str
    #: Where the line itself says that it is taken from (`locks.Source`); none is an index.
    source = None

    @classmethod
    def at(cls, line: str, place: str, source=None) -> Placed:
        """A line with its place, and with the source that it names."""
        made = cls(line)
        made.place, made.source = place, source
        return made


def place_of(line: str) -> str:
    """Where a requirement stands."""
    return line.place if isinstance(line, Placed) else "requirements.txt:1"


def address(text: str, place: str) -> urllib.parse.SplitResult:
    """An address in its parts."""
    try:
        return urllib.parse.urlsplit(text)
    except ValueError:
        raise RequirementError(f"{place}: {text[:80]!r} is no address") from None


def name_of(line: str) -> str:
    """The name of what a line requires, as indexes compare it."""
    found = re.match(r"[A-Za-z0-9._-]+", line)
    return normalised(found[0]) if found else ""
