"""`python3 write_wheel.py SOURCES TREE DIRECTORY TAG`: makes a wheel of a tree of files, and says what it is called.

What it says of itself, and its licenses, come from the unpacked source archive. The same files are the same bytes.
"""

import base64
import email
import hashlib
import pathlib
import re
import sys
import zipfile

#: The time of all files: the earliest that an archive can name.
TIME = (1980, 1, 1, 0, 0, 0)


def write(sources: pathlib.Path, tree: pathlib.Path, directory: pathlib.Path, tag: str) -> str:
    """Write the wheel, whole or not at all."""
    text = (sources / "PKG-INFO").read_text(encoding="utf-8")
    said = email.message_from_string(text)
    known_as = f"{re.sub('[-_.]+', '_', said['Name']).lower()}-{said['Version']}"
    info = f"{known_as}.dist-info"
    files = {path.relative_to(tree).as_posix(): path.read_bytes() for path in tree.rglob("*") if path.is_file()}
    files[f"{info}/METADATA"] = text.encode()
    lines = ("Wheel-Version: 1.0", "Generator: periapt", "Root-Is-Purelib: false", f"Tag: {tag}")
    files[f"{info}/WHEEL"] = "".join(f"{line}\n" for line in lines).encode()
    for name in said.get_all("License-File") or []:
        files[f"{info}/licenses/{name}"] = (sources / name).read_bytes()
    record = f"{info}/RECORD"
    files[record] = "".join(_recorded(name, content) for name, content in sorted(files.items())).encode() + f"{record},,\n".encode()
    wheel = directory / f"{known_as}-{tag}.whl"
    beside = wheel.with_suffix(".partial")
    with zipfile.ZipFile(beside, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, content in sorted(files.items()):
            entry = zipfile.ZipInfo(name, TIME)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, content)
    beside.rename(wheel)
    return wheel.name


def _recorded(name: str, content: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(content)}\n"


if __name__ == "__main__":
    given = sys.argv[1:]
    print(write(*map(pathlib.Path, given[:3]), given[3]))
