"""Interpreters beside the one that runs: WASI's CPython is built without `_interpreters`, and `anyio` imports it.

These are the modules that the standard library's `concurrent.interpreters` stands on, and `_interpchannels` beside them.
There is the main interpreter and no other: making one, a queue or a channel is refused.
"""

from __future__ import annotations

import importlib.util
import sys
import types
from collections.abc import Callable
from typing import Any

REFUSAL = "there is one interpreter in the sandbox, and no other can be made"

#: Where an interpreter comes from, in CPython's order.
_ORIGINS = ("UNKNOWN", "RUNTIME", "LEGACY_CAPI", "CAPI", "XI", "STDLIB")

#: The main interpreter: its number, and that it is the runtime's own.
_MAIN = (0, 1)

#: What interpreters can hand to each other as it is.
_SHAREABLE = (type(None), bool, int, float, str, bytes)


def install() -> None:
    """Add the modules where they are missing."""
    for make in (interpreters_module, queues_module, channels_module):
        module = make()
        if importlib.util.find_spec(module.__name__) is None:
            sys.modules[module.__name__] = module


def interpreters_module() -> types.ModuleType:
    """An `_interpreters` that knows the main one."""
    module = types.ModuleType("_interpreters", "Interpreters: the main one is all there is.")
    vars(module).update((f"WHENCE_{name}", number) for number, name in enumerate(_ORIGINS))
    error = _exception(module, "InterpreterError", Exception)
    unknown = _exception(module, "InterpreterNotFoundError", error)
    _exception(module, "NotShareableError", TypeError)
    module.is_shareable = _is_shareable
    module.get_current = module.get_main = lambda: _MAIN
    module.list_all = lambda *, require_ready=False: [_MAIN]

    def known(answer: Any) -> Callable[..., Any]:
        def of(id, *arguments, **options):
            if id != _MAIN[0]:
                raise unknown(f"unrecognized interpreter ID {id}")
            return answer

        return of

    module.whence, module.is_running = known(_MAIN[1]), known(True)
    module.incref = module.decref = known(None)
    for name in ("create", "destroy", "exec", "call", "run_string", "run_func", "set___main___attrs", "new_config", "get_config"):
        setattr(module, name, _refusing(error))
    return module


def queues_module() -> types.ModuleType:
    """An `_interpqueues` that has none."""
    module = types.ModuleType("_interpqueues", "Queues between interpreters: there are none.")
    error = _exception(module, "QueueError", RuntimeError)
    unknown = _exception(module, "QueueNotFoundError", error)
    module.list_all = list
    module._register_heap_types = lambda queue, empty, full: None
    module.create = _refusing(error)
    for name in ("bind", "release", "destroy", "put", "get", "get_count", "get_maxsize", "get_queue_defaults", "is_full"):
        setattr(module, name, _refusing(unknown, "there are no queues between interpreters in the sandbox"))
    return module


def channels_module() -> types.ModuleType:
    """An `_interpchannels` that has none."""
    module = types.ModuleType("_interpchannels", "Channels between interpreters: there are none.")
    error = _exception(module, "ChannelError", RuntimeError)
    unknown = _exception(module, "ChannelNotFoundError", error)
    for name in ("ChannelClosedError", "ChannelEmptyError", "ChannelNotEmptyError"):
        _exception(module, name, error)
    module.list_all = list
    module._register_end_types = lambda send, receive: None
    module.create = _refusing(error)
    for name in ("close", "destroy", "get_channel_defaults", "get_count", "get_info", "list_interpreters", "recv", "release", "send"):
        setattr(module, name, _refusing(unknown, "there are no channels between interpreters in the sandbox"))
    return module


def _exception(module: types.ModuleType, name: str, base: type[Exception]) -> type[Exception]:
    made = type(name, (base,), {"__module__": module.__name__})
    setattr(module, name, made)
    return made


def _refusing(error: type[Exception], reason: str = REFUSAL) -> Callable[..., Any]:
    def refuse(*arguments, **options):
        raise error(reason)

    return refuse


def _is_shareable(value: Any) -> bool:
    return isinstance(value, _SHAREABLE) or (isinstance(value, tuple) and all(map(_is_shareable, value)))
