"""Traces have nowhere to go, and their set-up is left out."""

import importlib
import sys
import types

import pytest

from periapt_ops import tracing


def test_tracing_is_not_set_up_wherever_ops_looks_for_it(monkeypatch):
    done = []
    modules = {name: types.ModuleType(name) for name, _ in tracing.PLACES}
    for module, name in tracing.PLACES:
        setattr(modules[module], name, lambda *given, where=module: done.append(where))
        monkeypatch.setitem(sys.modules, module, modules[module])
    modules["ops_tracing"].set_destination = set_destination = object()
    tracing.install()
    for module, name in tracing.PLACES:
        assert getattr(modules[module], name)("context", "Charm") is None
    assert (done, modules["ops_tracing"].set_destination) == ([], set_destination)


def test_a_charm_without_tracing_is_left_alone(monkeypatch):
    for module, _ in tracing.PLACES:
        monkeypatch.delitem(sys.modules, module, raising=False)
    tracing.install()


def test_the_released_package_has_all_that_is_taken_out(monkeypatch):
    pytest.importorskip("ops_tracing", reason="a release of ops without it", exc_type=ImportError)
    for module, name in tracing.PLACES:
        released = importlib.import_module(module)
        # Put back afterwards.
        monkeypatch.setattr(released, name, getattr(released, name))
    tracing.install()
    for module, name in tracing.PLACES:
        assert getattr(sys.modules[module], name) is tracing._leave
    assert callable(sys.modules["ops_tracing"].set_destination)
