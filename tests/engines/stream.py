"""Reads an Arrow stream from standard input while it is written, and gives its rows and a sum.

stream.py COLUMN < STREAM
"""

import sys

import pyarrow.compute
import pyarrow.ipc
from records import report

rows = total = batches = 0
with pyarrow.ipc.open_stream(sys.stdin.buffer) as reader:
    for batch in reader:
        rows += batch.num_rows
        batches += 1
        total += pyarrow.compute.sum(batch.column(sys.argv[1])).as_py() or 0
report(rows=rows, batches=batches, total=total)
