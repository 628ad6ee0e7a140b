"""Which packages of a lock a charm gets: those that its requirements lead to in the sandbox, each in its one version."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Mapping

from . import markers
from .lines import RequirementError, place_of
from .locks import Entry, Lock, Need
from .unpacked import normalised

#: How many of those that need a package are told.
_MOST_TOLD = 5


@dataclasses.dataclass
class Chosen:
    """A package of a lock that is brought in."""

    entry: Entry
    #: The line that asks for it, or the packages that need it.
    required_by: list[str]
    extras: set[str] = dataclasses.field(default_factory=set)

    @property
    def name(self) -> str:
        """Its name, as indexes compare it."""
        return self.entry.name


def chosen(lock: Lock, required: Iterable[str], overridden: Collection[str] = ()) -> dict[str, Chosen]:
    """The packages that requirements lead to, by name. Of what is overridden any version will do.

    A requirement that the lock does not meet is an error: an author changed it since, and what was tested is not known.
    """
    walk = _Walk(lock)
    for line in required:
        place = place_of(line)
        asked = _read(markers.requirement_of, line, place)
        if asked.marker is not None and not _read(markers.applies, str(asked.marker), place):
            continue
        name = normalised(asked.name)
        entry = walk.entry_of(Need(name, specifier="" if asked.url else str(asked.specifier)), place)
        if (
            entry.version
            and not asked.url
            and name not in overridden
            and not _read(markers.fits, entry.version, str(asked.specifier), place)
        ):
            raise RequirementError(
                f"{entry.place}: {name} {entry.version} is locked, and {place} requires {asked.specifier}: run {lock.command}"
            )
        walk.take(entry, asked.extras, place)
    walk.finish()
    return walk.chosen


def closure(lock: Lock, extras: Mapping[str, Iterable[str]]) -> set[str]:
    """All that some packages of a lock need with some extras of each, themselves left out.

    A lock has nothing of the extras that nobody asked for.
    """
    walk = _Walk(lock)
    for name, asked in extras.items():
        for entry in lock.packages.get(name, ()):
            if walk.counts(entry):
                walk.take(entry, asked, entry.place)
    walk.finish()
    return set(walk.chosen) - set(extras)


class _Walk:
    """A walk through a lock's graph, from requirements to all that they need."""

    def __init__(self, lock: Lock):
        self._lock = lock
        self._waiting: list[tuple[Entry, str | None]] = []
        self._seen: set[tuple[str, str | None]] = set()
        self.chosen: dict[str, Chosen] = {}

    def counts(self, entry: Entry) -> bool:
        """Whether an entry is for the sandbox."""
        return _read(markers.any_applies, entry.markers, entry.place)

    def entry_of(self, need: Need, place: str) -> Entry:
        """The entry of what is needed: the one that counts in the sandbox."""
        entries = self._lock.packages.get(need.name, ())
        if not entries:
            raise RequirementError(
                f"{place}: {self._lock.name} does not have {need.name}, which is required there: run {self._lock.command}"
            )
        found = [entry for entry in entries if need.version in (None, entry.version)]
        found = [entry for entry in found if self.counts(entry)] or found
        if len(found) > 1:
            found = [
                entry for entry in found if not entry.version or _read(markers.fits, entry.version, need.specifier, place)
            ] or found
        if not found:
            raise RequirementError(
                f"{place}: {self._lock.name} does not have {need.name} {need.version}, which is required there: run"
                f" {self._lock.command}"
            )
        return found[0]

    def take(self, entry: Entry, extras: Iterable[str], by: str) -> None:
        """Bring a package in, with some of its extras."""
        chosen = self.chosen.setdefault(entry.name, Chosen(entry, []))
        if chosen.entry is not entry:
            raise RequirementError(
                f"{entry.place}: {entry.name} is locked as {chosen.entry.version} and as {entry.version} for the sandbox's"
                " Python, and a charm has one of them: narrow requires-python or the markers in pyproject.toml"
            )
        if len(chosen.required_by) < _MOST_TOLD and by not in chosen.required_by:
            chosen.required_by.append(by)
        known = {normalised(extra): extra for extra in entry.extras}
        # An extra that there is not is ignored, as pip does.
        chosen.extras.update(known[normalised(extra)] for extra in extras if normalised(extra) in known)
        for extra in (None, *sorted(chosen.extras)):
            if (entry.name, extra) not in self._seen:
                self._seen.add((entry.name, extra))
                self._waiting.append((entry, extra))

    def finish(self) -> None:
        """Bring in what is needed by all that was taken."""
        while self._waiting:
            entry, extra = self._waiting.pop(0)
            extras = tuple(sorted(self.chosen[entry.name].extras))
            for need in entry.needs if extra is None else entry.extras[extra]:
                if _read(markers.applies, need.marker, extras, entry.place):
                    self.take(self.entry_of(need, entry.place), need.extras, f"{entry.name} {entry.version}".strip())


def _read(judge, *arguments):
    """What a judge of markers and versions answers; the last argument is the place where they stand."""
    *given, place = arguments
    try:
        return judge(*given)
    except markers.UnreadableError as error:
        raise RequirementError(f"{place}: {error}") from None
