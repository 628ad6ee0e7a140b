"""A charm's dependencies, brought into a directory by pip, all of them in Python.

A package with native code is taken in a version of the same release that has none, if there is one; or without its
native files, if it is known to do without. Otherwise it is refused by name.
"""

from __future__ import annotations

import importlib.metadata
import pathlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator

from . import requirements, unpacked, wheels

#: What native code is called.
NATIVE = (".so", ".pyd", ".dll", ".dylib")

#: Packages that use native code where it is, and Python code of their own where it is not.
OPTIONAL = frozenset(
    {"frozenlist", "markupsafe", "msgpack", "multidict", "propcache", "pyyaml", "simplejson", "wrapt", "yarl"}
)

#: The interpreter that the component has.
PYTHON_VERSION = "3.14"


class VendorError(Exception):
    """Why there are no dependencies; for the author to read."""


def vendor(charm: pathlib.Path, target: pathlib.Path, packages: list[str]) -> dict:
    """Install what a charm requires, and packages named besides; say what was installed and what is native."""
    required, constraints = _requirements(charm)
    required += packages
    target.mkdir(parents=True, exist_ok=True)
    if required:
        with tempfile.TemporaryDirectory() as place:
            wanted = []
            for option, lines in (("-r", required), ("-c", constraints)):
                listed = pathlib.Path(place) / f"listed{option}.txt"
                listed.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
                wanted += [option, str(listed)] if lines else []
            _pip(target, "--only-binary=:all:", *wanted)
    shutil.rmtree(target / "bin", ignore_errors=True)
    native = []
    for distribution in distributions(target):
        files = list(native_files(distribution))
        if not files or _replaced(distribution, target):
            continue
        if _normalised(distribution.name) not in OPTIONAL:
            native += [{"package": f"{distribution.name} {distribution.version}", "file": file} for file in files]
        for file in files:
            _remove(target, file)
    installed = sorted(f"{distribution.name}=={distribution.version}" for distribution in distributions(target))
    return {"installed": installed, "native": native}


def distributions(target: pathlib.Path) -> list[importlib.metadata.Distribution]:
    """What is installed in a directory, by name."""
    found = importlib.metadata.distributions(path=[str(target)])
    return sorted(found, key=lambda distribution: _normalised(distribution.name))


def native_files(distribution: importlib.metadata.Distribution) -> Iterator[str]:
    """The native files of a distribution, as it lists them itself."""
    for file in distribution.files or ():
        if file.name.endswith(NATIVE) or ".so." in file.name:
            yield file.as_posix()


def _requirements(charm: pathlib.Path) -> tuple[list[str], list[str]]:
    """What a charm requires and what it constrains, in lines for pip."""
    try:
        listed = charm / "requirements.txt"
        if listed.exists():
            return requirements.of_file(charm, listed)
        project = charm / "pyproject.toml"
        if not project.exists():
            return [], []
        return [requirements.checked(line, "pyproject.toml") for line in _dependencies(project)], []
    except requirements.RequirementError as error:
        raise VendorError(str(error)) from None


def _dependencies(project: pathlib.Path) -> list[str]:
    """What pyproject.toml lists. Nothing else in it counts: the charm is not built."""
    with project.open("rb") as file:
        document = _toml().load(file)
    if "dependencies" in document.get("project", {}):
        return [str(requirement) for requirement in document["project"]["dependencies"]]
    if "dependencies" in document.get("tool", {}).get("poetry", {}):
        raise VendorError(
            "pyproject.toml lists its dependencies for poetry alone; "
            "write them to requirements.txt: poetry export --output requirements.txt"
        )
    return []


def _toml():
    try:
        import tomllib
    except ImportError:
        # Python 3.10: pip brings one along.
        from pip._vendor import tomli as tomllib
    return tomllib


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
            _remove(target, file)
        shutil.copytree(pure, target, dirs_exist_ok=True)
        shutil.rmtree(target / "bin", ignore_errors=True)
    return True


def _remove(target: pathlib.Path, file: str | pathlib.PurePath) -> None:
    """Delete a file of a distribution. Which those are a wheel says itself, and it may name anything."""
    path = target / file
    if path.parent.resolve().is_relative_to(target.resolve()):
        path.unlink(missing_ok=True)


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
        raise VendorError("pip: " + ("; ".join(lines) or done.stderr.strip() or f"exit code {done.returncode}"))


def _normalised(name: str) -> str:
    return name.lower().replace("_", "-").replace(".", "-")
