"""Probes of Pebble's client in ops, by group and name: `files-push` is `push` of the module `files`."""

import types

from . import checks, commands, errors, files, notices, services, trees, users
from .probing import Probe

GROUPS: dict[str, types.ModuleType] = {
    "files": files,
    "trees": trees,
    "services": services,
    "commands": commands,
    "checks": checks,
    "notices": notices,
    "errors": errors,
    "users": users,
}


def chosen(of: str) -> dict[str, Probe]:
    """Return the probes of a group, or the one of this name."""
    named = {f"{group}-{name}": probe for group, module in GROUPS.items() for name, probe in module.PROBES.items()}
    return {name: probe for name, probe in named.items() if of in (name, name.partition("-")[0])}
