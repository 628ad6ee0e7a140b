"""Releases that are known not to run in the sandbox: refused in one line, with what would run, before anything else is done."""

from __future__ import annotations

import pathlib
from collections.abc import Iterable, Iterator

from . import markers, native, runnable
from .lines import RequirementError, name_of, place_of
from .unpacked import Wheel, normalised
from .wanted import Wanted


def before(wanted: Wanted) -> None:
    """Refuse what lines and locks leave no choice about: nothing was fetched yet."""
    _see(_of_pins(wanted))
    for name in wanted.upgraded:
        if runnable.first_that_runs(name, wanted.ranges_of(name)) is None:
            raise RequirementError(
                f"--upgrade {name}: none that the project allows can run in the sandbox: {runnable.why(name)};"
                f" {_instead(wanted, name)}"
            )
    _see(_of_lines(wanted))


def _see(refused: Iterable[str]) -> None:
    """Refuse for all causes at once."""
    causes = list(refused)
    if len(causes) == 1:
        raise RequirementError(causes[0])
    if causes:
        raise RequirementError("\n  ".join([f"{len(causes)} releases cannot run in the sandbox:", *causes]))


def _of_pins(wanted: Wanted) -> Iterator[str]:
    for pin in wanted.pins.values():
        why = runnable.reason(pin.name, pin.version) if pin.version else None
        if why:
            yield f"{pin.place}: {pin.name} {pin.version} cannot run in the sandbox: {why}; {_instead(wanted, pin.name)}"


def _of_lines(wanted: Wanted) -> Iterator[str]:
    for name in dict.fromkeys(name_of(line) for line in wanted.required):
        if runnable.is_known(name) and runnable.first_that_runs(name, wanted.ranges_of(name)) is None:
            line = next(line for line in wanted.required if name_of(line) == name)
            said = str(line).split(";")[0].strip()
            yield f"{place_of(line)}: {said} cannot run in the sandbox: {runnable.why(name)}; {_instead(wanted, name)}"


def after(wanted: Wanted, fetched: Iterable[Wheel], target: pathlib.Path) -> None:
    """Refuse what pip has chosen, because of what packages require of each other."""
    fetched = list(fetched)
    for wheel in fetched:
        name = normalised(wheel.name)
        why = runnable.reason(name, wheel.version) if _is_version(wheel.version) else None
        if why:
            asked = [*wanted.places_of(name), *native.said(native.required_by(wheel, fetched, target))]
            by = f", required by {' and '.join(asked)}," if asked else ""
            raise RequirementError(f"{wheel.name} {wheel.version}{by} cannot run in the sandbox: {why}; {_instead(wanted, name)}")


def _instead(wanted: Wanted, name: str) -> str:
    """What would run in the place of a release."""
    ranges, places = wanted.ranges_of(name), wanted.places_of(name)
    found = runnable.first_that_runs(name, ranges)
    if found is None:
        other = runnable.beyond(name, ranges)
        taken = f", or take one all the same: periapt pack --upgrade '{name}{other}'" if other else ""
        return f"{runnable.said(name)}: change {' and '.join(places)}{taken}"
    pinned = name in wanted.pins and wanted.lock is not None
    if not pinned:
        return f"{runnable.said(name)}: change what requires it"
    allowed = f", which {' and '.join(places)} allows" if places else ""
    first = found.partition(",")[0].removeprefix(">=")
    return f"it runs from {first} on{allowed}: periapt pack --upgrade {name} takes it"


def _is_version(text: str) -> bool:
    try:
        markers.version_of(text)
    except markers.UnreadableError:
        return False
    return True
