"""What records must be in an engine, from the jsonl of the same run and the schema of the kind."""

import json
import sys
from decimal import Decimal


class Kind:
    """One kind of `linkweir schema KIND --format json`."""

    def __init__(self, path, name=None):
        with open(path, encoding="utf-8") as file:
            kinds = json.load(file)["kinds"]
        found = [kind for kind in kinds if name in (None, kind["kind"])]
        if len(found) != 1:
            sys.exit(f"{path}: {len(found)} kinds of the name {name}")
        self.name = found[0]["kind"]
        self.version = found[0]["schema_version"]
        self.fields = found[0]["fields"]
        self.columns = [field["name"] for field in self.fields]

    def rows(self, path):
        """The records of a jsonl file, each a list of values in the order of the columns."""
        with open(path, encoding="utf-8") as file:
            objects = [json.loads(line, parse_float=Decimal) for line in file]
        for one in objects:
            unknown = set(one) - set(self.columns)
            if unknown:
                sys.exit(f"{path}: {unknown} are not in the schema")
        return [[value(one.get(f["name"]), f["type"]) for f in self.fields] for one in objects]


def value(found, kind):
    """A value of jsonl as engines have it: moments as nanoseconds, milliseconds as the nearest double."""
    if found is None:
        return None
    if kind == "time_ms":
        return int(found * 1_000_000)
    if kind == "span_ms":
        return float(found)
    if kind == "bytes":
        return bytes.fromhex(found)
    return found


def compare(what, columns, expected, got):
    """Ends the program where a single value differs, or its type does. Gives the values compared."""
    if len(expected) != len(got):
        sys.exit(f"{what}: {len(got)} rows, not {len(expected)}")
    compared = 0
    for at, (left, right) in enumerate(zip(expected, got, strict=True)):
        for column, a, b in zip(columns, left, right, strict=True):
            if a != b or type(a) is not type(b):
                sys.exit(f"{what}: row {at}, {column}: {b!r}, not {a!r}")
            compared += 1
    return compared


def report(**counts):
    """What was done, for the test."""
    print(json.dumps(counts))
