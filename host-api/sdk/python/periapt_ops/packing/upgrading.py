"""`--upgrade NAME`: a package in another version than the lock has, within the project's own range, and all else as locked."""

from __future__ import annotations

import email.parser
import pathlib
import shutil
import tempfile
import zipfile
from collections.abc import Iterable, Sequence

from . import fetching, locked, markers, pinned, preferring, runnable
from .built import Built
from .fetching import PYTHON_VERSIONS, Unresolved, VendorError
from .lines import RequirementError, name_of
from .unpacked import Wheel, normalised
from .wanted import Wanted

#: The most bytes of a wheel's METADATA that are read.
_MOST_METADATA = 4 << 20

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
        bounds[name] = str(asked.specifier)
        if wanted.lock is None:
            raise RequirementError(
                f"--upgrade {name}: there is no uv.lock or poetry.lock that the charm's dependencies are taken from; change what"
                f" requires {name}"
            )
        if name not in wanted.pins:
            raise RequirementError(f"--upgrade {name}: the charm takes no {name} from {wanted.lock.name}")
    names = list(bounds)
    if names and wanted.lock is not None:
        needed = locked.closure(wanted.lock, names)
        wanted.upgraded = tuple(names)
        wanted.constraints += [f"{name}{bound}" for name, bound in bounds.items() if bound]
        wanted.released = {name: wanted.pins.pop(name) for name in [*wanted.upgraded, *sorted(needed)] if name in wanted.pins}


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
    required = [line for wheel in wheels for line in _requires(directory / wheel.file)]
    stay = {
        name: pin.version
        for name, pin in wanted.released.items()
        if name not in wanted.upgraded
        and not pin.url
        and (not built.versions(name) or built.has(name, pin.version))
        and all(_fits(line, pin.version) for line in required if name_of(line) == name)
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
            for line in _requires(directory / wheel.file):
                name = name_of(line)
                if name in versions and not _fits(line, versions[name]):
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


def _requires(wheel: pathlib.Path) -> list[str]:
    """What a wheel requires in the sandbox, without extras."""
    with zipfile.ZipFile(wheel) as opened:
        name = next((name for name in opened.namelist() if name.endswith(".dist-info/METADATA") and name.count("/") == 1), None)
        if name is None:
            return []
        with opened.open(name) as metadata:
            text = metadata.read(_MOST_METADATA).decode("utf-8", errors="replace")
    lines = email.parser.HeaderParser().parsestr(text).get_all("Requires-Dist") or []
    return [line for line in lines if _counts(line)]


def _counts(line: str) -> bool:
    try:
        marker = markers.requirement_of(line).marker
        return marker is None or markers.applies(str(marker))
    except markers.UnreadableError:
        return False


def _fits(line: str, version: str) -> bool:
    try:
        return markers.fits(version, str(markers.requirement_of(line).specifier))
    except markers.UnreadableError:
        return True
