"""The charm under ops' own test framework: `pip install -r requirements-dev.txt && pytest`."""

import ops
from ops import testing

from charm import Charm


def configured(greeting: str) -> testing.State:
    context = testing.Context(Charm)
    return context.run(context.on.config_changed(), testing.State(config={"greeting": greeting}))


def test_it_says_what_it_is_told_to():
    assert configured("Ahoy").unit_status == ops.ActiveStatus("says Ahoy")


def test_without_a_greeting_it_is_blocked():
    assert configured("").unit_status == ops.BlockedStatus("option greeting is empty")


def test_the_action_greets_the_name_that_it_is_given():
    context = testing.Context(Charm)
    context.run(context.on.action("greet", params={"whom": "you"}), testing.State(config={"greeting": "Ahoy"}))
    assert context.action_results == {"greeting": "Ahoy, you!"}
