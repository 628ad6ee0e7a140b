#!/usr/bin/env python3
"""{name}: sets its greeting as its status."""

import ops


class Charm(ops.CharmBase):
    def __init__(self, framework: ops.Framework):
        super().__init__(framework)
        framework.observe(self.on.config_changed, self._on_config_changed)
        framework.observe(self.on.greet_action, self._on_greet)

    def _on_config_changed(self, event: ops.ConfigChangedEvent):
        greeting = self.config["greeting"]
        if not greeting:
            self.unit.status = ops.BlockedStatus("option greeting is empty")
            return
        self.unit.status = ops.ActiveStatus(f"says {greeting}")

    def _on_greet(self, event: ops.ActionEvent):
        whom = event.params["whom"]
        event.log(f"greeting {whom}")
        event.set_results({"greeting": f"{self.config['greeting']}, {whom}!"})


if __name__ == "__main__":
    ops.main(Charm)
