// The most frequent hosts, URLs, servers and clients. Keys come from the network: only ever text.

import { batch, signal, useComputed } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { fetchTop, GROUPS, WINDOWS, type By, type ServerSort, type TopRow, type TopTable, type Window } from "./api";
import * as format from "./format";
import { poll } from "./poll";
import { descending, group, search, sort, topWindow, type Column } from "./state";

const ROWS = 100;
const NAMES: Readonly<Record<By, string>> = { host: "Hosts", url: "URLs", server: "Servers", client: "Clients" };
const SPANS: Readonly<Record<Window, string>> = { 60: "1 min", 300: "5 min", all: "All" };

const table = signal<TopTable | null>(null);

/** The rows that the server picks when there are more than fit: those that the column is about. */
const PICKED_BY: Readonly<Record<Column, ServerSort>> = {
  key: "requests",
  requests: "requests",
  errors_4xx: "errors",
  errors_5xx: "errors",
  unanswered: "unanswered",
  bytes: "bytes",
  p50: "p95",
  p95: "p95",
  p99: "p95",
  max: "p95",
};

async function ask([by, pick, window]: readonly [By, ServerSort, Window]): Promise<void> {
  table.value = await fetchTop(by, pick, window, ROWS);
}

interface ColumnInfo {
  id: Column;
  name: string;
  show: (row: TopRow) => string;
  warn?: (row: TopRow) => boolean;
  hint?: string;
}

const latency = (id: "p50" | "p95" | "p99" | "max"): ColumnInfo => ({
  id,
  name: id,
  show: (row) => (row[id] === null ? "–" : format.time(row[id])),
});

const NUMBERS: readonly ColumnInfo[] = [
  { id: "requests", name: "Requests", show: (row) => format.count(row.requests) },
  { id: "errors_4xx", name: "4xx", show: (row) => format.count(row.errors_4xx), hint: "Responses with 4xx" },
  { id: "errors_5xx", name: "5xx", show: (row) => format.count(row.errors_5xx), warn: (row) => row.errors_5xx > 0, hint: "Responses with 5xx" },
  { id: "unanswered", name: "Unanswered", show: (row) => format.count(row.unanswered) },
  { id: "bytes", name: "Bytes", show: (row) => format.si(row.bytes, "B"), hint: "Declared bytes of requests and responses" },
  latency("p50"),
  latency("p95"),
  latency("p99"),
  latency("max"),
];

function sorted(rows: readonly TopRow[], by: Column, down: boolean): TopRow[] {
  const sign = down ? -1 : 1;
  return [...rows].sort((one, other) => {
    if (by === "key") return sign * one.key.localeCompare(other.key);
    // Without a value: last, whatever the direction.
    const a = one[by];
    const b = other[by];
    if (a === null || b === null) return Number(a === null) - Number(b === null);
    return sign * (a - b) || one.key.localeCompare(other.key);
  });
}

function choose(column: Column): void {
  batch(() => {
    if (sort.value === column) descending.value = !descending.value;
    else {
      sort.value = column;
      // Text from the start of the alphabet, numbers from the largest.
      descending.value = column !== "key";
    }
  });
}

function nextTab(event: KeyboardEvent): void {
  const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (move === undefined) return;
  event.preventDefault();
  const at = (GROUPS.indexOf(group.value) + move + GROUPS.length) % GROUPS.length;
  group.value = GROUPS[at] ?? "host";
  document.getElementById(`tab-${group.value}`)?.focus();
}

export function TopCard() {
  useEffect(() => poll(() => [group.value, PICKED_BY[sort.value], topWindow.value] as const, ask), []);
  const rows = useComputed(() => {
    const words = search.value.trim().toLowerCase();
    const all = table.value?.by === group.value ? table.value.rows : [];
    const found = words === "" ? all : all.filter((row) => row.key.toLowerCase().includes(words));
    return sorted(found, sort.value, descending.value);
  }).value;
  const most = rows.reduce((largest, row) => Math.max(largest, row.requests), 1);
  const floor = table.value?.floor ?? 0;
  return (
    <section class="card top" aria-label="Top" data-top={group.value}>
      <header class="card-head">
        <div class="tabs" role="tablist" aria-label="Group by" onKeyDown={nextTab}>
          {GROUPS.map((by) => (
            <button
              type="button"
              key={by}
              id={`tab-${by}`}
              role="tab"
              aria-selected={group.value === by}
              aria-controls="top-table"
              tabIndex={group.value === by ? 0 : -1}
              onClick={() => (group.value = by)}
            >
              {NAMES[by]}
            </button>
          ))}
        </div>
        <span class="choices">
          <span class="segments" role="group" aria-label="Window of the table">
            {WINDOWS.map((window) => (
              <button type="button" key={window} aria-pressed={topWindow.value === window} onClick={() => (topWindow.value = window)}>
                {SPANS[window]}
              </button>
            ))}
          </span>
          <input
            id="search"
            type="search"
            placeholder="Search"
            aria-label={`Search ${NAMES[group.value]}`}
            value={search.value}
            onInput={(event) => (search.value = event.currentTarget.value.slice(0, 200))}
          />
        </span>
      </header>
      <div class="scroll" id="top-table" role="tabpanel" aria-labelledby={`tab-${group.value}`} tabIndex={0}>
        <table>
          <thead>
            <tr>
              <Heading id="key" name={NAMES[group.value].replace(/s$/, "")} />
              {NUMBERS.map((column) => <Heading key={column.id} {...column} />)}
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <tr key={row.key} data-key={row.key}>
                <th scope="row" title={row.key}>{row.key === "" ? "(none)" : row.key}</th>
                {NUMBERS.map((column) => (
                  <td key={column.id} class={`num ${column.warn?.(row) === true ? "warn" : ""}`} data-column={column.id} data-value={row[column.id]}>
                    {column.id === "requests" ? (
                      <svg class="share-bar" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
                        <rect width={(row.requests / most) * 100} height="10" />
                      </svg>
                    ) : null}
                    {column.show(row)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
        {rows.length === 0 ? <p class="none">{search.value === "" ? "None in this window." : `Nothing matches “${search.value}”.`}</p> : null}
      </div>
      <p class="note">
        {rows.length} {rows.length === 1 ? "row" : "rows"}, at most {ROWS}.
        {floor > 0 ? ` The table is full: what is not in it had at most ${format.count(floor)} requests, and counts may be that much too large.` : ""}
      </p>
    </section>
  );
}

function Heading({ id, name, hint }: { id: Column; name: string; hint?: string }) {
  const on = sort.value === id;
  return (
    <th scope="col" class={id === "key" ? "" : "num"} aria-sort={on ? (descending.value ? "descending" : "ascending") : "none"}>
      <button type="button" data-sort={id} title={hint ?? ""} onClick={() => choose(id)}>
        {name}
        <span class="arrow" aria-hidden="true">{on ? (descending.value ? "▾" : "▴") : ""}</span>
      </button>
    </th>
  );
}
