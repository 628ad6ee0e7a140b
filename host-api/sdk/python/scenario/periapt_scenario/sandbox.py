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
        given = {key: without_prose(value) for key, value in given.items()}
        different = [_different(key, given[key], self._declared[key]) for key in given if given[key] != self._declared[key]]
        if different:
            message = f"the test's charm declares other {', '.join(different)} than the packed one"
            raise NotInSandbox(message, cause="the test's charm declares what the packed one does not")
        if context.juju_version.split(".")[0] != "3":
            raise NotInSandbox(f"the test asks for Juju {context.juju_version}", cause="the test asks for another Juju")
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
    declared = {"config": config, "actions": actions} | {key: meta.get(key) or {} for key in _SECTIONS}
    return {key: without_prose(value) for key, value in declared.items()}


def without_prose(declared: Any) -> Any:
    """A section of the metadata without what is written for people, of which a hook sees nothing.

    A name that is `description` has a mapping below it, and stays.
    """
    if isinstance(declared, list):
        return [without_prose(item) for item in declared]
    if not isinstance(declared, dict):
        return declared
    return {
        key: value if key == "default" else without_prose(value)
        for key, value in declared.items()
        if not (key in _PROSE and (value is None or isinstance(value, str)))
    }


#: What is written for people.
_PROSE = ("description", "title")


def _different(section: str, given: dict[str, Any], declared: dict[str, Any]) -> str:
    """A section with the names in it that differ."""
    if section == "config":
        given, declared = given.get("options") or {}, declared.get("options") or {}
    names = sorted(name for name in {*given, *declared} if given.get(name) != declared.get(name))
    return f"{section} ({', '.join(names)})" if names else section
