"""What pydantic is asked, and what becomes of it: the same text natively and in the sandbox."""

import datetime
import enum
import json
import types
import typing
import warnings
from decimal import Decimal
from fractions import Fraction
from ipaddress import IPv4Address
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, Optional, TypeVar, Union
from uuid import UUID

import pydantic
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic_core import MISSING
from typing_extensions import TypedDict

T = TypeVar("T")


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Mode(enum.IntFlag):
    READ = 1
    WRITE = 2


class Word(enum.Enum):
    YES = "yes"
    NO = "no"

    @classmethod
    def _missing_(cls, value):
        if value == 5:
            return 5
        return cls.YES if isinstance(value, str) and value.lower() == "yes" else None


class Relay(BaseModel):
    model_config = ConfigDict(populate_by_name=True)

    host: str = Field(min_length=1)
    port: int = Field(default=25, ge=1, le=65536)
    user: Optional[str] = Field(None, alias="user-name")
    colors: list[Color] = []
    password: pydantic.SecretStr | None = None

    @pydantic.field_validator("host")
    @classmethod
    def lower(cls, value: str) -> str:
        if value == "bad":
            raise ValueError("no such host")
        return value.lower()

    @pydantic.model_validator(mode="after")
    def has_user(self):
        assert self.password is None or self.user, "a password needs a user"
        return self


class Partial(BaseModel):
    a: Union[int, MISSING] = MISSING
    b: Union[str, None, MISSING] = MISSING


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    a: int
    b: str = "x"


class Loose(BaseModel):
    model_config = ConfigDict(extra="allow", use_enum_values=True, str_strip_whitespace=True)

    level: Level = Level.LOW
    text: str = ""


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int = 9


class Dog(BaseModel):
    kind: Literal["dog"]
    good: bool = True


class Home(BaseModel):
    pet: Annotated[Union[Cat, Dog], Field(discriminator="kind")]
    guests: dict[str, Union[int, str]] = {}


class Tree(BaseModel):
    name: str
    below: list["Tree"] = []


class Box(BaseModel, Generic[T]):
    item: T


class Shown(BaseModel):
    at: datetime.datetime
    span: datetime.timedelta
    cost: Decimal
    id: UUID
    address: IPv4Address
    path: Path
    url: pydantic.AnyHttpUrl
    raw: bytes = b"x"

    @pydantic.field_serializer("cost")
    def plain(self, cost: Decimal) -> str:
        return f"{cost}!"

    @pydantic.computed_field
    @property
    def day(self) -> int:
        return self.at.day


class Named(TypedDict, total=False):
    a: int
    b: str


@pydantic.dataclasses.dataclass(slots=True)
class Slots:
    x: int
    y: str = "a"


@pydantic.dataclasses.dataclass
class Point:
    x: int
    y: int = 0
    tags: tuple[str, ...] = ()


class Same:
    def __eq__(self, other):
        return isinstance(other, Same)


class Defaults(BaseModel):
    a: Any = Same()
    b: Any = object()
    c: Any = (1, [2])
    d: Any = [1]
    e: Any = frozenset({1})
    f: Any = {1: 2}


class Root(pydantic.RootModel[list[int]]):
    pass


class Address(typing.NamedTuple):
    host: str
    port: int = 25


#: A type, and inputs for it: values, or JSON in a `Json`.
class Json(str):
    pass


SHOWN = {
    "at": "2024-02-29T10:00:00Z",
    "span": "P1DT2H",
    "cost": "1.50",
    "id": "12345678-1234-5678-1234-567812345678",
    "address": "10.0.0.1",
    "path": "/a/b",
    "url": "HTTPS://Example.COM:443/a?b=c",
}

CASES = [
    (int, ["1", " 2 ", 3.0, 3.5, True, "x", None, [], "1.0", "1e3", b"4", Decimal(5)]),
    (float, ["1.5", 2, True, "x", None, "inf"]),
    (bool, ["yes", "off", 1, 0.0, 2, "x", None]),
    (str, ["a", 1, b"b", None, Color.RED]),
    (bytes, ["a", b"b", 1]),
    (Optional[int], [None, "3", "x"]),
    (Union[int, str], ["1", 1, 1.5, None]),
    (Union[float, int], [1, 1.0, "1"]),
    (Union[bool, int, str], ["true", 1, True]),
    (list[int], [["1", 2], (3,), {4}, "5", {"a": 1}, ["x", "y"]]),
    (set[int], [[1, "1", 2], "x", [[]]]),
    (tuple[int, str], [[1, "a"], (1,), (1, "a", 2)]),
    (tuple[int, ...], [["1", 2], 1]),
    (dict[str, int], [{"a": "1"}, {1: 1}, [], {"a": "x"}]),
    (Literal["a", "b", 3], ["a", 3, "3", None]),
    (Color, ["red", Color.BLUE, "green", None]),
    (Level, [1, "2", 3, 2.0, True]),
    (Mode, [1, 3, 8, 0, -1, "3", 3.0, 3.5, True, None, Json("3"), Json('"3"')]),
    (Word, ["yes", "YES", "x", 1, 5, Json('"YES"')]),
    (Union[int, MISSING], [1, "2", "x", MISSING]),
    (Partial, [{}, {"a": 1}, {"a": "x"}, {"b": None}, {"a": MISSING, "b": MISSING}]),
    (Slots, [{"x": "1"}, {"y": 1}]),
    *[
        (Annotated[str, Field(pattern=pattern)], ["a", "a\n", "$", "$\n", "a$", "ab\n", "]", "\n", "b"])
        for pattern in ("^a$", "^[$]$", r"^a\$$", "a$|b$", "(?m)^a$", r"^[\]$]$", "^[]$]$", "^[^]$]$", "(?P<x>a)$", "(?<x>a)$", r"\Aa\z", r"\\z|a")
    ],
    (Annotated[str, Field(pattern=r"^a+$", max_length=3)], ["aa", "b", "aaaa"]),
    (Annotated[list[int], Field(min_length=1, max_length=2)], [[], [1], [1, 2, 3]]),
    (Annotated[int, Field(multiple_of=3, gt=0)], [3, 4, 0]),
    (Decimal, ["1.1", 2, "x", None]),
    (UUID, ["12345678-1234-5678-1234-567812345678", 3]),
    (datetime.date, ["2024-01-02", "2024-01-02T00:00:00", datetime.date(2024, 1, 2), 0, None]),
    (datetime.datetime, ["2024-01-02 03:04:05+01:00", 1700000000, "2024-01-02", None]),
    (datetime.datetime, [f"2024-01-02T03:04:05{rest}" for rest in ("+05", "+0530", " +05:00", "+24:00", "z", ".1234567", "x", " ")]),
    (datetime.datetime, ["2024-01-02T03", "2024-02-30", "2024-01-02T03:04:60", "2024-13-02T03:04", " 2024-01-02T03:04"]),
    (datetime.timedelta, ["P1DT2H", "-PT1.5S", "12:30:00", 90, None, 1.5, "p1d", " P1D", "P0.5Y", "P1W", "P1DT2H3M4.5S"]),
    (datetime.timedelta, ["1 day", "2 days", "1d", "-9 days", "3 days, 2:01:01", "1d 02:03:04", "1 day 2", "10 days 10:10", "123:00:00"]),
    (datetime.timedelta, ["20240101", "-1", "1", "1.5", "1e3", "1:00", "00:00:90", "00:60:00", "5:5:5", "12:30:00.1234567", "+12:30"]),
    (datetime.time, ["10:20", "10:20:30.5Z", None, "25:00", "10:60", "10:20:60", "10:20+05", "10:20-0530", "10:20 Z"]),
    (float, ["1e-7", 1e-5, 1.234e-5, -2.5e-6, 1e-4, 5e-324, 1e16, 1e22]),
    (list[Any], [["1e-07", 1e-7, 'a"1e-07', {"1e-07": 1e-7}]]),
    (pydantic.AnyUrl, ["http://a", "http://user:pw@A.b:80/x/../y?q#f", "mailto:x@y", "x", 1]),
    (pydantic.AnyHttpUrl, ["https://a:8443", "ftp://a", "http://"]),
    (pydantic.PostgresDsn, ["postgres://u:p@h1:1,h2:2/db", "http://x"]),
    (pydantic.Json, ['{"a": [1]}', "{", 1]),
    (pydantic.SecretStr, ["x", 1]),
    (Any, [1, None, "x"]),
    (Relay, [{"host": "A"}, {"host": "", "port": 0}, {"host": "bad"}, {}, {"host": "a", "password": "x"}, [], None]),
    (Relay, [{"host": "a", "user-name": "u", "password": "p", "colors": ["red"]}, {"host": "a", "user": "u", "colors": ["x"]}]),
    (Strict, [{"a": 1}, {"a": 1, "c": 2}, {"b": 1}]),
    (Loose, [{"level": 2, "text": " a ", "more": [1]}, {"level": 5}]),
    (Home, [{"pet": {"kind": "cat"}}, {"pet": {"kind": "cow"}}, {"pet": {}}, {"pet": {"kind": "dog", "good": 7}, "guests": {"a": "1"}}]),
    (Tree, [{"name": "a", "below": [{"name": "b", "below": [{"name": 1}]}]}, {"name": "a", "below": [{"name": "b"}]}]),
    (Box[int], [{"item": "1"}, {"item": "x"}]),
    (Box[list[Strict]], [{"item": [{"a": 1}, {"a": "y"}]}]),
    (Shown, [SHOWN, {**SHOWN, "cost": "x", "address": "x", "url": "x"}]),
    (Named, [{"a": "1"}, {"b": 1, "c": 2}, []]),
    (Point, [{"x": "1", "tags": ["a"]}, {"y": 1}, []]),
    (Root, [["1"], ["x"]]),
    (Relay, [Json('{"host": "A", "port": "26"}'), Json('{"host": 1}'), Json("[]"), Json("{")]),
    (Shown, [Json(json.dumps(SHOWN))]),
    (Home, [Json('{"pet": {"kind": "dog"}, "guests": {"a": 1.5}}')]),
    # As configuration comes to a charm.
    (Home, [types.MappingProxyType({"pet": types.MappingProxyType({"kind": "cat", "lives": "7"})})]),
    (Annotated[Union[Cat, Dog], Field(discriminator="kind")], [types.MappingProxyType({"kind": "dog"}), types.MappingProxyType({})]),
    (Address, [("a", "1"), {"host": "a"}, ("a", "x"), (), Json('["a", 1]')]),
    (frozenset[int], [[1, "2"], "x"]),
    (complex, [1, "1+2j", "x"]),
    (Fraction, ["1/3", 2, "x"]),
    (Annotated[str, Field(pattern="^[[:alpha:]]+$")], ["ab", "a1"]),
    (Annotated[str, Field(pattern="^[a-z&&[^b]]$")], ["a", "b"]),
]

#: Ways to serialize.
OPTIONS = [
    {},
    {"mode": "json"},
    {"by_alias": True},
    {"exclude_none": True, "exclude_unset": True},
    {"exclude_defaults": True},
    {"exclude": {"host", "pet", "at", "item"}},
    {"include": {"host": True, "pet": {"kind"}, "name": True}},
]


def outcome(function):
    """What comes of a call, in a text."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            result = function()
        except ValidationError as error:
            result = [str(error), error.errors(include_context=False)]
        except Exception as error:
            result = [type(error).__name__, str(error)]
    return repr((result, [str(warning.message) for warning in told]))


def line(*parts):
    """The parts of a line, as print shows them."""
    return " ".join(map(str, parts))


def name_of(kind):
    """What a type is called, whatever the release of Python."""
    origin = typing.get_origin(kind)
    if origin not in (Annotated, Union):
        return str(kind)
    return f"{'Union' if origin is Union else 'Annotated'}[{', '.join(map(name_of, typing.get_args(kind)))}]"


def shown(options):
    """Options, with sets in order."""
    return {name: sorted(value) if isinstance(value, set) else value for name, value in options.items()}


def lines():
    """One line for each case."""
    for kind, inputs in CASES:
        adapter = TypeAdapter(kind)
        for given in inputs:
            validate = adapter.validate_json if isinstance(given, Json) else adapter.validate_python
            yield line(name_of(kind), repr(given), "=>", outcome(lambda validate=validate, given=given: validate(given)))
            try:
                value = validate(given)
            except (ValidationError, TypeError):
                continue
            for options in OPTIONS:
                yield line("  ", shown(options), outcome(lambda v=value, a=adapter, o=options: a.dump_python(v, **o)))
            yield line("   json", outcome(lambda v=value, a=adapter: a.dump_json(v)))
    for text in (r'"\ud800"', r'{"\udc00": 1}', r'["a\ud83d"]'):
        yield line(text, outcome(lambda text=text: TypeAdapter(Any).validate_json(text)))
    yield line(outcome(lambda: TypeAdapter(str).dump_json("\ud800")), TypeAdapter(str).validate_json(r'"\ud83d\ude00"'))
    one, other = Defaults(), Defaults()
    yield line([getattr(one, name) is getattr(other, name) for name in Defaults.model_fields])
    home = Home(pet={"kind": "cat"})
    home.guests = {"a": object}
    yield line(outcome(lambda: home.model_dump_json()))
    strict = Strict(a=1)
    yield line(outcome(lambda: setattr(strict, "a", 2)), strict == Strict(a=1), sorted(strict.model_fields_set), strict.model_copy(update={"a": 3}))
    yield line(outcome(lambda: Relay.model_json_schema()), outcome(lambda: Home.model_json_schema()))
    assigned = pydantic.create_model("Assigned", __config__=ConfigDict(validate_assignment=True), a=(int, 1))()
    yield line(outcome(lambda: setattr(assigned, "a", "x")), outcome(lambda: setattr(assigned, "a", "5")), assigned)
    call = pydantic.validate_call(lambda a, b=2: a + b)
    yield line(outcome(lambda: call(1)), outcome(lambda: call()), outcome(lambda: call(1, 2, 3)))
