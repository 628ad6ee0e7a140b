"""What a charm's hook does in Python, for `examples/fuel.rs`: dispatches events, reads metadata, makes and asks
objects, renders text.

Built where `componentize-py` 0.25.1 and `ops` are installed (`pip install componentize-py==0.25.1 ops`), in this directory,
 with SITE the directory of the installed packages:

    componentize-py -d world.wit -w measure componentize app -p . -p SITE -o /tmp/measure.wasm
"""
import json
import re
import ops
import ops.testing
import yaml
import wit_world

METADATA = """
name: demo
summary: a charm
description: |
  Several lines
  of text.
requires:
""" + "".join(f"  endpoint-{n}:\n    interface: mysql\n    limit: {n}\n    optional: true\n" for n in range(30))


class Bag:
    def __init__(self, values):
        self._values = dict(values)

    def __getitem__(self, key):
        try:
            return self._values[key]
        except KeyError:
            return None

    def keys(self):
        return sorted(self._values)


def read_metadata():
    return len(yaml.safe_load(METADATA)["requires"])


def objects():
    total = 0
    for unit in range(3000):
        bag = Bag({"host": f"10.0.0.{unit}", "port": str(unit), "name": "db"})
        for key in bag.keys():
            total += len(bag[key])
        if bag["absent"] is None:
            total += 1
    return total


def text():
    total = 0
    for n in range(300):
        rendered = json.dumps({"unit": n, "values": [{"k": str(i)} for i in range(20)]})
        total += len(json.loads(rendered)["values"])
        total += len(re.sub(r"[0-9]+", lambda m: m.group() * 2, rendered))
    return total


class Charm(ops.CharmBase):
    def __init__(self, framework):
        super().__init__(framework)
        framework.observe(self.on.config_changed, self._configure)
        framework.observe(self.on["db"].relation_changed, self._related)

    def _configure(self, event):
        self.unit.status = ops.ActiveStatus(str(self.config["port"]))

    def _related(self, event):
        data = event.relation.data[event.app]
        event.relation.data[self.unit]["seen"] = json.dumps(dict(data))


def dispatch():
    harness = ops.testing.Harness(
        Charm,
        meta=METADATA + "  db:\n    interface: mysql\n",
        config="options: {port: {type: int, default: 80}}",
        actions="{}",
    )
    harness.begin()
    relation = harness.add_relation("db", "mysql")
    harness.add_relation_unit(relation, "mysql/0")
    for n in range(20):
        harness.update_config({"port": n})
        harness.update_relation_data(relation, "mysql", {"n": str(n)})
    total = len(harness.get_relation_data(relation, "demo/0"))
    harness.cleanup()
    return total


WORK = {"dispatch": dispatch, "metadata": read_metadata, "objects": objects, "text": text}


class WitWorld(wit_world.WitWorld):
    def run(self, work: str) -> int:
        return WORK[work]()
