#!/usr/bin/env python3
"""HTTP transactions of captures that no single machine reads in time, on a Spark cluster.

    spark-submit linkweir_spark.py --work DIR --out DIR [--totals FILE] CAPTURE...

The job gives the records and totals of `linkweir http --workers 2 -r CAPTURE...`, in four stages:

1. One task per capture file: `linkweir halves` reduces it to rows that an HTTP measurement would look
   at, a Parquet file in the working directory.
2. Rows that must meet get the same shard. A connection whose messages all stand for themselves is dealt
   by message (Eq. (3) of Vega et al. 2017), so that one busy connection occupies many shards; any other
   one goes to one shard as a whole. The rows of a shard are sorted by time.
3. One task per shard: `linkweir http --from-halves -` reads the shard as an Arrow stream and writes its
   records as another. The totals of the shard travel with the records, as a row of their own: Spark
   commits the output of one attempt per task, so a task that is run again is never counted twice.
4. What was committed is checked, the totals are added by `linkweir merge`, the records go to DIR.

Nothing but pyspark (with pyarrow and pandas, which its Arrow functions need) is used. README.md beside
this file says what the machines of the cluster need.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path

import pyarrow as pa
from pyspark import SparkFiles, TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

# Exit codes, as those of linkweir.
DONE, DATA_LOST, USAGE, FAILED = 0, 1, 2, 3
# Marks the line of an error that is meant for people among those of Spark.
MARK = "linkweir-spark:"

# Connections that must stay together: the rule in foundation/record/src/half.rs, which says why.
# Numbers of 32 bits are compared on the circle. Payloads take no part in it.
WHOLE_CONNECTIONS = """
WITH seen AS (
  SELECT *,
    CASE WHEN is_request = 1 THEN concat(src_ip, ' ', src_port)
         WHEN is_request = 0 THEN concat(dst_ip, ' ', dst_port) END AS client,
    last(CASE WHEN is_request IS NOT NULL THEN seq END, true) OVER before AS last_seq,
    last(CASE WHEN is_request IS NOT NULL THEN ack END, true) OVER before AS last_ack,
    last(end_seq, true) OVER before AS last_end
  FROM {halves}
  WINDOW before AS (PARTITION BY connection, src_ip, src_port ORDER BY order_ns, file, packet
                    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)),
judged AS (
  SELECT connection, client, is_plain = 1 AND CASE
    WHEN is_request IS NULL THEN last_end IS NULL
      OR pmod(seq - last_end, 4294967296) < 2147483648
      OR pmod(last_end - seq - payload_len, 4294967296) < 2147483648
    WHEN last_seq IS NULL THEN true
    WHEN seq = last_seq THEN is_request = 0 OR ack = last_ack
    ELSE pmod(seq - last_seq, 4294967296) < 2147483648
      AND (last_end IS NULL OR pmod(seq - last_end, 4294967296) < 2147483648)
      AND (is_request = 0 OR (ack <> last_ack AND pmod(ack - last_ack, 4294967296) < 2147483648))
    END AS fits
  FROM seen)
SELECT connection FROM judged GROUP BY connection
HAVING min(CASE WHEN fits THEN 1 ELSE 0 END) = 0 OR min(client) <> max(client)
"""


class JobError(Exception):
    """Why the job cannot go on, in one sentence."""


def say(text: str) -> None:
    """Tells the user how far the job is."""
    print(f"{MARK} {text}", file=sys.stderr, flush=True)


# What runs on the workers.


class Program:
    """The binary as tasks call it: a path on every machine, or a file that Spark distributes."""

    def __init__(self, path: str, shipped: bool) -> None:
        self.path, self.shipped = path, shipped

    def start(self, words: list[str], **streams) -> subprocess.Popen:
        path = SparkFiles.get(os.path.basename(self.path)) if self.shipped else self.path
        try:
            return subprocess.Popen([path, *words], **streams)
        except OSError as error:
            raise RuntimeError(f"{MARK} {socket.gethostname()}: cannot start {path}: {error.strerror}") from None


def extract(program: Program, work: str, flags: list[str]) -> Callable[[tuple[int, str]], dict]:
    """Stage 1: the function that reduces a numbered capture to a file of rows."""

    def of_capture(numbered: tuple[int, str]) -> dict:
        number, capture = numbered
        directory, name = Path(work), f"halves-{number:06}.parquet"
        if not directory.is_dir():
            raise RuntimeError(f"{MARK} {socket.gethostname()}: no directory {work}: all machines must share it")
        # Another attempt of this task may run at the same time: each writes its own file and gives it
        # the same name, under which a whole file always stands.
        attempt = f".{uuid.uuid4().hex}"
        rows, sketch = directory / f"{attempt}.parquet", directory / f"{attempt}.json"
        words = ["halves", "-q", "-r", capture, "-w", str(rows), "--sketch", str(sketch), "--file-number", str(number)]
        try:
            process = program.start([*words, *flags], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
            said = process.communicate()[1].decode(errors="replace").strip()
            if process.returncode in (DONE, DATA_LOST):
                os.replace(rows, directory / name)
            return {
                "capture": capture,
                "code": process.returncode,
                "said": said or f"linkweir ended with {process.returncode}",
                "sketch": sketch.read_text() if sketch.exists() else None,
            }
        finally:
            rows.unlink(missing_ok=True)
            sketch.unlink(missing_ok=True)

    return of_capture


class Feeder(threading.Thread):
    """Writes batches to a process as an Arrow stream while its output is read elsewhere."""

    def __init__(self, process: subprocess.Popen, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> None:
        super().__init__(daemon=True)
        self.process, self.schema, self.batches = process, schema, batches
        self.rows, self.error = 0, None

    def run(self) -> None:
        try:
            with self.process.stdin as stdin, pa.ipc.new_stream(stdin, self.schema) as stream:
                for batch in self.batches:
                    stream.write_batch(batch)
                    self.rows += batch.num_rows
        except BrokenPipeError:
            pass  # The process ended early; its exit code says why.
        except BaseException as error:
            # The end of the stream must not look like the end of the shard.
            self.error = error
            self.process.kill()


def match(program: Program, flags: list[str], schema: pa.Schema) -> Callable[..., Iterator[pa.RecordBatch]]:
    """Stage 3: the function that turns the rows of a shard into its records and, last, its totals."""

    def columns(rows: int, known: dict[str, pa.Array]) -> pa.RecordBatch:
        arrays = [known[f.name].cast(f.type) if f.name in known else pa.nulls(rows, f.type) for f in schema]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def of_shard(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        first = next(batches, None)
        if first is None:
            return
        with tempfile.TemporaryDirectory(prefix="linkweir-") as directory:
            sketch, said = Path(directory, "sketch.json"), Path(directory, "stderr")
            words = ["http", "-q", "--from-halves", "-", "--format", "arrow", "-w", "-", "--sketch", str(sketch)]
            with said.open("wb") as stderr:
                process = program.start([*words, *flags], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr)
            feeder = Feeder(process, first.schema, chain([first], batches))
            feeder.start()
            broken = None
            try:
                with process.stdout as stdout, pa.ipc.open_stream(stdout) as records:
                    for batch in records:
                        part = pa.array(["records"]).take(pa.array([0] * batch.num_rows))
                        yield columns(batch.num_rows, {**dict(zip(batch.schema.names, batch.columns)), "part": part})
                process.wait()
            except pa.ArrowException as error:
                broken = error
            finally:
                process.kill()
                code = process.wait()
                feeder.join(timeout=10)
            if feeder.error:
                raise feeder.error
            if code not in (DONE, DATA_LOST) or broken:
                text = said.read_text(errors="replace").strip() or broken or "killed"
                raise RuntimeError(f"{MARK} {socket.gethostname()}: linkweir http ended with {code}: {text}")
            totals = {
                "part": "totals",
                "shard": TaskContext.get().partitionId(),
                "halves": feeder.rows,
                "sketch": sketch.read_text(),
            }
            yield columns(1, {name: pa.array([value]) for name, value in totals.items()})

    return of_shard


# What runs on the driver.


def plain_type(arrow: pa.DataType) -> pa.DataType:
    """The type in which Spark holds a column exactly: it has no unsigned numbers and no nanoseconds."""
    if pa.types.is_boolean(arrow) or pa.types.is_float64(arrow) or pa.types.is_binary(arrow):
        return arrow
    if pa.types.is_integer(arrow):
        return pa.int32() if arrow.bit_width < 32 or arrow == pa.int32() else pa.int64()
    if pa.types.is_timestamp(arrow) or pa.types.is_duration(arrow):
        return pa.int64()
    return pa.string()


SPARK_TYPES = {
    pa.bool_(): "boolean",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float64(): "double",
    pa.binary(): "binary",
    pa.string(): "string",
}


def file_url(path: Path) -> str:
    """A path as Spark takes it, whatever its default file system is."""
    return f"file://{path}"


class Job:
    """A run of all stages."""

    def __init__(self, spark: SparkSession, args: argparse.Namespace) -> None:
        self.spark, self.args = spark, args
        self.directory = Path(args.work).resolve() / f"linkweir-{spark.sparkContext.applicationId}"
        self.sketches = Path(tempfile.mkdtemp(prefix="linkweir-sketches-"))
        self.program = Program(args.linkweir, args.ship)
        self.report: dict = {"seconds": {}}
        self.lossy = False

    def run(self) -> int:
        captures = list_captures(self.args.captures)
        self.refuse_existing_output()
        if self.args.ship:
            self.spark.sparkContext.addFile(shutil.which(self.args.linkweir) or self.args.linkweir)
        try:
            self.directory.mkdir(parents=True)
            self.timed("extract", lambda: self.extract(captures))
            self.timed("match", self.match)
            self.timed("write", self.write)
        finally:
            shutil.rmtree(self.sketches, ignore_errors=True)
            if not self.args.keep_work:
                shutil.rmtree(self.directory, ignore_errors=True)
        if self.args.report:
            Path(self.args.report).write_text(json.dumps(self.report, indent=2) + "\n")
        return DATA_LOST if self.lossy else DONE

    def timed(self, stage: str, work: Callable[[], None]) -> None:
        begin = time.monotonic()
        work()
        seconds = self.report["seconds"][stage] = round(time.monotonic() - begin, 1)
        say(f"{stage}: done in {seconds} s")

    def refuse_existing_output(self) -> None:
        jvm = self.spark.sparkContext._jvm
        path = jvm.org.apache.hadoop.fs.Path(self.args.out)
        if path.getFileSystem(self.spark.sparkContext._jsc.hadoopConfiguration()).exists(path):
            raise JobError(f"--out {self.args.out} exists; name a new directory")

    def extract(self, captures: list[str]) -> None:
        say(f"extract: {len(captures)} captures, a task each; {self.spark.sparkContext.uiWebUrl or 'no page of Spark'}")
        numbered = self.spark.sparkContext.parallelize(list(enumerate(captures)), len(captures))
        function = extract(self.program, str(self.directory), shlex.split(self.args.halves_flags))
        unreadable = 0
        for number, one in enumerate(numbered.map(function).collect()):
            if one["sketch"]:
                (self.sketches / f"1-{number:06}.json").write_text(one["sketch"])
            if one["code"] == DATA_LOST:
                say(f"{one['capture']}: data was lost: {one['said']}")
            elif one["code"] != DONE:
                unreadable += 1
                say(f"{one['capture']}: {'skipped' if self.args.skip_unreadable else 'unreadable'}: {one['said']}")
            self.lossy |= one["code"] != DONE
        if unreadable and (not self.args.skip_unreadable or unreadable == len(captures)):
            raise JobError(f"{unreadable} of {len(captures)} captures cannot be read")
        self.report |= {"captures": len(captures), "unreadable": unreadable}

    def match(self) -> None:
        shards = self.args.shards or max(self.spark.sparkContext.defaultParallelism * 3, 1)
        halves = self.spark.read.parquet(file_url(self.directory))
        flags = shlex.split(self.args.http_flags)
        records = self.schema_of_records(halves, flags)
        extra = [("part", pa.string()), ("shard", pa.int32()), ("halves", pa.int64()), ("sketch", pa.string())]
        schema = pa.schema([(f.name, plain_type(f.type)) for f in records] + extra)
        self.record_columns = [f.name for f in records]
        ddl = ", ".join(f"`{field.name}` {SPARK_TYPES[field.type]}" for field in schema)
        say(f"match: {shards} shards")
        rows = sharded(self.spark, halves, shards)
        function = match(self.program, flags, schema)
        rows.mapInArrow(function, ddl).write.partitionBy("part").parquet(file_url(self.directory / "matched"))

    def schema_of_records(self, halves: DataFrame, flags: list[str]) -> pa.Schema:
        """The columns of records, asked of the binary by a shard without rows."""
        empty, sketch = pa.BufferOutputStream(), self.sketches / "0.json"
        pa.ipc.new_stream(empty, halves.limit(0).toArrow().schema).close()
        words = ["http", "-q", "--from-halves", "-", "--format", "arrow", "-w", "-", "--sketch", str(sketch), *flags]
        ended = self.local(words, input=empty.getvalue().to_pybytes())
        with pa.ipc.open_stream(ended.stdout) as stream:
            return stream.schema

    def local(self, words: list[str], **more) -> subprocess.CompletedProcess:
        """Runs linkweir on the driver."""
        try:
            ended = subprocess.run([self.args.linkweir, *words], capture_output=True, check=False, **more)
        except OSError as error:
            raise JobError(f"the driver cannot start {self.args.linkweir}: {error.strerror}") from None
        if ended.returncode not in (DONE, DATA_LOST):
            raise JobError(f"linkweir {words[0]}: {ended.stderr.decode(errors='replace').strip()}")
        return ended

    def failed_tasks(self) -> int:
        """Tasks that failed and were run again, with stages that were, as far as Spark remembers them."""
        tracker = self.spark.sparkContext.statusTracker()
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(None)]
        stages = [tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
        return sum(stage.numFailedTasks + stage.currentAttemptId for stage in stages if stage)

    def committed(self, part: str) -> DataFrame | None:
        """Rows of one kind that stage 3 has committed; without any there is no directory of them."""
        directory = self.directory / "matched" / f"part={part}"
        return self.spark.read.parquet(file_url(directory)) if directory.exists() else None

    def write(self) -> None:
        matched = self.committed("totals")
        totals = matched.select("shard", "halves", "sketch").collect() if matched is not None else []
        shards = {row["shard"]: row for row in totals}
        if len(shards) != len(totals):
            raise JobError("a shard was committed twice; nothing was written")
        for row in totals:
            (self.sketches / f"3-{row['shard']:06}.json").write_text(row["sketch"])
        merged = self.local(["merge", "-q", "--summary", "-", str(self.sketches)])
        summary = json.loads(merged.stdout)
        self.lossy |= merged.returncode == DATA_LOST
        records = self.committed("records")
        committed = records.count() if records is not None else 0
        if committed != summary["records"]:
            raise JobError(f"{committed} records were committed, the shards counted {summary['records']}; nothing was written")
        if records is not None:
            save(records.select(*self.record_columns), self.args)
        if self.args.totals == "-":
            sys.stdout.write(merged.stdout.decode())
        else:
            Path(self.args.totals).write_bytes(merged.stdout)
        self.report |= {
            "halves": sum(row["halves"] for row in totals),
            "records": committed,
            "halves_per_shard": {shard: row["halves"] for shard, row in sorted(shards.items())},
            "failed_tasks": self.failed_tasks(),
        }
        say(f"{committed} records of {self.report['halves']} halves in {len(totals)} shards: {self.args.out}")


def sharded(spark: SparkSession, halves: DataFrame, shards: int) -> DataFrame:
    """Stage 2: one partition per shard, its rows in the order of the trace."""
    keys = halves.drop("payload", "ts_ns", "vlan", "flags")
    whole = spark.sql(WHOLE_CONNECTIONS, halves=keys).withColumn("is_whole", F.lit(True))
    rows = halves.join(whole, "connection", "left")
    # Rows without a message matter only to connections that stay together.
    rows = rows.where(F.col("is_whole") | F.col("is_request").isNotNull())
    key = F.when(F.col("is_whole"), F.col("connection")).otherwise(F.col("eq3"))
    # repartition(n, column) would hash the shard once more and leave partitions empty.
    rows = rows.withColumn("shard", F.pmod(key, F.lit(shards)).cast("int")).repartitionById(shards, "shard")
    return rows.sortWithinPartitions("order_ns", "file", "packet").select(*halves.columns)


def save(records: DataFrame, args: argparse.Namespace) -> None:
    """Stage 4: the records at their place."""
    if not args.partition:
        records.write.parquet(args.out)
        return
    moment = F.timestamp_seconds(F.expr("coalesce(request_ts_ns, response_ts_ns) div 1000000000"))
    directories = {"date": F.date_format(moment, "yyyy-MM-dd"), "hour": F.date_format(moment, "HH")}
    names = ["date", "hour"] if args.partition == "hour" else ["date"]
    records.withColumns({name: directories[name] for name in names}).write.partitionBy(*names).parquet(args.out)


def list_captures(paths: list[str]) -> list[str]:
    """Files in the order of the arguments, those of a directory by name, as `linkweir -r` takes them."""
    captures: list[str] = []
    for path in map(os.path.abspath, paths):
        if os.path.isdir(path):
            inside = sorted(entry.path for entry in os.scandir(path) if entry.is_file())
            if not inside:
                raise JobError(f"{path}: no files are in this directory")
            captures.extend(inside)
        else:
            captures.append(path)
    return captures


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="linkweir_spark.py",
        description="HTTP transactions of captures on a Spark cluster: records and totals of `linkweir http --workers 2 -r CAPTURE...`.",
        epilog="Exit codes: 0 done; 1 done, but captures were damaged or skipped; 2 wrong usage; 3 failed.",
    )
    parser.add_argument("captures", nargs="+", metavar="CAPTURE", help="file, or directory of files; one trace in this order; every machine must see it")
    parser.add_argument("--work", required=True, metavar="DIR", help="directory that all machines share; rows between the stages")
    parser.add_argument("--out", required=True, metavar="DIR", help="new directory or URL for the records, Parquet")
    parser.add_argument("--totals", default="-", metavar="FILE", help="totals as JSON, those of `linkweir http --summary` [default: standard output]")
    parser.add_argument("--report", metavar="FILE", help="seconds, rows and retries of the job as JSON")
    parser.add_argument("--partition", choices=["hour", "day"], help="directories by the time of the request, UTC [default: one directory]")
    parser.add_argument("--shards", type=int, metavar="N", help="shards, and with that tasks of stage 3 [default: three a core]")
    parser.add_argument("--master", metavar="URL", help="master of the cluster [default: that of spark-submit]")
    parser.add_argument("--linkweir", default="linkweir", metavar="PATH", help="the binary, on every machine [default: linkweir, by PATH]")
    parser.add_argument("--ship", action="store_true", help="send the driver's binary to the workers")
    parser.add_argument("--skip-unreadable", action="store_true", help="go on without captures that cannot be read")
    parser.add_argument("--http-flags", default="", metavar="WORDS", help="flags of `linkweir http`, for example '--timeout 30s'")
    parser.add_argument("--halves-flags", default="", metavar="WORDS", help="flags of `linkweir halves`, for example '-f \"tcp port 80\"'")
    parser.add_argument("--keep-work", action="store_true", help="leave the rows in the working directory")
    args = parser.parse_args()
    if args.shards is not None and args.shards < 1:
        parser.error("--shards must be at least 1")
    return args


def session(master: str | None) -> SparkSession:
    """The session, with what the job relies on."""
    builder = SparkSession.builder.appName("linkweir")
    if master:
        builder = builder.master(master)
    settings = {
        "spark.sql.session.timeZone": "UTC",
        # Batches between Spark and linkweir: payloads are up to 64 KiB a row.
        "spark.sql.execution.arrow.maxRecordsPerBatch": "2000",
        "spark.sql.execution.arrow.maxBytesPerBatch": str(16 << 20),
        "spark.sql.parquet.compression.codec": "zstd",
        # The output of a task appears as a whole or not at all.
        "spark.hadoop.mapreduce.fileoutputcommitter.algorithm.version": "1",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def main() -> int:
    args = arguments()
    spark = None
    try:
        spark = session(args.master)
        return Job(spark, args).run()
    except JobError as error:
        say(str(error))
    except Exception as error:  # noqa: BLE001 (of Spark: what a worker said is in its text)
        text = str(error) or repr(error)
        told = re.search(rf"{MARK} (.+)", text) or re.search(r"^(\w+(?:Error|Exception): .+)", text, re.MULTILINE)
        say(told[1] if told else text)
    finally:
        if spark:
            spark.stop()
    return FAILED


if __name__ == "__main__":
    sys.exit(main())
