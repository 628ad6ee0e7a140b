#!/usr/bin/env python3
"""Does the same on each release of ops, and logs what it saw.

In each hook it looks at all that there is and asks for something of each kind. What it saw is one line of JSON: each part
by its name, or the error that the framework made of it.
"""

import json
import logging
import typing

from ops import charm, framework, main, model

logger = logging.getLogger("released")


class ReleasedCharm(charm.CharmBase):
    """Each method named `see_PART` or `do_PART` is a part."""

    _stored = framework.StoredState()

    def __init__(self, *arguments: typing.Any):
        super().__init__(*arguments)
        self._stored.set_default(hooks=0, kept={})
        for name, bound in self.on.events().items():
            if not name.startswith("collect_") and name not in ("pre_commit", "commit"):
                self.framework.observe(bound, self._on_event)

    def _on_event(self, event: framework.EventBase) -> None:
        self._stored.hooks += 1
        seen: typing.Dict[str, typing.Any] = {}
        # It looks before it asks.
        for part in sorted((name for name in dir(self) if name.startswith(("see_", "do_"))), reverse=True):
            try:
                seen[part] = getattr(self, part)(event)
            except Exception as error:
                seen[part] = type(error).__name__
        logger.info("seen %s", json.dumps(seen, sort_keys=True, default=str))

    # What it sees.

    def see_event(self, event: framework.EventBase) -> typing.Any:
        told: typing.List[typing.Any] = [type(event).__name__]
        for name in ("app", "unit", "departing_unit", "relation"):
            about = getattr(event, name, None)
            told.append(getattr(about, "id", None) if name == "relation" else getattr(about, "name", None))
        return told

    def see_event_storage(self, event: framework.EventBase) -> typing.Any:
        storage = getattr(event, "storage", None)
        return storage and [storage.name, storage.index, str(storage.location)]

    def see_event_secret(self, event: framework.EventBase) -> typing.Any:
        secret = getattr(event, "secret", None)
        return secret and [secret.label or None, secret.peek_content()]

    def see_storages(self, _: framework.EventBase) -> typing.Any:
        return [[storage.name, storage.index, str(storage.location)] for storage in self.model.storages["data"]]

    def see_config(self, _: framework.EventBase) -> typing.Any:
        return dict(self.config)

    def see_relations(self, _: framework.EventBase) -> typing.Any:
        seen = {}
        for endpoint in ("sink", "source", "peer"):
            for relation in self.model.relations[endpoint]:
                for owner in (self.unit, relation.app, *sorted(relation.units, key=lambda unit: unit.name)):
                    seen["%s %s" % (relation.id, owner.name)] = dict(relation.data[owner])
        return seen

    def see_data_of_a_stranger(self, _: framework.EventBase) -> typing.Any:
        relation = self.model.relations["sink"][0]
        return dict(relation.data[self.model.get_unit("stranger/0")])

    def see_a_relation_that_is_not_there(self, _: framework.EventBase) -> typing.Any:
        relation = self.model.get_relation("sink", 77)
        return relation and [dict(relation.data[self.unit]), len(relation.units)]

    def see_leadership(self, _: framework.EventBase) -> typing.Any:
        return [self.unit.is_leader(), self.app.planned_units()]

    def see_statuses(self, _: framework.EventBase) -> typing.Any:
        return [self.unit.status.name, self.unit.status.message]

    def see_network(self, _: framework.EventBase) -> typing.Any:
        network = self.model.get_binding("sink").network
        return [str(network.bind_address), str(network.ingress_address), [str(net) for net in network.egress_subnets]]

    def see_resource(self, _: framework.EventBase) -> typing.Any:
        return self.model.resources.fetch("blob").name

    def see_names(self, _: framework.EventBase) -> typing.Any:
        return [self.model.name, self.model.uuid, self.app.name, self.unit.name, sorted(self.meta.relations)]

    def see_a_secret(self, _: framework.EventBase) -> typing.Any:
        secret = self.model.get_secret(id="secret:ctgg1h9p6qk5fqb3k8n0", label="granted")
        return [secret.get_content(), secret.peek_content()]

    def see_a_secret_that_is_denied(self, _: framework.EventBase) -> typing.Any:
        return self.model.get_secret(id="secret:ctgg1h9p6qk5fqb3k8ng").get_content()

    def see_a_secret_that_is_not_there(self, _: framework.EventBase) -> typing.Any:
        return self.model.get_secret(id="secret:ctgg1h9p6qk5fqb3k8o0").get_content()

    def see_ports(self, _: framework.EventBase) -> typing.Any:
        return sorted("%s/%s" % (port.port, port.protocol) for port in self.unit.opened_ports())

    def see_the_remote_model(self, _: framework.EventBase) -> typing.Any:
        return self.model.relations["sink"][0].remote_model.uuid

    def see_a_container(self, _: framework.EventBase) -> typing.Any:
        return sorted(self.unit.containers)

    # What it asks for.

    def do_settings(self, _: framework.EventBase) -> None:
        relation = self.model.relations["sink"][0]
        relation.data[self.unit]["unit"] = "is set"
        if self.unit.is_leader():
            relation.data[self.app]["app"] = "is set"

    def do_settings_of_another(self, _: framework.EventBase) -> None:
        relation = self.model.relations["sink"][0]
        relation.data[relation.app]["app"] = "is not"

    def do_statuses(self, _: framework.EventBase) -> None:
        self.unit.status = model.ActiveStatus("up")
        if self.unit.is_leader():
            self.app.status = model.WaitingStatus("for more")

    def do_version(self, _: framework.EventBase) -> None:
        self.unit.set_workload_version("1.2.3")

    def do_ports(self, _: framework.EventBase) -> None:
        self.unit.open_port("tcp", 8080)
        self.unit.close_port("udp", 53)

    def do_storage(self, _: framework.EventBase) -> None:
        self.model.storages.request("data", 2)

    def do_secrets(self, _: framework.EventBase) -> typing.Any:
        secret = self.unit.add_secret({"token": "made"}, label="made", description="by a hook")
        secret.grant(self.model.relations["sink"][0])
        info = secret.get_info()
        return [secret.peek_content(), info.label, info.revision, str(info.rotation)]

    def do_keep(self, event: framework.EventBase) -> typing.Any:
        self._stored.kept[str(self._stored.hooks)] = type(event).__name__
        return dict(self._stored.kept)

    def do_defer(self, event: framework.EventBase) -> None:
        if isinstance(event, charm.ConfigChangedEvent) and self._stored.hooks == 1:
            event.defer()

    def do_action(self, event: framework.EventBase) -> typing.Any:
        if not isinstance(event, charm.ActionEvent):
            return None
        event.log("under way")
        event.set_results({"played": event.params.get("word"), "more": {"inner": 1}})
        return event.params

    def do_log(self, _: framework.EventBase) -> None:
        logger.warning("--looks like an option %s", "x" * 200)


if __name__ == "__main__":
    main.main(ReleasedCharm, use_juju_for_storage=True)
