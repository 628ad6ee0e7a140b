"""charm.py as a program."""

import os
import sys

import pytest

from periapt_ops import charm


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Loads a program and runs it."""
    monkeypatch.setenv("JUJU_CHARM_DIR", str(tmp_path))
    monkeypatch.setattr(sys, "argv", [])
    monkeypatch.setattr("atexit._run_exitfuncs", lambda: None)
    main, here = sys.modules["__main__"], os.getcwd()

    def run(source):
        program = charm.Program(source)
        module = program.load()
        return program.run(), module

    yield run
    sys.modules["__main__"] = main
    os.chdir(here)


@pytest.mark.parametrize(
    "main",
    [
        'if __name__ == "__main__":\n    main(C)',
        "if '__main__' == __name__:\n    ops.main(C)",
        'if __name__ == "__main__":  # pragma: no cover\n    ops.main.main(C)\nelse:\n    1 / 0',
        "main(C)",
        "ops.main(C)",
    ],
)
def test_every_way_to_write_main_is_run_in_the_hook_alone(run, main):
    source = "seen = []\nC = 1\n\ndef main(c): seen.append(c)\n\nclass ops:\n    main = main\nops.main.main = main\n"
    program = charm.Program(source + main)
    module = program.load()
    assert (module.seen, module.__name__) == ([], "__main__")
    ended, module = run(source + main)
    assert (ended.code, module.seen) == (0, [1])


def test_a_program_that_nothing_runs_is_refused():
    with pytest.raises(charm.NoMain):
        charm.Program("import os\n")


@pytest.mark.parametrize("code", ["3", "'no such release'", ""])
def test_a_program_that_ends_while_it_is_imported_is_refused(run, code):
    with pytest.raises(charm.EndsAtImport) as raised:
        run(f"import sys\nsys.exit({code})\nif __name__ == '__main__':\n    pass\n")
    assert str(raised.value) == f"the charm ends with sys.exit({code or None}) while it is imported"
    assert isinstance(raised.value.__cause__, SystemExit)


@pytest.mark.parametrize(
    ("main", "code", "message"),
    [("sys.exit()", 0, ""), ("sys.exit(3)", 3, ""), ("sys.exit('no')", 1, "no"), ("1 / 0", 1, "ZeroDivisionError: division by zero")],
)
def test_an_end_is_as_a_process_would_tell_it(run, capsys, main, code, message):
    ended, _ = run(f'import sys\nif __name__ == "__main__":\n    {main}')
    assert (ended.code, ended.message) == (code, message)
    assert message in capsys.readouterr().err


def test_the_library_for_traces_is_switched_off_in_the_hook(run, monkeypatch):
    # It starts threads otherwise, in the hook of each charm that has it.
    monkeypatch.setenv("CHARM_TRACING_ENABLED", "1")
    ended, module = run("import os\nif __name__ == '__main__':\n    said = os.getenv('CHARM_TRACING_ENABLED', '1')\n")
    assert (ended.code, module.said) == (0, "0")
