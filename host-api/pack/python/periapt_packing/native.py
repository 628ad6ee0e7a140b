"""Native code among a charm's dependencies: taken out, and replaced where that can be done.

A package with native code is taken as it was built for the sandbox (`built`), if it was; in a version of the same release
that has none, if there is one; or without its native files. Whether it can do without them is found when the sources are
checked: an import of what was taken out, that is certainly done, is an error there.
"""

from __future__ import annotations

import importlib.metadata
import pathlib
import re
from collections.abc import Iterable, Iterator

from .built import Built
from .lines import name_of
from .unpacked import Wheel, normalised

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


def files(wheel: Wheel) -> Iterator[str]:
    """The native files of a wheel."""
    for file in wheel.files:
        name = file.rpartition("/")[2]
        if name.endswith(NATIVE) or ".so." in name:
            yield file


def take_built(wheel: Wheel, built: Built, target: pathlib.Path) -> bool:
    """Put a package as it was built for the sandbox in its place; answers whether there is one."""
    if not built.has(wheel.name, wheel.version):
        return False
    for file in wheel.files:
        remove(target, file)
    built.unpack(wheel, target)
    return True


def remove(target: pathlib.Path, file: str) -> None:
    """Delete a file of a wheel, and nothing that lies elsewhere."""
    path = target / file
    if path.parent.resolve().is_relative_to(target.resolve()):
        path.unlink(missing_ok=True)


def module_of(file: str) -> str | None:
    """The module that a native file is; none if it is a library of another kind."""
    *directories, name = file.split("/")
    parts = [*directories, name.split(".")[0]]
    return ".".join(parts) if all(part.isidentifier() for part in parts) else None


def required_by(wheel: Wheel, wheels: Iterable[Wheel], target: pathlib.Path) -> list[Wheel]:
    """The wheels that name one among what they require."""
    name = normalised(wheel.name)
    return [
        other
        for other in sorted(wheels, key=lambda other: normalised(other.name))
        if any(normalised(re.split(r"[^A-Za-z0-9._-]", line.strip(), maxsplit=1)[0]) == name for line in _requires(other, target))
    ]


def decided_by(wheel: Wheel, wheels: Iterable[Wheel], target: pathlib.Path) -> str:
    """The package that decides on a wheel's version: one that requires exactly this version, or the wheel's own."""
    name = normalised(wheel.name)
    for other in required_by(wheel, wheels, target):
        if any(name_of(line) == name and "==" in line.partition(";")[0] for line in _requires(other, target)):
            return normalised(other.name)
    return name


def said(wheels: Iterable[Wheel]) -> list[str]:
    """Wheels in words."""
    return [f"{wheel.name} {wheel.version}" for wheel in wheels]


def _requires(wheel: Wheel, target: pathlib.Path) -> list[str]:
    return importlib.metadata.PathDistribution(target / wheel.info).requires or []
