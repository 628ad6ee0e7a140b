"""The events that a charm in the sandbox handled, as Scenario keeps them in `Context.emitted_events`.

The events themselves are objects of the sandbox. What a test is given are events of the same types and handles, made
anew over the test's state, so that `event.relation.app` and the like say what they said there. Which there were is known
from the event that the hook was for, from what the state holds deferred, and from what `ops` logs of a charm's own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import ops
from ops._main import _get_event_args
from scenario import Context, State
from scenario._runtime import Runtime
from scenario.mocking import _MockModelBackend
from scenario.state import DeferredEvent, _Event

#: What ops logs when an observer is told of an event of the charm's own; once for each observer.
_CUSTOM = re.compile(r"Emitting custom event <(?P<type>\w+) via (?P<handle>\S+)>\.")

#: What it logs when it emits the event that the hook is for.
_JUJU = re.compile(r"Emitting Juju event \w+\.")

#: Types of events that each charm has by what it declares, by what their names end with.
_DECLARED: dict[str, type[ops.EventBase]] = {
    "_relation_created": ops.RelationCreatedEvent,
    "_relation_joined": ops.RelationJoinedEvent,
    "_relation_changed": ops.RelationChangedEvent,
    "_relation_departed": ops.RelationDepartedEvent,
    "_relation_broken": ops.RelationBrokenEvent,
    "_storage_attached": ops.StorageAttachedEvent,
    "_storage_detaching": ops.StorageDetachingEvent,
    "_action": ops.ActionEvent,
}

#: What ops emits after each event, in its order.
_AFTERWARDS = ("collect_app_status", "collect_unit_status", "pre_commit", "commit")


def emitted(context: Context[Any], event: _Event, state: State, logged: list[str], *, failed: bool) -> list[ops.EventBase]:
    """What Scenario would have captured; `logged` is what the hook logged.

    An event of the charm's own has the attributes that its snapshot has, if it was deferred before; else none but those of
    every event.
    """
    return list(_Made(context, event, state).events(logged, failed=failed))


class _Made:
    """Makes events over a state."""

    def __init__(self, context: Context[Any], event: _Event, state: State):
        self._context, self._event, self._state = context, event, state
        self._charm = context._charm_spec.charm_type
        runtime = Runtime(
            app_name=context.app_name,
            charm_spec=context._charm_spec,
            juju_version=context.juju_version,
            unit_id=context.unit_id,
        )
        spec = context._charm_spec
        self._told = ops.JujuContext.from_environ(runtime._get_event_env(state, event, Path("/charm")))
        backend = _MockModelBackend(
            state=state, event=event, charm_spec=spec, context=context, juju_context=self._told
        )
        meta = ops.CharmMeta(spec.meta, spec.actions)
        self._framework = SimpleNamespace(model=ops.Model(meta, backend))
        self._count = 0

    def events(self, logged: list[str], *, failed: bool) -> Iterator[ops.EventBase]:
        if self._context.capture_deferred_events:
            yield from (self._deferred(noted) for noted in self._state.deferred)
        # A charm on another framework says nothing of events, and was told of this one.
        if not any(map(_JUJU.fullmatch, logged)):
            yield self._of_juju()
        seen = set()
        for line in logged:
            if _JUJU.fullmatch(line):
                yield self._of_juju()
            elif (found := _CUSTOM.fullmatch(line)) and found["handle"] not in seen:
                seen.add(found["handle"])
                yield from self._custom(found["type"], found["handle"])
        if self._context.capture_framework_events and not failed:
            for kind in _AFTERWARDS:
                if kind != "collect_app_status" or self._state.leader:
                    yield self._on_charm(kind, _type_of(self._charm, kind))

    def _of_juju(self) -> ops.EventBase:
        kind = self._event.name
        kind_of_event = _type_of(self._charm, kind)
        bound = SimpleNamespace(event_type=kind_of_event, event_kind=kind)
        charm = SimpleNamespace(framework=self._framework)
        arguments, options = _get_event_args(charm, bound, self._told)  # type: ignore[arg-type]
        return self._on_charm(kind, kind_of_event, *arguments, **options)

    def _on_charm(self, kind: str, of: type[ops.EventBase], *arguments: Any, **options: Any) -> ops.EventBase:
        self._count += 1
        parent = None if issubclass(of, (ops.PreCommitEvent, ops.CommitEvent)) else ops.Handle(None, self._charm.__name__, None)
        on = ops.Handle(parent, "on", None)
        made = of(ops.Handle(on, kind, str(self._count)), *arguments, **options)
        made.framework = self._framework  # type: ignore[assignment]
        return made

    def _deferred(self, noted: DeferredEvent) -> ops.EventBase:
        kind = ops.Handle.from_path(noted.handle_path).kind
        of = next((found for found in _types_of(kind)), None) or _type_of(self._charm, kind)
        return self._restored(of, noted.handle_path, noted.snapshot_data)

    def _custom(self, name: str, path: str) -> Iterator[ops.EventBase]:
        handle = ops.Handle.from_path(path)
        self._count = max(self._count, int(handle.key or 0))
        # Its type is unknown where the test has not imported what defines it.
        for of in _types_of(handle.kind):
            if of.__name__ == name:
                snapshots = [noted.snapshot_data for noted in self._state.deferred if noted.handle_path == path]
                yield self._restored(of, path, snapshots[0] if snapshots else None)
                return

    def _restored(self, of: type[ops.EventBase], handle: str, snapshot: dict[str, Any] | None) -> ops.EventBase:
        # As the framework does: its `load_snapshot` makes an object without what its type wants, and fills it.
        made = of.__new__(of)
        ops.EventBase.__init__(made, ops.Handle.from_path(handle))
        made.framework = self._framework  # type: ignore[assignment]
        if snapshot is not None:
            made.restore(snapshot)
        return made


def _type_of(charm: type[ops.CharmBase], kind: str) -> type[ops.EventBase]:
    """The type of an event on a charm's `on`."""
    for events in (type(charm.on), ops.FrameworkEvents):
        found = _source(events, kind)
        if found is not None:
            return found
    return next(of for end, of in _DECLARED.items() if kind.endswith(end))


def _types_of(kind: str) -> Iterator[type[ops.EventBase]]:
    """The types of events of that kind that any object of the charm defines, as far as its classes are loaded."""
    waiting: list[type] = [ops.ObjectEvents]
    while waiting:
        events = waiting.pop()
        waiting.extend(events.__subclasses__())
        found = _source(events, kind)
        if found is not None:
            yield found


def _source(events: type, kind: str) -> type[ops.EventBase] | None:
    for owner in events.__mro__:
        defined = vars(owner).get(kind)
        if isinstance(defined, ops.EventSource):
            return defined.event_type
    return None
