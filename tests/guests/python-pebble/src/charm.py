#!/usr/bin/env python3
"""Runs probes of what ops asks of a container's Pebble."""

import traceback

import ops

import probes

#: The characters of a traceback that are told; its end says most.
MOST = 3000


class PebbleCharm(ops.CharmBase):
    """The action runs each probe in a directory of its own, and goes on after one that failed."""

    def __init__(self, framework: ops.Framework):
        super().__init__(framework)
        framework.observe(self.on.probe_action, self._on_probe)

    def _on_probe(self, event: ops.ActionEvent) -> None:
        chosen = probes.chosen(event.params["of"])
        if not chosen:
            event.fail(f"there is no probe {event.params['of']}")
            return
        event.set_results({name: self._try(name, probe, event.params["directory"]) for name, probe in chosen.items()})

    def _try(self, name: str, probe: probes.Probe, directory: str) -> str:
        container = self.unit.get_container("web")
        place = f"{directory}/{name}"
        try:
            container.make_dir(place, make_parents=True)
            probe(container, place)
            container.remove_path(place, recursive=True)
        except Exception:
            return traceback.format_exc()[-MOST:]
        return "ok"


if __name__ == "__main__":
    ops.main(PebbleCharm)
