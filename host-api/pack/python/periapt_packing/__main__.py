"""`python3 -m periapt_packing check|vendor ...`: one JSON document on standard output."""

import argparse
import dataclasses
import json
import pathlib
import sys

from . import bounds, built, check, fetching, vendor, wanted


#: The exit code where the bound of memory was met.
OUT_OF_MEMORY = 3


def main(arguments: list[str]) -> int:
    """Do what the arguments say; 0 if there is a document, and what there is instead by its number."""
    parser = argparse.ArgumentParser(prog="periapt_packing", allow_abbrev=False)
    commands = parser.add_subparsers(required=True)

    checking = commands.add_parser("check")
    checking.add_argument("charm", type=pathlib.Path)
    checking.add_argument("native", type=pathlib.Path)
    checking.add_argument("original", type=pathlib.Path)
    checking.set_defaults(run=_check)

    vendoring = commands.add_parser("vendor")
    vendoring.add_argument("charm", type=pathlib.Path)
    vendoring.add_argument("target", type=pathlib.Path)
    for several in ("file", "constraints", "package", "group", "extra", "without", "only", "upgrade"):
        vendoring.add_argument(f"--{several}", action="append", default=[])
    vendoring.add_argument("--project", action="store_true")
    vendoring.add_argument("--libraries", action="store_true")
    vendoring.add_argument("--wheels", action="append", default=[], type=pathlib.Path)
    vendoring.add_argument("--allow-git", action="store_true")
    vendoring.add_argument("--repository", type=pathlib.Path)
    vendoring.set_defaults(run=_vendor)

    given = parser.parse_args(arguments)
    given.told = []
    bounds.bind()
    try:
        document = given.run(given)
    except (vendor.VendorError, built.BuiltError) as error:
        document = {"error": str(error), "unreachable": isinstance(error, fetching.Unreachable), "findings": given.told}
    except MemoryError:
        return OUT_OF_MEMORY
    json.dump(document, sys.stdout)
    return 0


def _vendor(given: argparse.Namespace) -> dict:
    parts = wanted.Parts(
        given.file, given.constraints, given.package, given.group, given.extra, given.without, given.only, given.project, given.libraries
    )
    choices = wanted.Choices(given.repository, given.upgrade, given.allow_git)
    return vendor.vendor(given.charm, given.target, parts, choices, built.Built(given.wheels), given.told)


def _check(given: argparse.Namespace) -> list[dict]:
    native = json.loads(given.native.read_text(encoding="utf-8"))
    return [dataclasses.asdict(found) for found in check.check(given.charm, native, given.original)]


sys.exit(main(sys.argv[1:]))
