"""A charm sees and does the same with each release of ops that it is tried with."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from conftest import BINARY, GUESTS, NEWEST, PACKAGES
from periapt_scenario import Bench

#: Parts of the charm that need a later release.
SINCE = {
    "do_ports": (2, 1),
    "see_ports": (2, 1),
    "see_the_remote_model": (2, 20),
}

#: Results that differ in a release: the release, the hooks (none: all), the part, and the result.
OTHERWISE = [
    # It takes any refusal of a secret for a missing secret.
    ("2.0.0", None, "see_a_secret_that_is_denied", "SecretNotFoundError"),
    # In a relation's hook it fails on another, missing relation; 3.3 does not.
    ("3.0.0", ("changed", "departed"), "see_a_relation_that_is_not_there", "AttributeError"),
]

GRANTED, DENIED = "ctgg1h9p6qk5fqb3k8n0", "ctgg1h9p6qk5fqb3k8ng"

RELATIONS = [
    {
        "id": 4,
        "endpoint": "sink",
        "remote-application": "other",
        "remote-settings": {"from": "the application"},
        "members": {"other/0": {"host": "10.0.0.7"}, "other/1": {}},
    },
    {"id": 5, "endpoint": "peer", "application-settings": {"a": "1"}, "members": {"released/1": {"b": "2"}}},
]

WORLD: dict[str, Any] = {
    "unit": "released/0",
    "event": {"hook": "config-changed"},
    "leader": True,
    "config": {"title": "other", "size": 3},
    "relations": RELATIONS,
    "secrets": [
        {"id": GRANTED, "owner": {"application": "other"}, "revisions": {"1": {"password": "first"}, "2": {"password": "second"}},
         "grants": {"released": 4}, "tracked": 1},
        {"id": DENIED, "owner": {"application": "other"}, "revisions": {"1": {"password": "x"}}},
        {"id": "ctgg1h9p6qk5fqb3k8mg", "owner": {"unit": "released/0"}, "revisions": {"1": {"token": "own"}}, "label": "own",
         "rotate": "daily"},
    ],
    "planned-units": 2,
    "unit-status": {"status": "blocked", "message": "not yet"},
    "ports": ["53/udp", "80/tcp"],
    "seed": "07" * 32,
    "now": "2026-03-04T05:06:07Z",
}

#: The hooks, with the required results in every release. All other results must equal those of the newest release.
HOOKS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "config": (
        {},
        {
            "see_config": {"title": "other", "size": 3},
            "see_a_secret": [{"password": "first"}, {"password": "second"}],
            "see_a_secret_that_is_denied": "ModelError",
            "see_a_secret_that_is_not_there": "SecretNotFoundError",
            "see_statuses": ["blocked", "not yet"],
            "see_resource": "blob.txt",
            "see_leadership": [True, 2],
        },
    ),
    # For these and for storage, old releases create links in the charm's directory, unless it has the file `dispatch`.
    "install": ({"event": {"hook": "install"}}, {"see_event": ["InstallEvent", None, None, None, None]}),
    "start": ({"event": {"hook": "start"}}, {"see_event": ["StartEvent", None, None, None, None]}),
    "upgrade": ({"event": {"hook": "upgrade-charm"}}, {"see_event": ["UpgradeCharmEvent", None, None, None, None]}),
    "follower": ({"leader": False}, {"see_leadership": [False, 2]}),
    "storage": (
        {"event": {"hook": "data-storage-attached", "storage": "data/1"}},
        {
            "see_event": ["StorageAttachedEvent", None, None, None, None],
            "see_event_storage": ["data", 1, "/srv/data/data/1"],
        },
    ),
    "storage goes": (
        {"event": {"hook": "data-storage-detaching", "storage": "data/0"}},
        {"see_event_storage": ["data", 0, "/srv/data/data/0"]},
    ),
    "changed": (
        {"event": {"hook": "sink-relation-changed", "relation": 4, "remote-unit": "other/0"}},
        {"see_event": ["RelationChangedEvent", "other", "other/0", None, 4]},
    ),
    "departed": (
        {"event": {"hook": "peer-relation-departed", "relation": 5, "remote-unit": "released/3", "departing-unit": "released/3"}},
        {"see_event": ["RelationDepartedEvent", "released", "released/3", "released/3", 5]},
    ),
    "secret": (
        {"event": {"hook": "secret-changed", "secret": GRANTED}},
        {"see_event_secret": [None, {"password": "second"}]},
    ),
    "rotation": (
        {"event": {"hook": "secret-rotate", "secret": "ctgg1h9p6qk5fqb3k8mg"}},
        {"see_event_secret": ["own", {"token": "own"}]},
    ),
    "action": (
        {"event": {"hook": "play", "kind": "action"}, "parameters": {"word": "hello"}},
        {"do_action": {"word": "hello"}},
    ),
    "remembered": (
        {"event": {"hook": "update-status"}, "state": {}},
        {"do_keep": {"1": "UpdateStatusEvent"}},
    ),
}


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The scene of all hooks, with storage and a resource on this host."""
    place = tmp_path_factory.mktemp("world")
    for name in ("data-0", "data-1"):
        (place / name).mkdir()
    (place / "blob.txt").write_text("the content")
    storages = [{"id": f"data/{number}", "directory": str(place / f"data-{number}")} for number in (0, 1)]
    return WORLD | {"storages": storages, "resources": {"blob": str(place / "blob.txt")}}


def left(bench: Bench, world: dict[str, Any], hook: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the charm's results in a hook, and the hook's effects."""
    tried = bench.try_hook(copy.deepcopy(world | HOOKS[hook][0]))
    lines = [early["log"]["message"] for early in tried["early"] if "log" in early]
    assert tried["outcome"] == "handled", "\n".join(lines)
    # The lines of relation hooks start with the relation.
    (seen,) = [line.partition("seen ")[2] for line in lines if "seen {" in line]
    warnings = [line for line in lines if "--looks like" in line]
    statuses = [early for early in tried["early"] if "log" not in early]
    effects = tried["effects"]
    return json.loads(seen), {"effects": effects, "action": tried.get("action"), "early": statuses, "warned": warnings}


def without(effects: Any, release: str) -> Any:
    """Returns effects without those that this release does not support, and without ops' own state."""
    shown = copy.deepcopy(effects)
    # ops keeps handles of its own objects, whose number differs. `do_keep` shows the charm's own state.
    shown["effects"].pop("state", None)
    if version(release) < SINCE["do_ports"]:
        shown["effects"].pop("ports", None)
    return shown


def version(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in release.split(".")[:2])


@pytest.fixture(scope="session")
def newest(processes, world):
    """The results and effects of the newest release, by hook."""
    known: dict[str, Any] = {}

    def of(hook: str) -> Any:
        if hook not in known:
            known[hook] = left(processes(NEWEST), world, hook)
        return copy.deepcopy(known[hook])

    return of


def check(release: str, hook: str, told: Any, newest: Any) -> None:
    (seen, effects), (expected, expected_effects) = told, newest
    for part, since in SINCE.items():
        if version(release) < since:
            assert seen.pop(part) == "AttributeError", part
            expected.pop(part)
    own = {
        part: value
        for (of, hooks, part, value) in OTHERWISE
        if of == release and (hooks is None or hook in hooks)
    }
    expected |= own
    must = HOOKS[hook][1] | {part: value for part, value in own.items() if part in HOOKS[hook][1]}
    assert {part: seen.get(part) for part in must} == must
    assert seen == expected
    assert without(effects, release) == without(expected_effects, release)


@pytest.mark.parametrize("hook", HOOKS)
@pytest.mark.parametrize("release", PACKAGES)
def test_a_process_of_each_release_sees_and_does_the_same(release: str, hook: str, processes, newest, world) -> None:
    check(release, hook, left(processes(release), world, hook), newest(hook))


@pytest.fixture(scope="module", params=[release for release in PACKAGES if (GUESTS / f"ops-{release}.charm").exists()])
def packed(request: pytest.FixtureRequest):
    """The charm with one release, packed."""
    bench = Bench(GUESTS / f"ops-{request.param}.charm", binary=BINARY)
    yield request.param, bench
    bench.close()


@pytest.mark.parametrize("hook", HOOKS)
def test_the_charm_packed_with_it_sees_and_does_the_same(packed, hook: str, newest, world) -> None:
    release, bench = packed
    check(release, hook, left(bench, world, hook), newest(hook))


def test_the_oldest_release_was_packed() -> None:
    """Otherwise no release was tried in the sandbox."""
    assert Path(GUESTS / f"ops-{list(PACKAGES)[0]}.charm").exists(), "run tools/python releases"
