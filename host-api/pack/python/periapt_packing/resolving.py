"""What pip chooses for some packages by themselves, apart from all else that a charm requires."""

from __future__ import annotations

import pathlib
import shutil
import tempfile
from collections.abc import Mapping

from . import fetching, preferring, runnable
from .built import Built
from .fetching import PYTHON_VERSIONS, Unresolved
from .lines import name_of
from .unpacked import Wheel
from .wanted import Wanted

#: For which interpreter a directory of wheels is, the directory, and what is in it.
Fetched = tuple[str, pathlib.Path, list[Wheel]]


def resolve(wanted: Wanted, lines: list[str], bounds: Mapping[str, str], place: pathlib.Path, built: Built) -> Fetched:
    """Fetches what lines require, with all that it needs, for the first interpreter for which there are wheels of it.

    `bounds` are packages in the versions that they must have. All others are in versions that run in the sandbox and that the
    charm's constraints allow, as built for the sandbox where there is a choice. Raises what did not fit the first interpreter.
    """
    limits = [f"{name}=={version}" for name, version in bounds.items()]
    for name in runnable.known():
        range_ = runnable.first_that_runs(name, wanted.ranges_of(name))
        limits += [f"{name}{range_}"] if range_ and name not in bounds else []
    limits += [line for line in wanted.constraints if name_of(line) not in bounds]
    first = None
    for version, machine in fetching.attempts():
        directory = place.with_name(f"{place.name}-{version}")

        def download(
            pins: list[str],
            version: str = version,
            machine: tuple[str, ...] = machine,
            directory: pathlib.Path = directory,
        ) -> list[Wheel]:
            with tempfile.TemporaryDirectory(dir=place.parent) as other:
                fetched, limiting = pathlib.Path(other) / "fetched", pathlib.Path(other) / "limits.txt"
                limiting.write_text("".join(f"{line}\n" for line in [*limits, *pins]), encoding="utf-8")
                wheels = fetching.download(fetched, version, machine, "-c", str(limiting), "--", *lines)
                shutil.rmtree(directory, ignore_errors=True)
                shutil.move(fetched, directory)
            return wheels

        try:
            wheels, _ = preferring.choose(download([]), built, download)
        except Unresolved as error:
            first = error if version == PYTHON_VERSIONS[0] else first
        else:
            return version, directory, wheels
    raise first
