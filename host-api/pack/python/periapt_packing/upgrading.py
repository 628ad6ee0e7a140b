"""`--upgrade NAME`: a package in another version than the lock has, within the project's own range or the one that is given, and
all else as locked."""

from __future__ import annotations

import itertools
import pathlib
from collections.abc import Iterable, Sequence

from . import beyond, locked, markers, metadata, pinned, runnable
from .built import Built
from .fetching import Unresolved, VendorError
from .lines import RequirementError, name_of
from .resolving import Fetched, resolve
from .unpacked import Wheel, normalised
from .wanted import Wanted


def release(wanted: Wanted, names: Sequence[str]) -> None:
    """Let go of what the lock says of some packages, and of what they need. A name may have versions, which bound it."""
    bounds = {}
    for said in names:
        try:
            asked = markers.requirement_of(said)
        except markers.UnreadableError as error:
            raise RequirementError(f"--upgrade: {error}") from None
        name = normalised(asked.name)
        if asked.url or asked.marker or asked.extras:
            raise RequirementError(f"--upgrade {said}: it takes a name, and versions if need be: --upgrade '{name}<2'")
        if beyond.is_beyond(asked):
            beyond.let(wanted, name, str(asked.specifier))
        elif wanted.lock is None:
            _see_that_pip_may_choose(wanted, name)
        if wanted.lock is None or name in wanted.let:
            wanted.constraints += [f"{name}{asked.specifier}"] if asked.specifier else []
        elif name not in wanted.pins:
            raise RequirementError(f"--upgrade {name}: the charm takes no {name} from {wanted.lock.name}")
        else:
            bounds[name] = str(asked.specifier)
    if bounds and wanted.lock is not None:
        wanted.constraints += [f"{name}{bound}" for name, bound in bounds.items() if bound]
        _release(wanted, bounds)


def _see_that_pip_may_choose(wanted: Wanted, name: str) -> None:
    """See that the charm's own lines leave a choice: without a lock pip takes the newest version that they allow."""
    places = wanted.places_of(name)
    if not places:
        raise RequirementError(f"--upgrade {name}: no line of the charm's own requires {name}")
    ranges = wanted.ranges_of(name)
    if name in wanted.pins or any(map(_is_exact, ranges)) or runnable.first_that_runs(name, ranges) is None:
        other = runnable.beyond(name, ranges) or ">=VERSION"
        raise RequirementError(
            f"--upgrade {name}: {' and '.join(places)} allows no other version; --upgrade '{name}{other}' takes one all the same"
        )


def _is_exact(range_: str) -> bool:
    """Whether a range is one version."""
    return markers.exact_version(f"x{range_}") is not None


def fetch(wanted: Wanted, place: pathlib.Path, built: Built) -> list[Fetched]:
    """Fetch what is locked, and what is upgraded in the newest versions that go with it.

    A locked package that requires another version of an upgraded one moves as well, within the project's own range.
    """
    absent: list[pinned.Pin] = []
    if not wanted.upgraded:
        fetched = pinned.fetch(wanted.pins.values(), place, absent)
    else:
        left: dict[str, tuple[Wheel, str]] = {}
        for number in itertools.count():
            try:
                chosen = _chosen(wanted, _made(place / f"upgraded-{number}"), built)
            except VendorError as error:
                raise _stuck(left, wanted) or error from None
            there = {normalised(wheel.name) for wheel in chosen[2]}
            # What the upgraded packages need no more other packages may.
            kept = {**wanted.pins, **{name: pin for name, pin in wanted.released.items() if name not in there}}
            absent.clear()
            fetched = pinned.fetch(kept.values(), _made(place / f"locked-{number}"), absent)
            left = _left_behind(chosen, fetched)
            if not left:
                break
            wanted.following.update({name: line for name, (_, line) in left.items()})
            _release(wanted, left)
        wanted.pins = kept
        _tell(chosen, wanted)
        fetched.append(chosen)
    for pin in absent:
        wanted.sources[pin.name] = pin
    return fetched


def _made(directory: pathlib.Path) -> pathlib.Path:
    directory.mkdir()
    return directory


def _release(wanted: Wanted, names: Iterable[str]) -> None:
    """Lets go of what the lock says of some packages, and of what they need."""
    pins = {**wanted.pins, **wanted.released}
    needed = locked.closure(wanted.lock, {name: pins[name].extras for name in names if name in pins})
    wanted.upgraded = tuple(dict.fromkeys([*wanted.upgraded, *names]))
    for name in [*wanted.upgraded, *sorted(needed)]:
        if name in wanted.pins:
            wanted.released[name] = wanted.pins.pop(name)


def _stuck(left: dict[str, tuple[Wheel, str]], wanted: Wanted) -> VendorError | None:
    """The error for packages that stay as locked, since the project allows no version that goes with what is upgraded."""
    asked = " ".join(name for name in wanted.upgraded if name not in wanted.following)
    said = [
        f"--upgrade {asked}: {wheel.name} {wheel.version} stays as locked and requires {line}, and the project allows no version"
        f" of it that goes with another: add --upgrade '{name}>={wheel.version}'"
        for name, (wheel, line) in left.items()
    ]
    return VendorError("\n  ".join(said)) if said else None


def _chosen(wanted: Wanted, place: pathlib.Path, built: Built) -> Fetched:
    """The packages that are upgraded and what they need anew, in a directory."""
    bounds = {name: pin.version for name, pin in wanted.pins.items() if not pin.url}
    version, directory, wheels = _resolved(wanted, bounds, place / "upgraded", built)
    # Of what they drag along, that stays which still fits.
    required = [line for wheel in wheels for line in metadata.requires(directory / wheel.file)]
    stay = {
        name: pin.version
        for name, pin in wanted.released.items()
        if name not in wanted.upgraded
        and not pin.url
        and (not built.versions(name) or built.has(name, pin.version))
        and all(metadata.fits(line, pin.version) for line in required if name_of(line) == name)
    }
    moved = [wheel for wheel in wheels if stay.get(normalised(wheel.name), wheel.version) != wheel.version]
    if moved:
        again = {normalised(wheel.name): wheel.version for wheel in wheels if normalised(wheel.name) in wanted.upgraded}
        try:
            version, directory, wheels = _resolved(wanted, {**bounds, **stay, **again}, place / "kept", built)
        except VendorError:
            # It fits each package and not all of them together.
            pass
    for wheel in wheels:
        if normalised(wheel.name) in wanted.pins:
            (directory / wheel.file).unlink()
    return version, directory, [wheel for wheel in wheels if normalised(wheel.name) not in wanted.pins]


def _resolved(wanted: Wanted, bounds: dict[str, str], place: pathlib.Path, built: Built) -> Fetched:
    """What pip chooses for the upgraded packages."""
    lines = []
    for name in wanted.upgraded:
        own = [line.split(" --hash")[0] for line in wanted.own if name_of(line) == name and getattr(line, "source", None) is None]
        lines += own or [name]
    try:
        return resolve(wanted, lines, bounds, place, built)
    except Unresolved as error:
        raise VendorError(
            f"--upgrade {' '.join(wanted.upgraded)}: nothing fits the project's own range and what else is locked: {error}"
        ) from None


def _left_behind(chosen: Fetched, fetched: Iterable[Fetched]) -> dict[str, tuple[Wheel, str]]:
    """The packages that stay as locked and require another version than is chosen, with what they require; by name."""
    versions = {normalised(wheel.name): wheel.version for wheel in chosen[2]}
    left = {}
    for _, directory, wheels in fetched:
        for wheel in wheels:
            for line in metadata.requires(directory / wheel.file):
                name = name_of(line)
                if name in versions and not metadata.fits(line, versions[name]):
                    left[normalised(wheel.name)] = wheel, line.split(";")[0].strip()
    return left


def _tell(chosen: Fetched, wanted: Wanted) -> None:
    for wheel in chosen[2]:
        pin = wanted.released.get(normalised(wheel.name))
        if pin is not None and pin.version != wheel.version:
            asked = " ".join(name for name in wanted.upgraded if name not in wanted.following)
            line = wanted.following.get(pin.name)
            why = f"which is locked and requires {line}" if line else "which is locked"
            wanted.tell(pin.place, f"{pin.name} {wheel.version} is packed and not {pin.version}, {why}: --upgrade {asked}")
