"""URLs: taken apart, brought into one form, and put together."""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import parse_qsl, quote

from .choices import listed
from .errors import Lines, ValidationError, fail
from .scalars import option
from .state import LAX

#: Schemes whose paths begin with a slash, with their ports.
SPECIAL = {"http": 80, "https": 443, "ws": 80, "wss": 443, "ftp": 21, "file": None}

_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):(?P<rest>.*)", re.DOTALL)
_PATH_SAFE = "/%:@!$&'()*+,;=~[]|^"
_QUERY_SAFE = "/%:@!$&()*+,;=?~[]|^`{}\\"


class UrlError(ValueError):
    """Why a text is no URL."""


class _Parts:
    """A URL's parts, in their one form."""

    __slots__ = ("fragment", "hosts", "is_opaque", "path", "query", "scheme")


def taken_apart(text: str, many_hosts=False, keep_empty=False) -> _Parts:
    """The parts of a URL."""
    text = re.sub(r"[\t\r\n]", "", text.strip("".join(map(chr, range(33)))))
    if not text:
        raise UrlError("input is empty")
    found = _URL.fullmatch(text)
    if not found:
        raise UrlError("relative URL without a base")
    parts = _Parts()
    parts.scheme, rest = found["scheme"].lower(), found["rest"]
    is_special = parts.scheme in SPECIAL
    rest, mark, fragment = rest.partition("#")
    parts.fragment = quote(fragment, safe=_QUERY_SAFE + "#'") if mark else None
    rest, mark, query = rest.partition("?")
    parts.query = quote(query, safe=_QUERY_SAFE + ("" if is_special else "'")) if mark else None
    if is_special:
        rest = rest.replace("\\", "/")
        if parts.scheme != "file":
            rest = "//" + rest.lstrip("/")
    parts.hosts, parts.is_opaque = [], not rest.startswith("//") and not rest.startswith("/")
    path = rest
    if rest.startswith("//"):
        place, slash, path = rest[2:].partition("/")
        path = slash + path
        user, at, place = place.rpartition("@")
        username, _, password = user.partition(":")
        hosts = place.split(",") if many_hosts else [place]
        for index, host in enumerate(hosts):
            name, port = _host(host, parts.scheme, is_special)
            own = index == 0 and at
            parts.hosts.append(
                (quote(username, safe="%!$&'()*+,;=~") or None if own else None, quote(password, safe="%!$&'()*+,;=:~") or None if own else None, name, port)
            )
        if is_special and parts.scheme != "file" and not any(host[2] for host in parts.hosts):
            raise UrlError("empty host")
    path = quote(path, safe=_PATH_SAFE) if not parts.is_opaque else path
    path = _without_dots(path) if not parts.is_opaque else path
    if is_special and not path and not keep_empty:
        path = "/"
    parts.path = path or None
    return parts


def _host(text, scheme, is_special):
    found = re.fullmatch(r"(?P<name>\[[^\]]*\]|[^:]*)(?::(?P<port>.*))?", text)
    if not found:
        raise UrlError("invalid port number")
    name, port = found["name"], found["port"] or None
    if port is not None and not (port.isdigit() and int(port) < 65536):
        raise UrlError("invalid port number")
    number = int(port) if port else None
    if name.startswith("["):
        try:
            return f"[{ipaddress.IPv6Address(name[1:-1])}]", _port(number, scheme)
        except ValueError:
            raise UrlError("invalid IPv6 address") from None
    if is_special and name:
        if re.search(r"[\s#<>\[\]^|%\\]", name):
            raise UrlError("invalid international domain name")
        try:
            name = name.lower() if name.isascii() else name.lower().encode("idna").decode()
        except UnicodeError:
            raise UrlError("invalid international domain name") from None
        if re.fullmatch(r"[\d.]+", name) and name.rstrip(".").rpartition(".")[2].isdigit():
            try:
                name = str(ipaddress.IPv4Address(name))
            except ValueError:
                raise UrlError("invalid IPv4 address") from None
    return name or None, _port(number, scheme)


def _port(number, scheme):
    return SPECIAL.get(scheme) if number is None else number


def _without_dots(path):
    if "/." not in path:
        return path
    done: list[str] = []
    steps = path.split("/")[1:]
    for place, step in enumerate(steps):
        is_last = place == len(steps) - 1
        if step == "..":
            done = done[:-1]
        elif step != ".":
            done.append(step)
            continue
        if is_last:
            done.append("")
    return "/" + "/".join(done)


class _Url:
    """What both kinds of URLs have in common."""

    __slots__ = ("_parts",)
    _many = False

    def __new__(cls, url, *, preserve_empty_path=False):
        made = super().__new__(cls)
        try:
            made._parts = taken_apart(str(url), cls._many, preserve_empty_path)
        except UrlError as error:
            line = {"type": "url_parsing", "loc": (), "input": url, "ctx": {"error": str(error)}}
            raise ValidationError.from_exception_data(cls.__name__, [line]) from None
        return made

    @property
    def scheme(self):
        return self._parts.scheme

    @property
    def path(self):
        return self._parts.path

    @property
    def query(self):
        return self._parts.query

    @property
    def fragment(self):
        return self._parts.fragment

    def query_params(self):
        return parse_qsl(self.query or "", keep_blank_values=True)

    def _text(self, name=lambda host: host):
        parts = self._parts
        text = f"{parts.scheme}:"
        if parts.hosts:
            text += "//" + ",".join(_of_host(host, parts.scheme, name) for host in parts.hosts)
        text += parts.path or ""
        text += "" if parts.query is None else f"?{parts.query}"
        return text + ("" if parts.fragment is None else f"#{parts.fragment}")

    def unicode_string(self):
        return self._text(_unicode)

    def __str__(self):
        return self._text()

    def __repr__(self):
        return f"{type(self).__name__}({str(self)!r})"

    def __eq__(self, other):
        return type(self) is type(other) and str(self) == str(other)

    def __lt__(self, other):
        return str(self) < str(other)

    def __le__(self, other):
        return str(self) <= str(other)

    def __gt__(self, other):
        return str(self) > str(other)

    def __ge__(self, other):
        return str(self) >= str(other)

    def __hash__(self):
        return hash(str(self))

    def __bool__(self):
        return True

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        return type(self), (str(self),)


def _of_host(host, scheme, name):
    username, password, place, port = host
    text = ""
    if username or password:
        text = (username or "") + (f":{password}" if password else "") + "@"
    text += name(place) if place else ""
    return text + (f":{port}" if port is not None and port != SPECIAL.get(scheme) else "")


def _unicode(host):
    try:
        return host.encode().decode("idna") if "xn--" in host else host
    except UnicodeError:
        return host


class Url(_Url):
    """A URL with one host."""

    __slots__ = ()

    def _host_part(self, index):
        return self._parts.hosts[0][index] if self._parts.hosts else None

    @property
    def username(self):
        return self._host_part(0)

    @property
    def password(self):
        return self._host_part(1)

    @property
    def host(self):
        return self._host_part(2)

    @property
    def port(self):
        return self._host_part(3)

    def unicode_host(self):
        return _unicode(self.host) if self.host else None

    @classmethod
    def build(cls, *, scheme, host, username=None, password=None, port=None, path=None, query=None, fragment=None, **others):
        """Put one together."""
        return cls(_built(scheme, _built_host(host, username, password, port), path, query, fragment))


class MultiHostUrl(_Url):
    """A URL with several hosts, as databases have them."""

    __slots__ = ()
    _many = True

    def hosts(self):
        names = ("username", "password", "host", "port")
        return [dict(zip(names, host)) for host in self._parts.hosts]

    @classmethod
    def build(cls, *, scheme, hosts=None, username=None, password=None, host=None, port=None, path=None, query=None, fragment=None, **others):
        """Put one together."""
        if hosts is not None:
            if host or username or password or port:
                raise ValueError("expected one of `hosts` or singular values to be set.")
            place = ",".join(_built_host(x.get("host"), x.get("username"), x.get("password"), x.get("port")) for x in hosts)
        elif host is not None:
            place = _built_host(host, username, password, port)
        else:
            raise ValueError("expected either `host` or `hosts` to be set")
        return cls(_built(scheme, place, path, query, fragment))


def _built_host(host, username, password, port):
    user = (username or "") + (f":{password}" if password else "")
    return (f"{user}@" if user else "") + (host or "") + (f":{port}" if port is not None else "")


def _built(scheme, place, path, query, fragment):
    text = f"{scheme}://{place}"
    text += f"/{path.removeprefix('/')}" if path else ""
    text += f"?{query}" if query else ""
    return text + (f"#{fragment}" if fragment else "")


class UrlValidator:
    """Takes URLs, and texts for them."""

    name, cls = "url", Url

    def __init__(self, schema, build):
        self.strict = option(schema, build.config, "strict", default=False)
        self.longest, self.schemes = schema.get("max_length"), schema.get("allowed_schemes")
        self.needs_host = bool(schema.get("host_required"))
        self.host, self.port, self.path = (schema.get(f"default_{name}") for name in ("host", "port", "path"))
        self.keep_empty = option(schema, build.config, "preserve_empty_path", "url_preserve_empty_path", False)

    def validate(self, value, state):
        url = self._url(value, state)
        parts = url._parts
        if self.schemes is not None and parts.scheme not in self.schemes:
            raise fail("url_scheme", value, expected_schemes=listed(self.schemes))
        parts.hosts = [(user, word, host or self.host, self.port if port is None else port) for user, word, host, port in parts.hosts]
        if self.path is not None and parts.path in (None, "/") and not parts.is_opaque:
            parts.path = parts.path if parts.path == "/" and parts.scheme in SPECIAL else self.path
        if self.needs_host and not any(host[2] for host in parts.hosts):
            raise fail("url_parsing", value, error="empty host")
        return url

    def _url(self, value, state):
        if type(value) is self.cls:
            return type(value)(str(value), preserve_empty_path=self.keep_empty)
        is_text = isinstance(value, str)
        if not is_text and not isinstance(value, (Url, MultiHostUrl)):
            if not hasattr(type(value), "unicode_string"):
                raise fail("url_type", value)
        text = value if is_text else str(value)
        if self.longest is not None and len(text) > self.longest:
            raise fail("url_too_long", value, max_length=self.longest)
        if is_text and state.mode == "python" and state.is_strict(self.strict) is None:
            raise fail("url_type", value)
        state.floor(LAX)
        try:
            return self.cls(text, preserve_empty_path=self.keep_empty)
        except ValidationError as error:
            raise Lines([line for line in _at(error, value)]) from None


def _at(error, value):
    for line in error._lines:
        line.input = value
        yield line


class MultiHostUrlValidator(UrlValidator):
    """Takes URLs with several hosts, and texts for them."""

    name, cls = "multi-host-url", MultiHostUrl
