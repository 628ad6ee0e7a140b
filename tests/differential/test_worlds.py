"""The same charm with the same events in three worlds leaves the same behind, or the difference is triaged."""

from __future__ import annotations

from typing import Any

import generated
import triage
import worlds
import pytest
from charm import ProbeCharm
from hypothesis import given
from hypothesis import strategies as st
from ops.testing import Context
from periapt_scenario import Bench

#: The number of consecutive events.
EVENTS = 3


@given(data=st.data())
def test_three_worlds_agree(data: Any, sandbox: Bench, native: Bench) -> None:
    """Scenario, a process with forked hook tools, and the sandbox."""
    ctx = Context(ProbeCharm)
    state = data.draw(generated.states())
    for _ in range(EVENTS):
        event, state = data.draw(generated.events(ctx, state))
        expected = worlds.in_scenario(event, state, {})
        for name, bench in (("sandbox", sandbox), ("process", native)):
            left = worlds.in_bench(bench, event, state, {})
            difference = triage.untriaged(expected.shown, left.shown, event, state)
            assert not difference, f"{name}: {difference}"
        if expected.state is None:
            break
        state = expected.state


@pytest.mark.parametrize("known", triage.KNOWN, ids=lambda known: known.reason)
def test_what_is_triaged_still_differs(known: triage.Known, sandbox: Bench, native: Bench) -> None:
    """The process and the sandbox agree, and Scenario differs. Otherwise the entry must be removed."""
    event, state = known.example(Context(ProbeCharm))
    expected = worlds.in_scenario(event, state, {}).shown
    ours = worlds.in_bench(sandbox, event, state, {}).shown
    assert not triage.difference(worlds.in_bench(native, event, state, {}).shown, ours)
    assert triage.difference(expected, ours)
    assert not triage.untriaged(expected, ours, event, state)
