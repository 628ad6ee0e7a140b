"""Differences between Scenario and Juju that are known. Periapt does as Juju does; whatever is not here is a failure.

Each says when it may show itself, what it takes out of a comparison, and an example, in which it does show itself: one
that Scenario has put right is found by its example.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from typing import Any

from charm import ProbeCharm
from ops.testing import Context, PeerRelation, Relation, Secret, State
from scenario.state import _Event

#: Steps that only the owner of a secret may make.
MANAGES = ("secret-set", "secret-info", "secret-grant", "secret-revoke", "secret-remove")

Example = Callable[[Context[ProbeCharm]], tuple[_Event, State]]


@dataclasses.dataclass(frozen=True)
class Known:
    """One difference."""

    reason: str
    applies: Callable[[_Event, State, list[Any]], bool]
    #: The parts that are not compared: keys of the result, and the charm's answers to these steps.
    keys: tuple[str, ...]
    steps: tuple[str, ...]
    example: Example


def _script(*steps: list[Any]) -> dict[str, str]:
    return {"script": json.dumps(steps)}


def _departed(ctx: Context[ProbeCharm]) -> tuple[_Event, State]:
    peer = PeerRelation("peer", id=1, peers_data={1: {}, 2: {}})
    state = State(relations=[peer], config=_script(["relations", "peer"]))
    return ctx.on.relation_departed(peer, remote_unit=1), state


def _added_for_all(ctx: Context[ProbeCharm]) -> tuple[_Event, State]:
    return ctx.on.start(), State(config=_script(["secret-add", "app", "new", {"password": "s"}]))


def _nothing_to_revoke(ctx: Context[ProbeCharm]) -> tuple[_Event, State]:
    mine, relation = Secret({"password": "s"}, owner="unit", label="mine"), Relation("sink")
    config = _script(["secret-revoke", "mine", "sink"])
    return ctx.on.start(), State(config=config, secrets=[mine], relations=[relation])


def _managed_by_another(ctx: Context[ProbeCharm]) -> tuple[_Event, State]:
    ours = Secret({"password": "s"}, owner="app", label="ours")
    return ctx.on.start(), State(config=_script(["secret-remove", "ours"]), secrets=[ours])


def _label_taken(ctx: Context[ProbeCharm]) -> tuple[_Event, State]:
    add = ["secret-add", "unit", "new", {"password": "s"}]
    return ctx.on.start(), State(config=_script(add, add))


def _labels_twice(state: State, steps: list[Any]) -> bool:
    labels = [secret.label for secret in state.secrets if secret.owner is not None]
    labels += [step[2] for step in steps if step[0] == "secret-add"]
    return len(labels) > len(set(labels))


def _storage_of_a_failed_hook(ctx: Context[ProbeCharm]) -> tuple[_Event, State]:
    return ctx.on.start(), State(config=_script(["add-storage", 1], ["fail", "then"]))


def _storage_twice(ctx: Context[ProbeCharm]) -> tuple[_Event, State]:
    return ctx.on.start(), State(config=_script(["add-storage", 1], ["add-storage", 1]))


KNOWN = [
    Known(
        "in relation-departed, relation-list lists the departing unit no more; Scenario still does",
        lambda event, state, steps: event.name.endswith("_relation_departed"),
        keys=(),
        steps=("relations", "read"),
        example=_departed,
    ),
    Known(
        "only the leader may add a secret of the application's; Scenario lets all units",
        lambda event, state, steps: not state.leader and any(step[:2] == ["secret-add", "app"] for step in steps),
        keys=("secrets",),
        steps=("secret-add", "secret-get", *MANAGES),
        example=_added_for_all,
    ),
    Known(
        "revoking what was not granted does nothing; Scenario raises KeyError",
        lambda event, state, steps: any(step[0] == "secret-revoke" for step in steps),
        keys=(),
        steps=("secret-revoke",),
        example=_nothing_to_revoke,
    ),
    Known(
        "a unit that does not lead finds no secret of the application's to manage, and is told `not found`; Scenario "
        "refuses permission",
        lambda event, state, steps: (
            not state.leader
            and any(step[0] in MANAGES for step in steps)
            and any(secret.owner == "app" for secret in state.secrets)
        ),
        keys=(),
        steps=MANAGES,
        example=_managed_by_another,
    ),
    Known(
        "an owner has a label once; Scenario adds a second secret of the same",
        lambda event, state, steps: _labels_twice(state, steps),
        keys=("secrets",),
        steps=("secret-add", "secret-get", *MANAGES),
        example=_label_taken,
    ),
    Known(
        "a hook that fails asks for no storage; Scenario notes it at the call",
        lambda event, state, steps: any(step[0] == "fail" for step in steps),
        keys=("storage asked for",),
        steps=(),
        example=_storage_of_a_failed_hook,
    ),
    Known(
        "storage that is asked for twice is added twice; Scenario notes the last call",
        lambda event, state, steps: sum(step[0] == "add-storage" for step in steps) > 1,
        keys=("storage asked for",),
        steps=(),
        example=_storage_twice,
    ),
]


def difference(scenario: dict[str, Any], periapt: dict[str, Any]) -> dict[str, Any]:
    """Returns the differences, as (Scenario's, ours)."""
    keys = scenario.keys() | periapt.keys()
    return {key: (scenario.get(key), periapt.get(key)) for key in keys if scenario.get(key) != periapt.get(key)}


def untriaged(scenario: dict[str, Any], periapt: dict[str, Any], event: _Event, state: State) -> dict[str, Any]:
    """Returns the differences that are not listed here."""
    steps = _steps(event, state)
    known = [known for known in KNOWN if known.applies(event, state, steps)]
    return difference(_without(scenario, known), _without(periapt, known))


def _steps(event: _Event, state: State) -> list[Any]:
    steps = json.loads(str(state.config["script"]))
    return steps if event.action is None else json.loads(event.action.params["steps"]) + steps


def _without(shown: dict[str, Any], known: list[Known]) -> dict[str, Any]:
    keys = {key for one in known for key in one.keys}
    words = {word for one in known for word in one.steps}
    kept = {key: value for key, value in shown.items() if key not in keys}
    kept["said"] = [line for line in kept["said"] if line.split(":", 1)[0] not in words]
    return kept
