"""What protobuf before 5.29 asks `ctypes` for."""

import ctypes
import math
import sys

import pytest

from periapt_ops.stand_ins import floats


@pytest.mark.parametrize("value", [0.0, 1.1, -2.5, 1e-46, 3.4028235e38, 1e39, -1e39, math.inf, math.nan, 7])
def test_numbers_are_those_of_the_real_one(value):
    ours, real = floats.c_float(value).value, ctypes.c_float(value).value
    assert ours == real or math.isnan(ours) and math.isnan(real)


def test_one_module_alone_gets_it(tmp_path, monkeypatch):
    package = tmp_path / "google/protobuf/internal"
    package.mkdir(parents=True)
    source = "import ctypes\nrounded = ctypes.c_float(1.1).value\nhas_more = hasattr(ctypes, 'CDLL')\n"
    for name in ("type_checkers", "other"):
        (package / f"{name}.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    # Where it is missing, an import of it fails.
    monkeypatch.setitem(sys.modules, "ctypes", None)
    monkeypatch.setattr(sys, "meta_path", [floats.Finder(), *sys.meta_path])
    for name in [name for name in sys.modules if name.partition(".")[0] == "google"]:
        monkeypatch.delitem(sys.modules, name)
    from google.protobuf.internal import type_checkers

    assert (type_checkers.rounded, type_checkers.has_more) == (ctypes.c_float(1.1).value, False)
    with pytest.raises(ImportError):
        from google.protobuf.internal import other  # noqa: F401
    assert sys.modules["ctypes"] is None
