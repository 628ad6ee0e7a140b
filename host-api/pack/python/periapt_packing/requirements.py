"""What a charm requires, read before pip is.

A line of requirements can say much more than what is required: where to fetch it, what to build, which other files to
read. Building runs the package's own code on the packer's machine; and a source may be read by an operator who packs what
he has not written. So names with versions are passed on, and wheels by URL; the rest is refused, line by line.
"""

from __future__ import annotations

import os
import pathlib
import re
from collections.abc import Iterator, Sequence

from . import direct
from .lines import Placed, RequirementError, address, name_of, place_of
from .repository import Repository

__all__ = ["Placed", "RequirementError", "name_of", "place_of"]

#: The most bytes of requirements, in all files.
MOST = 1 << 20

#: The most characters of a requirement, without digests. The longest that tools write, with markers, have some hundred.
_MOST_LINE = 2000

_VERSION = r"\s*(?:===|==|~=|!=|<=|>=|<|>)\s*[0-9A-Za-z.*+!_-]+\s*"

#: A name, extras, and what follows: versions or a URL, and after a semicolon a marker. No word begins as an option does.
_REQUIREMENT = re.compile(
    r"(?P<name>[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*(?:\[[A-Za-z0-9._, -]*\])?\s*"
    rf"(?:@\s*(?P<url>\S+)\s*|(?:{_VERSION}(?:,{_VERSION})*)?|\({_VERSION}(?:,{_VERSION})*\)\s*)"
    r"(?:;(?P<marker>(?:(?!\s-)[^;])*))?"
)

#: What pip would take for a file of this directory.
_ARCHIVES = (".zip", ".whl", ".tar", ".tgz", ".gz", ".bz2", ".xz", ".tbz", ".txz", ".tlz", ".lz", ".lzma")

#: A digest that a line names.
HASH = re.compile(r"--hash[= ]sha(?:256|384|512):[0-9a-f]+")


def of_files(charm: pathlib.Path, files: Sequence[pathlib.Path], root: pathlib.Path | None = None) -> tuple[list[str], list[str]]:
    """What files require and what they constrain, with all files that they name; each one line for pip. `root` as in `read`."""
    required: list[str] = []
    constraints: list[str] = []
    left = MOST
    waiting, seen = [(file, required) for file in files], set()
    while waiting:
        file, lines = waiting.pop(0)
        _require_within(charm, file, root)
        if (file.resolve(), id(lines)) in seen:
            continue
        seen.add((file.resolve(), id(lines)))
        text = read(charm, file, left, root)
        left -= len(text)
        shown = _shown(charm, file, root)
        for number, line in _lines(text):
            place = f"{shown}:{number}"
            option, _, rest = line.partition(" ") if " " in line else line.partition("=")
            if option in ("-r", "--requirement", "-c", "--constraint") and not rest.strip():
                raise RequirementError(f"{place}: {option} names no file")
            if option in ("-r", "--requirement"):
                waiting.append((file.parent / rest.strip(), lines))
            elif option in ("-c", "--constraint"):
                waiting.append((file.parent / rest.strip(), constraints))
            elif (elsewhere := direct.of_file(file.parent, line, place)) is not None:
                lines.append(elsewhere)
            elif line in ("--require-hashes", "--prefer-binary", "--only-binary=:all:", "--only-binary :all:"):
                continue
            else:
                lines.append(Placed.at(checked(line, place), place))
    return required, constraints


def read(charm: pathlib.Path, file: pathlib.Path, most: int, root: pathlib.Path | None = None) -> str:
    """A file of the charm's with so many bytes at most. It may lie elsewhere below `root`, if there is one."""
    _require_within(charm, file, root)
    # Neither a pipe nor a device, which may have no end.
    if not file.is_file():
        dead = f"it is a link to {os.readlink(file)}, which does not exist" if file.is_symlink() else "no such file"
        raise RequirementError(f"{_shown(charm, file, root)}: {dead}")
    with file.open("rb") as opened:
        content = opened.read(most + 1)
    if len(content) > most:
        raise RequirementError(f"{_shown(charm, file, root)}: what says what is required has at most {max(most, MOST) >> 20} MiB")
    return content.decode("utf-8-sig", errors="replace")


def of_parts(charm: pathlib.Path, packages: Sequence[str]) -> list[str]:
    """What parts of charmcraft.yaml require besides, by the lines in which they say so."""
    file = charm / "charmcraft.yaml"
    lines = read(charm, file, MOST).splitlines() if packages else []
    required = []
    for package in packages:
        number = next((number for number, line in enumerate(lines, 1) if package in line), 1)
        place = f"{file.name}:{number}"
        required.append(Placed.at(checked(package, place), place))
    return required


def checked(line: str, place: str) -> str:
    """A requirement, if it is one line of a name and versions or of a wheel.

    pip reads lines: what it would take for two, or for the beginning of one, or fill in itself, is none.
    """
    if not line.replace("\t", " ").isprintable() or "\\" in line or "${" in line:
        raise RequirementError(f"{place}: {line[:200]!r} is no requirement: it is not one line as it stands")
    if line.startswith("-"):
        option = re.split(r"[ =]", line, maxsplit=1)[0]
        raise RequirementError(
            f"{place}: {option} is for the one who packs to say, not for the charm "
            "(pip's own configuration: pip config, PIP_INDEX_URL)"
        )
    plain = HASH.sub("", line).strip()
    if len(plain) > _MOST_LINE:
        raise RequirementError(f"{place}: {plain[:80]!r}... is no requirement: it has more than {_MOST_LINE} characters")
    found = _REQUIREMENT.fullmatch(plain)
    if found is None or found["name"].lower().endswith(_ARCHIVES):
        raise RequirementError(f"{place}: {plain!r} is no name with versions; a directory, a repository or a link is not built")
    url = (found["url"] or "").partition("#")[0]
    address(url, place)
    if url and not (url.startswith("https://") and url.endswith(".whl") and "${" not in url):
        raise RequirementError(f"{place}: {url!r} is no wheel at an https:// address; nothing else is fetched, as it would be built")
    return line


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines that say something, put together where they go on, without comments; and their numbers."""
    whole, began = "", 0
    for number, line in enumerate(text.splitlines(), 1):
        began = began or number
        if line.endswith("\\") and not line.lstrip().startswith("#"):
            whole += line[:-1] + " "
            continue
        whole = re.sub(r"(^|\s)#.*$", "", whole + line).strip()
        if whole:
            yield began, re.sub(r"\s+", " ", whole)
        whole, began = "", 0
    whole = re.sub(r"(^|\s)#.*$", "", whole).strip()
    if whole:
        yield began, whole


def _require_within(charm: pathlib.Path, file: pathlib.Path, root: pathlib.Path | None) -> None:
    Repository.of(charm, root).within(file, _shown(charm, file, root))


def _shown(charm: pathlib.Path, file: pathlib.Path, root: pathlib.Path | None) -> str:
    return Repository.of(charm, root).shown(pathlib.Path(os.path.abspath(file)))
