"""What is done once, while the component is built: everything that a hook should find done."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable

from . import imports, metadata, stand_ins, tracing
from .charm import PATH, Program
from .location import Building


def build(path: Iterable[str]) -> Program:
    """Import the charm, which lies in one of the directories of `path`, and all that it may import later."""
    stand_ins.install()
    directory = next(entry for entry in path if os.path.exists(f"{entry}/src/charm.py"))
    building = Building(directory)
    building.begin()
    with building.files_in_place(), imports.noted():
        from . import storage

        storage.install()
        with open(PATH, encoding="utf-8") as file:
            program = Program(file.read())
        program.load()
        failed = imports.import_all(building)
        tracing.install()
        metadata.remember("/charm")
        _remember_patterns()
    building.end()
    for line in failed:
        print(f"not imported: {line}", file=sys.stderr)
    return program


def _remember_patterns() -> None:
    """Have compiled what urllib compiles for its first request: each hook that asks for Pebble makes its first one."""
    import urllib.request

    urllib.request.Request("http://localhost/")
