#!/usr/bin/env python3
"""Runs contrib/spark on a real cluster of two workers, and compares with one process.

    tests/cluster/cluster.py --linkweir BINARY --directory DIR CAPTURE...

Three runs: one that goes well; one in which an executor and the linkweir below it are killed in the
middle of a shard; one with a capture that is cut and one that is none. Each must give the records and
totals of `linkweir http --workers 2 -r CAPTURE...`: one worker alone would follow pipelines through
loss. Everything listens on loopback, and everything that was started is ended. Exit: 0 all equal, 1 not.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pyarrow.dataset as ds
import pyspark

HERE = Path(__file__).resolve().parent
DRIVER = HERE.parent.parent / "contrib" / "spark" / "linkweir_spark.py"
SPARK_HOME = Path(pyspark.__file__).parent
SHARDS = 6
PATIENCE_S = 240

# Stands for linkweir in the run with a loss. The third of the shards gives a part of its records and
# tells its process id, then waits to be killed; the driver's own call of `http` is the first.
STAND_IN = """#!/bin/sh
[ "$1" = http ] || exec "{real}" "$@"
turn=1
until mkdir "{directory}/turn-$turn" 2>/dev/null; do turn=$((turn + 1)); done
[ $turn -eq 4 ] || exec "{real}" "$@"
"{real}" "$@" >"{directory}/records"
head -c $(($(wc -c <"{directory}/records") * 2 / 3)) "{directory}/records"
echo $$ >"{directory}/victim.new" && mv "{directory}/victim.new" "{directory}/victim"
exec sleep 600
"""


class Wrong(Exception):
    """What does not hold."""


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Cluster:
    """A master and two workers on loopback, and the jobs sent to them."""

    def __init__(self, directory: Path) -> None:
        self.directory, self.started = directory, []
        self.port = free_port()
        self.url = f"spark://127.0.0.1:{self.port}"
        conf = directory / "conf"
        conf.mkdir()
        (conf / "log4j2.properties").write_text(
            "rootLogger.level=warn\nrootLogger.appenderRef.stderr.ref=console\n"
            "appender.console.type=Console\nappender.console.name=console\nappender.console.target=SYSTEM_ERR\n"
            "appender.console.layout.type=PatternLayout\nappender.console.layout.pattern=%d{HH:mm:ss} %p %c{1}: %m%n\n"
            "logger.deploy.name=org.apache.spark.deploy\nlogger.deploy.level=info\n"
        )
        self.env = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))} | {
            "SPARK_HOME": str(SPARK_HOME),
            "SPARK_CONF_DIR": str(conf),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_MEMORY": "256m",
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
        }

    def start(self, name: str, words: list[str]) -> subprocess.Popen:
        # In a session of its own, by which all that descends from it is found again.
        with (self.directory / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(words, env=self.env, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        self.started.append(process)
        return process

    def log(self, name: str) -> str:
        return (self.directory / f"{name}.log").read_text(errors="replace")

    def up(self) -> None:
        daemon = str(SPARK_HOME / "bin" / "spark-class"), "org.apache.spark.deploy"
        here = ["--host", "127.0.0.1", "--webui-port", "0"]
        master = self.start("master", [daemon[0], f"{daemon[1]}.master.Master", *here, "--port", str(self.port)])
        self.wait_for("master", master, "I have been elected leader")
        for number in (1, 2):
            name, size = f"worker-{number}", ["--cores", "1", "--memory", "1g"]
            where = ["-d", str(self.directory / name)]
            self.start(name, [daemon[0], f"{daemon[1]}.worker.Worker", *here, *size, *where, self.url])
        for number, worker in enumerate(self.started[1:], 1):
            self.wait_for(f"worker-{number}", worker, "Successfully registered with master")

    def wait_for(self, name: str, process: subprocess.Popen, text: str) -> None:
        end = time.monotonic() + PATIENCE_S
        while text not in self.log(name):
            if process.poll() is not None or time.monotonic() > end:
                raise Wrong(f"{name} does not start:\n{self.log(name)}")
            time.sleep(0.2)

    def submit(self, name: str, linkweir: Path, captures: list[Path], more: list[str]) -> subprocess.Popen:
        conf = {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.memory": "512m",
            "spark.executor.memory": "768m",
            "spark.executor.cores": "1",
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": "4",
        }
        words = [str(SPARK_HOME / "bin" / "spark-submit"), "--master", self.url]
        words += [word for item in conf.items() for word in ("--conf", "=".join(item))]
        at = self.directory / name
        words += [str(DRIVER), "--work", str(self.directory), "--out", str(at), "--totals", f"{at}.totals.json"]
        words += ["--report", f"{at}.report.json", "--shards", str(SHARDS), "--linkweir", str(linkweir), *more]
        return self.start(name, [*words, *map(str, captures)])

    def ours(self) -> list[int]:
        """Every process that descends from what was started."""
        sessions = {process.pid for process in self.started}
        return [pid for pid in processes() if stat(pid)[1] in sessions]

    def down(self) -> int:
        """Ends everything; how many processes did not go when asked."""
        for process in reversed(self.started):
            process.terminate()
        end = time.monotonic() + 10
        while self.ours() and time.monotonic() < end:
            for process in self.started:
                process.poll()
            time.sleep(0.1)
        stubborn = self.ours()
        for pid in stubborn:
            os.kill(pid, signal.SIGKILL)
        for process in self.started:
            process.wait()
        return len(stubborn)


def processes() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def stat(pid: int) -> tuple[int, int]:
    """Parent and session of a process; zeros where it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0, 0
    return (0, 0) if fields[0] == "Z" else (int(fields[1]), int(fields[3]))


def executor_above(pid: int, ours: list[int]) -> int:
    """The virtual machine of the executor that a process descends from."""
    while pid in ours:
        if b"CoarseGrainedExecutorBackend" in Path(f"/proc/{pid}/cmdline").read_bytes():
            return pid
        pid = stat(pid)[0]
    raise Wrong("the process that waits has no executor above it")


def rows(records: list[dict]) -> Counter:
    return Counter(tuple(sorted((k, v) for k, v in one.items() if v is not None)) for one in records)


def one_process(linkweir: Path, captures: list[Path], directory: Path, name: str) -> tuple[int, Counter, dict]:
    """What the job must give."""
    out, summary = directory / f"{name}.one.jsonl", directory / f"{name}.one.json"
    words = [linkweir, "http", "-q", "--workers", "2", "-w", out, "--summary", summary]
    words += [word for capture in captures for word in ("-r", capture)]
    ended = subprocess.run(list(map(str, words)), check=False, stderr=subprocess.DEVNULL)
    records = [json.loads(line) for line in out.read_text().splitlines()]
    return ended.returncode, rows(records), json.loads(summary.read_text())


def compare(cluster: Cluster, name: str, expected: tuple[int, Counter, dict]) -> dict:
    at = cluster.directory / name
    got = rows(ds.dataset(at, format="parquet").to_table().to_pylist())
    missing, surplus = expected[1] - got, got - expected[1]
    if missing or surplus:
        examples = "\n".join(map(str, [*list(missing)[:3], "surplus:", *list(surplus)[:3]]))
        raise Wrong(f"{name}: {missing.total()} records are missing, {surplus.total()} are too many:\n{examples}")
    totals = json.loads(Path(f"{at}.totals.json").read_text())
    for summary in (totals, expected[2]):
        # How long it took, who did it and the names of outputs are not the same.
        del summary["elapsed_s"], summary["workers"]
        summary["dropped"]["sink"] = sum(summary["dropped"]["sink"].values())
    for key in expected[2].keys() | totals.keys():
        if totals.get(key) != expected[2].get(key):
            raise Wrong(f"{name}: {key} is {totals.get(key)}, one process has {expected[2].get(key)}")
    left = [path.name for path in cluster.directory.glob("linkweir-app-*")]
    if left:
        raise Wrong(f"{name}: left in the working directory: {left}")
    report = json.loads(Path(f"{at}.report.json").read_text())
    return report | {"packets": totals["packets"]}


def ended(cluster: Cluster, name: str, process: subprocess.Popen, code: int) -> None:
    got = process.wait(timeout=PATIENCE_S)
    if got != code:
        raise Wrong(f"{name} ended with {got}, not {code}:\n{cluster.log(name)[-6000:]}")


def goes_well(cluster: Cluster, linkweir: Path, captures: list[Path]) -> dict:
    expected = one_process(linkweir, captures, cluster.directory, "plain")
    ended(cluster, "plain", cluster.submit("plain", linkweir, captures, []), expected[0])
    return compare(cluster, "plain", expected)


def loses_an_executor(cluster: Cluster, linkweir: Path, captures: list[Path]) -> dict:
    directory = cluster.directory / "stand-in"
    directory.mkdir()
    stand_in, victim = directory / "linkweir", directory / "victim"
    stand_in.write_text(STAND_IN.format(real=linkweir, directory=directory))
    stand_in.chmod(0o755)
    expected = one_process(linkweir, captures, cluster.directory, "killed")
    job = cluster.submit("killed", stand_in, captures, [])
    end = time.monotonic() + PATIENCE_S
    while not victim.exists():
        if job.poll() is not None or time.monotonic() > end:
            raise Wrong(f"no shard came to the place where it waits:\n{cluster.log('killed')[-6000:]}")
        time.sleep(0.05)
    child = int(victim.read_text())
    executor = executor_above(child, cluster.ours())
    os.kill(executor, signal.SIGKILL)
    os.kill(child, signal.SIGKILL)
    ended(cluster, "killed", job, expected[0])
    report = compare(cluster, "killed", expected)
    if report["failed_tasks"] < 1:
        raise Wrong("no task was run again, although an executor was killed")
    return report


def reads_damage(cluster: Cluster, linkweir: Path, captures: list[Path]) -> dict:
    whole, cut, none = captures[-2], cluster.directory / "cut.pcap", cluster.directory / "none.pcap"
    bytes_ = captures[-1].read_bytes()
    cut.write_bytes(bytes_[: len(bytes_) // 2 + 7])
    none.write_text("this is no capture\n")
    captures = [whole, cut, none]
    expected = one_process(linkweir, captures, cluster.directory, "damaged")
    # What one process calls failed, because an input gave nothing, is skipped here on request.
    ended(cluster, "damaged", cluster.submit("damaged", linkweir, captures, ["--skip-unreadable"]), 1)
    for text in (str(cut), str(none), "skipped"):
        if text not in cluster.log("damaged"):
            raise Wrong(f"damaged: the job does not name {text}")
    return compare(cluster, "damaged", expected)


def table(reports: dict[str, dict], seconds: dict[str, float]) -> str:
    heads = ["run", "captures", "packets", "halves", "records", "extract s", "match s", "write s", "all s", "failed tasks", "halves per shard"]
    lines = [heads]
    for name, one in reports.items():
        per_stage = [str(one["seconds"][stage]) for stage in ("extract", "match", "write")]
        shards = " ".join(str(count) for count in one["halves_per_shard"].values())
        counts = [str(one[key]) for key in ("captures", "packets", "halves", "records")]
        lines.append([name, *counts, *per_stage, f"{seconds[name]:.1f}", str(one["failed_tasks"]), shards])
    widths = [max(len(line[at]) for line in lines) for at in range(len(heads))]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(line, widths)) for line in lines)


def main() -> int:
    parser = argparse.ArgumentParser(description="Runs contrib/spark on a cluster of two workers and compares with one process.")
    parser.add_argument("--linkweir", required=True, type=Path)
    parser.add_argument("--directory", required=True, type=Path, help="for logs and outputs")
    parser.add_argument("captures", nargs="+", type=Path)
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    cluster = Cluster(args.directory.resolve())
    runs = {"plain": goes_well, "killed": loses_an_executor, "damaged": reads_damage}
    reports, seconds, code = {}, {}, 0
    try:
        begin = time.monotonic()
        cluster.up()
        print(f"cluster: master and two workers at {cluster.url}: {time.monotonic() - begin:.1f} s", flush=True)
        for name, run in runs.items():
            begin = time.monotonic()
            reports[name] = run(cluster, args.linkweir.resolve(), args.captures)
            seconds[name] = time.monotonic() - begin
            print(f"{name}: records and totals are those of one process: {seconds[name]:.1f} s", flush=True)
    except (Wrong, subprocess.TimeoutExpired) as wrong:
        print(f"cluster: {wrong}", file=sys.stderr)
        code = 1
    finally:
        begin = time.monotonic()
        killed = cluster.down()
        print(f"cluster: ended in {time.monotonic() - begin:.1f} s, {killed} processes had to be killed")
    if reports:
        print(table(reports, seconds))
    return code


if __name__ == "__main__":
    sys.exit(main())
