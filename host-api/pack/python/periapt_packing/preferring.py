"""Versions of packages in native code that were built for the sandbox, where what is required leaves the choice."""

from __future__ import annotations

from collections.abc import Callable

from . import native
from .built import Built
from .fetching import Unresolved
from .unpacked import Wheel


def choose(
    wheels: list[Wheel], built: Built, again: Callable[[list[str]], list[Wheel]]
) -> tuple[list[Wheel], list[tuple[Wheel, str]]]:
    """Look what pip has chosen in native code, and have it choose again where other versions of that were built: the newest
    that fits. `again` does so with some versions given, as NAME==VERSION. Answers what is chosen in the end, and which
    packages in which other version."""
    pins: list[str] = []
    changes = []
    for wheel in wheels:
        if built.has(wheel.name, wheel.version) or not any(native.files(wheel)):
            continue
        for version in built.versions(wheel.name):
            pin = f"{wheel.name}=={version}"
            try:
                wheels = again([*pins, pin])
            except Unresolved:
                continue
            pins.append(pin)
            changes.append((wheel, version))
            break
    return wheels, changes
