"""Lines of requirements that name a repository or a directory in the place of versions."""

from __future__ import annotations

import pathlib
import re
import urllib.parse

from .lines import Placed, RequirementError, address
from .locks import Commit, Directory

_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"

#: `NAME[EXTRAS] @ git+URL@REVISION#subdirectory=... ; MARKER`, or the URL alone with `#egg=NAME`.
_REPOSITORY = re.compile(
    rf"(?:-e\s+|--editable[= ]\s*)?(?:(?P<name>{_NAME})\s*(?P<extras>\[[A-Za-z0-9._, -]*\])?\s*@\s*)?git\+(?P<url>[^\s;]+)"
    r"(?:\s*;\s*(?P<marker>[^;]*))?"
)

#: `./DIRECTORY`, `-e ../DIRECTORY[EXTRAS]`, `NAME @ file:./DIRECTORY` are not archives.
_DIRECTORY = re.compile(
    r"(?:-e\s+|--editable[= ]\s*)?(?P<path>\.\.?(?:/[^\s;\[]*)?)(?P<extras>\[[A-Za-z0-9._, -]*\])?(?:\s*;\s*(?P<marker>[^;]*))?"
)

_ARCHIVE = re.compile(r"\.(?:whl|zip|tar|tgz|gz|bz2|xz|tbz|txz)$", re.IGNORECASE)


def repository(line: str, place: str) -> Placed | None:
    """A requirement of a repository's, with that as its source; none if a line is something else."""
    found = _REPOSITORY.fullmatch(line.strip())
    if found is None or not line.isprintable():
        return None
    parts = address(found["url"], place)
    path, _, revision = parts.path.partition("@")
    said = urllib.parse.parse_qs(parts.fragment)
    name = found["name"] or said.get("egg", [""])[0].partition("[")[0]
    if re.fullmatch(_NAME, name) is None:
        raise RequirementError(f"{place}: {line!r} names no package: write NAME @ git+URL@COMMIT")
    url = urllib.parse.urlunsplit((parts.scheme, parts.netloc, path, "", ""))
    source = Commit(url, revision, said.get("subdirectory", [""])[0])
    return Placed.at(f"{name}{found['extras'] or ''}{_marked(found['marker'])}", place, source)


def of_file(directory: pathlib.Path, line: str, place: str) -> Placed | None:
    """A requirement of a repository's or a directory's in a file of requirements; none if a line is something else."""
    found = _DIRECTORY.fullmatch(line)
    if found is None or _ARCHIVE.search(found["path"]):
        return repository(line, place)
    source = Directory(str(directory / found["path"]))
    # Its name is its project's to say, and this one stands for it until then.
    return Placed.at(f"{UNNAMED}{found['extras'] or ''}{_marked(found['marker'])}", place, source)


#: The name of a directory whose project was not read yet.
UNNAMED = "unnamed-directory"


def _marked(marker: str | None) -> str:
    return f"; {marker.strip()}" if marker and marker.strip() else ""
