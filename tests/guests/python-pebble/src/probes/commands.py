"""Commands with their input, output, errors and ends."""

import io
import os
import pathlib
import tempfile
import threading
import time

import ops
from ops.pebble import APIError, ChangeError, ExecError, TimeoutError

from .probing import PATIENCE, Probes, contains, equal, raises

PROBES = Probes()

UPPER = ["tr", "a-z", "A-Z"]
BOTH = ["sh", "-c", "echo OUT; echo ERR >&2"]


@PROBES
def wait(container: ops.Container, place: str) -> None:
    container.exec(["true"]).wait()
    with raises(ExecError, exit_code=42, stdout=None, stderr=None) as raised:
        container.exec(["sh", "-c", "exit 42"]).wait()
    contains(str(raised.error), "non-zero exit code 42 executing 'sh'")


@PROBES
def wait_output(container: ops.Container, place: str) -> None:
    equal(container.exec(BOTH).wait_output(), ("OUT\n", "ERR\n"))
    equal(container.exec(BOTH, encoding=None).wait_output(), (b"OUT\n", b"ERR\n"))
    equal(container.exec(["true"]).wait_output(), ("", ""))


@PROBES
def wait_output_of_a_failure(container: ops.Container, place: str) -> None:
    with raises(ExecError, exit_code=42, stdout="OUT\n", stderr="ERR\n") as raised:
        container.exec([*BOTH[:2], f"{BOTH[2]}; exit 42"]).wait_output()
    contains(str(raised.error), "stdout='OUT\\n', stderr='ERR\\n'")


@PROBES
def input_of_text_and_bytes(container: ops.Container, place: str) -> None:
    equal(container.exec(UPPER, stdin="foo\nBar\n").wait_output(), ("FOO\nBAR\n", ""))
    equal(container.exec(UPPER, stdin=b"foo\nBar\n", encoding=None).wait_output(), (b"FOO\nBAR\n", b""))
    equal(container.exec(["cat"], stdin="ä", encoding="latin-1").wait_output(), ("ä", ""))
    equal(container.exec(["cat"], stdin="").wait_output(), ("", ""))


@PROBES
def input_of_objects_like_files(container: ops.Container, place: str) -> None:
    equal(container.exec(UPPER, stdin=io.StringIO("foo")).wait_output(), ("FOO", ""))
    equal(container.exec(UPPER, stdin=io.BytesIO(b"foo"), encoding=None).wait_output(), (b"FOO", b""))


@PROBES
def input_of_open_files(container: ops.Container, place: str) -> None:
    with tempfile.NamedTemporaryFile() as file:
        file.write(b"foo\n" * 20_000)
        file.flush()
        with open(file.name) as text:
            equal(container.exec(UPPER, stdin=text).wait_output(), ("FOO\n" * 20_000, ""))
        with open(file.name, "rb") as content:
            equal(container.exec(UPPER, stdin=content, encoding=None).wait_output(), (b"FOO\n" * 20_000, b""))
        # A command that does not read it all.
        with open(file.name, "rb") as content:
            equal(container.exec(["head", "-n", "1"], stdin=content, encoding=None).wait_output()[0], b"foo\n")
        with open(file.name) as text, raises(ExecError, exit_code=5):
            container.exec(["sh", "-c", "exit 5"], stdin=text).wait()


@PROBES
def much_input_and_output(container: ops.Container, place: str) -> None:
    text = "abcdefghi\n" * 200_000
    output, errors = container.exec(UPPER, stdin=text).wait_output()
    assert (output, errors) == (text.upper(), ""), (len(output), output[:40], errors)
    output, errors = container.exec(["sh", "-c", "cat >&2; echo end"], stdin=text).wait_output()
    assert (output, errors) == ("end\n", text), (output, len(errors))


@PROBES
def combined_errors(container: ops.Container, place: str) -> None:
    equal(container.exec(BOTH, combine_stderr=True).wait_output(), ("OUT\nERR\n", None))


@PROBES
def output_to_files(container: ops.Container, place: str) -> None:
    output, errors = io.StringIO(), io.StringIO()
    container.exec(BOTH, stdout=output, stderr=errors).wait()
    equal((output.getvalue(), errors.getvalue()), ("OUT\n", "ERR\n"))
    with tempfile.TemporaryFile() as file:
        container.exec(BOTH, stdout=file, encoding=None, combine_stderr=True).wait()
        file.seek(0)
        equal(file.read(), b"OUT\nERR\n")
    with raises(TypeError):
        container.exec(["true"], stdout=io.StringIO()).wait_output()


@PROBES
def dialogue(container: ops.Container, place: str) -> None:
    process = container.exec(["sh", "-c", "while read line; do echo got $line; done; echo end"])
    for word in ("one", "2", "THREE"):
        process.stdin.write(f"{word}\n")
        process.stdin.flush()
        equal(process.stdout.readline(), f"got {word}\n")
    process.stdin.close()
    equal((process.stdout.read(), process.stderr.read()), ("end\n", ""))
    process.wait()


@PROBES
def input_from_a_thread(container: ops.Container, place: str) -> None:
    for encoding, lines in (("utf-8", ["one\n", "2\n", "THREE\n"]), (None, [b"one\n", b"2\n", b"THREE\n"])):
        process = container.exec(["cat"], encoding=encoding)

        def write(process=process, lines=lines) -> None:
            try:
                for line in lines:
                    process.stdin.write(line)
                    process.stdin.flush()
                    time.sleep(0.05)
            finally:
                process.stdin.close()

        threading.Thread(target=write).start()
        equal(list(process.stdout), lines)
        process.wait()


@PROBES
def lines_as_they_come(container: ops.Container, place: str) -> None:
    waits = f"while ! test -e {place}/$n; do sleep 0.05; done"
    process = container.exec(["sh", "-c", f"for n in 1 2 3; do echo $n; {waits}; done"])
    seen = []
    for line in process.stdout:
        seen.append(line)
        # The command goes on once its line has come.
        container.push(f"{place}/{line.strip()}", "")
    process.wait()
    equal(seen, ["1\n", "2\n", "3\n"])


@PROBES
def timeout(container: ops.Container, place: str) -> None:
    for wait in ("wait", "wait_output"):
        process = container.exec(["sleep", "100"], timeout=0.2)
        # ops waits for a second more, which a busy machine may need.
        process._timeout = PATIENCE
        with raises(ChangeError) as raised:
            getattr(process, wait)()
        contains(raised.error.err, "timed out")
    container.exec(["true"], timeout=60).wait()


@PROBES
def timeout_while_another_process_has_the_output(container: ops.Container, place: str) -> None:
    process = container.exec(["sh", "-c", "setsid sleep 5 & sleep 100"], timeout=0.2)
    with raises(TimeoutError):
        process.wait_output()
    equal([thread.name for thread in process._threads if thread.is_alive()], [])


@PROBES
def working_dir(container: ops.Container, place: str) -> None:
    equal(container.exec(["pwd"], working_dir=place).wait_output(), (f"{place}\n", ""))
    equal(container.exec(["pwd"], working_dir=pathlib.PurePosixPath(place)).wait_output(), (f"{place}\n", ""))
    with raises(ChangeError) as raised:
        container.exec(["pwd"], working_dir=f"{place}/missing").wait()
    contains(raised.error.err, f"{place}/missing")


@PROBES
def environment(container: ops.Container, place: str) -> None:
    command = ["sh", "-c", "echo $ONE.$TWO.$THREE"]
    equal(container.exec(command, environment={"ONE": "1", "TWO": "2"}).wait_output(), ("1.2.\n", ""))


@PROBES
def service_context(container: ops.Container, place: str) -> None:
    context = {"environment": {"ONE": "1", "TWO": "2"}, "working-dir": place}
    service = {"override": "replace", "command": "sleep 1000", **context}
    container.add_layer("context", {"services": {"context": service}}, combine=True)
    command = ["sh", "-c", "echo $ONE.$TWO.$(pwd)"]
    process = container.exec(command, service_context="context", environment={"TWO": "two"})
    equal(process.wait_output(), (f"1.two.{place}\n", ""))
    with raises(APIError) as raised:
        container.exec(command, service_context="missing")
    contains(raised.error.message, 'context service "missing" not found')


@PROBES
def send_signal(container: ops.Container, place: str) -> None:
    # As a name, and as a number.
    for given, name in (("SIGUSR1", "USR1"), (1, "HUP")):
        process = container.exec(["sh", "-c", f'trap "exit 7" {name}; echo ready; while true; do sleep 0.05; done'])
        equal(process.stdout.readline(), "ready\n")
        process.send_signal(given)
        with raises(ExecError, exit_code=7):
            process.wait()


@PROBES
def a_program_that_is_missing(container: ops.Container, place: str) -> None:
    with raises(APIError):
        container.exec([f"{place}/missing"])
    with raises(APIError):
        container.exec(["periapt-has-no-such-program"])


@PROBES
def many_after_each_other(container: ops.Container, place: str) -> None:
    # More than a hook can have streams: each command has three of its own.
    for number in range(24):
        equal(container.exec(["echo", str(number)]).wait_output(), (f"{number}\n", ""))


@PROBES
def several_at_a_time(container: ops.Container, place: str) -> None:
    # Each has three streams of the 16 that a hook may have open, and the requests beside them need some, too.
    gate = ["sh", "-c", f"while ! test -e {place}/go; do sleep 0.05; done; cat"]
    processes = [container.exec(gate, stdin=str(number)) for number in range(4)]
    container.push(f"{place}/go", "")
    equal([process.wait_output() for process in processes], [(str(number), "") for number in range(4)])


@PROBES
def bytes_of_all_values(container: ops.Container, place: str) -> None:
    content = bytes(range(256)) * 40 + os.urandom(100_000)
    output, _ = container.exec(["cat"], stdin=content, encoding=None).wait_output()
    assert output == content, (len(output), len(content))
