"""Parquet files and Arrow streams as DuckDB, pandas and Arrow read them, value by value.

files.py SCHEMA.json KIND RECORDS.jsonl RECORDS.parquet STREAM.arrow VIEW.sql
"""

import sys

import duckdb
import pandas
import pyarrow
import pyarrow.ipc
import pyarrow.parquet
from records import Kind, compare, report

MOMENTS = ("time_ns", "time_ms")
WORDS_OF_ARROW = {
    "USMALLINT": pyarrow.uint16(),
    "UINTEGER": pyarrow.uint32(),
    "UBIGINT": pyarrow.uint64(),
    "BIGINT": pyarrow.int64(),
    "DOUBLE": pyarrow.float64(),
    "TIMESTAMP_NS": pyarrow.timestamp("ns"),
    "VARCHAR": pyarrow.string(),
    "BLOB": pyarrow.binary(),
}


def quoted(name):
    return '"' + name + '"'


def in_duckdb(kind, source):
    """All rows; moments as integers, which Python's datetime would cut to microseconds."""
    columns = []
    for field in kind.fields:
        name = quoted(field["name"])
        columns.append(f"epoch_ns({name})" if field["type"] in MOMENTS else name)
    return [list(row) for row in duckdb.execute(f"SELECT {', '.join(columns)} FROM {source}").fetchall()]


def types_in_duckdb(kind, source):
    described = duckdb.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()
    found = [(name, type_name) for name, type_name, *_ in described]
    wanted = [(field["name"], field["duckdb"]) for field in kind.fields]
    if found != wanted:
        sys.exit(f"types in DuckDB: {set(found) ^ set(wanted)}")


def in_arrow(kind, table):
    """All rows; moments as integers."""
    columns = []
    for field in kind.fields:
        column = table.column(field["name"])
        if column.type != WORDS_OF_ARROW[field["duckdb"]]:
            sys.exit(f"{field['name']}: {column.type} in Arrow")
        if field["type"] in MOMENTS:
            column = column.cast(pyarrow.int64())
        columns.append(column.to_pylist())
    return [list(row) for row in zip(*columns, strict=True)]


def in_pandas(kind, path):
    """All rows; pandas keeps integers of which some are missing only in types that it has to be asked for."""
    frame = pandas.read_parquet(path, dtype_backend="numpy_nullable")
    columns = []
    for field in kind.fields:
        series = frame[field["name"]]
        if field["type"] in MOMENTS:
            if series.dtype != "datetime64[ns]":
                sys.exit(f"{field['name']}: {series.dtype} in pandas")
            columns.append([None if pandas.isna(moment) else moment.value for moment in series])
        else:
            columns.append([None if pandas.isna(one) else one for one in series.astype(object)])
    return [list(row) for row in zip(*columns, strict=True)]


def main():
    schema, name, jsonl, parquet, stream, view = sys.argv[1:]
    kind = Kind(schema, name)
    expected = kind.rows(jsonl)
    source = f"read_parquet('{parquet}')"
    types_in_duckdb(kind, source)
    done = {"rows": len(expected), "nulls": sum(one is None for row in expected for one in row)}
    done["duckdb"] = compare("DuckDB", kind.columns, expected, in_duckdb(kind, source))
    with open(view, encoding="utf-8") as file:
        duckdb.execute(file.read())
    types_in_duckdb(kind, kind.name)
    done["view"] = compare("the view", kind.columns, expected, in_duckdb(kind, kind.name))
    done["pandas"] = compare("pandas", kind.columns, expected, in_pandas(kind, parquet))
    table = pyarrow.parquet.read_table(parquet)
    done["parquet"] = compare("Arrow", kind.columns, expected, in_arrow(kind, table))
    with pyarrow.ipc.open_stream(stream) as reader:
        table = reader.read_all()
    about = {b"linkweir.kind": kind.name.encode(), b"linkweir.schema_version": str(kind.version).encode()}
    if table.schema.metadata != about:
        sys.exit(f"metadata of the stream: {table.schema.metadata}")
    done["stream"] = compare("the stream", kind.columns, expected, in_arrow(kind, table))
    report(**done)


if __name__ == "__main__":
    main()
