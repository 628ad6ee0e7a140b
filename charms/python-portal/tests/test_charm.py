"""What the charm promises, on Scenario's model of Juju."""

import pytest
from ops import testing

from charm import PortalCharm


@pytest.fixture
def context():
    return testing.Context(PortalCharm)


def container(*, ready=False):
    return testing.Container("web", can_connect=ready)


def with_account(**more):
    secret = testing.Secret({"password": "x" * 24})
    relation = testing.Relation("account", remote_app_data={"account": "portal-3", "secret": secret.id})
    given = testing.State(relations={relation}, secrets={secret}, containers={container()}, **more)
    return relation, given


def test_without_a_relation_it_is_blocked(context):
    state = context.run(context.on.config_changed(), testing.State(containers={container()}))
    assert state.unit_status == testing.BlockedStatus("integrate it with an application that gives accounts")


def test_with_an_account_it_is_active_and_its_port_is_open(context):
    relation, given = with_account()
    state = context.run(context.on.relation_changed(relation), given)
    assert state.unit_status == testing.ActiveStatus("Portal: signed in as portal-3")
    assert state.opened_ports == {testing.TCPPort(8080)}


def test_the_page_is_rendered_from_the_template(context):
    _, given = with_account(config={"title": "Hello"})
    context.run(context.on.action("show"), given)
    page = "Hello\nsigned in as portal-3, with a password of 24 characters\n"
    assert context.action_results == {"page": page}


def test_the_page_is_not_there_before_the_account(context):
    with pytest.raises(testing.ActionFailed, match="there is no account yet"):
        context.run(context.on.action("show"), testing.State(containers={container()}))
