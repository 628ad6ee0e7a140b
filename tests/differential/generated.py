"""Random worlds: a unit's state, scripts for the probe, and a sequence of events."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from hypothesis import strategies as st
from ops.testing import (
    ActiveStatus,
    BlockedStatus,
    Context,
    PeerRelation,
    Relation,
    Secret,
    State,
    Storage,
    TCPPort,
    UDPPort,
)

KEYS = st.sampled_from(["a", "b", "host", "of-all"])
VALUES = st.sampled_from(["", "1", "two words", "ünï\nlines", "x" * 300])
TEXTS = st.sampled_from(["", "well", "it's \"so\"", "- dashed", "a: b"])
LABELS = st.sampled_from(["mine", "ours", "theirs", "new", "other"])
CONTENT = st.dictionaries(
    st.sampled_from(["password", "key-1"]), st.sampled_from(["s", "two words", "l1\nl2"]), min_size=1
)
ENDPOINTS = st.sampled_from(["sink", "source", "peer"])
WHOSE = st.sampled_from(["unit", "app"])
WORDS = st.sampled_from(["active", "blocked", "maintenance", "waiting"])
PORTS = st.integers(min_value=1, max_value=5)
PROTOCOLS = st.sampled_from(["tcp", "udp"])


def step(word: str, *arguments: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    return st.tuples(st.just(word), *arguments).map(list)


SEES = [
    step("config"),
    step("relations", ENDPOINTS),
    step("read", ENDPOINTS),
    step("leader"),
    step("planned"),
    step("ports"),
    step("statuses"),
    step("storages"),
    step("model"),
    step("about"),
    step("secret-get", LABELS, st.sampled_from(["get", "peek", "refresh"])),
    step("secret-info", LABELS),
]
ASKS = [
    step("write", ENDPOINTS, WHOSE, KEYS, VALUES),
    step("unset", ENDPOINTS, WHOSE, KEYS),
    step("status", WORDS, TEXTS),
    step("app-status", WORDS, TEXTS),
    step("version", st.sampled_from(["1", "2.0-b3"])),
    step("open", PROTOCOLS, PORTS),
    step("close", PROTOCOLS, PORTS),
    st.lists(PORTS, max_size=3, unique=True).map(lambda ports: ["set-ports", *ports]),
    step("keep", KEYS, st.sampled_from([1, "text", None, True, [1, 2], {"a": [1.5]}])),
    step("add-storage", st.integers(min_value=1, max_value=2)),
    step("secret-add", WHOSE, st.sampled_from(["new", "other"]), CONTENT),
    step("secret-set", LABELS, CONTENT),
    step("secret-grant", LABELS, ENDPOINTS),
    step("secret-revoke", LABELS, ENDPOINTS),
]
ENDS = [step("defer"), step("fail", TEXTS), step("secret-remove", LABELS)]
OF_ACTIONS = [
    step("params"),
    step("results", st.dictionaries(st.sampled_from(["a", "b.c", "b.d"]), VALUES.filter(bool), max_size=2)),
    step("progress", TEXTS),
    step("fail-action", TEXTS.filter(bool)),
]


@st.composite
def scripts(draw: st.DrawFn, *, more: tuple[Any, ...] = ()) -> str:
    """A few steps; most scripts end well."""
    steps = draw(st.lists(st.one_of(*SEES, *ASKS, *more), min_size=1, max_size=6))
    if draw(st.integers(0, 5)) == 0:
        steps.append(draw(st.one_of(*ENDS)))
    return json.dumps(steps)


def settings() -> st.SearchStrategy[dict[str, str]]:
    return st.dictionaries(KEYS, VALUES.filter(bool), max_size=2)


@st.composite
def states(draw: st.DrawFn) -> State:
    """A unit `python-probe/0`."""
    relations: list[Any] = []
    for number, endpoint in enumerate(draw(st.lists(st.sampled_from(["sink", "source"]), max_size=2))):
        relations.append(
            Relation(
                endpoint,
                id=10 + number,
                remote_app_name=f"remote-{'ab'[number]}",
                local_unit_data=draw(settings()),
                local_app_data=draw(settings()),
                remote_app_data=draw(settings()),
                remote_units_data=draw(st.dictionaries(st.integers(0, 11), settings(), max_size=2)),
            )
        )
    if draw(st.booleans()):
        peers = draw(st.dictionaries(st.integers(1, 3), settings(), max_size=2))
        relations.append(
            PeerRelation("peer", id=20, local_unit_data=draw(settings()), local_app_data=draw(settings()), peers_data=peers)
        )
    secrets = [
        Secret(draw(CONTENT), id="secret:c0000000000000000010", owner="unit", label="mine"),
        Secret(draw(CONTENT), id="secret:c000000000000000001g", owner="app", label="ours"),
        Secret(draw(CONTENT), latest_content=draw(CONTENT), id="secret:c0000000000000000020", label="theirs"),
    ]
    return State(
        leader=draw(st.booleans()),
        config={"script": "[]", "number": draw(st.integers(-5, 5)), "flag": draw(st.booleans())},
        relations=relations,
        secrets=[secret for secret in secrets if draw(st.booleans())],
        storages=[Storage("scratch", index=index) for index in range(draw(st.integers(0, 2)))],
        opened_ports=draw(st.frozensets(st.one_of(PORTS.map(TCPPort), PORTS.map(UDPPort)), max_size=2)),
        planned_units=draw(st.integers(1, 3)),
        unit_status=draw(st.sampled_from([ActiveStatus("before"), BlockedStatus("")])),
    )


@st.composite
def events(draw: st.DrawFn, ctx: Context[Any], state: State) -> tuple[Any, State]:
    """An event that the unit could be told in this state, with the script for it."""
    plain = [
        ctx.on.install,
        ctx.on.start,
        ctx.on.stop,
        ctx.on.config_changed,
        ctx.on.update_status,
        ctx.on.upgrade_charm,
    ]
    kinds: list[Any] = [lambda: draw(st.sampled_from(plain))()]
    if state.leader:
        kinds.append(ctx.on.leader_elected)
    for relation in sorted(state.relations, key=lambda relation: relation.id):
        kinds += [lambda it=relation: ctx.on.relation_created(it), lambda it=relation: ctx.on.relation_broken(it)]
        for unit in sorted(relation._remote_unit_ids):
            kinds += [
                lambda it=relation, unit=unit: ctx.on.relation_joined(it, remote_unit=unit),
                lambda it=relation, unit=unit: ctx.on.relation_changed(it, remote_unit=unit),
                lambda it=relation, unit=unit: ctx.on.relation_departed(it, remote_unit=unit),
            ]
    for storage in state.storages:
        kinds.append(lambda it=storage: ctx.on.storage_attached(it))
    for secret in sorted(state.secrets, key=lambda secret: secret.id):
        if secret.owner is None:
            kinds.append(lambda it=secret: ctx.on.secret_changed(it))
        elif secret.owner == "unit" or state.leader:
            kinds.append(lambda it=secret: ctx.on.secret_rotate(it))
    kinds.append(None)
    kind = draw(st.sampled_from(kinds))
    if kind is None:
        steps = draw(scripts(more=tuple(OF_ACTIONS)))
        parameters = {"steps": steps, "count": draw(st.integers(-1, 3))}
        return ctx.on.action("play", params=parameters), state
    config = {**state.config, "script": draw(scripts())}
    return kind(), dataclasses.replace(state, config=config)
