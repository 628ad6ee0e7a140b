"""`python3 -m periapt_ops.packing check|vendor ...`: one JSON document on standard output."""

import argparse
import dataclasses
import json
import pathlib
import sys

from . import check, vendor


def main(arguments: list[str]) -> int:
    """Do what the arguments say; 0 if there is a document."""
    parser = argparse.ArgumentParser(prog="periapt_ops.packing")
    commands = parser.add_subparsers(required=True)

    checking = commands.add_parser("check")
    checking.add_argument("charm", type=pathlib.Path)
    checking.add_argument("native", type=pathlib.Path, nargs="?")
    checking.set_defaults(run=lambda given: [dataclasses.asdict(found) for found in check.check(given.charm, _read(given.native))])

    vendoring = commands.add_parser("vendor")
    vendoring.add_argument("charm", type=pathlib.Path)
    vendoring.add_argument("target", type=pathlib.Path)
    vendoring.add_argument("packages", nargs="*")
    vendoring.set_defaults(run=lambda given: vendor.vendor(given.charm, given.target, given.packages))

    given = parser.parse_args(arguments)
    try:
        document = given.run(given)
    except vendor.VendorError as error:
        document = {"error": str(error)}
    json.dump(document, sys.stdout)
    return 0


def _read(file: pathlib.Path | None) -> list[dict]:
    return json.loads(file.read_text(encoding="utf-8")) if file else []


sys.exit(main(sys.argv[1:]))
