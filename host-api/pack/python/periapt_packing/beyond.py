"""`--upgrade 'NAME>=VERSION'`: a package in a version that the charm's own lines do not allow, because the operator who packs says so.

What is locked moves as in `upgrading`. Where versions are pinned by lines alone, the lines of what the package needs leave
theirs as well, as far as they must.
"""

from __future__ import annotations

import itertools
import pathlib

from . import fetching, markers, metadata, native, runnable
from .built import Built
from .fetching import PYTHON_VERSIONS, Unresolved, VendorError
from .lines import Placed, RequirementError, name_of, place_of
from .resolving import Fetched, resolve
from .unpacked import Wheel, normalised
from .wanted import Wanted

#: What says where a range begins.
_LOWER = ("==", "===", "~=", ">", ">=")


def is_beyond(asked) -> bool:
    """Whether a requirement says where its range begins, and so stands in the place of the charm's own."""
    return any(specifier.operator in _LOWER for specifier in asked.specifier)


def let(wanted: Wanted, name: str, range_: str) -> None:
    """Put a range in the place of what the charm's own lines say of a package."""
    lines = [line for line in wanted.own if name_of(line) == name]
    pin = wanted.pins.get(name)
    if not lines and pin is None:
        raise RequirementError(f"--upgrade {name}: no line of the charm's own requires {name}")
    for listed in (wanted.own, wanted.required):
        listed[:] = [_with_range(line, range_) if name_of(line) == name else line for line in listed]
    if wanted.lock is not None and pin is not None:
        # It is chosen anew with what else is upgraded.
        return
    wanted.let[name] = _said(lines) if pin is None else pin.version
    if pin is not None:
        # A file with digests locks it.
        del wanted.pins[name]
        wanted.required += [line for line in wanted.own if name_of(line) == name]


def follow(wanted: Wanted, place: pathlib.Path, built: Built) -> None:
    """Let lines leave their versions that do not go with what was let beyond its own."""
    for number in itertools.count():
        let_before = set(wanted.let)
        if not let_before:
            return
        _, directory, wheels = _alone(wanted, place / f"beyond-{number}", built)
        asked = [line for wheel in wheels for line in metadata.requires(directory / wheel.file)]
        for wheel in wheels:
            name = normalised(wheel.name)
            lines = [line for line in wanted.required if name_of(line) == name]
            version = _said(lines) if lines else wanted.pins[name].version if name in wanted.pins else ""
            if name in wanted.let or not version or _goes_with(name, version, asked, wheel, built):
                continue
            let(wanted, name, f">={version}")
        if number == 0:
            pinned_wheels = _pinned(wanted, place / "pinned-alone")
        _move_along(wanted, pinned_wheels, {normalised(wheel.name): wheel.version for wheel in wheels})
        if set(wanted.let) == let_before:
            return


def _move_along(wanted: Wanted, pinned: list[tuple[Wheel, list[str]]], versions: dict[str, str]) -> None:
    """Lets pins leave their versions that require other versions than these of what was let beyond its own lines."""
    for wheel, requires in pinned:
        name = normalised(wheel.name)
        for line in requires:
            needed = name_of(line)
            if name not in wanted.let and needed in wanted.let.keys() & versions.keys() and not metadata.fits(line, versions[needed]):
                let(wanted, name, f">={wheel.version}")
                wanted.following[name] = line.split(";")[0].strip()


def _pinned(wanted: Wanted, place: pathlib.Path) -> list[tuple[Wheel, list[str]]]:
    """The wheels of what the charm's own lines pin, and what each requires. Of what is not found nothing is known."""
    pins = {name: pin.version for name, pin in wanted.pins.items() if not pin.url}
    for line in wanted.required:
        if version := _said([line]):
            pins[name_of(line)] = version
    pins = {name: version for name, version in pins.items() if name not in wanted.let}
    version, *older = PYTHON_VERSIONS
    machine = (*fetching.machine_of(version, older), "--no-deps", "--ignore-requires-python")
    while pins:
        try:
            wheels = fetching.download(place, version, machine, "--", *(f"{name}=={said}" for name, said in pins.items()))
        except Unresolved as error:
            if pins.pop(error.name, None) is None:
                return []
        else:
            return [(wheel, metadata.requires(place / wheel.file)) for wheel in wheels]
    return []


def tell(wanted: Wanted, wheels: list[Wheel]) -> None:
    """Tell which versions are packed in the place of those that lines name."""
    for wheel in wheels:
        name = normalised(wheel.name)
        said = wanted.let.get(name)
        if said is not None and said != wheel.version:
            place = next(iter(wanted.places_of(name)), "requirements.txt:1")
            line = wanted.following.get(name)
            why = f"which requires {line}: by --upgrade" if line else "by --upgrade"
            wanted.tell(place, f"{name} {wheel.version} is packed and not {said or 'what its line says'}, {why}")


def _alone(wanted: Wanted, place: pathlib.Path, built: Built) -> Fetched:
    """What pip chooses for the packages alone."""
    lines = [str(line).split(" --hash")[0] for line in wanted.required if name_of(line) in wanted.let]
    try:
        return resolve(wanted, lines, {}, place, built)
    except Unresolved as error:
        raise VendorError(f"--upgrade {' '.join(wanted.let)}: {error}") from None


def _goes_with(name: str, version: str, asked: list[str], wheel: Wheel, built: Built) -> bool:
    """Whether a version has all that is asked of it, and runs."""
    if runnable.reason(name, version) or (any(native.files(wheel)) and built.versions(name) and not built.has(name, version)):
        return False
    return all(metadata.fits(line, version) for line in asked if name_of(line) == name)


def _with_range(line: str, range_: str) -> Placed:
    asked = markers.requirement_of(line)
    extras = f"[{','.join(sorted(asked.extras))}]" if asked.extras else ""
    marker = f"; {asked.marker}" if asked.marker else ""
    return Placed.at(f"{asked.name}{extras}{range_}{marker}", place_of(line))


def _said(lines: list[str]) -> str:
    """The one version that lines name; empty, if they name none or several."""
    versions = {version for line in lines if (version := markers.exact_version(line))}
    return versions.pop() if len(versions) == 1 else ""
