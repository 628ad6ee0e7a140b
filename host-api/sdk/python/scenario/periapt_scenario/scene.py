"""From a Scenario state and event to the scene of `periapt try-hook`."""

from __future__ import annotations

import ipaddress
import re
from pathlib import Path
from typing import Any

from scenario import Context, PeerRelation, Relation, State, SubordinateRelation
from scenario._runtime import Runtime
from scenario.state import Network, RelationBase, Secret, _Event

from . import framework
from .ids import Ids

#: Causes that several messages have in common.
_CONTAINERS = "workload containers"
_NETWORKS = "networks that no unit is bound to"

_MODEL_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


class NotInSandbox(Exception):
    """A run that only Scenario itself can make; the message says why."""

    def __init__(self, message: str, *, cause: str | None = None):
        """`cause`: the same in short, without names, if the message has names that each test has others of."""
        super().__init__(message)
        self.cause = cause or message


def scene_of(context: Context[Any], event: _Event, state: State, ids: Ids) -> dict[str, Any]:
    """What the unit may see and what it is told.

    Raises NotInSandbox for what no hook in a sandbox could be told.
    """
    _check(event, state)
    # Settings may name any of them.
    secrets = [_secret(secret, context, ids) for secret in state.secrets]
    unit = f"{context.app_name}/{context.unit_id}"
    scene: dict[str, Any] = {
        "unit": unit,
        "event": _event(context, event, state, ids),
        "leader": state.leader,
        "model": {"name": _model_name(state.model.name), "uuid": state.model.uuid},
        "config": ids.texts_inside(_config(context, state, ids)),
        "relations": [_relation(relation, context, event, ids) for relation in state.relations],
        "secrets": secrets,
        "storages": [
            {
                "id": f"{storage.name}/{storage.index}",
                "directory": str(storage.get_filesystem(context)),
            }
            for storage in state.storages
        ],
        "resources": {resource.name: str(Path(resource.path).absolute()) for resource in state.resources},
        "state": framework.texts_of(state),
        "ports": [_port(port) for port in state.opened_ports],
        "planned-units": state.planned_units,
        "unit-status": {"status": state.unit_status.name, "message": state.unit_status.message},
        "application-status": {"status": state.app_status.name, "message": state.app_status.message},
        "availability-zone": context._availability_zone or "",
    }
    if context._principal_unit is not None:
        scene["principal"] = context._principal_unit
    if event.action is not None:
        scene["parameters"] = dict(event.action.params)
    scene.update(_networks(state.networks))
    return scene


def _check(event: _Event, state: State) -> None:
    if event._is_custom_event:
        raise NotInSandbox(
            "custom events are emitted by the charm's own code", cause="events of the charm's own objects"
        )
    if event.owner_path != ["on"]:
        raise NotInSandbox(
            f"event {event.path} is emitted by an object of the charm", cause="events of the charm's own objects"
        )
    if event.name.startswith("collect_") or event.name in ("pre_commit", "commit"):
        raise NotInSandbox(f"{event.name} is an event of ops, not of Juju", cause="events of ops")
    if event._is_workload_event:
        raise NotInSandbox("there are no workload containers", cause=_CONTAINERS)
    if any(container.can_connect for container in state.containers):
        raise NotInSandbox("there are no workload containers to connect to", cause=_CONTAINERS)
    if state.model.cloud_spec is not None:
        raise NotInSandbox("there are no cloud credentials")


def _model_name(name: str) -> str:
    """Scenario's random names have capitals, which no model's name has."""
    name = name.lower()
    return name if _MODEL_NAME.fullmatch(name) and not name[0].isdigit() else f"m-{name}"


def _config(context: Context[Any], state: State, ids: Ids) -> dict[str, Any]:
    """The settings; a secret that there is none of has an id all the same, which no controller takes as anything else."""
    options = ((context._charm_spec.config or {}).get("options") or {}).items()
    for name, option in options:
        value = state.config.get(name)
        if option.get("type") == "secret" and isinstance(value, str) and value.startswith("secret:"):
            ids.inside(value)
    return dict(state.config)


def _event(context: Context[Any], event: _Event, state: State, ids: Ids) -> dict[str, Any]:
    """The event in the words of Juju's environment, as Scenario itself derives it."""
    runtime = Runtime(
        app_name=context.app_name,
        charm_spec=context._charm_spec,
        juju_version=context.juju_version,
        unit_id=context.unit_id,
    )
    environment = runtime._get_event_env(state, event, Path("/charm"))
    if event.action is not None:
        return {"hook": event.action.name, "kind": "action"}
    told: dict[str, Any] = {"hook": environment["JUJU_HOOK_NAME"]}
    if event.relation is not None:
        told["relation"] = event.relation.id
    if event.name.endswith(("_relation_joined", "_relation_changed", "_relation_departed")):
        told["remote-unit"] = environment.get("JUJU_REMOTE_UNIT")
        told["departing-unit"] = environment.get("JUJU_DEPARTING_UNIT")
    if event.storage is not None:
        told["storage"] = environment["JUJU_STORAGE_ID"]
    if event.secret is not None:
        told["secret"] = ids.inside(event.secret.id)
        told["revision"] = event.secret_revision
    return told


def _relation(relation: RelationBase, context: Context[Any], event: _Event, ids: Ids) -> dict[str, Any]:
    scene: dict[str, Any] = {
        "id": relation.id,
        "endpoint": relation.endpoint,
        "unit-settings": dict(relation.local_unit_data),
        "application-settings": dict(relation.local_app_data),
    }
    if isinstance(relation, PeerRelation):
        members = {f"{context.app_name}/{number}": data for number, data in relation.peers_data.items()}
    elif isinstance(relation, Relation):
        name = relation.remote_app_name
        scene |= {"remote-application": name, "remote-settings": dict(relation.remote_app_data)}
        scene["remote-model"] = relation.remote_model_uuid
        members = {f"{name}/{number}": data for number, data in relation.remote_units_data.items()}
    elif isinstance(relation, SubordinateRelation):
        name = relation.remote_app_name
        scene |= {"remote-application": name, "remote-settings": dict(relation.remote_app_data)}
        members = {relation.remote_unit_name: relation.remote_unit_data}
    else:
        raise NotInSandbox(f"relations of type {type(relation).__name__} are not known")
    members = {unit: dict(data) for unit, data in members.items()}
    if event.relation is not None and event.relation.id == relation.id:
        if event.name.endswith("_relation_broken"):
            # Juju lists no members then; their settings can be read to the end.
            scene |= {"life": "dying", "former-members": members}
            members = {}
    scene["members"] = members
    return ids.texts_inside(scene)


def _secret(secret: Secret, context: Context[Any], ids: Ids) -> dict[str, Any]:
    owner: Any = {
        "unit": {"unit": f"{context.app_name}/{context.unit_id}"},
        "app": {"application": context.app_name},
        # Its owner is another application, which granted it.
        None: "model",
    }[secret.owner]
    grants = {
        grantee: relation for relation, grantees in secret.remote_grants.items() for grantee in grantees
    }
    tracked, latest = revisions_of(secret)
    scene: dict[str, Any] = {
        "id": ids.inside(secret.id),
        "owner": owner,
        "revisions": {
            str(tracked): dict(secret.tracked_content),
            str(latest): dict(secret.latest_content or secret.tracked_content),
        },
        "grants": grants,
        "tracked": tracked,
    }
    if secret.owner is None:
        scene |= {"grants": {context.app_name: None}, "consumer-label": secret.label}
    else:
        scene |= {"label": secret.label, "description": secret.description or ""}
        scene["rotate"] = secret.rotate.value if secret.rotate else "never"
        scene["expire"] = secret.expire.isoformat() if secret.expire else None
    return scene


def revisions_of(secret: Secret) -> tuple[int, int]:
    """The tracked and the latest revision. A test that gives two contents leaves their numbers to us."""
    tracked, latest = secret._tracked_revision, secret._latest_revision
    if tracked == latest and secret.latest_content not in (None, secret.tracked_content):
        latest += 1
    return tracked, latest


def _port(port: Any) -> str:
    return port.protocol if port.port is None else f"{port.port}/{port.protocol}"


def _networks(networks: frozenset[Network]) -> dict[str, Any]:
    """Each network that a test describes becomes a space, which its binding is bound to.

    What a unit is told of a binding follows from interfaces and spaces; it cannot be said outright. So addresses that
    stand in two networks, and ingress addresses that are on no interface, are refused.
    """
    if not networks:
        return {"addresses": ["192.0.2.0"]}
    addresses, interfaces, spaces, bindings = [], [], {}, {}
    seen: set[str] = set()
    for network in sorted(networks, key=lambda network: network.binding_name):
        space = f"of-{network.binding_name}"
        bindings[network.binding_name], spaces[space] = space, []
        bound = [
            (bind, address, str(address.value)) for bind in network.bind_addresses for address in bind.addresses
        ]
        if seen & {value for *_, value in bound}:
            raise NotInSandbox(
                f"network {network.binding_name} has an address of another network", cause=_NETWORKS
            )
        if not set(network.ingress_addresses) <= {value for *_, value in bound}:
            raise NotInSandbox(
                f"network {network.binding_name} has ingress addresses that are on no interface", cause=_NETWORKS
            )
        for bind, address, value in bound:
            seen.add(value)
            try:
                subnet = str(ipaddress.ip_network(address.cidr or value, strict=False))
            except ValueError:
                raise NotInSandbox(
                    f"{address.cidr or value} is no address of a network", cause=_NETWORKS
                ) from None
            spaces[space].append(subnet)
            mac, listed = bind.mac_address or "", [{"address": value, "subnet": subnet}]
            interfaces.append({"name": bind.interface_name, "mac": mac, "addresses": listed})
        addresses += network.ingress_addresses
    return {
        "addresses": addresses or ["192.0.2.0"],
        "interfaces": interfaces,
        "spaces": spaces,
        "bindings": {"endpoints": bindings},
    }
