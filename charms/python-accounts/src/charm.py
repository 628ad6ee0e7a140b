#!/usr/bin/env python3
"""Gives each application that asks an account of its own."""

import logging
import secrets
import string

import ops
from charms.python_accounts.v0.accounts import AccountProvider

logger = logging.getLogger(__name__)

ALPHABET = string.ascii_letters + string.digits


class AccountsCharm(ops.CharmBase):
    """One account for each relation."""

    _stored = ops.StoredState()

    def __init__(self, framework: ops.Framework):
        super().__init__(framework)
        self._stored.set_default(given=0)
        self.accounts = AccountProvider(self, "accounts")
        framework.observe(self.on.config_changed, self._on_config_changed)
        framework.observe(self.on.accounts_relation_created, self._on_relation_created)
        framework.observe(self.on.list_action, self._on_list)
        framework.observe(self.on.replace_password_action, self._on_replace_password)
        framework.observe(self.on.collect_unit_status, self._on_collect_status)

    def _on_config_changed(self, _: ops.ConfigChangedEvent) -> None:
        logger.info("accounts are given out: %s", self.config["open"])

    def _on_relation_created(self, event: ops.RelationCreatedEvent) -> None:
        if not self.unit.is_leader():
            return
        if not self.config["open"] or self._length() is None:
            # The requirer waits until the operator has corrected the option.
            event.defer()
            return
        name = self.accounts.give(event.relation, self._password())
        self._stored.given += 1
        logger.info("account %s was given out", name)

    def _on_list(self, event: ops.ActionEvent) -> None:
        known = self.accounts.accounts()
        event.set_results({name: relation.app.name for name, relation in known.items()})

    def _on_replace_password(self, event: ops.ActionEvent) -> None:
        relation = self.accounts.accounts().get(event.params["account"])
        if relation is None:
            event.fail(f"there is no account {event.params['account']}")
            return
        self.accounts.replace(relation, self._password())
        event.log("the new password is on its way")
        event.set_results({"replaced": event.params["account"]})

    def _on_collect_status(self, event: ops.CollectStatusEvent) -> None:
        if self._length() is None:
            event.add_status(ops.BlockedStatus("password-length must be from 8 to 64"))
        if not self.config["open"]:
            event.add_status(ops.MaintenanceStatus("no accounts are given out"))
        event.add_status(ops.ActiveStatus(f"{self._stored.given} accounts given out"))

    def _length(self) -> int | None:
        length = int(self.config["password-length"])
        return length if 8 <= length <= 64 else None

    def _password(self) -> str:
        return "".join(secrets.choice(ALPHABET) for _ in range(self._length() or 24))


if __name__ == "__main__":
    ops.main(AccountsCharm)
