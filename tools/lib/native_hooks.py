"""What a hook costs in the sandbox, by the agent's own count, beside the same charm's in a process of its own.

usage: native_hooks.py PERIAPT CHARM_DIRECTORY UNIT

The process is this Python, with tools that are as cheap as processes get and answer as a fresh unit's would: what is
measured is Python and the framework, and the starting of the tools. `make bench` has the exact comparison.
"""

import json
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile

ROUNDS = 10

#: What tools print, of a unit without relations; the others print nothing.
ANSWERS = {
    "config-get": json.dumps({"title": "Portal", "port": 8080}),
    "is-leader": "true",
    "opened-ports": "[]",
    "relation-ids": "[]",
    "status-get": json.dumps({"status": "unknown", "message": "", "status-data": {}}),
}
SILENT = ("juju-log", "open-port", "status-set", "close-port")


def native(charm: pathlib.Path) -> float:
    """CPU milliseconds of one hook, with all its processes; the mean of several."""
    with tempfile.TemporaryDirectory() as place:
        copy, tools = pathlib.Path(place, "charm"), pathlib.Path(place, "tools")
        shutil.copytree(charm, copy)
        split_metadata(copy)
        tools.mkdir()
        for name in (*ANSWERS, *SILENT):
            (tools / name).write_text(f"#!/bin/sh\necho '{ANSWERS.get(name, '')}'\n")
            (tools / name).chmod(0o755)
        environment = {
            "PATH": f"{tools}:/usr/bin:/bin",
            "PYTHONPATH": "lib",
            "JUJU_CHARM_DIR": str(copy),
            "JUJU_DISPATCH_PATH": "hooks/update-status",
            "JUJU_HOOK_NAME": "update-status",
            "JUJU_UNIT_NAME": "portal/0",
            "JUJU_MODEL_NAME": "shop",
            "JUJU_MODEL_UUID": "00000000-0000-4000-8000-000000000001",
            "JUJU_VERSION": "3.6.26",
        }

        def hook() -> None:
            subprocess.run([sys.executable, "src/charm.py"], cwd=copy, env=environment, check=True, stdout=subprocess.DEVNULL)

        hook()
        before = used()
        for _ in range(ROUNDS):
            hook()
        return (used() - before) * 1000 / ROUNDS


def split_metadata(charm: pathlib.Path) -> None:
    """Write what `charmcraft pack` would."""
    import yaml

    whole = yaml.safe_load((charm / "charmcraft.yaml").read_text())
    for name in ("config", "actions"):
        (charm / f"{name}.yaml").write_text(yaml.safe_dump(whole.pop(name, {})))
    (charm / "metadata.yaml").write_text(yaml.safe_dump(whole))


def used() -> float:
    """CPU seconds of all children that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def main(binary: str, charm: str, unit: str) -> None:
    """Print both."""
    listed = subprocess.run([binary, "hooks", unit], check=True, capture_output=True, text=True).stdout
    print(listed)
    print(f"native, update-status with ops installed and tools as shell scripts: {native(pathlib.Path(charm)):.0f} ms of CPU")


main(*sys.argv[1:])
