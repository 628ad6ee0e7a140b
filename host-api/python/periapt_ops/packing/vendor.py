"""A charm's dependencies, brought into a directory by pip: in Python, or as they were built for the sandbox (`native`)."""

from __future__ import annotations

import pathlib
import shutil
import tempfile

from . import fetching, native, requirements
from .built import Built
from .fetching import PYTHON_VERSIONS, NoWheel, Unresolved, VendorError
from .native import remove
from .required import Parts, of
from .unpacked import Wheel, normalised


def vendor(charm: pathlib.Path, target: pathlib.Path, parts: Parts | None = None, built: Built | None = None) -> dict:
    """Install what a charm requires.

    Answers what of it was native and is not there any more, and what is told of it.
    """
    try:
        required, constraints, told = of(charm, parts or Parts())
    except requirements.RequirementError as error:
        raise VendorError(str(error)) from None
    target.mkdir(parents=True, exist_ok=True)
    built = built or Built()
    version, fetched, findings = _fetch(target, required, constraints)
    fetched, more = _with_built(target, version, required, constraints, fetched, built)
    findings += more
    shutil.rmtree(target / "bin", ignore_errors=True)
    missing = []
    for wheel in sorted(fetched, key=lambda wheel: normalised(wheel.name)):
        files = list(native.files(wheel))
        if not files or native.take_built(wheel, built, target) or native.replace(wheel, target) or _replaced(wheel, version, target):
            continue
        if normalised(wheel.name) not in native.OPTIONAL:
            missing += _missing(wheel, files, _asked(wheel, required, fetched, target), built)
        for file in files:
            remove(target, file)
    return {"native": missing, "findings": told + findings}


def _missing(wheel: Wheel, files: list[str], asked: list[str], built: Built) -> list[dict]:
    """What is to be known of native files of a package that are not there any more."""
    known = {"package": f"{wheel.name} {wheel.version}", "required-by": asked, "lacking": built.lacking(wheel)}
    return [{**known, "file": file, "module": native.module_of(file)} for file in files]


def _asked(wheel: Wheel, required: list[str], wheels: list[Wheel], target: pathlib.Path) -> list[str]:
    """Who asks for a package: lines of requirements, and other packages."""
    others = native.required_by(wheel, wheels, target)
    return _places(normalised(wheel.name), required) + [f"{other.name} {other.version}" for other in others]


def _with_built(
    target: pathlib.Path, version: str, required: list[str], constraints: list[str], fetched: list[Wheel], built: Built
) -> tuple[list[Wheel], list[dict]]:
    """Take other versions of packages in native code, the newest that were built for the sandbox, where what is required
    leaves the choice and none was built of the version that pip chose."""
    pinned: list[str] = []
    findings = []
    for wheel in fetched:
        if built.has(wheel) or not any(native.files(wheel)):
            continue
        for other in built.versions(wheel.name):
            pin = f"{wheel.name}=={other}"
            with tempfile.TemporaryDirectory() as place:
                again = pathlib.Path(place)
                try:
                    fetched = _fetch_for(version, again, required, [*constraints, *pinned, pin])
                except Unresolved:
                    continue
                shutil.rmtree(target)
                shutil.copytree(again, target)
            pinned.append(pin)
            message = f"of {wheel.name} {wheel.version} there is no wheel for the sandbox: {other} is taken, and what goes with it"
            findings.append(_told(_place_of(wheel, required, fetched, target), message))
            break
    return fetched, findings


def _place_of(wheel: Wheel, required: list[str], wheels: list[Wheel], target: pathlib.Path) -> str:
    """The line of requirements that leads to a package."""
    waiting, seen = [wheel], set()
    while waiting:
        one = waiting.pop(0)
        name = normalised(one.name)
        if _places(name, required):
            return _places(name, required)[0]
        if name not in seen:
            seen.add(name)
            waiting += native.required_by(one, wheels, target)
    return requirements.place_of(required[0])


def _told(place: str, message: str) -> dict:
    """A warning at a line of requirements."""
    file, _, number = place.rpartition(":")
    return {"file": file, "line": int(number), "severity": "warning", "message": message}


def _fetch(target: pathlib.Path, required: list[str], constraints: list[str]) -> tuple[str, list[Wheel], list[dict]]:
    """Install what is required, for the first interpreter for which there is all of it; what of it has no wheel at all
    stays out, and is told."""
    findings: list[dict] = []
    while required:
        first = None
        for version in PYTHON_VERSIONS:
            try:
                return version, _fetch_for(version, target, required, constraints), findings
            except Unresolved as error:
                lines = [line for line in required if requirements.name_of(line) == error.name]
                if isinstance(error, NoWheel) and lines and not fetching.has_wheels(error.name):
                    findings += [_no_wheel(line, error) for line in lines]
                    required = [line for line in required if line not in lines]
                    break
                first = first or _placed(error, required)
        else:
            raise first
    return PYTHON_VERSIONS[0], [], findings


def _fetch_for(version: str, target: pathlib.Path, required: list[str], constraints: list[str]) -> list[Wheel]:
    with tempfile.TemporaryDirectory() as place:
        wanted = []
        for option, lines in (("-r", required), ("-c", constraints)):
            listed = pathlib.Path(place) / f"listed{option}.txt"
            listed.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
            wanted += [option, str(listed)] if lines else []
        return fetching.fetch(target, version, fetching.machine_of(version), *wanted)


def _no_wheel(line: str, error: NoWheel) -> dict:
    """That a requirement is not brought in. A name by which there is nothing is a mistake."""
    if not fetching.is_known(error.name):
        raise _placed(NoWheel(f"nothing is found by the name {error.name} ({error})", error.name), [line])
    return _told(requirements.place_of(line), f"{line} has no wheel, and nothing is built: it is not brought in")


def _placed(error: Unresolved, required: list[str]) -> VendorError:
    """What does not fit, by the lines that ask for it, if they are the charm's own."""
    places = _places(error.name, required)
    return VendorError(f"{', '.join(places)}: {error}" if places else str(error))


def _places(name: str, required: list[str]) -> list[str]:
    return [requirements.place_of(line) for line in required if requirements.name_of(line) == name]


def _replaced(wheel: Wheel, version: str, target: pathlib.Path) -> bool:
    """Put the same release without native code in the place of one with it, if there is one."""
    with tempfile.TemporaryDirectory() as place:
        pure = pathlib.Path(place)
        try:
            others = fetching.fetch(pure, version, fetching.ANY_MACHINE, "--no-deps", "--", wheel.pinned)
        except VendorError:
            return False
        # One that says it is for every machine, and is not.
        if any(True for other in others for _ in native.files(other)):
            return False
        for file in wheel.files:
            remove(target, file)
        shutil.copytree(pure, target, dirs_exist_ok=True)
        shutil.rmtree(target / "bin", ignore_errors=True)
    return True
