#!/usr/bin/env python3
"""One page, served by nginx in a container."""

import hashlib
import html
import logging
import urllib.request

import ops

logger = logging.getLogger(__name__)

CONFIGURATION = "/etc/nginx/periapt.conf"
PAGE = "/var/www/html/index.html"

TEMPLATE = """\
user {user};
worker_processes {workers};
daemon off;
error_log stderr;
pid /run/nginx.pid;
events {{}}
http {{
    access_log off;
    types {{ text/html html; }}
    server {{
        listen {port};
        root /var/www/html;
        location = /metrics {{
            default_type text/plain;
            return 200 "nginx_connections_active $connections_active\\nnginx_connections_waiting $connections_waiting\\n";
        }}
    }}
}}
"""


class NginxCharm(ops.CharmBase):
    """Configures nginx, and keeps it running."""

    def __init__(self, framework: ops.Framework):
        super().__init__(framework)
        self.container = self.unit.get_container("nginx")
        for event in (
            self.on.nginx_pebble_ready,
            self.on.config_changed,
            self.on.upgrade_charm,
            self.on.nginx_pebble_check_recovered,
        ):
            framework.observe(event, self._on_change)
        framework.observe(self.on.nginx_pebble_check_failed, self._on_check_failed)
        framework.observe(self.on.metrics_relation_created, self._on_metrics_created)
        framework.observe(self.on.page_action, self._on_page)
        framework.observe(self.on.collect_unit_status, self._on_collect_status)

    @property
    def port(self) -> int:
        return int(self.config["port"])

    def _on_change(self, _: ops.EventBase) -> None:
        self.unit.set_ports(self.port)
        for relation in self.model.relations["metrics"]:
            self._tell(relation)
        if self.container.can_connect():
            self._serve()

    def _serve(self) -> None:
        title = html.escape(str(self.config["title"]))
        page = f"<!doctype html><title>{title}</title><h1>{title}</h1><p>{self.unit.name}</p>\n"
        user = self._push_page(page)
        configuration = TEMPLATE.format(port=self.port, workers=int(self.config["workers"]), user=user)
        self.container.push(CONFIGURATION, configuration, make_dirs=True)
        self.container.add_layer("nginx", self._layer(configuration), combine=True)
        self.container.replan()

    def _push_page(self, page: str) -> str:
        """Write the page, and return its owner: the user of nginx's workers."""
        try:
            self.container.push(PAGE, page, make_dirs=True, user="www-data")
        except ops.pebble.PathError as error:
            # A host without a range of ids gives a container root alone.
            logger.warning("nginx runs as root: %s", error)
            self.container.push(PAGE, page, make_dirs=True)
            return "root"
        return "www-data"

    def _layer(self, configuration: str) -> ops.pebble.LayerDict:
        return {
            "services": {
                "nginx": {
                    "override": "replace",
                    "startup": "enabled",
                    "command": f"/usr/sbin/nginx -c {CONFIGURATION}",
                    "backoff-delay": "200ms",
                    # A service that has changed is restarted by replan, and reads its configuration anew.
                    "environment": {"CONFIGURATION": hashlib.sha256(configuration.encode()).hexdigest()},
                }
            },
            "checks": {
                "page": {
                    "override": "replace",
                    "period": "5s",
                    "http": {"url": f"http://localhost:{self.port}/"},
                }
            },
        }

    def _on_check_failed(self, event: ops.PebbleCheckFailedEvent) -> None:
        logger.warning("nginx does not answer: %d attempts failed", event.info.failures)

    def _on_metrics_created(self, event: ops.RelationCreatedEvent) -> None:
        self._tell(event.relation)

    def _tell(self, relation: ops.Relation) -> None:
        relation.data[self.unit]["port"] = str(self.port)

    def _on_page(self, event: ops.ActionEvent) -> None:
        try:
            event.set_results({"page": self._page()})
        except OSError as error:
            event.fail(f"the server does not answer: {error}")

    def _page(self) -> str:
        with urllib.request.urlopen(f"http://localhost:{self.port}/", timeout=10) as answer:
            return answer.read().decode()

    def _on_collect_status(self, event: ops.CollectStatusEvent) -> None:
        if not self.container.can_connect():
            event.add_status(ops.WaitingStatus("waiting for the container"))
            return
        service = self.container.get_services("nginx").get("nginx")
        if service is None or not service.is_running():
            event.add_status(ops.WaitingStatus("nginx does not run"))
            return
        failed = [name for name, check in self.container.get_checks().items() if check.failures >= (check.threshold or 1)]
        if failed:
            event.add_status(ops.WaitingStatus("nginx does not answer"))
        event.add_status(ops.ActiveStatus(str(self.config["title"])))


if __name__ == "__main__":
    ops.main(NginxCharm)
