"""Parsing of YAML that every hook would do again.

`ops` parses metadata.yaml, config.yaml and actions.yaml at the beginning of each hook, with Python code where there is
no C library: a third of what a hook costs. The files are part of the charm and never change, so what they parse to is
kept at build, and a hook is given a copy of it.
"""

from __future__ import annotations

import copy
import functools
import os

from .stand_ins import files, resolver

#: The files that `ops` reads.
FILES = ("metadata.yaml", "config.yaml", "actions.yaml")


def remember(directory: str) -> None:
    """Parse the files of a charm's directory, and answer for their very texts from now on."""
    import yaml

    known = {}
    for name in FILES:
        path = os.path.join(directory, name)
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                text = file.read()
            known[text] = yaml.safe_load(text)
            if name == FILES[0]:
                files.know(known[text])
                resolver.know(known[text])
    yaml.safe_load = _remembering(yaml.safe_load, known)
    try:
        from ops._private import yaml as private
    except ImportError:
        # An `ops` that uses PyYAML itself.
        return
    private.safe_load = _remembering(private.safe_load, known)


def _remembering(safe_load, known):
    @functools.wraps(safe_load)
    def load(stream, *arguments, **options):
        if isinstance(stream, str) and stream in known:
            # A copy: the caller may change what it was given.
            return copy.deepcopy(known[stream])
        return safe_load(stream, *arguments, **options)

    return load
