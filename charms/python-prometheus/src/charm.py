#!/usr/bin/env python3
"""Prometheus in a container, which reads the numbers of related units."""

import json
import urllib.parse
import urllib.request

import ops

PORT = 9090
CONFIGURATION = "/etc/prometheus/periapt.json"
TARGETS = "/etc/prometheus/targets.json"


class PrometheusCharm(ops.CharmBase):
    """Configures Prometheus, and keeps its list of targets."""

    def __init__(self, framework: ops.Framework):
        super().__init__(framework)
        self.container = self.unit.get_container("prometheus")
        relation = self.on["targets"]
        for event in (
            self.on.prometheus_pebble_ready,
            self.on.config_changed,
            self.on.upgrade_charm,
            relation.relation_changed,
            relation.relation_departed,
            relation.relation_broken,
        ):
            framework.observe(event, self._on_change)
        framework.observe(self.on.query_action, self._on_query)
        framework.observe(self.on.collect_unit_status, self._on_collect_status)

    def _targets(self) -> list[dict]:
        """Returns the targets, as Prometheus reads them from a file."""
        groups = []
        for relation in self.model.relations["targets"]:
            for unit in sorted(relation.units, key=lambda unit: unit.name):
                bag = relation.data[unit]
                if not bag.get("port", "").isdigit():
                    continue
                # The name by which any workload of a related application is reached.
                address = f"{unit.name.replace('/', '-')}:{bag['port']}"
                groups.append({"targets": [address], "labels": {"unit": unit.name}})
        return groups

    def _on_change(self, _: ops.EventBase) -> None:
        self.unit.set_ports(PORT)
        if not self.container.can_connect():
            return
        interval = str(self.config["interval"])
        configuration = {
            "global": {"scrape_interval": interval, "scrape_timeout": interval},
            "scrape_configs": [{"job_name": "units", "file_sd_configs": [{"files": [TARGETS], "refresh_interval": "5s"}]}],
        }
        # JSON is YAML.
        self.container.push(CONFIGURATION, json.dumps(configuration), make_dirs=True)
        self.container.push(TARGETS, json.dumps(self._targets()), make_dirs=True)
        self.container.add_layer("prometheus", self._layer(interval), combine=True)
        self.container.replan()

    def _layer(self, interval: str) -> ops.pebble.LayerDict:
        return {
            "services": {
                "prometheus": {
                    "override": "replace",
                    "startup": "enabled",
                    "command": f"/usr/bin/prometheus --config.file={CONFIGURATION} --storage.tsdb.path=/var/lib/prometheus/data"
                    f" --web.listen-address=:{PORT}",
                    # A service that has changed is restarted by replan, and reads its configuration anew.
                    "environment": {"INTERVAL": interval},
                }
            },
            "checks": {
                "ready": {"override": "replace", "period": "5s", "http": {"url": f"http://localhost:{PORT}/-/ready"}},
            },
        }

    def _on_query(self, event: ops.ActionEvent) -> None:
        query = urllib.parse.urlencode({"query": event.params["expression"]})
        try:
            with urllib.request.urlopen(f"http://localhost:{PORT}/api/v1/query?{query}", timeout=10) as answer:
                result = json.load(answer)["data"]["result"]
        except OSError as error:
            event.fail(f"Prometheus does not answer: {error}")
            return
        values = {sample["metric"].get("unit", "all"): sample["value"][1] for sample in result}
        event.set_results({"values": json.dumps(values, sort_keys=True)})

    def _on_collect_status(self, event: ops.CollectStatusEvent) -> None:
        if not self.container.can_connect():
            event.add_status(ops.WaitingStatus("waiting for the container"))
            return
        service = self.container.get_services("prometheus").get("prometheus")
        if service is None or not service.is_running():
            event.add_status(ops.WaitingStatus("prometheus does not run"))
        event.add_status(ops.ActiveStatus(f"targets: {len(self._targets())}"))


if __name__ == "__main__":
    ops.main(PrometheusCharm)
