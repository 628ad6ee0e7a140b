"""What the charm promises, on Scenario's model of Juju."""

import pytest
from ops import testing

from charm import AccountsCharm


@pytest.fixture
def context():
    return testing.Context(AccountsCharm)


def test_a_relation_is_given_an_account_with_a_secret(context):
    relation = testing.Relation("accounts", remote_app_name="portal")
    state = context.run(context.on.relation_created(relation), testing.State(leader=True, relations={relation}))

    bag = state.get_relation(relation.id).local_app_data
    secret = state.get_secret(label=f"account-{relation.id}")
    assert bag == {"account": f"portal-{relation.id}", "secret": secret.id}
    assert len(secret.latest_content["password"]) == 24
    assert secret.remote_grants == {relation.id: {"portal"}}
    assert state.unit_status == testing.ActiveStatus("1 accounts given out")


def test_who_does_not_lead_gives_nothing_out(context):
    relation = testing.Relation("accounts")
    state = context.run(context.on.relation_created(relation), testing.State(leader=False, relations={relation}))
    assert not state.secrets


def test_a_closed_door_keeps_who_asks_waiting(context):
    relation = testing.Relation("accounts")
    given = testing.State(leader=True, relations={relation}, config={"open": False})
    state = context.run(context.on.relation_created(relation), given)
    assert len(state.deferred) == 1
    assert state.unit_status == testing.MaintenanceStatus("no accounts are given out")


def test_a_length_that_makes_no_sense_is_the_operators_to_mend(context):
    state = context.run(context.on.config_changed(), testing.State(config={"password-length": 3}))
    assert state.unit_status == testing.BlockedStatus("password-length must be from 8 to 64")


def test_a_password_is_replaced_by_a_new_revision(context):
    secret = testing.Secret({"password": "old"}, owner="app", label="account-7")
    relation = testing.Relation("accounts", id=7, local_app_data={"account": "portal-7", "secret": secret.id})
    given = testing.State(leader=True, relations={relation}, secrets={secret})
    state = context.run(context.on.action("replace-password", params={"account": "portal-7"}), given)
    assert context.action_results == {"replaced": "portal-7"}
    assert state.get_secret(label="account-7").latest_content["password"] != "old"


def test_an_account_that_is_unknown_fails_the_action(context):
    with pytest.raises(testing.ActionFailed, match="there is no account x"):
        context.run(context.on.action("replace-password", params={"account": "x"}), testing.State(leader=True))
