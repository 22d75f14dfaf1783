"""Parquet files in directories by the hour, through the view: `date` and `hour` are columns that are true.

hours.py SCHEMA.json KIND RECORDS.jsonl VIEW.sql
"""

import sys

import duckdb
from files import in_duckdb
from records import Kind, compare, report


def main():
    schema, name, jsonl, view = sys.argv[1:]
    kind = Kind(schema, name)
    expected = kind.rows(jsonl)
    with open(view, encoding="utf-8") as file:
        duckdb.execute(file.read())
    compare("hours", kind.columns, sorted(expected, key=str), sorted(in_duckdb(kind, kind.name), key=str))
    moment = f"coalesce({', '.join(f['name'] for f in kind.fields if f['type'] == 'time_ns')})"
    wrong = duckdb.execute(
        f"SELECT count(*) FROM {kind.name} WHERE {moment}::DATE <> date OR "
        f"extract(hour FROM {moment}::TIMESTAMP) <> hour::INTEGER OR date IS NULL OR hour IS NULL"
    ).fetchone()[0]
    if wrong:
        sys.exit(f"{wrong} records stand in the directory of another hour")
    hours = duckdb.execute(f"SELECT count(*) FROM (SELECT DISTINCT date, hour FROM {kind.name})").fetchone()[0]
    report(rows=len(expected), hours=hours)


main()
