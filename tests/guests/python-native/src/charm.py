#!/usr/bin/env python3
"""Uses native code in a hook, as the option `mode` says; what comes of it is the unit's status."""

import datetime
import typing

import jsonschema
import msgspec
import ops
import pydantic
import rpds


class Plain(pydantic.BaseModel):
    """A service without a certificate."""

    kind: typing.Literal["plain"]
    port: int = pydantic.Field(ge=1, le=65535)


class Secured(pydantic.BaseModel):
    """A service with one."""

    kind: typing.Literal["secured"]
    certificate: str


Service = pydantic.TypeAdapter(typing.Annotated[Plain | Secured, pydantic.Field(discriminator="kind")])


Numbers = pydantic.TypeAdapter(list[int])


class Address(typing.NamedTuple):
    """Where a service is."""

    host: str
    port: int = 25


class Access(pydantic.BaseModel):
    """As charms read what others wrote."""

    address: Address
    tags: frozenset[str] = frozenset()


class Disk(msgspec.Struct, tag="disk"):
    """What a unit says of its storage."""

    size: int
    written: datetime.datetime


class Share(msgspec.Struct, tag="share", rename="kebab"):
    """The same of storage elsewhere."""

    mount_point: str
    tags: set[str] = set()


#: Made while the component is built.
VOLUMES = msgspec.json.Decoder(list[Disk | Share])

SCHEMA = {"type": "object", "properties": {"a": {"$ref": "#/$defs/one"}}, "$defs": {"one": {"type": "integer"}}}

#: Made while the component is built, and so with a hash seed that is in its memory.
WORDS = rpds.HashTrieSet(f"word {number}" for number in range(20))


class NativeCharm(ops.CharmBase):
    def __init__(self, framework: ops.Framework):
        super().__init__(framework)
        framework.observe(self.on.config_changed, self._on_config_changed)

    def _on_config_changed(self, _: ops.EventBase) -> None:
        done = getattr(self, f"_{self.config['mode']}")()
        self.unit.status = ops.ActiveStatus(done)

    def _read(self) -> str:
        return repr(Service.validate_python(self.config))

    def _name(self) -> str:
        access = Access.model_validate_json('{"address": ["a.b", "26"], "tags": ["x"]}')
        assert access == Access(address=Address("a.b", 26), tags={"x"}), access
        return access.model_dump_json()

    def _judge(self) -> str:
        jsonschema.validate({"a": 1}, SCHEMA)
        try:
            jsonschema.validate({"a": "x"}, SCHEMA)
        except jsonschema.ValidationError as error:
            return error.message
        raise AssertionError("what is wrong was taken")

    def _decode(self) -> str:
        text = b'[{"type": "disk", "size": 1099511627776, "written": "2026-01-02T03:04:05Z"}, {"type": "share", "mount-point": "/a"}]'
        volumes = VOLUMES.decode(text)
        written = datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.timezone.utc)
        assert volumes == [Disk(size=2**40, written=written), Share(mount_point="/a")], volumes
        assert msgspec.msgpack.decode(msgspec.msgpack.encode(volumes), type=list[Disk | Share]) == volumes
        try:
            VOLUMES.decode(b'[{"type": "share", "mount-point": 1}]')
        except msgspec.ValidationError as error:
            return f"{msgspec.json.encode(volumes[1]).decode()}, {error}"
        raise AssertionError("what is wrong was taken")

    def _raise(self) -> str:
        try:
            return repr(Plain(kind="plain", port=0))
        except pydantic.ValidationError as error:
            return f"{error.error_count()} wrong: {error.errors()[0]['msg']}"

    def _fail(self) -> str:
        return repr(Plain(kind="plain", port=0))

    def _order(self) -> str:
        drawn = rpds.HashTrieSet(f"other {number}" for number in range(20))
        return ", ".join((*WORDS, *drawn))

    def _panic(self) -> str:
        try:
            return repr(rpds.HashTrieMap().insert(Incomparable(), 1).insert(Incomparable(), 2))
        except BaseException as error:
            return f"caught {error!r}"


    def _fill(self) -> str:
        return str(len(Numbers.validate_json("[" + "1," * 30_000_000 + "1]")))


class Incomparable:
    """A key that rpds cannot compare with another one, and panics."""

    def __hash__(self) -> int:
        return 1

    def __eq__(self, other: object) -> bool:
        raise ValueError("these are not compared")


if __name__ == "__main__":
    ops.main(NativeCharm)
