"""What a test has put in the place of functions and classes: none of it reaches the packed charm.

`unittest.mock.patch` (and what stands on it, as pytest-mock does) and pytest's `monkeypatch` are watched from the
beginning of a test run, so that it is known at each hook which patches are in force.
"""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Iterator
from typing import Any
from unittest import mock

import pytest

#: Packages of the test run itself, whose patches are not meant for the charm.
_OF_TESTS = frozenset({"_pytest", "hypothesis", "periapt_scenario", "pytest", "scenario"})

#: What makes no difference in the sandbox: time passes at once there.
_HARMLESS = frozenset({"time.sleep"})

# The class is private in name alone: `patch.object` and all others make objects of it.
_Patch: Any = type(mock.patch.object(mock, "sentinel"))


class Patches:
    """The patches that are in force."""

    def __init__(self) -> None:
        self._mocks: dict[int, Any] = {}
        self._monkeys: weakref.WeakSet[pytest.MonkeyPatch] = weakref.WeakSet()
        self._enter, self._exit = _Patch.__enter__, _Patch.__exit__
        self._setattr = pytest.MonkeyPatch.setattr

    def watch(self) -> None:
        """Begin to take notes of patches."""
        enter, leave, change = self._enter, self._exit, self._setattr
        mocks, monkeys = self._mocks, self._monkeys

        def entered(patch: Any) -> Any:
            made = enter(patch)
            mocks[id(patch)] = patch
            return made

        def exited(patch: Any, *exception: Any) -> Any:
            mocks.pop(id(patch), None)
            return leave(patch, *exception)

        def changed(monkey: pytest.MonkeyPatch, *arguments: Any, **options: Any) -> None:
            monkeys.add(monkey)
            change(monkey, *arguments, **options)

        _Patch.__enter__, _Patch.__exit__ = entered, exited
        pytest.MonkeyPatch.setattr = changed  # type: ignore[method-assign]

    def leave(self) -> None:
        """Take no notes any more."""
        _Patch.__enter__, _Patch.__exit__ = self._enter, self._exit
        pytest.MonkeyPatch.setattr = self._setattr  # type: ignore[method-assign]

    def names(self) -> list[str]:
        """The names of what is patched that a charm may use, sorted."""
        found = {_name(target, attribute) for target, attribute in self._in_force()}
        return sorted(name for name in found if name is not None and name not in _HARMLESS)

    def _in_force(self) -> Iterator[tuple[Any, str]]:
        for patch in self._mocks.values():
            yield patch.target, patch.attribute
        for monkey in self._monkeys:
            for target, attribute, _ in monkey._setattr:
                yield target, attribute


def _name(target: Any, attribute: str) -> str | None:
    """The dotted name of what is patched; none of what is the test's own.

    An object that a test made is its own: no charm has it.
    """
    if inspect.ismodule(target):
        module, name = target.__name__, target.__name__
    elif inspect.isclass(target):
        module, name = target.__module__, f"{target.__module__}.{target.__qualname__}"
    else:
        return None
    return None if _is_of_tests(module) else f"{name}.{attribute}"


def _is_of_tests(module: str) -> bool:
    if module.split(".")[0] in _OF_TESTS:
        return True
    last = module.rpartition(".")[2]
    return last == "conftest" or last.startswith("test_") or last.endswith("_test")
