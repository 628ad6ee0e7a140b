"""One hook in each world, with its effects in one form."""

from __future__ import annotations

import copy
import dataclasses
from typing import Any

from charm import ADDRESSES, ProbeCharm
from ops.testing import ActionFailed, Context, State
from periapt_scenario import Bench, Sandbox
from scenario.errors import UncaughtCharmError
from scenario.state import _Event

#: The version of Juju that Periapt reports to charms.
JUJU = "3.6.26"


@dataclasses.dataclass
class Left:
    """The effects of a hook, and the state for the next one."""

    shown: dict[str, Any]
    state: State | None


def in_scenario(event: _Event, state: State, context: dict[str, Any]) -> Left:
    """Runs the hook in the framework's own testing library."""
    return _played(_context(context), event, state, Context.run)


def in_bench(bench: Bench, event: _Event, state: State, context: dict[str, Any]) -> Left:
    """Runs the hook in the packed charm, or in a process."""
    return _played(_context(context), event, state, Sandbox(bench).run)


def _context(options: dict[str, Any]) -> Context[ProbeCharm]:
    capturing = {"capture_deferred_events": True, "capture_framework_events": True}
    return Context(ProbeCharm, juju_version=JUJU, **capturing, **options)


def _played(ctx: Context[ProbeCharm], event: _Event, state: State, run: Any) -> Left:
    ended, after = "ok", None
    # Scenario modifies the secrets of its argument.
    event, state = copy.deepcopy((event, state))
    try:
        with ctx:
            after = run(ctx, event, state)
    except ActionFailed as failed:
        ended, after = f"action failed: {failed.message}", failed.state
    except UncaughtCharmError:
        ended = "failed"
    return Left(_shown(ctx, ended, after), after)


def _shown(ctx: Context[ProbeCharm], ended: str, state: State | None) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "ended": ended,
        "said": [line.message for line in ctx.juju_log if line.level == "INFO"],
        "unit statuses": [(status.name, status.message) for status in ctx.unit_status_history],
        "application statuses": [(status.name, status.message) for status in ctx.app_status_history],
        "action log": list(ctx.action_logs),
        "results": ctx.action_results or {},
        "storage asked for": dict(ctx.requested_storages),
        "emitted": [(type(event).__name__, event.handle.kind) for event in ctx.emitted_events],
    }
    if state is None:
        return shown
    return shown | {
        "unit status": (state.unit_status.name, state.unit_status.message),
        "application status": (state.app_status.name, state.app_status.message),
        "version": state.workload_version,
        "ports": sorted(f"{port.port}/{port.protocol}" for port in state.opened_ports),
        "written": {
            relation.id: (_settings(relation.local_unit_data), _settings(relation.local_app_data))
            for relation in state.relations
        },
        # An owner's and a reader's label may be equal.
        "secrets": sorted(
            (
                str(secret.label),
                str(secret.owner),
                sorted(secret.tracked_content.items()),
                sorted((secret.latest_content or {}).items()),
                str(secret.description),
                str(secret.rotate),
                sorted((relation, sorted(grantees)) for relation, grantees in secret.remote_grants.items()),
            )
            for secret in state.secrets
        ),
        # Scenario sorts deferred events by path, and not by the order of their repetition.
        "deferred": sorted((event.name, event.owner, event.observer) for event in state.deferred),
        "stored": {stored.owner_path: dict(stored.content) for stored in state.stored_states},
    }


def _settings(settings: Any) -> dict[str, str]:
    return {key: value for key, value in settings.items() if key not in ADDRESSES}
