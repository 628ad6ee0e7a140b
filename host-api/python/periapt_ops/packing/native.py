"""Native code among a charm's dependencies: taken out, and replaced where that can be done.

A package with native code is taken in a version of the same release that has none, if there is one; with Python code of
this repository in the place of the native one (`replaced`); or without its native files. Whether it can do without them is
found when the sources are checked: an import of what was taken out, that is certainly done, is an error there.
"""

from __future__ import annotations

import importlib.metadata
import pathlib
import re
from collections.abc import Iterator

#: What native code is called.
NATIVE = (".so", ".pyd", ".dll", ".dylib")

#: Packages that use native code where it is, and Python code of their own where it is not.
OPTIONAL = frozenset(
    {
        "cbor2",
        "frozenlist",
        "markupsafe",
        "msgpack",
        "multidict",
        "propcache",
        "pyrsistent",
        "pyyaml",
        "ruamel-yaml-clib",
        "simplejson",
        "sqlalchemy",
        "tornado",
        "websockets",
        "wrapt",
        "yarl",
        "zope-interface",
    }
)

#: Packages of which some modules are replaced; the others need their native code.
PARTLY = frozenset({"cryptography"})

#: Where the code in the place of native code lies.
REPLACED = pathlib.Path(__file__).resolve().parent.parent / "replaced"


def normalised(name: str) -> str:
    """A distribution's name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def distributions(target: pathlib.Path) -> list[importlib.metadata.Distribution]:
    """What is installed in a directory, by name."""
    found = importlib.metadata.distributions(path=[str(target)])
    return sorted(found, key=lambda distribution: normalised(distribution.name))


def files(distribution: importlib.metadata.Distribution) -> Iterator[str]:
    """The native files of a distribution, as it lists them itself."""
    for file in distribution.files or ():
        if file.name.endswith(NATIVE) or ".so." in file.name:
            yield file.as_posix()


def replace(distribution: importlib.metadata.Distribution, target: pathlib.Path) -> bool:
    """Put Python code in the place of a package's native one; answers whether nothing is missing any more."""
    code = REPLACED / normalised(distribution.name).replace("-", "_")
    if not code.is_dir():
        return False
    for file in list(files(distribution)):
        remove(target, file)
    for source in sorted(code.rglob("*.py")):
        text = source.read_text(encoding="utf-8")
        if source.name == "version.py":
            text = text.replace('__version__ = "0"', f"__version__ = {distribution.version!r}")
        place = target / source.relative_to(code)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
    return normalised(distribution.name) not in PARTLY


def remove(target: pathlib.Path, file: str | pathlib.PurePath) -> None:
    """Delete a file of a distribution. Which those are a wheel says itself, and it may name anything."""
    path = target / file
    if path.parent.resolve().is_relative_to(target.resolve()):
        path.unlink(missing_ok=True)


def module_of(file: str) -> str | None:
    """The module that a native file is; none if it is a library of another kind."""
    *directories, name = file.split("/")
    parts = [*directories, name.split(".")[0]]
    return ".".join(parts) if all(part.isidentifier() for part in parts) else None


def required_by(distribution: importlib.metadata.Distribution, all_of_them) -> list[str]:
    """The distributions that name one among what they require."""
    name = normalised(distribution.name)
    return [
        f"{other.name} {other.version}"
        for other in all_of_them
        if any(normalised(re.split(r"[^A-Za-z0-9._-]", line.strip(), maxsplit=1)[0]) == name for line in other.requires or ())
    ]
