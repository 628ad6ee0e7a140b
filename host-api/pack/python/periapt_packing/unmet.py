"""`--upgrade 'NAME>=VERSION'`: what is told where there are no such versions."""

from __future__ import annotations

import dataclasses
import pathlib
import tempfile
from collections.abc import Sequence

from . import fetching, markers
from .built import Built
from .fetching import PYTHON_VERSIONS, Unresolved, VendorError
from .resolving import resolve
from .unpacked import normalised
from .wanted import Wanted


def error(upgrades: Sequence[str], wanted: Wanted, place: pathlib.Path, built: Built) -> VendorError | None:
    """The error for the first upgrade of which no release has an allowed version; none if there are releases for all.

    It asks the index anew, so it is for where packing has failed already.
    """
    for said in upgrades:
        asked = markers.requirement_of(said)
        if not asked.specifier:
            continue
        name = normalised(asked.name)
        # What goes beyond the charm's own lines stands in their place already.
        others = [range_ for range_ in wanted.ranges_of(name) if range_ not in ("", str(asked.specifier))]
        try:
            if _is_there(f"{name}{','.join([str(asked.specifier), *others])}", place):
                continue
        except VendorError:
            return None
        allowing = f" and that {' and '.join(wanted.places_of(name))} allows" if others else ""
        newest = _newest_that_runs(name, wanted, place, built)
        known = f"; the newest that runs is {newest}" if newest else ""
        return VendorError(f"--upgrade '{said}': there is no release of {name} that satisfies it{allowing}{known}")
    return None


def _is_there(line: str, place: pathlib.Path) -> bool:
    """Whether there is a wheel of what a line requires, for any interpreter."""
    version, *older = PYTHON_VERSIONS
    machine = (*fetching.machine_of(version, older), "--no-deps", "--ignore-requires-python")
    with tempfile.TemporaryDirectory(dir=place) as directory:
        try:
            fetching.download(pathlib.Path(directory), version, machine, "--", line)
        except Unresolved:
            return False
    return True


def _newest_that_runs(name: str, wanted: Wanted, place: pathlib.Path, built: Built) -> str:
    """The newest version of a package that runs in the sandbox, whatever the charm allows; empty if it is not known."""
    free = dataclasses.replace(wanted, constraints=[], own=[])
    with tempfile.TemporaryDirectory(dir=place) as directory:
        try:
            _, _, wheels = resolve(free, [name], {}, pathlib.Path(directory) / "newest", built)
        except VendorError:
            return ""
    return next((wheel.version for wheel in wheels if normalised(wheel.name) == name), "")
