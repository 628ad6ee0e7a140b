"""The `accounts` interface, for both sides.

A provider leaves in its application bag the account's name and the URI of a secret with its password; the application that required
it is told by an event of its own when both are there, and again when the password was replaced.

    self.account = AccountRequirer(self, "account")
    self.framework.observe(self.account.on.ready, self._on_account)
"""

import ops

LIBID = "6d2a9c8a4e8b4d0c9f0d1b7a3f5e2c11"
LIBAPI = 0
LIBPATCH = 1


class AccountReadyEvent(ops.EventBase):
    """The account can be used, or its password was replaced."""


class AccountEvents(ops.ObjectEvents):
    """What a requirer observes."""

    ready = ops.EventSource(AccountReadyEvent)


class AccountRequirer(ops.Object):
    """The side that wants an account."""

    on = AccountEvents()

    def __init__(self, charm: ops.CharmBase, endpoint: str):
        super().__init__(charm, endpoint)
        self._charm, self._endpoint = charm, endpoint
        self.framework.observe(charm.on[endpoint].relation_changed, self._on_changed)
        self.framework.observe(charm.on.secret_changed, self._on_secret_changed)

    @property
    def name(self) -> str | None:
        """The account's name, once there is one."""
        return self._bag().get("account")

    def password(self) -> str | None:
        """The account's password, once there is one; the newest."""
        uri = self._bag().get("secret")
        if uri is None:
            return None
        return self.model.get_secret(id=uri).get_content(refresh=True)["password"]

    def _bag(self) -> ops.RelationDataContent | dict[str, str]:
        relation = self.model.get_relation(self._endpoint)
        return relation.data[relation.app] if relation and relation.app else {}

    def _on_changed(self, _: ops.RelationChangedEvent) -> None:
        if self.name:
            self.on.ready.emit()

    def _on_secret_changed(self, event: ops.SecretChangedEvent) -> None:
        if event.secret.id and event.secret.id == self._bag().get("secret"):
            self.on.ready.emit()


class AccountProvider(ops.Object):
    """The side that gives accounts out."""

    def __init__(self, charm: ops.CharmBase, endpoint: str):
        super().__init__(charm, endpoint)
        self._charm, self._endpoint = charm, endpoint

    def accounts(self) -> dict[str, ops.Relation]:
        """All accounts by name, with the relations that they are for."""
        known = {}
        for relation in self.model.relations[self._endpoint]:
            name = relation.data[self.model.app].get("account")
            if name:
                known[name] = relation
        return known

    def give(self, relation: ops.Relation, password: str) -> str:
        """Make an account for a relation, and say so; answers its name."""
        name = f"{relation.app.name}-{relation.id}"
        secret = self.model.app.add_secret({"password": password}, label=f"account-{relation.id}")
        secret.grant(relation)
        relation.data[self.model.app].update({"account": name, "secret": secret.id})
        return name

    def replace(self, relation: ops.Relation, password: str) -> None:
        """Give the account of a relation another password."""
        self.model.get_secret(label=f"account-{relation.id}").set_content({"password": password})
