"""`--upgrade NAME`: a package in another version than the lock has, within the project's own range or the one that is given, and
all else as locked."""

from __future__ import annotations

import pathlib
import shutil
import tempfile
from collections.abc import Iterable, Sequence

from . import beyond, fetching, locked, markers, metadata, pinned, preferring, runnable
from .built import Built
from .fetching import PYTHON_VERSIONS, Unresolved, VendorError
from .lines import RequirementError, name_of
from .unpacked import Wheel, normalised
from .wanted import Wanted

#: For which interpreter a directory of wheels is, and what is in it.
Fetched = tuple[str, pathlib.Path, list[Wheel]]


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
    names = list(bounds)
    if names and wanted.lock is not None:
        needed = locked.closure(wanted.lock, names)
        wanted.upgraded = tuple(names)
        wanted.constraints += [f"{name}{bound}" for name, bound in bounds.items() if bound]
        wanted.released = {name: wanted.pins.pop(name) for name in [*wanted.upgraded, *sorted(needed)] if name in wanted.pins}


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
    """Fetch what is locked, and what is upgraded in the newest versions that go with it."""
    chosen = _chosen(wanted, place, built) if wanted.upgraded else None
    if chosen is not None:
        there = {normalised(wheel.name) for wheel in chosen[2]}
        # What the upgraded packages need no more somebody else may.
        wanted.pins.update({name: pin for name, pin in wanted.released.items() if name not in there})
    absent: list[pinned.Pin] = []
    fetched = pinned.fetch(wanted.pins.values(), place, absent)
    for pin in absent:
        wanted.tell(pin.place, f"{pin.name} {pin.version} has no wheel, and nothing is built: it is not brought in")
        wanted.absent[pin.name] = f"{pin.name} {pin.version}"
    if chosen is not None:
        _see_that_it_fits(chosen, fetched, wanted)
        _tell(chosen, wanted)
        fetched.append(chosen)
    return fetched


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
    """What pip chooses for the upgraded packages, for the first interpreter for which there is all of it."""
    lines = []
    for name in wanted.upgraded:
        own = [line.split(" --hash")[0] for line in wanted.own if name_of(line) == name and getattr(line, "source", None) is None]
        lines += own or [name]
    limits = [f"{name}=={version}" for name, version in bounds.items()]
    limits += [f"{name}{said}" for name in wanted.released if (said := runnable.first_that_runs(name, wanted.ranges_of(name)))]
    limits += [line for line in wanted.constraints if name_of(line) not in bounds]
    first = None
    for version in PYTHON_VERSIONS:
        directory = place.with_name(f"{place.name}-{version}")

        def download(pins: list[str], version: str = version, directory: pathlib.Path = directory) -> list[Wheel]:
            with tempfile.TemporaryDirectory(dir=place.parent) as other:
                arguments = _listed(pathlib.Path(other), lines, [*limits, *pins])
                fetched = pathlib.Path(other) / "fetched"
                wheels = fetching.download(fetched, version, fetching.machine_of(version), *arguments)
                shutil.rmtree(directory, ignore_errors=True)
                shutil.move(fetched, directory)
            return wheels

        try:
            wheels, _ = preferring.choose(download([]), built, download)
        except Unresolved as error:
            first = first or error
        else:
            return version, directory, wheels
    raise VendorError(
        f"--upgrade {' '.join(wanted.upgraded)}: nothing fits the project's own range and what else is locked: {first}"
    )


def _listed(place: pathlib.Path, required: list[str], constraints: list[str]) -> list[str]:
    """Requirements and constraints in files, as arguments for pip."""
    arguments = []
    for option, said in (("-r", required), ("-c", constraints)):
        file = place / f"listed{option}.txt"
        file.write_text("".join(f"{line}\n" for line in said), encoding="utf-8")
        arguments += [option, str(file)]
    return arguments


def _see_that_it_fits(chosen: Fetched, fetched: Iterable[Fetched], wanted: Wanted) -> None:
    """See that what stays as locked still has what it requires."""
    versions = {normalised(wheel.name): wheel.version for wheel in chosen[2]}
    for _, directory, wheels in fetched:
        for wheel in wheels:
            for line in metadata.requires(directory / wheel.file):
                name = name_of(line)
                if name in versions and not metadata.fits(line, versions[name]):
                    raise VendorError(
                        f"--upgrade {' '.join(wanted.upgraded)}: {wheel.name} {wheel.version} stays as locked and requires"
                        f" {line.split(';')[0].strip()}, which {name} {versions[name]} is not: add --upgrade"
                        f" {normalised(wheel.name)}"
                    )


def _tell(chosen: Fetched, wanted: Wanted) -> None:
    for wheel in chosen[2]:
        pin = wanted.released.get(normalised(wheel.name))
        if pin is not None and pin.version != wheel.version:
            message = f"{pin.name} {wheel.version} is packed and not {pin.version}, which is locked: --upgrade {' '.join(wanted.upgraded)}"
            wanted.tell(pin.place, message)
