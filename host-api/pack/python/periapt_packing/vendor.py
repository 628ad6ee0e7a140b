"""A charm's dependencies, brought into a directory by pip: in Python, or as they were built for the sandbox (`native`)."""

from __future__ import annotations

import dataclasses
import pathlib
import re
import shutil
import tempfile

from . import beyond, fetching, markers, native, pinned, preferring, refusing, requirements, trees, unmet, upgrading
from .built import Built
from .fetching import PYTHON_VERSIONS, NoWheel, Unresolved, VendorError
from .git import Checkouts
from .lines import RequirementError, place_of
from .native import remove
from .required import of
from .resolving import Fetched
from .sdists import FROM_SOURCES, Sdists
from .unpacked import Wheel, normalised
from .wanted import Absent, Choices, Parts, Wanted


def vendor(
    charm: pathlib.Path,
    target: pathlib.Path,
    parts: Parts | None = None,
    choices: Choices | None = None,
    built: Built | None = None,
    told: list[dict] | None = None,
) -> dict:
    """Install what a charm requires.

    Answers which packages that are, what of them was native and is not there any more, and what is told. `told` gets what is told
    of the charm's own files, also if it fails: that may explain why.
    """
    choices, built, told = choices or Choices(), built or Built(), [] if told is None else told
    with tempfile.TemporaryDirectory() as place:
        checkouts = Checkouts(pathlib.Path(place) / "repositories", choices.allow_git)
        try:
            wanted = of(charm, parts or Parts(), choices, checkouts, told)
            for found in checkouts.told:
                wanted.tell(*found)
            upgrading.release(wanted, choices.upgrades)
            refusing.before(wanted)
            target.mkdir(parents=True, exist_ok=True)
            try:
                version, fetched, findings = _bring(wanted, target, pathlib.Path(place), built)
            except VendorError as error:
                raise unmet.error(choices.upgrades, wanted, pathlib.Path(place), built) or error from None
            refusing.after(wanted, fetched, target)
            beyond.tell(wanted, fetched)
        except (RequirementError, markers.UnreadableError) as error:
            raise VendorError(str(error)) from None
    shutil.rmtree(target / "bin", ignore_errors=True)
    missing = []
    for wheel in sorted(fetched, key=lambda wheel: normalised(wheel.name)):
        files = list(native.files(wheel))
        if (
            not files
            or native.take_built(wheel, built, target)
            or _replaced(wheel, version, target, wanted.pins.get(normalised(wheel.name)))
        ):
            continue
        if normalised(wheel.name) not in native.OPTIONAL:
            asked = wanted.places_of(normalised(wheel.name)) + native.said(native.required_by(wheel, fetched, target))
            missing += _missing(wheel, files, asked, _lacking(wheel, wanted, built, fetched, target))
        for file in files:
            remove(target, file)
    missing += [_absent(name, absent, wanted.places_of(name)) for name, absent in wanted.absent.items()]
    packages = sorted(f"{normalised(wheel.name)}=={wheel.version}" for wheel in fetched)
    return {"packages": packages, "native": missing, "findings": told + findings}


def _bring(wanted: Wanted, target: pathlib.Path, place: pathlib.Path, built: Built) -> tuple[str, list[Wheel], list[dict]]:
    """Fetch and unpack all that is wanted; answers for which interpreter pip has chosen, and what was brought in."""
    beyond.follow(wanted, place, built)
    fetched = upgrading.fetch(wanted, place, built)
    sdists = Sdists(place / "from-sources")
    fetched += _of_locked_sources(wanted, sdists)
    for version, directory, _ in fetched:
        beside = place / f"unpacked-{directory.name}"
        fetching.unpack(directory, beside, version)
        # pip replaces directories that several packages share.
        shutil.copytree(beside, target, dirs_exist_ok=True)
        shutil.rmtree(beside)
    wheels = [wheel for _, _, wheels in fetched for wheel in wheels]
    chosen = place / "chosen"
    chosen.mkdir()
    there = {normalised(wheel.name) for wheel in wheels}
    version, more, findings = _fetch(chosen, wanted, Beside(there, sdists), built)
    shutil.copytree(chosen, target, dirs_exist_ok=True)
    wheels += more
    for wheel in wheels:
        if normalised(wheel.name) in wanted.trees:
            tree = wanted.trees[normalised(wheel.name)]
            asked = " and ".join(native.said(native.required_by(wheel, wheels, target))) or "another package"
            raise VendorError(
                f"{tree.place}: {tree.name} is taken from its sources, and {asked} requires it by its name, by which an index may"
                " have another operator's: lock the dependencies, or take that one from its sources as well"
            )
    for tree in wanted.trees.values():
        wheels.append(trees.take(tree, target))
    return version, wheels, findings


def _of_locked_sources(wanted: Wanted, sdists: Sdists) -> list[Fetched]:
    """Take what is locked and has no wheel from its sources; what cannot be taken is told, and stays out."""
    for pin in wanted.sources.values():
        by = f", required by {' and '.join(pin.required_by[:3])}," if set(pin.required_by) - {pin.place} else ""
        lacking = "has no wheel for CPython 3.10 to 3.14 on Linux and x86-64" if pin.wheels else "has no wheel"
        if sdists.take_pin(pin):
            wanted.tell(pin.place, f"{pin.name} {pin.version}{by} {lacking}: {FROM_SOURCES}")
            continue
        why = sdists.why_not(pin.name)
        wanted.tell(pin.place, f"{pin.name} {pin.version}{by} {lacking}, and {why}: it is not brought in")
        wanted.absent[pin.name] = Absent(f"{pin.name} {pin.version}", why)
    return [(PYTHON_VERSIONS[0], sdists.directory, list(sdists.wheels.values()))] if sdists.wheels else []


def _missing(wheel: Wheel, files: list[str], asked: list[str], lacking: str) -> list[dict]:
    """What is to be known of native files of a package that are not there any more."""
    known = {"package": f"{wheel.name} {wheel.version}", "required-by": asked, "lacking": lacking}
    return [{**known, "file": file, "module": native.module_of(file)} for file in files]


def _absent(name: str, absent: Absent, asked: list[str]) -> dict:
    """What is to be known of a package that has no wheel. Most are imported by their own names."""
    module = name.removesuffix("-binary").replace("-", "_")
    return {"package": absent.said, "required-by": asked, "lacking": f"has no wheel, and {absent.why}", "file": "", "module": module}


def _lacking(wheel: Wheel, wanted: Wanted, built: Built, fetched: list[Wheel], target: pathlib.Path) -> str:
    """What is to be told of a package that was not built for the sandbox in this version."""
    lacking = built.lacking(wheel)
    there = built.versions(wheel.name)
    if not lacking or not there:
        return lacking
    name = native.decided_by(wheel, fetched, target)
    if name != normalised(wheel.name):
        # Which versions of it go with one that was built, an index knows.
        return f"{lacking}, and `periapt pack --upgrade {name}` takes another version{_than_locked(wheel, wanted)}"
    ranges = wanted.ranges_of(name)
    if any(all(markers.fits(version, said) for said in ranges) for version in there):
        if wanted.lock is None or name not in wanted.pins:
            return lacking
        return f"{lacking}, and `periapt pack --upgrade {name}` takes another version{_than_locked(wheel, wanted)}"
    places = " and ".join(wanted.places_of(name))
    return f"{lacking}, and `periapt pack --upgrade '{name}=={there[0]}'` takes one that {places} does not allow"


def _than_locked(wheel: Wheel, wanted: Wanted) -> str:
    locked = wanted.lock is not None and normalised(wheel.name) in wanted.pins
    return f" than the one in {wanted.lock.name}" if locked else ""


def _place_of(wheel: Wheel, wanted: Wanted, wheels: list[Wheel], target: pathlib.Path) -> str:
    """The line of requirements that leads to a package."""
    waiting, seen = [wheel], set()
    while waiting:
        one = waiting.pop(0)
        name = normalised(one.name)
        if wanted.places_of(name):
            return wanted.places_of(name)[0]
        if name not in seen:
            seen.add(name)
            waiting += native.required_by(one, wheels, target)
    return place_of(wanted.required[0])


@dataclasses.dataclass(frozen=True)
class Beside:
    """What there is while pip chooses the rest."""

    #: Packages that are in the target already.
    there: set[str]
    #: What has no wheel and is taken from its sources.
    sdists: Sdists


def _fetch(target: pathlib.Path, wanted: Wanted, beside: Beside, built: Built) -> tuple[str, list[Wheel], list[dict]]:
    """Install what is required and not locked, for the first interpreter for which there is all of it; what of it has no wheel
    at all is taken from its sources, or stays out, and is told."""
    findings: list[dict] = []
    required = list(wanted.required)
    constraints = [*wanted.constraints, *(f"{pin.name}=={pin.version}" for pin in wanted.pins.values() if not pin.url)]
    while required:
        first = None
        for version, machine in fetching.attempts():
            try:
                wheels = _fetch_for((version, machine), target, required, constraints, beside)
            except Unresolved as error:
                lines = [line for line in required if requirements.name_of(line) == error.name]
                if isinstance(error, NoWheel) and not fetching.has_wheels(error.name):
                    if beside.sdists.take(error.name, error.required, constraints):
                        break
                    if lines:
                        findings += [_no_wheel(line, error, beside.sdists) for line in lines]
                        wanted.absent[error.name] = Absent(error.name, beside.sdists.why_not(error.name))
                        required = [line for line in required if line not in lines]
                        break
                first = error if version == PYTHON_VERSIONS[0] and first is None else first
            else:
                findings += _of_sources(beside, wheels, wanted, target)
                wheels, more = _with_built(target, (version, machine), wanted, [required, constraints], beside, wheels, built)
                return version, wheels, findings + more + _of_older(version, wheels, wanted, target)
        else:
            # A release may have sources alone where others have wheels.
            if not first.required or not beside.sdists.take(first.name, first.required, constraints):
                raise _placed(first, required)
    return PYTHON_VERSIONS[0], [], findings


def _of_sources(beside: Beside, wheels: list[Wheel], wanted: Wanted, target: pathlib.Path) -> list[dict]:
    """Tells which packages are taken from their sources."""
    found = [wheel for wheel in wheels if beside.sdists.wheels.get(normalised(wheel.name)) == wheel]
    message = "{0.name} {0.version} has no wheel: " + FROM_SOURCES
    return [_told(_place_of(wheel, wanted, wheels, target), message.format(wheel)) for wheel in found]


def _with_built(
    target: pathlib.Path,
    python: tuple[str, tuple[str, ...]],
    wanted: Wanted,
    asked: list[list[str]],
    beside: Beside,
    wheels: list[Wheel],
    built: Built,
) -> tuple[list[Wheel], list[dict]]:
    """Take other versions of packages in native code where that is `preferring`'s to choose, and tell it."""
    required, constraints = asked

    def again(pins: list[str]) -> list[Wheel]:
        with tempfile.TemporaryDirectory() as place:
            other = pathlib.Path(place)
            chosen = _fetch_for(python, other, required, [*constraints, *pins], beside)
            shutil.rmtree(target)
            shutil.copytree(other, target)
        return chosen

    wheels, changes = preferring.choose(wheels, built, again)
    findings = []
    for wheel, other in changes:
        message = f"of {wheel.name} {wheel.version} there is no wheel for the sandbox: {other} is taken, and what goes with it"
        findings.append(_told(_place_of(wheel, wanted, wheels, target), message))
    return wheels, findings


def _of_older(version: str, wheels: list[Wheel], wanted: Wanted, target: pathlib.Path) -> list[dict]:
    """Tells which wheels are for an interpreter that is older than the one that pip has chosen for."""
    findings = []
    for wheel in wheels:
        if other := fetching.older_python_of(wheel, version):
            message = f"{wheel.name} {wheel.version} has no wheel for CPython {version}: that for CPython {other} is taken"
            findings.append(_told(_place_of(wheel, wanted, wheels, target), message))
    return findings


def _fetch_for(
    python: tuple[str, tuple[str, ...]], target: pathlib.Path, required: list[str], constraints: list[str], beside: Beside
) -> list[Wheel]:
    with tempfile.TemporaryDirectory() as place:
        wanted = [*beside.sdists.options]
        for option, lines in (("-r", required), ("-c", constraints)):
            listed = pathlib.Path(place) / f"listed{option}.txt"
            listed.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
            wanted += [option, str(listed)] if lines else []
        try:
            if not beside.there:
                return fetching.fetch(target, *python, *wanted)
            return _fetch_beside(python, target, pathlib.Path(place), wanted, beside.there)
        except Unresolved as error:
            raise _of_lines(error, required) from None


def _of_lines(error: Unresolved, required: list[str]) -> Unresolved:
    """An error of pip's with the lines that it names by number in a file of ours."""

    def line(found: re.Match) -> str:
        number = int(found[1]) - 1
        return str(required[number]) if number < len(required) else found[0]

    error.args = (re.sub(r"-r \S+listed-r\.txt \(line (\d+)\)", line, str(error)),)
    return error


def _fetch_beside(
    python: tuple[str, tuple[str, ...]], target: pathlib.Path, place: pathlib.Path, wanted: list[str], there: set[str]
) -> list[Wheel]:
    """The same without the packages that are there already, which pip has to fetch to know what they require."""
    directory, wheels = place / "fetched", []
    for wheel in fetching.download(directory, *python, *wanted):
        if normalised(wheel.name) in there:
            (directory / wheel.file).unlink()
        else:
            wheels.append(wheel)
    fetching.unpack(directory, place / "unpacked", python[0])
    if wheels:
        shutil.copytree(place / "unpacked", target, dirs_exist_ok=True)
    return wheels


def _told(place: str, message: str) -> dict:
    """A warning at a line of requirements."""
    file, _, number = place.rpartition(":")
    return {"file": file, "line": int(number), "severity": "warning", "message": message}


def _no_wheel(line: str, error: NoWheel, sdists: Sdists) -> dict:
    """That a requirement is not brought in. A name by which there is nothing is a mistake."""
    if not fetching.is_known(error.name):
        raise _placed(NoWheel(f"nothing is found by the name {error.name} ({error})", error.name), [line])
    return _told(requirements.place_of(line), f"{line} has no wheel, and {sdists.why_not(error.name)}: it is not brought in")


def _placed(error: Unresolved, required: list[str]) -> VendorError:
    """What does not fit, by the lines that ask for it, if they are the charm's own."""
    places = [requirements.place_of(line) for line in required if requirements.name_of(line) == error.name]
    return VendorError(f"{', '.join(places)}: {error}" if places else str(error))


def _replaced(wheel: Wheel, version: str, target: pathlib.Path, pin: pinned.Pin | None) -> bool:
    """Put the same release without native code in the place of one with it, if there is one; of what is locked, a locked one."""
    with tempfile.TemporaryDirectory() as place:
        pure = pathlib.Path(place) / "unpacked"
        try:
            if pin is not None:
                others = pinned.fetch_pure(pin, version, pathlib.Path(place), pure)
            else:
                others = fetching.fetch(pure, version, fetching.ANY_MACHINE, "--no-deps", "--", wheel.pinned)
        except VendorError:
            return False
        if not others:
            return False
        # One that says it is for every machine, and is not.
        if any(True for other in others for _ in native.files(other)):
            return False
        for file in wheel.files:
            remove(target, file)
        shutil.copytree(pure, target, dirs_exist_ok=True)
        shutil.rmtree(target / "bin", ignore_errors=True)
    return True
