"""Headers with parameters: the module `cgi` went with Python 3.13.

`ops` up to 2.3 imports it for `parse_header`, by which it reads the type of Pebble's answers. That function alone is here.
Who brings the module along, as the package `legacy-cgi` does, has that one.
"""

import importlib.machinery
import re
import sys

NAME = "cgi"

#: One part of a header: semicolons within quotes are part of it.
_PART = re.compile(r';((?:[^;"]|"(?:[^"\\]|\\.)*"?)*)', re.DOTALL)


def install() -> None:
    """Have it found where nobody else has it."""
    if not any(isinstance(finder, Finder) for finder in sys.meta_path):
        sys.meta_path.append(Finder())


class Finder:
    """Finds the module, after all who may have it."""

    def find_spec(self, name, path=None, target=None):
        return importlib.machinery.ModuleSpec(NAME, self) if name == NAME else None

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        module.__doc__ = "Headers with parameters."
        module.parse_header = parse_header


def parse_header(line: str) -> tuple[str, dict[str, str]]:
    """Return the value of a header, and its parameters."""
    value, *parts = (part.strip() for part in _PART.findall(";" + line))
    parameters = {}
    for name, equals, text in (part.partition("=") for part in parts):
        if not equals:
            continue
        text = text.strip()
        if len(text) >= 2 and text[0] == text[-1] == '"':
            text = re.sub(r'\\(["\\])', r"\1", text[1:-1])
        parameters[name.strip().lower()] = text
    return value, parameters
