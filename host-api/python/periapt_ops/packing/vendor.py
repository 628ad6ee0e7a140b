"""A charm's dependencies, brought into a directory by pip, all of them in Python (`native`)."""

from __future__ import annotations

import importlib.metadata
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from . import native, projects, requirements, unpacked, wheels
from .native import distributions, normalised, remove

#: The interpreter that the component has.
PYTHON_VERSION = "3.14"


class VendorError(Exception):
    """Why there are no dependencies; for the author to read."""


class NoWheel(VendorError):
    """A requirement of which there is no wheel at all."""

    def __init__(self, name: str, message: str):
        super().__init__(message)
        self.name = normalised(name)


def vendor(charm: pathlib.Path, target: pathlib.Path, packages: list[str]) -> dict:
    """Install what a charm requires, and packages named besides.

    Answers what of it was native and is not there any more, and what is told of it.
    """
    required, constraints = _requirements(charm)
    required += packages
    target.mkdir(parents=True, exist_ok=True)
    findings = _fetch(target, required, constraints)
    shutil.rmtree(target / "bin", ignore_errors=True)
    missing = []
    for distribution in distributions(target):
        files = list(native.files(distribution))
        if not files or native.replace(distribution, target) or _replaced(distribution, target):
            continue
        if normalised(distribution.name) not in native.OPTIONAL:
            missing += _missing(distribution, files, target, required)
        for file in files:
            remove(target, file)
    return {"native": missing, "findings": findings}


def _missing(distribution, files, target, required) -> list[dict]:
    """What is to be known of native files of a package that are not there any more."""
    places = [line.place for line in required if isinstance(line, requirements.Placed) and line.name == normalised(distribution.name)]
    asked = places + native.required_by(distribution, distributions(target))
    package = f"{distribution.name} {distribution.version}"
    return [{"package": package, "file": file, "module": native.module_of(file), "required-by": asked} for file in files]


def _fetch(target: pathlib.Path, required: list[str], constraints: list[str]) -> list[dict]:
    """Install what is required; what of it has no wheel stays out, and is told."""
    findings: list[dict] = []
    required = list(required)
    while required:
        with tempfile.TemporaryDirectory() as place:
            wanted = []
            for option, lines in (("-r", required), ("-c", constraints)):
                listed = pathlib.Path(place) / f"listed{option}.txt"
                listed.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
                wanted += [option, str(listed)] if lines else []
            try:
                _pip(target, "--only-binary=:all:", *wanted)
                break
            except NoWheel as error:
                without = [line for line in required if requirements.name_of(line) == error.name]
                if not without:
                    raise
                required = [line for line in required if line not in without]
                findings += [_no_wheel(line) for line in without]
    return findings


def _no_wheel(line: str) -> dict:
    file, _, number = getattr(line, "place", "requirements.txt:1").rpartition(":")
    message = f"{line} has no wheel, and nothing is built: it is not brought in"
    return {"file": file or number, "line": int(number) if number.isdigit() else 1, "severity": "warning", "message": message}


def _requirements(charm: pathlib.Path) -> tuple[list[str], list[str]]:
    """What a charm requires and what it constrains, in lines for pip."""
    try:
        listed = charm / "requirements.txt"
        if listed.exists():
            return requirements.of_file(charm, listed)
        project = charm / "pyproject.toml"
        return (projects.dependencies(project), []) if project.exists() else ([], [])
    except requirements.RequirementError as error:
        raise VendorError(str(error)) from None


def _replaced(distribution: importlib.metadata.Distribution, target: pathlib.Path) -> bool:
    """Put the same release without native code in the place of one with it, if there is one."""
    with tempfile.TemporaryDirectory() as place:
        pure = pathlib.Path(place)
        wanted = ["--only-binary=:all:", "--no-deps", "--platform=any", "--implementation=py", "--abi=none"]
        try:
            _pip(pure, *wanted, f"--python-version={PYTHON_VERSION}", f"{distribution.name}=={distribution.version}")
        except VendorError:
            return False
        for file in distribution.files or ():
            remove(target, file)
        shutil.copytree(pure, target, dirs_exist_ok=True)
        shutil.rmtree(target / "bin", ignore_errors=True)
    return True


def _pip(target: pathlib.Path, *arguments: str) -> None:
    """Fetch what the arguments ask for, look at it, and unpack it. No code of any package is run by that."""
    with tempfile.TemporaryDirectory() as place:
        _run("download", "--dest", place, *arguments)
        try:
            fetched = [unpacked.pinned(wheel) for wheel in unpacked.checked(pathlib.Path(place))]
        except unpacked.UnpackError as error:
            raise VendorError(str(error)) from None
        if fetched:
            # Wheels for another interpreter were asked for above, and are taken as they are.
            foreign = [argument for argument in arguments if argument.startswith(_FOREIGN)]
            own = ["--no-compile", "--no-index", "--no-deps", "--only-binary=:all:", "--find-links", place]
            _run("install", "--target", str(target), *own, *foreign, *fetched)


#: Options that say which interpreter wheels are for.
_FOREIGN = ("--platform=", "--implementation=", "--abi=", "--python-version=")


def _run(verb: str, *arguments: str) -> None:
    command = [sys.executable, wheels.__file__, verb, "--quiet", "--no-input", "--disable-pip-version-check", *arguments]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", errors="replace")
    if done.returncode != 0:
        lines = [line.removeprefix("ERROR: ") for line in done.stderr.splitlines() if line.startswith("ERROR: ")]
        if lines == ["Exception:"]:
            # What it did not expect it shows with its own trace; the reason stands last.
            lines = done.stderr.strip().splitlines()[-1:]
        absent = re.search(r"No matching distribution found for ([A-Za-z0-9._-]+)", done.stderr)
        if absent and "(from versions: none)" in done.stderr and not re.search("Retrying|Could not fetch", done.stderr):
            raise NoWheel(absent[1], "pip: " + "; ".join(lines))
        raise VendorError("pip: " + ("; ".join(lines) or done.stderr.strip() or f"exit code {done.returncode}"))

