#!/usr/bin/env python3
"""Attacks the agent that runs it, as its option `mode` says.

Each method named `do_MODE` is an attack. One that the sandbox only has to contain checks by itself that it got nothing,
and raises `Escaped` if it got something; then the hook ends well. All others are to be stopped, or to fail.
"""

import _thread
import atexit
import errno
import json
import os
import pickle
import re
import signal
import socket
import subprocess
import sys
import time
import zlib

import ops

MIB = 1 << 20

#: What refuses: WASI by an errno, CPython for WASI by having no such function or module.
REFUSED = (OSError, AttributeError, ImportError, RuntimeError, NotImplementedError, ValueError)

SCRATCH = "/srv/scratch"


class Escaped(BaseException):
    """Something worked that must not."""


class HostileCharm(ops.CharmBase):
    """Before each attack it asks for something, so that a test sees what becomes of that."""

    def __init__(self, framework: ops.Framework):
        super().__init__(framework)
        framework.observe(self.on.config_changed, self._on_config_changed)
        if self.config["mode"] == "exit-early":
            self.unit.open_port("tcp", 666)
            sys.exit(7)

    def _on_config_changed(self, _: ops.EventBase) -> None:
        mode = self.config["mode"]
        self.unit.open_port("tcp", 666)
        getattr(self, "do_" + mode.replace("-", "_"))()
        self.unit.status = ops.ActiveStatus(mode)

    def do_nothing(self) -> None:
        """For comparison."""

    # Time.

    def do_loop(self) -> None:
        while True:
            pass

    def do_loop_that_catches(self) -> None:
        while True:
            try:
                while True:
                    time.monotonic()
            except BaseException:
                pass

    def do_power(self) -> None:
        9 ** 9 ** 9

    def do_backtrack(self) -> None:
        re.match(r"(a+)+$", "a" * 64 + "b")

    def do_sleep(self) -> None:
        time.sleep(1e6)

    # Memory.

    def do_fill_memory(self) -> None:
        kept = []
        while True:
            kept.append(bytearray(MIB))

    def do_fill_memory_and_catch(self) -> None:
        kept = []
        try:
            while True:
                kept.append(bytearray(MIB))
        except MemoryError:
            got = len(kept)
        del kept
        if got > 256:
            raise Escaped(f"{got} MiB")

    def do_inflate(self) -> None:
        small = zlib.compress(bytes(4 * MIB), 1)
        kept = []
        while True:
            kept.append(zlib.decompress(small))

    def do_recurse(self) -> None:
        self.do_recurse()

    def do_recurse_without_limit(self) -> None:
        sys.setrecursionlimit(1 << 30)
        self.do_recurse()

    def do_recurse_in_native_code(self) -> None:
        sys.setrecursionlimit(1 << 30)
        deep = []
        for _ in range(100_000):
            deep = [deep]
        pickle.dumps(deep)

    def do_parse_deeply(self) -> None:
        sys.setrecursionlimit(1 << 30)
        json.loads("[" * 1_000_000)

    def do_compile_deeply(self) -> None:
        sys.setrecursionlimit(1 << 30)
        compile("-" * 200_000 + "1", "deep", "eval")

    # What it says.

    def do_shout(self) -> None:
        line = "x" * 1023 + "\n"
        for _ in range(16 << 10):
            sys.stdout.write(line)
            sys.stderr.write(line)

    def do_shout_one_line(self) -> None:
        print("x" * (64 * MIB), file=sys.stderr)

    def do_log_much(self) -> None:
        text = "x" * 1000
        for _ in range(4000):
            self._tool("juju-log", text)

    # How it ends.

    def do_exit_early(self) -> None:
        raise Escaped("it had ended before")

    def do_exit_at_once(self) -> None:
        os._exit(7)

    def do_exit_well_at_once(self) -> None:
        os._exit(0)

    def do_abort(self) -> None:
        os.abort()

    def do_kill_itself(self) -> None:
        signal.raise_signal(signal.SIGKILL)

    def do_exit_in_a_finalizer(self) -> None:
        class Last:
            def __del__(self) -> None:
                os._exit(7)

        Last()

    def do_exit_at_exit(self) -> None:
        atexit.register(os._exit, 7)

    def do_hang_at_exit(self) -> None:
        atexit.register(self.do_loop)

    def do_raise_anything(self) -> None:
        raise BaseException("\0\x1b[2J\n" + "x" * MIB)

    # What it asks for.

    def do_write_much(self) -> None:
        self._tool("state-set", "--file", "-", input=json.dumps({"key": "x" * (3 * MIB)}))

    def do_write_many(self) -> None:
        for number in range(100_000):
            self._tool("state-set", f"key{number}=value")

    def do_nest_json(self) -> None:
        self._tool("state-set", "--file", "-", input='{"key": ' + "[" * 500_000 + "]" * 500_000 + "}")

    def do_status_of_megabytes(self) -> None:
        self._tool("status-set", "active", "x" * (8 * MIB))

    def do_arguments_in_great_number(self) -> None:
        self._tool("open-port", *["80/tcp"] * 300_000)

    def do_call_for_ever(self) -> None:
        while True:
            self._tool("is-leader")

    # Files.

    def do_stretch_storage(self) -> None:
        with open(f"{SCRATCH}/long", "wb", buffering=0) as file:
            self._refused(file.truncate, 1 << 40)
            self._refused(lambda: os.posix_fallocate(file.fileno(), 0, 1 << 40))
            file.seek(1 << 40)
            self._refused(file.write, b"x")
        if os.stat(f"{SCRATCH}/long").st_size:
            raise Escaped("a file of a TiB")

    def do_fill_tmp(self) -> None:
        self._fill("/tmp", MIB)

    def do_fill_tmp_with_files(self) -> None:
        self._fill("/tmp", 0)

    def do_open_for_ever(self) -> None:
        kept = []
        try:
            while len(kept) < 1_000_000:
                kept.append(os.open("/charm/metadata.yaml", os.O_RDONLY))
        except OSError as error:
            for descriptor in kept:
                os.close(descriptor)
            if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOMEM):
                return
            raise
        raise Escaped("a million descriptors")

    def do_read_the_host(self) -> None:
        for path in (
            "/etc/passwd",
            "/proc/self/environ",
            "/proc/1/cmdline",
            "/dev/mem",
            "/charm/../etc/passwd",
            "/charm/../../../../../../etc/passwd",
            "../../../../etc/passwd",
            f"{SCRATCH}/../../etc/passwd",
            f"{SCRATCH}/../neighbour/secret",
            "/tmp/../etc/passwd",
        ):
            self._refused(open, path, "rb")
        for path in ("/etc", "/proc", "/srv/scratch/..", "/home", "/root"):
            self._refused(os.listdir, path)

    def do_change_the_charm(self) -> None:
        self._refused(open, "/charm/src/charm.py", "a")
        self._refused(open, "/charm/metadata.yaml", "wb")
        self._refused(os.remove, "/charm/src/charm.py")
        self._refused(os.rename, "/charm/src", "/charm/gone")
        self._refused(os.mkdir, "/charm/new")
        self._refused(os.truncate, "/charm/src/charm.py", 0)

    def do_link_out(self) -> None:
        link = f"{SCRATCH}/out"
        for target in ("/etc", "/etc/passwd", "../../../../../../etc/passwd", "../neighbour", "/proc/self/root"):
            try:
                os.symlink(target, link)
            except REFUSED:
                continue
            # A link may be made, but is not followed out.
            self._refused(open, link, "rb")
            self._refused(os.listdir, link)
            self._refused(open, f"{link}/passwd", "rb")
            self._refused(open, f"{link}/new", "wb")
            os.remove(link)
        self._refused(os.link, "/charm/metadata.yaml", f"{SCRATCH}/hard")
        self._refused(os.link, "/etc/passwd", f"{SCRATCH}/hard")
        self._refused(os.rename, f"{SCRATCH}/out", "/etc/out")

    def do_leave_a_link(self) -> None:
        try:
            os.symlink("/etc", f"{SCRATCH}/left")
        except REFUSED:
            pass
        if os.path.exists(f"{SCRATCH}/left/passwd"):
            raise Escaped("followed")

    # Everything else that there is.

    def do_fork(self) -> None:
        self._refused(lambda: os.fork())
        self._refused(lambda: os.forkpty())
        self._refused(lambda: os.posix_spawn("/bin/sh", ["sh"], {}))
        self._refused(lambda: os.execv("/bin/sh", ["sh"]))
        self._refused(subprocess.run, ["/bin/sh", "-c", "true"])
        self._refused(lambda: subprocess.run("true", shell=True))
        self._refused(lambda: os.system("true"))

    def do_threads(self) -> None:
        for _ in range(1000):
            self._refused(_thread.start_new_thread, time.sleep, (1e6,))

    def do_sockets(self) -> None:
        self._refused(socket.create_connection, ("127.0.0.1", 22), 1)
        self._refused(socket.create_connection, ("::1", 22), 1)
        self._refused(socket.getaddrinfo, "example.com", 22)
        self._refused(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", 53)))
        self._refused(lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM).bind(("0.0.0.0", 8080)))

        def connect(path: str) -> None:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stream:
                stream.connect(path)

        for path in ("/var/run/docker.sock", "/run/dbus/system_bus_socket", "/charm/containers/none/pebble.socket"):
            self._refused(connect, path)

    def do_native(self) -> None:
        for module in ("ctypes", "_ctypes", "mmap", "resource", "_posixsubprocess"):
            self._refused(__import__, module)

    def do_environment(self) -> None:
        for name in os.environ:
            if not name.startswith(("JUJU_", "PERIAPT_", "PYTHON", "CHARM_")) and name not in ENVIRONMENT:
                raise Escaped(name)

    def do_signals(self) -> None:
        self._refused(lambda: os.kill(1, signal.SIGKILL))
        self._refused(lambda: os.killpg(0, signal.SIGKILL))
        self._refused(lambda: os.setuid(0) or os.chroot("/"))

    def _tool(self, *command: str, input: str | None = None) -> None:
        subprocess.run(command, input=input, text=True, check=True, capture_output=True)

    def _refused(self, call, *arguments) -> None:
        try:
            call(*arguments)
        except REFUSED:
            return
        raise Escaped(f"{getattr(call, '__name__', call)} {arguments}")

    def _fill(self, directory: str, size: int) -> None:
        content = bytes(size)
        for number in range(100_000):
            try:
                with open(f"{directory}/{number}", "wb") as file:
                    file.write(content)
            except OSError as error:
                # By a stream it is told as EIO: WASI's adapter knows no better.
                if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.ENOMEM, errno.EIO):
                    return
                raise
        raise Escaped(f"{directory} has no end")


#: What a hook's environment holds besides.
ENVIRONMENT = frozenset({"HOME", "LANG", "OPERATOR_DISPATCH", "PATH", "TERM", "TMPDIR", "TZ", "APT_LISTCHANGES_FRONTEND", "DEBIAN_FRONTEND"})

if __name__ == "__main__":
    ops.main(HostileCharm)
