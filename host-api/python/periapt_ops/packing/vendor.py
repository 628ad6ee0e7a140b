"""A charm's dependencies, brought into a directory by pip, all of them in Python (`native`)."""

from __future__ import annotations

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence

from . import bounds, native, projects, requirements, unpacked, wheels
from .native import remove
from .unpacked import Wheel, normalised

#: The interpreter that the component has.
PYTHON_VERSION = "3.14"


class VendorError(Exception):
    """Why there are no dependencies; for the author to read."""


class NoWheel(VendorError):
    """A requirement of which there is no wheel at all."""

    def __init__(self, name: str, message: str):
        super().__init__(message)
        self.name = normalised(name)


def vendor(charm: pathlib.Path, target: pathlib.Path, files: Sequence[str] = (), packages: Sequence[str] = ()) -> dict:
    """Install what a charm requires.

    `files` of requirements that its parts name stand in the place of those that there are by default, `packages` come besides.
    Answers what of it was native and is not there any more, and what is told of it.
    """
    required, constraints = _requirements(charm, files, packages)
    target.mkdir(parents=True, exist_ok=True)
    fetched, findings = _fetch(target, required, constraints)
    shutil.rmtree(target / "bin", ignore_errors=True)
    missing = []
    for wheel in sorted(fetched, key=lambda wheel: normalised(wheel.name)):
        files = list(native.files(wheel))
        if not files or native.replace(wheel, target) or _replaced(wheel, target):
            continue
        if normalised(wheel.name) not in native.OPTIONAL:
            places = [line.place for line in required if isinstance(line, requirements.Placed) and line.name == normalised(wheel.name)]
            asked = places + native.required_by(wheel, fetched, target)
            missing += _missing(wheel, files, asked)
        for file in files:
            remove(target, file)
    return {"native": missing, "findings": findings}


def _missing(wheel: Wheel, files: list[str], asked: list[str]) -> list[dict]:
    """What is to be known of native files of a package that are not there any more."""
    package = f"{wheel.name} {wheel.version}"
    return [{"package": package, "file": file, "module": native.module_of(file), "required-by": asked} for file in files]


def _fetch(target: pathlib.Path, required: list[str], constraints: list[str]) -> tuple[list[Wheel], list[dict]]:
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
                return _pip(target, "--only-binary=:all:", *wanted), findings
            except NoWheel as error:
                without = [line for line in required if requirements.name_of(line) == error.name]
                if not without:
                    raise
                required = [line for line in required if line not in without]
                findings += [_no_wheel(line) for line in without]
    return [], findings


def _no_wheel(line: str) -> dict:
    file, _, number = getattr(line, "place", "requirements.txt:1").rpartition(":")
    message = f"{line} has no wheel, and nothing is built: it is not brought in"
    return {"file": file or number, "line": int(number) if number.isdigit() else 1, "severity": "warning", "message": message}


def _requirements(charm: pathlib.Path, files: Sequence[str], packages: Sequence[str]) -> tuple[list[str], list[str]]:
    """What a charm requires and what it constrains, in lines for pip."""
    listed = charm / "requirements.txt"
    project = charm / "pyproject.toml"
    try:
        if files or listed.exists():
            required, constraints = requirements.of_files(charm, [charm / file for file in files] or [listed])
        else:
            required, constraints = (projects.dependencies(project) if project.exists() else []), []
        return required + requirements.of_parts(charm, packages), constraints
    except requirements.RequirementError as error:
        raise VendorError(str(error)) from None


def _replaced(wheel: Wheel, target: pathlib.Path) -> bool:
    """Put the same release without native code in the place of one with it, if there is one."""
    with tempfile.TemporaryDirectory() as place:
        pure = pathlib.Path(place)
        wanted = ["--only-binary=:all:", "--no-deps", "--platform=any", "--implementation=py", "--abi=none"]
        try:
            others = _pip(pure, *wanted, f"--python-version={PYTHON_VERSION}", "--", wheel.pinned)
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


def _pip(target: pathlib.Path, *arguments: str) -> list[Wheel]:
    """Fetch what the arguments ask for, look at it, and unpack it. No code of any package is run by that."""
    with tempfile.TemporaryDirectory() as place:
        _run("download", "--dest", place, *arguments)
        try:
            fetched = unpacked.checked(pathlib.Path(place))
        except unpacked.UnpackError as error:
            raise VendorError(str(error)) from None
        if fetched:
            # Wheels for another interpreter were asked for above, and are taken as they are.
            foreign = [argument for argument in arguments if argument.startswith(_FOREIGN)]
            own = ["--no-compile", "--no-index", "--no-deps", "--only-binary=:all:", "--find-links", place]
            _run("install", "--target", str(target), *own, *foreign, "--", *(wheel.pinned for wheel in fetched))
    return fetched


#: Options that say which interpreter wheels are for.
_FOREIGN = ("--platform=", "--implementation=", "--abi=", "--python-version=")


#: Bytes that are read of what pip says.
_MOST_SAID = 1 << 20

def _run(verb: str, *arguments: str) -> None:
    command = [sys.executable, wheels.__file__, verb, "--quiet", "--no-input", "--disable-pip-version-check", *arguments]
    with tempfile.TemporaryFile() as errors:
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors, timeout=bounds.MOST_TIME)
        except subprocess.TimeoutExpired:
            raise VendorError(f"pip was stopped: it may take {bounds.MOST_TIME // 60} minutes") from None
        errors.seek(0)
        said = errors.read(_MOST_SAID).decode("utf-8", errors="replace")
    if done.returncode < 0:
        raise VendorError(f"pip was stopped by signal {-done.returncode}: it may take {bounds.MOST_CPU} s of CPU time")
    if done.returncode != 0:
        lines = [line.removeprefix("ERROR: ") for line in said.splitlines() if line.startswith("ERROR: ")]
        if lines == ["Exception:"]:
            # What it did not expect it shows with its own trace; the reason stands last.
            lines = [_in_words(line) for line in said.strip().splitlines()[-1:]]
        absent = re.search(r"No matching distribution found for ([A-Za-z0-9._-]+)", said)
        if absent and "(from versions: none)" in said and not re.search("Retrying|Could not fetch", said):
            raise NoWheel(absent[1], "pip: " + "; ".join(lines))
        raise VendorError("pip: " + ("; ".join(lines) or said.strip() or f"exit code {done.returncode}"))



def _in_words(error: str) -> str:
    """An error of Python's, as pip shows it; bounds that were met by their measure."""
    if error.startswith("MemoryError"):
        return f"to read a package takes more than {bounds.MOST_MEMORY >> 20} MiB of memory"
    if "[Errno 27]" in error:
        return f"a package has more than {bounds.MOST_FILE >> 20} MiB in one file"
    return error
