"""What is done once, while the component is built: everything that a hook should find done."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable

from . import handles, imports, metadata, stand_ins, tracing
from .charm import PATH, Program
from .location import Building
from .reading import files_in_place


def build(path: Iterable[str]) -> Program:
    """Import the charm, which lies in one of the directories of `path`, and all that it may import later."""
    own = handles.descriptors()
    stand_ins.install()
    directory = next(entry for entry in path if os.path.exists(f"{entry}/src/charm.py"))
    building = Building(directory)
    building.begin()
    with files_in_place(building), imports.noted():
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
    handles.close_all_but(own)
    for line in failed:
        print(f"not imported: {line}", file=sys.stderr)
    return program


def _remember_patterns() -> None:
    """Have compiled what urllib compiles for its first request: each hook that asks for Pebble makes its first one."""
    import urllib.request

    urllib.request.Request("http://localhost/")
