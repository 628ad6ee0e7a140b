"""`--upgrade 'NAME>=VERSION'`: a package in a version that the charm's own lines do not allow, because whoever packs says so.

What is locked moves as in `upgrading`. Where versions are pinned by lines alone, the lines of what the package needs leave
theirs as well, as far as they must.
"""

from __future__ import annotations

import pathlib

from . import fetching, markers, metadata, native, preferring, runnable
from .built import Built
from .fetching import PYTHON_VERSIONS, Unresolved, VendorError
from .lines import Placed, RequirementError, name_of, place_of
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
    if not wanted.let:
        return
    wheels, directory = _alone(wanted, place, built)
    asked = [line for wheel in wheels for line in metadata.requires(directory / wheel.file)]
    for wheel in wheels:
        name = normalised(wheel.name)
        lines = [line for line in wanted.required if name_of(line) == name]
        version = _said(lines) if lines else wanted.pins[name].version if name in wanted.pins else ""
        if name in wanted.let or not version or _goes_with(name, version, asked, wheel, built):
            continue
        let(wanted, name, f">={version}")


def tell(wanted: Wanted, wheels: list[Wheel]) -> None:
    """Tell which versions are packed in the place of those that lines name."""
    for wheel in wheels:
        name = normalised(wheel.name)
        said = wanted.let.get(name)
        if said is not None and said != wheel.version:
            place = next(iter(wanted.places_of(name)), "requirements.txt:1")
            wanted.tell(place, f"{name} {wheel.version} is packed and not {said or 'what its line says'}, by --upgrade")


def _alone(wanted: Wanted, place: pathlib.Path, built: Built) -> tuple[list[Wheel], pathlib.Path]:
    """What pip chooses for the packages alone, and where it is."""
    lines = [str(line).split(" --hash")[0] for line in wanted.required if name_of(line) in wanted.let]
    first = None
    for version in PYTHON_VERSIONS:
        directory = place / f"beyond-{version}"

        def download(pins: list[str], version: str = version, directory: pathlib.Path = directory) -> list[Wheel]:
            listed = directory.with_suffix(".txt")
            known = {name: runnable.first_that_runs(name, wanted.ranges_of(name)) for name in runnable.known()}
            limits = [f"{name}{said}" for name, said in known.items() if said]
            listed.write_text("".join(f"{line}\n" for line in [*limits, *wanted.constraints, *pins]), encoding="utf-8")
            fresh = directory.with_name(f"{directory.name}-{len(pins)}")
            wheels = fetching.download(fresh, version, fetching.machine_of(version), "-c", str(listed), "--", *lines)
            chosen.append(fresh)
            return wheels

        chosen: list[pathlib.Path] = []
        try:
            wheels, _ = preferring.choose(download([]), built, download)
        except Unresolved as error:
            first = first or error
        else:
            return wheels, chosen[-1]
    raise VendorError(f"--upgrade {' '.join(wanted.let)}: {first}")


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
