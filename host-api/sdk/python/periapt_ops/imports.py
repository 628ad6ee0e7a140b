"""What may be imported in a hook must be imported at build: a module of the standard library that was not cannot be
imported later, since its file is not there.

So every import statement of the charm's own code, and of all that this imports, is done once, wherever it stands; of the
standard library's own modules those that stay within their package, which they put off as they like. One that fails
then is one that fails in the hook that comes to it, if any does: it is left to that hook.

An encoding is a module that no statement names. Those that the charm's own code names in texts are imported, too.
"""

from __future__ import annotations

import contextlib
import dis
import encodings.aliases
import importlib
import importlib.machinery
import sys
import types
from collections.abc import Iterable, Iterator

from .location import CHARM, PARTS, Building

#: What is imported, how many packages up it is looked for, and the names that are wanted of it, if it says so.
Statement = tuple[str, int, tuple[str, ...] | None]

#: Where the charm's own modules are.
OWN = tuple(f"{CHARM}/{part}/" for part in PARTS[:2])

#: What the interpreter itself imports only when it needs it: codecs by name, readers of files
#: beside modules, and what formats times and exceptions.
HIDDEN = (
    "_pydatetime",
    "_strptime",
    "encodings.ascii",
    "encodings.idna",
    "encodings.latin_1",
    "encodings.utf_16",
    "encodings.utf_8_sig",
    "getpass",
    "importlib.readers",
    "importlib.resources.readers",
    "string",
    "traceback",
    "unicodedata",
    "zoneinfo",
)

#: What no hook needs, or could use in the sandbox, and what would only make the component larger: tests and their tools,
#: graphical things, and processes.
NEVER = frozenset(
    """__main__ concurrent.futures.interpreter concurrent.futures.process idlelib multiprocessing ops.testing pdb pytest
    scenario test tkinter turtledemo unittest""".split()
)


def import_all(building: Building) -> list[str]:
    """Do every import that the charm and its libraries may come to, until nothing new is found."""
    done: set[str] = set()
    seen: set[str] = set()
    failed: list[str] = []
    # All of the charm's own modules may be imported; of its libraries' those that something imports.
    waiting = {name for part in PARTS[:2] for name in modules_of(building.now(f"/charm/{part}"))}
    waiting.update(HIDDEN)
    while True:
        for name, module in list(sys.modules.items()):
            if name not in seen:
                seen.add(name)
                waiting.update(_put_off(name, module))
        waiting -= done
        if not waiting:
            return failed
        for name in sorted(waiting):
            done.add(name)
            if name.split(".")[0] in NEVER or name in NEVER:
                continue
            try:
                importlib.import_module(name)
            except BaseException as error:
                failed.append(f"{name}: {error}")
        waiting = set()


def _put_off(name: str, module) -> set[str]:
    """What a loaded module may import later."""
    if (getattr(module, "__file__", None) or "").startswith("/charm/"):
        return imported_by(module)
    top = name.split(".")[0]
    if top not in sys.stdlib_module_names or top in NEVER:
        return set()
    return {other for other in imported_by(module) if other.split(".")[0] == top}


def imported_by(module) -> set[str]:
    """The modules that a loaded module's code names in import statements."""
    name = getattr(module, "__name__", "")
    if name not in _NOTED:
        # Loaded before notes were taken.
        try:
            code = module.__loader__.get_code(name)
            _NOTED[name] = list(statements(code))
            if (getattr(module, "__file__", None) or "").startswith(OWN):
                _NOTED[name] += [(f"encodings.{encoding}", 0, None) for encoding in encodings_in(code)]
        except (AttributeError, ImportError):
            # Compiled into the interpreter, or no module at all.
            return set()
    package = name if hasattr(module, "__path__") else name.rpartition(".")[0]
    return set(named_in(_NOTED.pop(name), package))


#: Import statements of modules that were loaded, until code asks for them.
_NOTED: dict[str, list[Statement]] = {}


@contextlib.contextmanager
def noted():
    """Note the import statements of whatever is loaded meanwhile.

    They are read from its code when a module is compiled for its import, so that nothing is read twice: what that takes
    of memory is free afterwards, in pieces between the objects that stay, and all of it is made anew for each hook.
    """
    loader = importlib.machinery.SourceFileLoader
    inherited = loader.get_code

    def get_code(self, name):
        code = inherited(self, name)
        _NOTED[name] = list(statements(code))
        return code

    loader.get_code = get_code
    try:
        yield
    finally:
        del loader.get_code
        _NOTED.clear()


def statements(code: types.CodeType | None) -> Iterator[Statement]:
    """The import statements of some code, wherever they stand."""
    if code is None:
        return
    yield from dis._find_imports(code)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from statements(constant)


def encodings_in(constant: object) -> Iterator[str]:
    """The modules of the encodings that some code names, by any of their names."""
    if isinstance(constant, types.CodeType):
        constant = constant.co_consts
    if isinstance(constant, (tuple, frozenset)):
        for one in constant:
            yield from encodings_in(one)
    elif isinstance(constant, str) and len(constant) <= _LONGEST_ENCODING and constant.isascii():
        name = encodings.normalize_encoding(constant).lower()
        module = encodings.aliases.aliases.get(name, name)
        if module in _ENCODINGS:
            yield module


#: More characters than any encoding's name has.
_LONGEST_ENCODING = 40

#: The modules of encodings of text.
_ENCODINGS = {name for name in encodings.aliases.aliases.values() if not name.endswith("_codec")}


def named_in(found: Iterable[Statement], package: str) -> Iterator[str]:
    """The modules that import statements name, `package` being what relative ones start from.

    `from A import B` may mean a module A.B; it is named, too, where A is a package.
    """
    for base, level, names in found:
        if level:
            parents = package.split(".")
            parents = parents[: len(parents) - level + 1]
            base = ".".join([*parents, base] if base else parents)
        if base:
            yield base
            yield from _submodules(base, names or ())


def _submodules(base: str, names: Iterable[str]) -> Iterator[str]:
    package = sys.modules.get(base)
    if package is not None and hasattr(package, "__path__"):
        yield from (f"{base}.{name}" for name in names if not hasattr(package, name) and name != "*")


def modules_of(directory: str) -> Iterator[str]:
    """The names of all modules below a directory, tests left out."""
    import os

    try:
        entries = sorted(os.listdir(directory))
    except OSError:
        return
    for entry in entries:
        path = f"{directory}/{entry}"
        if entry.endswith(".py") and entry != "__init__.py":
            yield entry.removesuffix(".py")
        elif os.path.isdir(path) and entry.isidentifier() and entry not in ("tests", "testing"):
            below = list(modules_of(path))
            if below or os.path.exists(f"{path}/__init__.py"):
                yield entry
                yield from (f"{entry}.{name}" for name in below)
