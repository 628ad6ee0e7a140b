"""What parts of charmcraft.yaml and the operator who packs ask for, and what of it all is to be brought in."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Sequence

from . import markers
from .lines import name_of, place_of
from .locks import Lock
from .pinned import Pin
from .trees import Tree


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
    #: Groups that are left out, and those that alone are brought in; `main` is what stands in no group.
    without: Sequence[str] = ()
    only: Sequence[str] = ()
    #: Whether it is pyproject.toml that counts, be there a requirements.txt or not.
    project: bool = False
    #: Whether libraries of charms bring in what they name.
    libraries: bool = False


@dataclasses.dataclass(frozen=True)
class Choices:
    """What the operator who packs has said."""

    #: The directory that links and paths may not lead out of; none is the charm's own.
    repository: pathlib.Path | None = None
    #: Packages that are taken in other versions than the lock has.
    upgrades: Sequence[str] = ()
    allow_git: bool = False


@dataclasses.dataclass(frozen=True)
class Absent:
    """A package that is not brought in."""

    #: The package as it is told.
    said: str
    #: Why, besides that there is no wheel.
    why: str


@dataclasses.dataclass
class Wanted:
    """What is to be brought in."""

    #: Lines for pip, which chooses versions.
    required: list[str] = dataclasses.field(default_factory=list)
    constraints: list[str] = dataclasses.field(default_factory=list)
    #: What a lock has chosen.
    pins: dict[str, Pin] = dataclasses.field(default_factory=dict)
    #: What is taken as source.
    trees: dict[str, Tree] = dataclasses.field(default_factory=dict)
    #: What is told.
    findings: list[dict] = dataclasses.field(default_factory=list)
    #: What is locked and has no wheel, by the digests of its archives of sources.
    sources: dict[str, Pin] = dataclasses.field(default_factory=dict)
    #: Packages that are not brought in since there is no wheel.
    absent: dict[str, Absent] = dataclasses.field(default_factory=dict)
    lock: Lock | None = None
    #: What of the lock is chosen anew, by `--upgrade`: the names that were given, and all that they need.
    upgraded: tuple[str, ...] = ()
    released: dict[str, Pin] = dataclasses.field(default_factory=dict)
    #: What is taken beyond the charm's own lines without a lock, with the version that these named.
    let: dict[str, str] = dataclasses.field(default_factory=dict)
    #: Packages that leave their versions because these do not go with what is upgraded, and what such a version requires.
    following: dict[str, str] = dataclasses.field(default_factory=dict)
    #: All lines of the charm's own, whatever became of them.
    own: list[str] = dataclasses.field(default_factory=list)

    def ranges_of(self, name: str) -> list[str]:
        """What the charm's own lines say of the versions of a package."""
        lines = [line for line in self.own if name_of(line) == name and "://" not in line]
        return [str(markers.requirement_of(line).specifier) for line in lines]

    def tell(self, place: str, message: str) -> None:
        """Add what is to be told of a place."""
        file, _, number = place.rpartition(":")
        self.findings.append({"file": file, "line": int(number), "severity": "warning", "message": message})

    def places_of(self, name: str) -> list[str]:
        """The charm's own lines that require a package."""
        return [place_of(line) for line in self.own if name_of(line) == name]
