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

from . import wheels

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
    requirements = _requirements(charm) + packages
    target.mkdir(parents=True, exist_ok=True)
    if requirements:
        _pip(target, "--only-binary=:all:", *requirements)
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


def _requirements(charm: pathlib.Path) -> list[str]:
    """What to tell pip that a charm requires."""
    listed = charm / "requirements.txt"
    if listed.exists():
        return ["-r", str(listed)]
    project = charm / "pyproject.toml"
    if not project.exists():
        return []
    with project.open("rb") as file:
        document = _toml().load(file)
    if "dependencies" in document.get("project", {}):
        listed = [str(requirement) for requirement in document["project"]["dependencies"]]
        for requirement in listed:
            # To pip it would be one of its options.
            if requirement.lstrip().startswith("-"):
                raise VendorError(f"pyproject.toml: {requirement!r} is not a requirement")
        return listed
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
    command = [sys.executable, wheels.__file__, "install", "--quiet", "--no-input", "--disable-pip-version-check"]
    command += ["--no-compile", "--target", str(target), *arguments]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", errors="replace")
    if done.returncode != 0:
        lines = [line.removeprefix("ERROR: ") for line in done.stderr.splitlines() if line.startswith("ERROR: ")]
        raise VendorError("pip: " + ("; ".join(lines) or done.stderr.strip() or f"exit code {done.returncode}"))


def _normalised(name: str) -> str:
    return name.lower().replace("_", "-").replace(".", "-")
