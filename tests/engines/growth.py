"""Parquet files of an earlier and of the present version of a kind, read together.

growth.py SCHEMA.json KIND RECORDS.jsonl RECORDS.parquet DIRECTORY VIEW.sql

The earlier file is made here: the last columns are not in it. DIRECTORY is what the view reads.
"""

import json
import sys
from pathlib import Path

import duckdb
import pyarrow.parquet
from chdb import session
from files import in_duckdb, types_in_duckdb
from records import Kind, compare, report

# The columns of versions 2 and 3 of http_transaction.
MISSING = 36


def main():
    schema, name, jsonl, parquet, directory, view = sys.argv[1:]
    kind = Kind(schema, name)
    expected = kind.rows(jsonl)
    table = pyarrow.parquet.read_table(parquet)
    directory = Path(directory)
    earlier = directory / "earlier"
    earlier.mkdir(parents=True)
    cut = table.select(kind.columns[:-MISSING])
    pyarrow.parquet.write_table(cut, earlier / "part.parquet")
    with open(view, encoding="utf-8") as file:
        duckdb.execute(file.read())
    before = [row[:-MISSING] + [None] * MISSING for row in expected]

    # Only files of the earlier version: the view has the columns of the present one all the same.
    types_in_duckdb(kind, kind.name)
    alone = compare("earlier files", kind.columns, before, in_duckdb(kind, kind.name))

    present = directory / "present"
    present.mkdir()
    pyarrow.parquet.write_table(table, present / "part.parquet")
    types_in_duckdb(kind, kind.name)
    both = sorted(before + expected, key=str)
    together = compare("both", kind.columns, both, sorted(in_duckdb(kind, kind.name), key=str))

    # The first that is missing: the last ones are empty in most records.
    last = kind.columns[-MISSING]
    clickhouse = session.Session()
    counted = str(
        clickhouse.query(
            f"SELECT count() AS n, countIf(isNotNull(`{last}`)) AS with_last "
            f"FROM file('{directory}/*/part.parquet', Parquet) "
            "SETTINGS schema_inference_mode = 'union', output_format_json_quote_64bit_integers = 0",
            "JSONEachRow",
        )
    )
    clickhouse_rows = json.loads(counted)
    report(rows=len(expected), alone=alone, together=together, **clickhouse_rows)


if __name__ == "__main__":
    main()
