"""Wheels, fetched and unpacked by pip for the sandbox's interpreter, whatever the packer's own is (decision 33)."""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from typing import IO

from . import bounds, unpacked, wheels
from .unpacked import Wheel, normalised

#: For which interpreters wheels may be, the best first. The first one is the sandbox's. A wheel for an older one is of use
#: as well, since native code is taken out of it or replaced, and the rest is Python.
PYTHON_VERSIONS = ("3.14", "3.13", "3.12", "3.11", "3.10")

#: The machines that wheels may be for: those that charmcraft packs on.
_MACHINES = ("linux_x86_64", "manylinux1_x86_64", "manylinux2010_x86_64", "manylinux2014_x86_64") + tuple(
    f"manylinux_2_{minor}_x86_64" for minor in range(5, 43)
)

#: What takes wheels that fit any machine alone.
ANY_MACHINE = ("--platform=any", "--implementation=py", "--abi=none")


class VendorError(Exception):
    """Why there are no dependencies; for the author to read."""


class Unreachable(VendorError):
    """The index could not be asked."""


class Unresolved(VendorError):
    """Nothing fits what is required, for one interpreter."""

    def __init__(self, message: str, name: str = "", required: str = ""):
        super().__init__(message)
        #: Of what nothing fits, as indexes compare names; empty, where it is no single one.
        self.name = normalised(name)
        #: The requirement of which nothing is found, if that is why.
        self.required = required


class NoWheel(Unresolved):
    """A requirement of which there is no wheel at all, for one interpreter."""


class Mismatch(VendorError):
    """What an index answers has none of the digests that it should have."""

    def __init__(self, message: str, name: str):
        super().__init__(message)
        self.name = normalised(name)


def machine_of(version: str, older: Sequence[str] = ()) -> tuple[str, ...]:
    """Options for wheels of an interpreter, and of older ones where a release has none for it (`wheels.with_older`)."""
    abis = (f"--abi=cp{each.replace('.', '')}" for each in (version, *older))
    return ("--implementation=cp", *abis, "--abi=abi3", "--abi=none", *(f"--platform={it}" for it in _MACHINES))


def attempts() -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yields the interpreters that pip may choose packages for, the best first, with their options: for each the wheels of that
    interpreter alone, and then those of older ones as well, which pins of several ages need."""
    for number, version in enumerate(PYTHON_VERSIONS, 1):
        yield version, machine_of(version)
        if older := PYTHON_VERSIONS[number:]:
            yield version, machine_of(version, older)


def fetch(target: pathlib.Path, version: str, machine: tuple[str, ...], *arguments: str) -> list[Wheel]:
    """Fetch what the arguments ask for, look at it, and unpack it. No code of any package is run by that."""
    with tempfile.TemporaryDirectory() as place:
        fetched = download(pathlib.Path(place), version, machine, *arguments)
        unpack(pathlib.Path(place), target, version)
    return fetched


def download(place: pathlib.Path, version: str, machine: tuple[str, ...], *arguments: str) -> list[Wheel]:
    """Fetch what the arguments ask for into a directory, and look at it."""
    place.mkdir(exist_ok=True)
    run("download", "--dest", str(place), *_own(version, machine), *arguments)
    try:
        return unpacked.checked(place)
    except unpacked.UnpackError as error:
        raise VendorError(str(error)) from None


def unpack(place: pathlib.Path, target: pathlib.Path, version: str) -> None:
    """Unpack all wheels in a directory, which were looked at: these files, and none that lie elsewhere by the same names."""
    files = sorted(str(file) for file in place.resolve().iterdir())
    if files:
        # What was chosen is not judged again: pip before 23.1 does that by the packer's own interpreter.
        offline = ("--no-compile", "--no-index", "--no-deps", "--ignore-requires-python")
        machine = machine_of(version, PYTHON_VERSIONS[PYTHON_VERSIONS.index(version) + 1 :])
        run("install", "--target", str(target), *_own(version, machine), *offline, "--", *files)


def _own(version: str, machine: tuple[str, ...]) -> tuple[str, ...]:
    return ("--only-binary=:all:", f"--python-version={version}", *machine)


def older_python_of(wheel: Wheel, version: str) -> str:
    """The newest interpreter that a wheel is for, if that is older than the one given; else empty."""
    found = re.fullmatch(r".*-(?P<python>[^-]+)-(?P<abi>[^-]+)-[^-]+\.whl", wheel.file)
    pythons = set(found["python"].split(".")) if found and "abi3" not in found["abi"] else set()
    minors = [int(python[3:]) for python in pythons if re.fullmatch(r"cp3\d+", python)]
    if len(minors) < len(pythons) or not minors or max(minors) >= int(version.partition(".")[2]):
        return ""
    return f"3.{max(minors)}"


def has_wheels(name: str) -> bool:
    """Whether there is a wheel of any version for any interpreter that is asked for."""
    version, *older = PYTHON_VERSIONS
    with tempfile.TemporaryDirectory() as place:
        own = (*_own(version, machine_of(version, older)), "--ignore-requires-python")
        return _is_found("download", "--dest", place, "--no-deps", *own, "--", name)


def is_source(name: str) -> bool:
    """Whether there is something by a name, and no wheel of it."""
    return not has_wheels(name) and is_known(name)


def is_known(name: str) -> bool:
    """Whether there is anything by a name, be it only sources."""
    return _is_found("index", "versions", "--ignore-requires-python", "--", name)


def _is_found(*arguments: str) -> bool:
    try:
        run(*arguments)
    except NoWheel:
        return False
    except VendorError:
        # It cannot tell, or does not know the command.
        return True
    return True


def run(verb: str, *arguments: str) -> None:
    """Run pip, which may do nothing but fetch and unpack, and has bounds."""
    command = [sys.executable, wheels.__file__, verb, "--quiet", "--no-input", "--disable-pip-version-check", *arguments]
    with tempfile.TemporaryFile() as errors:
        try:
            code = ended(command, errors)
        except subprocess.TimeoutExpired:
            raise VendorError(f"pip was stopped: it may take {bounds.MOST_TIME // 60} minutes") from None
        errors.seek(0)
        said = errors.read(bounds.MOST_SAID).decode("utf-8", errors="replace")
    if code < 0:
        raise VendorError(f"pip was stopped by signal {-code}: it may take {bounds.MOST_CPU} s of CPU time")
    if code != 0:
        raise _failure(said, code)


def ended(command: Sequence[str], errors: IO[bytes]) -> int:
    """Run a command to its end in a process of its own; answers its exit code, or its signal as a negative one."""
    silent = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": errors}
    return subprocess.run(command, **silent, timeout=bounds.MOST_TIME).returncode


def _failure(said: str, code: int) -> VendorError:
    """What pip says went wrong."""
    lines = [line.removeprefix("ERROR: ") for line in said.splitlines() if line.startswith("ERROR: ")]
    if lines == ["Exception:"]:
        # What it did not expect it shows with its own trace; the reason stands last.
        lines = [_in_words(line) for line in said.strip().splitlines()[-1:]]
    message = "pip: " + ("; ".join(map(_shortened, lines)) or said.strip() or f"exit code {code}")
    if re.search(
        "Retrying|Could not fetch|Could not install packages due to an OSError: HTTPS?ConnectionPool|NewConnectionError", said
    ):
        return Unreachable(message)
    other = re.search(r"^\s+([A-Za-z0-9._-]+)(?:==| @ | from )", said, re.MULTILINE)
    if other and "DO NOT MATCH THE HASHES" in said:
        return Mismatch(message, other[1])
    absent = re.search(r"No matching distribution found for ([A-Za-z0-9._-]+)(\[[^\]]*\])?([^\s;]*)", said)
    # `index versions` names no versions. Wheels for other interpreters are none to be without.
    if absent and ("(from versions: none)" in said or "(from versions:" not in said) and "Ignored the following" not in said:
        return NoWheel(message, absent[1], absent[1] + absent[3])
    if absent:
        return Unresolved(message, absent[1], absent[1] + absent[3])
    absent = re.search("Package '([A-Za-z0-9._-]+)' requires a different Python", said)
    absent = absent or _in_conflict(said)
    if absent or re.search("ResolutionImpossible|not a supported wheel", said):
        return Unresolved(message, absent[1] if absent else "")
    return VendorError(message)


def _in_conflict(said: str) -> re.Match | None:
    """The name of the one package that requirements conflict about; none if they conflict about several."""
    found = re.search(r"Cannot install (.+?) because these package versions have conflicting dependencies", said)
    names = re.split(r", | and ", found[1]) if found else []
    if len({normalised(re.split(r"[^A-Za-z0-9._-]", name, maxsplit=1)[0]) for name in names}) != 1:
        return None
    return re.match(r"([A-Za-z0-9._-]+)", names[0])


def _shortened(line: str) -> str:
    """A line of pip's with the newest of many versions."""

    def newest(found: re.Match) -> str:
        versions = found[1].split(", ")
        return f"(from versions: {', '.join(versions if len(versions) < 6 else ['...', *versions[-5:]])})"

    return re.sub(r"\(from versions: ([^)]*)\)", newest, line)


def _in_words(error: str) -> str:
    """An error of Python's, as pip shows it; bounds that were met by their measure."""
    if error.startswith("MemoryError"):
        return f"to read a package takes more than {bounds.MOST_MEMORY >> 20} MiB of memory"
    if "[Errno 27]" in error:
        return f"a package has more than {bounds.MOST_FILE >> 20} MiB in one file"
    return error
