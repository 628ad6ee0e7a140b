"""The charm as a program: what `python3 src/charm.py` does before `main`, done at build; the rest, done in each hook.

The module is `__main__`, as it is in a process. Its statements are run at build but for those that a program is run by:
`if __name__ == "__main__":`, and a call of `main` that stands alone. These are run in each hook, so that every way to
write them works.
"""

from __future__ import annotations

import ast
import atexit
import dataclasses
import os
import random
import sys
import traceback
import types

from . import tracing
from .mains import is_main
from .stand_ins import threads

#: Where the program lies.
PATH = "/charm/src/charm.py"


class NoMain(Exception):
    """There is no statement that runs the charm."""


class EndsAtImport(Exception):
    """The charm ended the interpreter while it was imported."""


@dataclasses.dataclass(frozen=True)
class Exit:
    """How the program ended, as a process would."""

    code: int
    #: The exception that ended it, in one line; empty if none did.
    message: str


class Program:
    """A charm.py that was imported, and can be run."""

    def __init__(self, source: str):
        tree = ast.parse(source, PATH)
        mains = [statement for statement in tree.body if is_main(statement)]
        if not mains:
            raise NoMain(f'{PATH} has neither `if __name__ == "__main__":` nor a call of main')
        self._before = ast.Module([statement for statement in tree.body if not is_main(statement)], [])
        self._main = compile(ast.Module(mains, []), PATH, "exec", dont_inherit=True)
        self._module = types.ModuleType("__main__")
        self._module.__file__ = PATH

    def load(self) -> types.ModuleType:
        """Run what comes before `main`."""
        sys.modules["__main__"] = self._module
        sys.argv = [PATH]
        try:
            exec(compile(self._before, PATH, "exec", dont_inherit=True), vars(self._module))
        except SystemExit as exit:
            # The interpreter would end, and leave no word of it.
            raise EndsAtImport(f"the charm ends with sys.exit({exit.code!r}) while it is imported") from exit
        return self._module

    def run(self) -> Exit:
        """Run `main`, as a process does to its end."""
        # All hooks begin with the same memory; they must not draw the same numbers.
        random.seed()
        tracing.begin()
        os.chdir(os.environ.get("JUJU_CHARM_DIR", "/charm"))
        sys.argv = [PATH]
        try:
            exec(self._main, vars(self._module))
            ended = Exit(0, "")
        except SystemExit as exit:
            ended = _exit_of(exit)
        except BaseException as error:
            sys.excepthook(type(error), error, error.__traceback__)
            ended = Exit(1, "".join(traceback.format_exception_only(error)).strip())
        threads.finish()
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        return ended


def _exit_of(exit: SystemExit) -> Exit:
    if exit.code is None:
        return Exit(0, "")
    if isinstance(exit.code, int):
        return Exit(exit.code & 0xFF, "")
    print(exit.code, file=sys.stderr)
    return Exit(1, str(exit.code))
