"""`Context.run`, by a hook of the packed charm."""

from __future__ import annotations

import re
import zipfile
from typing import Any

import yaml
from ops._private.harness import ActionFailed
from scenario import Context, State
from scenario._consistency_checker import check_consistency
from scenario.state import _Event

from .bench import Bench
from .ids import Ids
from .outcome import state_of
from .scene import NotInSandbox, scene_of

__all__ = ["NotInSandbox", "Sandbox"]


class Sandbox:
    """A packed charm in the place of the charm's class."""

    def __init__(self, bench: Bench):
        self._bench = bench
        self._declared = _declared(bench)

    def run(self, context: Context[Any], event: _Event, state: State) -> State:
        """Do what `context.run(event, state)` does, in the sandbox.

        Raises what Scenario raises: InconsistentScenarioError, UncaughtCharmError, ActionFailed; and NotInSandbox for
        a run that only Scenario itself can make.
        """
        self._check(context)
        spec = context._charm_spec
        check_consistency(state, event, spec, context.juju_version, context.unit_id)
        if event.action is not None:
            context.action_logs.clear()
            context.action_results, context._action_failure_message = None, None
        ids = Ids()
        tried = self._bench.try_hook(scene_of(context, event, state, ids))
        output = state_of(context, event, state, tried, ids)
        context._set_output_state(output)
        if context._action_failure_message is not None:
            raise ActionFailed(context._action_failure_message, state=output)
        return output

    def _check(self, context: Context[Any]) -> None:
        """A test may give its context other metadata than the charm has; the sandbox has the charm's."""
        spec = context._charm_spec
        given = {"config": spec.config or {}, "actions": spec.actions or {}}
        given |= {key: spec.meta.get(key) or {} for key in _SECTIONS}
        if given != self._declared:
            different = ", ".join(key for key in given if given[key] != self._declared[key])
            raise NotInSandbox(f"the test's charm declares other {different} than the packed one")
        if context.juju_version.split(".")[0] != "3":
            raise NotInSandbox(f"the test asks for Juju {context.juju_version}")
        if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]*[a-z][a-z0-9]*)*", context.app_name):
            raise NotInSandbox(f"no application can be called {context.app_name!r}")


#: What of the metadata a hook can see a difference of.
_SECTIONS = ("provides", "requires", "peers", "storage", "resources", "extra-bindings")


def _declared(bench: Bench) -> dict[str, Any]:
    """What the packed charm declares, in Scenario's three parts."""
    with zipfile.ZipFile(bench.charm) as archive:
        names = set(archive.namelist())

        def read(name: str) -> dict[str, Any]:
            return yaml.safe_load(archive.read(name)) or {} if name in names else {}

        if "metadata.yaml" in names:
            meta, config, actions = read("metadata.yaml"), read("config.yaml"), read("actions.yaml")
        else:
            meta = read("charmcraft.yaml")
            config, actions = meta.get("config") or {}, meta.get("actions") or {}
    return {"config": config, "actions": actions} | {key: meta.get(key) or {} for key in _SECTIONS}
