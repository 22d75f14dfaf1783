"""The statements of `linkweir schema` in ClickHouse itself (chdb), with messages of real records.

clickhouse.py STATEMENTS.sql SCHEMA.json KIND RECORDS.jsonl RECORDS.parquet

The engine as a library has Kafka's table engine, but no threads for it: it makes the table, whose
columns and settings it has checked by then, and says `Shutdown was called`. Messages are inserted into
a table of the engine Null with the same columns in its place.
"""

import json
import math
import re
import sys
from decimal import Decimal

from chdb import session
from records import Kind, compare, report

CLICKHOUSE = session.Session()
NO_THREADS = "Shutdown was called"
# As the statements have it.
ERROR = 0.01
LEVELS = (0.5, 0.9, 0.95, 0.99, 0.999)


def ask(sql):
    """The rows of a query, each an object; decimals exact."""
    text = str(CLICKHOUSE.query(sql, "JSONEachRow"))
    return [json.loads(line, parse_float=Decimal) for line in text.splitlines()]


def only(sql):
    """The one value of a query."""
    ((value,),) = [row.values() for row in ask(sql)]
    return value


def statements(text):
    """Statements of a text, without comments and those in them."""
    text = re.sub(r"^ *--[^\n]*", "", text, flags=re.MULTILINE)
    return [one.strip() for one in re.split(r";\s*\n", text + "\n") if one.strip()]


def as_they_are(schema):
    """Every statement of every kind, and the examples, must be accepted. Gives how many were."""
    CLICKHOUSE.query("CREATE DATABASE whole")
    CLICKHOUSE.query("USE whole")
    accepted = queues = 0
    for one in statements(re.sub(r"/\*.*?\*/", "", schema, flags=re.DOTALL)):
        try:
            CLICKHOUSE.query(one)
            accepted += 1
        except RuntimeError as error:
            if "ENGINE = Kafka" not in one or NO_THREADS not in str(error):
                sys.exit(f"{one}\n{error}")
            queues += 1
    examples = 0
    for text in re.findall(r"/\* Examples:\n(.*?)\*/", schema, flags=re.DOTALL):
        for one in statements(text):
            CLICKHOUSE.query(one)
            examples += 1
    # The engine does read its settings: a wrong one is told.
    queue = next(one for one in statements(schema) if "ENGINE = Kafka" in one)
    wrong = queue.replace("kafka_format", "kafka_no_such_setting").replace("_queue", "_wrong")
    try:
        CLICKHOUSE.query(wrong)
        sys.exit("a setting that does not exist was accepted")
    except RuntimeError as error:
        if "kafka_no_such_setting" not in str(error):
            sys.exit(str(error))
    return accepted, queues, examples


def ready(schema, kind):
    """The tables of a kind with a queue that takes inserts."""
    CLICKHOUSE.query("CREATE DATABASE part")
    CLICKHOUSE.query("USE part")
    for one in statements(re.sub(r"/\*.*?\*/", "", schema, flags=re.DOTALL)):
        if not re.search(rf"\b{kind.name}(_queue|_from_queue|_per_minute|_to_minute)?\b", one.split("\n")[0]):
            continue
        CLICKHOUSE.query(re.sub(r"ENGINE = Kafka\nSETTINGS.*", "ENGINE = Null", one, flags=re.DOTALL))


def messages(kind, jsonl, probes=("north", "south")):
    """What the probes send: the record behind kind, version, probe and id."""
    with open(jsonl, encoding="utf-8") as file:
        lines = file.read().splitlines()
    made = []
    for number, line in enumerate(lines):
        probe = number % len(probes)
        head = {
            "kind": kind.name,
            "schema_version": kind.version,
            "probe": probes[probe],
            "record_id": f"{probe + 10:016x}-{number // len(probes)}",
        }
        made.append(json.dumps(head, separators=(",", ":"))[:-1] + "," + line[1:])
    return made


def insert(kind, lines):
    """As the Kafka engine hands messages to the view."""
    CLICKHOUSE.query(
        f"INSERT INTO {kind.name}_queue SETTINGS input_format_skip_unknown_fields = 1, "
        "input_format_null_as_default = 1 FORMAT JSONEachRow\n" + "\n".join(lines)
    )


def rows(kind, source, names=None):
    """Records of a table, as those of jsonl; `names` are the expressions of addresses."""
    columns = []
    for field in kind.fields:
        name = f"`{field['name']}`"
        if field["type"] in ("time_ns", "time_ms"):
            name = f"toUnixTimestamp64Nano({name})"
        elif field["type"] == "ip" and names:
            name = f"`{field['name']}_text`"
        elif field["type"] in ("text", "word") and names:
            name = f"nullIf({name}, '')"
        columns.append(f"{name} AS x_{field['name']}")
    sql = f"SELECT {', '.join(columns)} FROM {source} SETTINGS output_format_json_quote_64bit_integers = 0"
    made = []
    for row in ask(sql):
        found = []
        for field in kind.fields:
            one = row["x_" + field["name"]]
            # JSON does not tell 1.0 from 1.
            found.append(float(one) if field["type"] == "span_ms" and one is not None else one)
        made.append(found)
    return made


def exact_quantile(sorted_values, level):
    """The values at the rank of a level, and its neighbours: definitions differ by one."""
    rank = level * (len(sorted_values) - 1)
    return sorted_values[math.floor(rank)], sorted_values[math.ceil(rank)]


def totals(kind, lines, times):
    """Rollups of what was sent `times` times: counts exact, quantiles within the stated error."""
    count, measure, only_if = {
        "http_transaction": ("transactions", "response_time_ns", lambda one: True),
        "flow": ("flows", "c_rtt_avg", lambda one: one.get("c_rtt_cnt", 0) > 0),
        "tls_handshake": ("handshakes", "handshake_time_ns", lambda one: True),
        "gateway_event": ("events", "size", lambda one: True),
        "load_session": ("sessions", "response_time_ns", lambda one: True),
    }[kind.name]
    objects = [json.loads(line) for line in lines]
    table = f"{kind.name}_per_minute"
    found = {row["probe"]: int(row["n"]) for row in ask(f"SELECT probe, sum({count}) AS n FROM {table} GROUP BY probe")}
    wanted = {}
    for one in objects:
        wanted[one["probe"]] = wanted.get(one["probe"], 0) + times
    if found != wanted:
        sys.exit(f"{table}: {found}, not {wanted}")
    values = sorted(one[measure] for one in objects if one.get(measure) is not None and only_if(one))
    if kind.name == "flow":
        # Milliseconds with six decimals.
        measure, values = measure + "_ns", [round(one * 1_000_000) for one in values]
    if not values:
        return 0
    largest = float(only(f"SELECT max({measure}_max) AS m FROM {table}"))
    if largest != values[-1]:
        sys.exit(f"largest {measure}: {largest}, not {values[-1]}")
    parameters = ", ".join(map(str, (ERROR, *LEVELS)))
    # Of both probes and all groups.
    merged = only(f"SELECT quantilesDDMerge({parameters})({measure}_quantiles) AS q FROM {table}")
    for level, got in zip(LEVELS, merged, strict=True):
        low, high = exact_quantile(values, level)
        if not low * (1 - ERROR) <= float(got) <= high * (1 + ERROR):
            sys.exit(f"{measure} {level}: {got}, exactly {low} to {high}")
    # The same whatever was merged first: states of each probe, then of both.
    state = f"quantilesDDMergeState({parameters})"
    nested = only(
        f"SELECT quantilesDDMerge({parameters})(s) AS q FROM "
        f"(SELECT {state}({measure}_quantiles) AS s FROM {table} GROUP BY probe)"
    )
    if nested != merged:
        sys.exit(f"{measure}: {nested} by way of probes, {merged} at once")
    return len(values)


def made_anew(schema, kind):
    """The totals of every day anew from the records, as the example says."""
    text = re.search(rf"/\* Examples:\n(?:(?!/\*).)*?(INSERT INTO {kind.name}_per_minute\n.*?);", schema, flags=re.DOTALL)
    for row in ask(f"SELECT DISTINCT toDate(time) AS day FROM {kind.name}"):
        CLICKHOUSE.query(f"ALTER TABLE {kind.name}_per_minute DROP PARTITION '{row['day']}'")
        CLICKHOUSE.query(text.group(1).replace("2026-11-22", row["day"]))


def growth(kind, lines, expected):
    """A message of a later version, one of an earlier, one of another kind, one that is broken."""
    for table in ("", "_per_minute"):
        CLICKHOUSE.query(f"TRUNCATE TABLE {kind.name}{table}")
    later = lines[0][:-1] + ',"a_column_of_tomorrow":{"x":[1,null]}}'
    last = kind.columns[-1]
    earlier = json.loads(lines[1])
    earlier.pop(last, None)
    other = json.loads(lines[1]) | {"kind": "another", "record_id": "3-0"}
    insert(kind, [later, json.dumps(earlier), json.dumps(other)])
    got = rows(kind, f"{kind.name} ORDER BY record_id", names=True)
    without = list(expected[1])
    without[-1] = None
    compare("later and earlier messages", kind.columns, [expected[0], without], got)
    return len(got)


def main():
    path, schema_json, name, jsonl, parquet = sys.argv[1:]
    with open(path, encoding="utf-8") as file:
        schema = file.read()
    kind = Kind(schema_json, name)
    expected = kind.rows(jsonl)
    done = {"rows": len(expected), "engine": only("SELECT version() AS v")}
    done["accepted"], done["queues"], done["examples"] = as_they_are(schema)
    ready(schema, kind)
    lines = messages(kind, jsonl)
    by_number = f"{kind.name} FINAL ORDER BY toUInt64(splitByChar('-', record_id)[2]), record_id"

    insert(kind, lines)
    done["values"] = compare("messages", kind.columns, expected, rows(kind, by_number, names=True))
    done["quantiles_of"] = totals(kind, lines, 1)
    # Sent again, as after a failure: twice in the table, once for FINAL, twice in the totals until
    # they are made anew.
    insert(kind, lines)
    done["with_repeated"] = int(only(f"SELECT count() AS n FROM {kind.name}"))
    compare("messages twice", kind.columns, expected, rows(kind, by_number, names=True))
    limit = f"(SELECT 1 FROM {kind.name} LIMIT 1 BY record_id)"
    done["by_record_id"] = int(only(f"SELECT count() AS n FROM {limit}"))
    totals(kind, lines, 2)
    made_anew(schema, kind)
    totals(kind, lines, 1)
    CLICKHOUSE.query(f"OPTIMIZE TABLE {kind.name} FINAL")
    done["merged"] = int(only(f"SELECT count() AS n FROM {kind.name}"))

    done["parquet"] = compare("Parquet", kind.columns, expected, rows(kind, f"file('{parquet}', Parquet)"))
    done["growth"] = growth(kind, lines, expected)
    report(**done)


main()
