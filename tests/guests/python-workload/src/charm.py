#!/usr/bin/env python3
"""Serves a page from its container."""

import logging
import urllib.request

import ops

logger = logging.getLogger(__name__)


class WorkloadCharm(ops.CharmBase):
    """As authors write it: the workload is set up once Pebble is ready, and again at each change."""

    def __init__(self, framework: ops.Framework):
        super().__init__(framework)
        self.web = self.unit.get_container("web")
        framework.observe(self.on.web_pebble_ready, self._set_up)
        framework.observe(self.on.config_changed, self._set_up)
        framework.observe(self.on["web"].pebble_custom_notice, self._on_notice)
        framework.observe(self.on["web"].pebble_check_failed, self._on_check)
        framework.observe(self.on["web"].pebble_check_recovered, self._on_check)
        framework.observe(self.on.notify_action, self._on_notify)
        framework.observe(self.on.page_action, self._on_page)
        framework.observe(self.on.shout_action, self._on_shout)
        framework.observe(self.on.inspect_action, self._on_inspect)

    def _set_up(self, _: ops.EventBase) -> None:
        if not self.web.can_connect():
            self.unit.status = ops.WaitingStatus("Pebble is not there")
            return
        directory, port = self.config["directory"], self.config["port"]
        self.web.push(f"{directory}/page.txt", self.config["text"], make_dirs=True)
        command = f"python3 -m http.server {port} --bind 127.0.0.1 --directory {directory}"
        service = {"override": "replace", "startup": "enabled", "command": command, "backoff-delay": "100ms"}
        is_up = {"command": f"test -e {directory}/up"}
        check = {"override": "replace", "period": "200ms", "timeout": "30s", "threshold": 2, "exec": is_up}
        self.web.add_layer("web", {"services": {"web": service}, "checks": {"up": check}}, combine=True)
        self.web.replan()
        self.unit.status = ops.ActiveStatus(f"serving {self.config['text']}")

    def _on_notice(self, event: ops.PebbleCustomNoticeEvent) -> None:
        notice = event.notice
        logger.info("noticed %s %s %s %s", event.workload.name, notice.type, notice.key, notice.last_data.get("n"))

    def _on_check(self, event: ops.PebbleCheckEvent) -> None:
        logger.info("check %s of %s is %s", event.info.name, event.workload.name, event.info.status.value)

    def _on_notify(self, event: ops.ActionEvent) -> None:
        data = {"n": event.params["n"]}
        self.web.pebble.notify(ops.pebble.NoticeType.CUSTOM, event.params["key"], data=data)

    def _on_page(self, event: ops.ActionEvent) -> None:
        with urllib.request.urlopen(f"http://localhost:{self.config['port']}/page.txt", timeout=5) as page:
            event.set_results({"page": page.read().decode()})

    def _on_shout(self, event: ops.ActionEvent) -> None:
        text = event.params["text"] * event.params["times"]
        process = self.web.exec(["sh", "-c", "tr a-z A-Z; echo done >&2"], stdin=text, timeout=60)
        output, errors = process.wait_output()
        assert output == text.upper()
        event.set_results({"length": len(output), "begins": output[:20], "errors": errors})

    def _on_inspect(self, event: ops.ActionEvent) -> None:
        directory = self.config["directory"]
        files = [found.name for found in self.web.list_files(directory)]
        content = self.web.pull(f"{directory}/page.txt").read()
        service = self.web.get_service("web")
        try:
            self.web.exec(["sh", "-c", "exit 3"]).wait()
            failed = None
        except ops.pebble.ExecError as error:
            failed = error.exit_code
        event.set_results(
            {"files": ",".join(files), "content": content, "running": service.is_running(), "failed": failed}
        )


if __name__ == "__main__":
    ops.main(WorkloadCharm)
