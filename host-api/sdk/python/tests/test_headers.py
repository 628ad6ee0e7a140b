"""The stand-in for `cgi`, which releases of `ops` up to 2.3 import."""

import importlib.util
import sys
import types

import pytest

from periapt_ops.stand_ins import headers

HEADERS = {
    "application/json": ("application/json", {}),
    "": ("", {}),
    "multipart/form-data; boundary=01234": ("multipart/form-data", {"boundary": "01234"}),
    ' multipart/form-data ;Boundary="a;b\\"c\\\\" ; x = 1;flag': (
        "multipart/form-data",
        {"boundary": 'a;b"c\\', "x": "1"},
    ),
    'a/b; c="unclosed; d=e': ("a/b", {"c": '"unclosed; d=e'}),
    "a/b; c=d=e;": ("a/b", {"c": "d=e"}),
}


@pytest.mark.parametrize("line", HEADERS)
def test_a_header_is_split_into_its_value_and_parameters(line):
    assert headers.parse_header(line) == HEADERS[line]


def test_the_module_is_found_where_nobody_else_has_it(monkeypatch):
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.delitem(sys.modules, "cgi", raising=False)
    headers.install()
    headers.install()
    last = sys.meta_path[-1]
    assert [finder for finder in sys.meta_path if isinstance(finder, headers.Finder)] == [last]
    assert last.find_spec("json") is None
    module = importlib.util.module_from_spec(last.find_spec("cgi"))
    module.__spec__.loader.exec_module(module)
    assert isinstance(module, types.ModuleType) and module.parse_header("a/b; c=d") == ("a/b", {"c": "d"})
