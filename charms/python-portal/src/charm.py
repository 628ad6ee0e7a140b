#!/usr/bin/env python3
"""A page for users who have an account."""

import logging
import pathlib
import string

import ops
from charms.python_accounts.v0.accounts import AccountRequirer

logger = logging.getLogger(__name__)

TEMPLATE = pathlib.Path(__file__).parent.parent / "templates" / "page.txt"


class PortalCharm(ops.CharmBase):
    """Renders a page with what its relation brings."""

    def __init__(self, framework: ops.Framework):
        super().__init__(framework)
        self.account = AccountRequirer(self, "account")
        framework.observe(self.account.on.ready, self._on_account_ready)
        framework.observe(self.on.config_changed, self._on_config_changed)
        framework.observe(self.on.show_action, self._on_show)
        framework.observe(self.on.collect_unit_status, self._on_collect_status)

    def _on_account_ready(self, _: ops.EventBase) -> None:
        logger.info("the account %s can be used", self.account.name)
        self._open()

    def _on_config_changed(self, _: ops.ConfigChangedEvent) -> None:
        if self.account.name:
            self._open()

    def _open(self) -> None:
        self.unit.set_ports(int(self.config["port"]))
        container = self.unit.get_container("web")
        if container.can_connect():
            container.push("/srv/page.txt", self._page())

    def _on_show(self, event: ops.ActionEvent) -> None:
        if not self.account.name:
            event.fail("there is no account yet")
            return
        event.set_results({"page": self._page()})

    def _on_collect_status(self, event: ops.CollectStatusEvent) -> None:
        if not self.model.get_relation("account"):
            event.add_status(ops.BlockedStatus("integrate it with an application that gives accounts"))
        elif not self.account.name:
            event.add_status(ops.WaitingStatus("waiting for an account"))
        event.add_status(ops.ActiveStatus(f"{self.config['title']}: signed in as {self.account.name}"))

    def _page(self) -> str:
        template = string.Template(TEMPLATE.read_text(encoding="utf-8"))
        password = self.account.password() or ""
        return template.substitute(title=self.config["title"], account=self.account.name, length=len(password))


if __name__ == "__main__":
    ops.main(PortalCharm)
