#!/usr/bin/env python3
"""Plays the steps of its option `script` in each hook, and those of its parameters in an action.

A step that the framework refuses is logged with the error's type, and the next one is played. What a step answers is
logged, too: so the log says what the charm saw.
"""

import json
import logging
import typing

import ops

logger = logging.getLogger("probe")

STATUSES = {
    "active": ops.ActiveStatus,
    "blocked": ops.BlockedStatus,
    "maintenance": ops.MaintenanceStatus,
    "waiting": ops.WaitingStatus,
}


class ProbeCharm(ops.CharmBase):
    """Each method named `do_WORD` is what the step WORD does."""

    _stored = ops.StoredState()

    def __init__(self, framework: ops.Framework):
        super().__init__(framework)
        self._stored.set_default(kept={}, hooks=0)
        for name, bound in self.on.events().items():
            if name not in ("collect_app_status", "collect_unit_status", "pre_commit", "commit"):
                framework.observe(bound, self._on_event)

    def _on_event(self, event: ops.EventBase) -> None:
        self._stored.hooks += 1
        script = self.config["script"]
        if isinstance(event, ops.ActionEvent):
            script = event.params["steps"]
        for word, *arguments in json.loads(script):
            try:
                answer = getattr(self, "do_" + word.replace("-", "_"))(event, *arguments)
            except (ops.ModelError, ops.RelationDataError, RuntimeError, KeyError, ValueError, TypeError) as error:
                logger.info("%s: %s", word, type(error).__name__)
            else:
                if answer is not None:
                    logger.info("%s: %s", word, json.dumps(answer, sort_keys=True, default=str))

    # Steps that read.

    def do_config(self, _: ops.EventBase) -> typing.Any:
        return {key: value for key, value in self.config.items() if key != "script"}

    def do_relations(self, _: ops.EventBase, endpoint: str) -> typing.Any:
        return {
            relation.id: [relation.app.name, sorted(unit.name for unit in relation.units)]
            for relation in self.model.relations[endpoint]
        }

    def do_read(self, _: ops.EventBase, endpoint: str) -> typing.Any:
        seen = {}
        for relation in self.model.relations[endpoint]:
            for owner in (self.unit, relation.app, *sorted(relation.units, key=lambda unit: unit.name)):
                data = relation.data[owner]
                seen[f"{relation.id} {owner.name}"] = {key: data[key] for key in data if key not in ADDRESSES}
        return seen

    def do_leader(self, _: ops.EventBase) -> typing.Any:
        return self.unit.is_leader()

    def do_planned(self, _: ops.EventBase) -> typing.Any:
        return self.app.planned_units()

    def do_ports(self, _: ops.EventBase) -> typing.Any:
        return sorted(f"{port.port}/{port.protocol}" for port in self.unit.opened_ports())

    def do_statuses(self, _: ops.EventBase) -> typing.Any:
        return [self.unit.status.name, self.unit.status.message]

    def do_storages(self, _: ops.EventBase) -> typing.Any:
        return sorted(storage.full_id for storage in self.model.storages["scratch"])

    def do_resource(self, _: ops.EventBase) -> typing.Any:
        return self.model.resources.fetch("data").read_text()

    def do_model(self, _: ops.EventBase) -> typing.Any:
        return self.model.uuid

    def do_about(self, event: ops.EventBase) -> typing.Any:
        told = [type(event).__name__]
        for name in ("app", "unit", "departing_unit"):
            entity = getattr(event, name, None)
            told.append(entity.name if entity else None)
        return told

    # Steps that write.

    def do_write(self, _: ops.EventBase, endpoint: str, whose: str, key: str, value: str) -> None:
        for relation in self.model.relations[endpoint]:
            relation.data[self.app if whose == "app" else self.unit][key] = value

    def do_unset(self, _: ops.EventBase, endpoint: str, whose: str, key: str) -> None:
        for relation in self.model.relations[endpoint]:
            relation.data[self.app if whose == "app" else self.unit].pop(key, None)

    def do_status(self, _: ops.EventBase, word: str, message: str) -> None:
        self.unit.status = STATUSES[word](message)

    def do_app_status(self, _: ops.EventBase, word: str, message: str) -> None:
        self.app.status = STATUSES[word](message)

    def do_version(self, _: ops.EventBase, version: str) -> None:
        self.unit.set_workload_version(version)

    def do_open(self, _: ops.EventBase, protocol: str, port: int) -> None:
        self.unit.open_port(protocol, port)

    def do_close(self, _: ops.EventBase, protocol: str, port: int) -> None:
        self.unit.close_port(protocol, port)

    def do_set_ports(self, _: ops.EventBase, *ports: int) -> None:
        self.unit.set_ports(*ports)

    def do_keep(self, _: ops.EventBase, key: str, value: typing.Any) -> typing.Any:
        self._stored.kept[key] = value
        return sorted(self._stored.kept)

    def do_defer(self, event: ops.EventBase) -> None:
        event.defer()

    def do_add_storage(self, _: ops.EventBase, count: int) -> None:
        self.model.storages.request("scratch", count)

    def do_fail(self, _: ops.EventBase, message: str) -> None:
        raise Failed(message)

    # Secrets, by their labels.

    def do_secret_add(self, _: ops.EventBase, whose: str, label: str, content: dict[str, str]) -> None:
        owner = self.app if whose == "app" else self.unit
        owner.add_secret(content, label=label, description=f"of {label}", rotate=ops.SecretRotate.DAILY)

    def do_secret_set(self, _: ops.EventBase, label: str, content: dict[str, str]) -> None:
        self.model.get_secret(label=label).set_content(content)

    def do_secret_get(self, _: ops.EventBase, label: str, how: str) -> typing.Any:
        secret = self.model.get_secret(label=label)
        if how == "peek":
            return secret.peek_content()
        return secret.get_content(refresh=how == "refresh")

    def do_secret_info(self, _: ops.EventBase, label: str) -> typing.Any:
        info = self.model.get_secret(label=label).get_info()
        return [info.label, info.description, str(info.rotation)]

    def do_secret_grant(self, _: ops.EventBase, label: str, endpoint: str) -> None:
        for relation in self.model.relations[endpoint]:
            self.model.get_secret(label=label).grant(relation)

    def do_secret_revoke(self, _: ops.EventBase, label: str, endpoint: str) -> None:
        for relation in self.model.relations[endpoint]:
            self.model.get_secret(label=label).revoke(relation)

    def do_secret_remove(self, _: ops.EventBase, label: str) -> None:
        self.model.get_secret(label=label).remove_all_revisions()

    # Steps of actions.

    def do_params(self, event: ops.ActionEvent) -> typing.Any:
        return {key: value for key, value in event.params.items() if key != "steps"}

    def do_results(self, event: ops.ActionEvent, results: dict[str, str]) -> None:
        event.set_results(results)

    def do_progress(self, event: ops.ActionEvent, text: str) -> None:
        event.log(text)

    def do_fail_action(self, event: ops.ActionEvent, message: str) -> None:
        event.fail(message)


#: Keys that the agent writes into a unit's settings by itself.
ADDRESSES = ("egress-subnets", "ingress-address", "private-address")


class Failed(Exception):
    """A hook that fails on purpose."""


if __name__ == "__main__":
    # In a process of its own the framework would keep its state in a file.
    ops.main(ProbeCharm, use_juju_for_storage=True)
