"""The probe plays its script: what the comparison of three worlds rests on."""

import json

import pytest
from charm import ProbeCharm
from ops.testing import ActiveStatus, Context, Relation, State
from scenario.errors import UncaughtCharmError


def played(*steps: list) -> dict[str, str]:
    return {"script": json.dumps(steps)}


def test_steps_are_played_in_order_and_answers_logged() -> None:
    ctx = Context(ProbeCharm)
    relation = Relation("sink", remote_app_name="other")
    config = played(["write", "sink", "unit", "a", "1"], ["status", "active", "said"], ["leader"], ["planned"])
    after = ctx.run(ctx.on.relation_created(relation), State(config=config, relations=[relation]))
    assert after.get_relation(relation.id).local_unit_data["a"] == "1"
    assert after.unit_status == ActiveStatus("said")
    assert [line.message for line in ctx.juju_log if line.level == "INFO"] == ["leader: false", "planned: 1"]


def test_what_is_refused_is_logged_and_the_next_step_played() -> None:
    ctx = Context(ProbeCharm)
    relation = Relation("sink")
    config = played(["write", "sink", "app", "a", "1"], ["status", "active", "on"])
    after = ctx.run(ctx.on.start(), State(config=config, relations=[relation]))
    assert after.unit_status == ActiveStatus("on")
    assert any("write: RelationDataAccessError" in line.message for line in ctx.juju_log)


def test_a_hook_fails_on_purpose() -> None:
    ctx = Context(ProbeCharm)
    with pytest.raises(UncaughtCharmError):
        ctx.run(ctx.on.start(), State(config=played(["fail", "here"])))
