"""From what a hook left behind to Scenario's state and the context's records."""

from __future__ import annotations

import base64
import copy
import dataclasses
import datetime
from typing import Any

import ops
from scenario import Context, Secret, State
from scenario.errors import UncaughtCharmError
from scenario.state import JujuLogLine, _EntityStatus, _Event, _port_cls_by_protocol

from . import framework
from .events import emitted
from .ids import Ids
from .scene import revisions_of


class HookFailed(UncaughtCharmError):
    """The hook failed in the sandbox: the charm raised what it did not catch, or was stopped."""


def state_of(
    context: Context[Any], event: _Event, state: State, tried: dict[str, Any], ids: Ids
) -> State:
    """The state after a hook; what Scenario notes of a run is noted in the context.

    Raises HookFailed if it failed. An action's failure is only noted.
    """
    output = copy.deepcopy(state)
    logged = len(context.juju_log)
    for effect in tried["early"]:
        output = _early(context, event, output, effect)
    said = [line.message for line in context.juju_log[logged:]]
    failed = isinstance(tried["outcome"], dict)
    context.emitted_events += emitted(context, event, state, said, failed=failed)
    if event.action is not None:
        _action(context, tried["action"])
    outcome = tried["outcome"]
    if isinstance(outcome, dict):
        failed = outcome["failed"]
        said = "\n".join(line.message for line in context.juju_log if line.level == "ERROR")
        raise HookFailed(f"{failed['message']} ({failed['kind']})" + (f"\n{said}" if said else ""))
    effects = tried["effects"]
    texts = framework.texts_of(state)
    for key, value in effects["state"].items():
        if value is None:
            texts.pop(key, None)
        else:
            texts[key] = value
    deferred, stored_states = framework.read(texts)
    context.requested_storages.update(effects.get("add-storage", {}))
    return dataclasses.replace(
        output,
        relations=frozenset(_relation(it, effects["bags"].get(str(it.id)), ids) for it in output.relations),
        opened_ports=_ports(output, effects["ports"]),
        secrets=_secrets(context, output, effects.get("secrets", {}), ids),
        deferred=deferred,
        stored_states=stored_states,
    )


def _early(context: Context[Any], event: _Event, state: State, effect: dict[str, Any]) -> State:
    ((kind, told),) = effect.items()
    if kind in ("unit-status", "application-status"):
        is_app = kind == "application-status"
        context._record_status(state, is_app)
        status = _EntityStatus.from_status_name(told["status"], told["message"])
        return dataclasses.replace(state, **{"app_status" if is_app else "unit_status": status})
    if kind == "application-version":
        if state.workload_version:
            context.workload_version_history.append(state.workload_version)
        return dataclasses.replace(state, workload_version=told["version"])
    if kind == "task-message":
        context.action_logs.append(told["message"])
    elif kind == "log" and told["module"].endswith(".juju-log"):
        context.juju_log.append(JujuLogLine(told["level"], _unprefixed(event, told["message"])))
    return state


def _unprefixed(event: _Event, message: str) -> str:
    """Juju writes the relation before each line of a relation's hook, which Scenario does not."""
    if event.relation is None:
        return message
    return message.removeprefix(f"{event.relation.endpoint}:{event.relation.id}: ")


def _action(context: Context[Any], left: dict[str, Any]) -> None:
    if left["results"]:
        context.action_results = left["results"]
    context._action_failure_message = left.get("failed")


def _relation(relation: Any, written: dict[str, Any] | None, ids: Ids) -> Any:
    if not written:
        return relation
    return dataclasses.replace(
        relation,
        local_unit_data=_changed(relation.local_unit_data, ids.texts_outside(written["unit"])),
        local_app_data=_changed(relation.local_app_data, ids.texts_outside(written["application"])),
    )


def _changed(settings: Any, written: dict[str, str]) -> dict[str, str]:
    """An empty value deletes its key."""
    return {key: value for key, value in {**settings, **written}.items() if value != ""}


def _ports(state: State, changes: dict[str, Any]) -> frozenset[Any]:
    ports = set(state.opened_ports)
    for verb, change in (("open", ports.add), ("close", ports.discard)):
        for request in changes[verb]:
            first, _, protocol = request["range"].rpartition("/")
            for port in _numbers(first) if first else [None]:
                change(_port_cls_by_protocol[protocol](port=port))
    return frozenset(ports)


def _numbers(text: str) -> range:
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def _secrets(context: Context[Any], state: State, changes: dict[str, Any], ids: Ids) -> frozenset[Secret]:
    if not changes:
        return state.secrets
    secrets = {ids.inside(secret.id): secret for secret in state.secrets}
    for id, added in changes["add"].items():
        secrets[id] = Secret(
            _content(added["content"]),
            id=ids.outside(id),
            owner="unit" if "unit" in added["owner"] else "app",
            label=added.get("label"),
            description=added.get("description") or None,
            expire=_time(added.get("expire")),
            rotate=_rotation(added.get("rotate")),
        )
    for id, update in changes["update"].items():
        content = update["content"] and _content(update["content"])
        rotate, expire = _rotation(update["rotate"]), _time(update["expire"])
        label, description = update["label"], update["description"]
        secrets[id]._update_metadata(content, label, description, expire, rotate)
    for id, tracking in changes["track"].items():
        tracked = tracking["revision"]
        if tracked == "latest" or tracked["revision"] == revisions_of(secrets[id])[1]:
            secrets[id]._track_latest_revision()
        if tracking.get("label") is not None:
            secrets[id]._set_label(tracking["label"])
    for id, access in changes["access"].items():
        _grant(secrets[id], access)
    for id, removal in changes["remove"].items():
        if removal == "secret":
            del secrets[id]
        else:
            context.removed_secret_revisions.extend(removal["revisions"])
    return frozenset(secrets.values())


def _grant(secret: Secret, access: dict[str, Any]) -> None:
    grants = {relation: set(grantees) for relation, grantees in secret.remote_grants.items()}
    for reader, change in access.items():
        for grantees in grants.values():
            grantees.discard(reader)
        if change != "revoke":
            grants.setdefault(change["grant"], set()).add(reader)
    kept = {relation: frozenset(grantees) for relation, grantees in grants.items() if grantees}
    object.__setattr__(secret, "remote_grants", kept)


def _content(content: dict[str, Any]) -> dict[str, str]:
    return {key: base64.b64decode(value).decode() for key, value in content["open"].items()}


def _time(text: str | None) -> datetime.datetime | None:
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")) if text else None


def _rotation(policy: str | None) -> ops.SecretRotate | None:
    return ops.SecretRotate(policy) if policy and policy != "never" else None
