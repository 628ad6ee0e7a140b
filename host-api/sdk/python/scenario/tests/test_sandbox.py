"""What a test says of the world is what a hook sees, and what the hook asks for is in the state afterwards."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import ops
import pytest
from conftest import PROBE
from ops.testing import (
    ActionFailed,
    ActiveStatus,
    Address,
    BindAddress,
    Container,
    Context,
    Model,
    Network,
    PeerRelation,
    Relation,
    Resource,
    Secret,
    State,
    Storage,
    StoredState,
    TCPPort,
    UnknownStatus,
    WaitingStatus,
)
from periapt_scenario import BenchError, NotInSandbox, Sandbox
from periapt_scenario.ids import Ids
from periapt_scenario.scene import scene_of
from scenario.errors import InconsistentScenarioError, UncaughtCharmError


def context(**more: Any) -> Context[Any]:
    """Of a class that does nothing: what the packed charm does is all that happens."""
    return Context(ops.CharmBase, meta=PROBE, juju_version="3.6.0", **more)


def script(*actions: str) -> dict[str, str]:
    """The option that makes the probe do these."""
    return {"script": "\n".join(f"*: {action}" for action in actions)}


def log(ctx: Context[Any]) -> list[str]:
    return [line.message for line in ctx.juju_log]


def test_a_hook_sees_the_state(sandbox: Sandbox) -> None:
    relation = Relation(
        "sink",
        id=4,
        remote_app_name="other",
        remote_app_data={"of": "all"},
        remote_units_data={0: {"host": "h0"}, 7: {"host": "h7"}},
    )
    peer = PeerRelation("peer", id=5, peers_data={3: {"who": "three"}})
    state = State(
        leader=True,
        config=script(
            "tool relation-get --format=json - other/7",
            "tool relation-get --format=json --app - other",
            "tool relation-list -r sink:4",
            "tool relation-get --format=json -r peer:5 who probe/3",
            "tool is-leader",
            "tool opened-ports",
            "tool status-get --include-data --format=json",
            "tool goal-state --format=json",
            "tool storage-list",
        ),
        relations=[relation, peer],
        opened_ports=[TCPPort(80)],
        unit_status=WaitingStatus("for it"),
        planned_units=3,
        storages=[Storage("scratch", index=1)],
        model=Model("Here"),
    )
    ctx = context(unit_id=1)
    sandbox.run(ctx, ctx.on.relation_changed(relation, remote_unit=7), state)
    said = log(ctx)
    for line in (
        "event sink-relation-changed relation=sink:4 app=other unit=other/7 attempt=1",
        'tool relation-get: 0 {"host":"h7"} ',
        'tool relation-get: 0 {"of":"all"} ',
        "tool relation-list: 0 other/0\nother/7 ",
        'tool relation-get: 0 "three" ',
        "tool is-leader: 0 True ",
        "tool opened-ports: 0 80/tcp ",
        "tool storage-list: 0 scratch/1 ",
    ):
        assert line in said, said
    assert any('"status":"waiting"' in line and "for it" in line for line in said), said
    (goal,) = [line for line in said if line.startswith("tool goal-state")]
    assert all(f'"probe/{number}"' in goal for number in (0, 1, 2)), goal


def test_what_it_asks_for_is_in_the_state_afterwards(sandbox: Sandbox) -> None:
    relation = Relation("sink", id=4, local_unit_data={"old": "1", "kept": "2"}, local_app_data={})
    state = State(
        leader=True,
        config=script(
            "set new=3",
            "set old=",
            "app-set of=all",
            "status waiting first",
            "status active then",
            "app-status active whole",
            "open-port 81/tcp",
            "close-port 80/tcp",
            "log said",
            "tool application-version-set 1.2",
        ),
        relations=[relation],
        opened_ports=[TCPPort(80)],
    )
    ctx = context()
    after = sandbox.run(ctx, ctx.on.relation_created(relation), state)
    changed = after.get_relation(4)
    assert changed.local_unit_data == {"kept": "2", "new": "3"}
    assert changed.local_app_data == {"of": "all"}
    assert after.unit_status == ActiveStatus("then")
    assert ctx.unit_status_history == [UnknownStatus(), WaitingStatus("first")]
    assert after.app_status == ActiveStatus("whole")
    assert after.opened_ports == {TCPPort(81)}
    assert after.workload_version == "1.2"
    assert "said" in log(ctx)
    assert state.get_relation(4).local_unit_data == {"old": "1", "kept": "2"}, "the input stays as it was"


def test_secrets_are_read_made_and_changed(sandbox: Sandbox) -> None:
    theirs = Secret({"value": "dlo"}, latest_content={"value": "wen"}, id="secret:of-others")
    relation = Relation("sink", id=4, remote_app_name="other", remote_app_data={"secret": theirs.id})
    config = script("open", "share value=terces")
    ctx = context()
    after = sandbox.run(
        ctx,
        ctx.on.relation_changed(relation, remote_unit=0),
        State(leader=True, config=config, relations=[relation], secrets=[theirs]),
    )
    assert "opened value=new" in log(ctx)
    assert after.get_secret(id=theirs.id).tracked_content == {"value": "wen"}
    ours = after.get_secret(label="shared")
    assert ours.owner == "app" and ours.tracked_content == {"value": "secret"}
    assert ours.remote_grants == {4: {"other"}}
    assert after.get_relation(4).local_app_data["secret"] == ours.id

    config = script("revise value=wen", "expire 2100-01-01T00:00:00Z")
    after = sandbox.run(
        ctx, ctx.on.update_status(), State(leader=True, config=config, relations=[relation], secrets=[ours])
    )
    revised = after.get_secret(id=ours.id)
    assert revised.latest_content == {"value": "new"} and revised.tracked_content == {"value": "secret"}
    assert revised.expire == datetime.datetime(2100, 1, 1, tzinfo=datetime.timezone.utc)


def test_an_option_may_name_a_secret_that_there_is_none_of() -> None:
    options = {"token": {"type": "secret"}, "text": {"type": "string"}}
    ctx = Context(ops.CharmBase, meta={"name": "c"}, config={"options": options}, juju_version="3.6.0")
    config = {"token": "secret:doesnotexist00000000", "text": "secret:of-nobody"}
    ids = Ids()
    told = scene_of(ctx, ctx.on.config_changed(), State(config=config), ids)["config"]
    assert told == {"token": f"secret:{ids.inside(config['token'])}", "text": "secret:of-nobody"}
    assert told["token"] != config["token"]


def test_storage_and_resources_are_files(sandbox: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "data").write_text("attached")
    storage = Storage("scratch")
    ctx = context()
    (storage.get_filesystem(ctx) / "note").write_text("of before")
    config = script("read /srv/scratch/note", "write /srv/scratch/new=kept", "resource data")
    state = State(
        config=config, storages=[storage], resources=[Resource(name="data", path=tmp_path / "data")]
    )
    sandbox.run(ctx, ctx.on.storage_attached(storage), state)
    assert any(line.endswith("of before") for line in log(ctx)), log(ctx)
    assert any(line.endswith("attached") for line in log(ctx)), log(ctx)
    assert (storage.get_filesystem(ctx) / "new").read_text() == "kept"


def test_actions_answer_fail_and_log(sandbox: Sandbox) -> None:
    ctx = context()
    sandbox.run(ctx, ctx.on.action("greet", params={"whom": "you", "times": 2}), State())
    assert ctx.action_results is not None and ctx.action_results["greeting"]["text"] == "hello you"
    assert ctx.action_logs == ["greeting you"]
    with pytest.raises(ActionFailed, match="nobody was greeted"):
        sandbox.run(ctx, ctx.on.action("greet", params={"whom": "you", "times": 0}), State())


def test_what_was_stored_comes_back_in_the_next_event(sandbox: Sandbox) -> None:
    stored = StoredState("_stored", owner_path="MyCharm", content={"seen": 1, "pair": (1, 2)})
    ctx = context()
    deferred = ctx.on.update_status().deferred(ops.CharmBase.__init__)
    state = State(config=script("tool state-get"), stored_states=[stored], deferred=[deferred])
    after = sandbox.run(ctx, ctx.on.start(), state)
    assert after.stored_states == {stored} and after.deferred == [deferred]
    (kept,) = after.stored_states
    assert kept.content == {"seen": 1, "pair": (1, 2)}
    assert any("MyCharm/StoredStateData[_stored]" in line for line in log(ctx)), log(ctx)


def test_networks_are_what_a_binding_says(sandbox: Sandbox) -> None:
    network = Network(
        "sink",
        [BindAddress([Address("10.1.2.3", cidr="10.1.2.0/24")], interface_name="eth7")],
        ingress_addresses=["10.1.2.3"],
    )
    ctx = context()
    state = State(config=script("tool network-get sink --format=json"), networks=[network])
    sandbox.run(ctx, ctx.on.update_status(), state)
    (said,) = [line for line in log(ctx) if line.startswith("tool network-get")]
    assert '"eth7"' in said and '"10.1.2.3"' in said and '"10.1.2.0/24"' in said, said


def test_a_hook_that_fails_raises_and_leaves_nothing(sandbox: Sandbox) -> None:
    ctx = context()
    with pytest.raises(UncaughtCharmError, match="on purpose"):
        sandbox.run(ctx, ctx.on.start(), State(config=script("fail on purpose")))
    # And the next one is not the worse for it.
    after = sandbox.run(ctx, ctx.on.start(), State(config=script("status active well")))
    assert after.unit_status == ActiveStatus("well")


def test_what_no_hook_can_be_told_says_so(sandbox: Sandbox) -> None:
    ctx = context()
    with pytest.raises(NotInSandbox, match="of ops"):
        sandbox.run(ctx, ctx.on.collect_unit_status(), State())
    other = Context(ops.CharmBase, meta={**PROBE, "requires": {}})
    with pytest.raises(NotInSandbox, match="declares other requires"):
        sandbox.run(other, other.on.start(), State())
    with pytest.raises(InconsistentScenarioError):
        sandbox.run(ctx, ctx.on.start(), State(config={"no-such-option": 1}))
    with pytest.raises(InconsistentScenarioError):
        sandbox.run(ctx, ctx.on.start(), State(containers=[Container("none", can_connect=True)]))
    with pytest.raises(BenchError, match="planned-units"):
        sandbox.run(ctx, ctx.on.start(), State(planned_units=1_000_000))


def test_the_event_of_a_hook_is_among_those_that_were_emitted(sandbox: Sandbox) -> None:
    relation = Relation("sink", id=4, remote_app_name="other", remote_units_data={7: {}})
    ctx = context(capture_framework_events=True, capture_deferred_events=True)
    deferred = ctx.on.update_status().deferred(ops.CharmBase.__init__)
    state = State(relations=[relation], deferred=[deferred])
    sandbox.run(ctx, ctx.on.relation_changed(relation, remote_unit=7), state)
    kinds = [event.handle.kind for event in ctx.emitted_events]
    assert kinds == ["update_status", "sink_relation_changed", "collect_unit_status", "pre_commit", "commit"]
    changed = ctx.emitted_events[1]
    assert isinstance(changed, ops.RelationChangedEvent)
    assert (changed.relation.id, changed.app.name, changed.unit and changed.unit.name) == (4, "other", "other/7")

    with pytest.raises(UncaughtCharmError):
        sandbox.run(ctx, ctx.on.start(), State(config=script("fail on purpose")))
    assert isinstance(ctx.emitted_events[-1], ops.StartEvent), "of a hook that fails, the event alone"
