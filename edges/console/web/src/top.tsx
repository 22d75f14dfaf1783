// The most frequent keys: hosts, URLs, servers, names. Keys come from the network: only ever text.

import { batch, signal, useComputed } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { fetchTop, WINDOWS, type Kind, type TopRow, type TopTable, type Window } from "./api";
import { hasRecords, opens } from "./drill";
import * as format from "./format";
import { poll } from "./poll";
import { chosen, descending, group, kind, meta, search, sort, topWindow } from "./state";

const ROWS = 100;
const SPANS: Readonly<Record<Window, string>> = { 60: "1 min", 300: "5 min", all: "All" };

const table = signal<TopTable | null>(null);

interface ColumnInfo {
  id: string;
  name: string;
  /** By what the server picks the rows when there are more than fit: those that the column is about. */
  pick: string;
  show: (row: TopRow) => string;
  /** What it is sorted by, if that is not a number of the row. */
  value?: (row: TopRow) => number | null;
  warn?: (row: TopRow) => boolean;
  hint?: string;
  /** Whether it is sorted as text. */
  text?: boolean;
}

const number = (row: TopRow, id: string): number | null => {
  const value = row[id];
  return typeof value === "number" ? value : null;
};

const amount = (row: TopRow, id: string): number => number(row, id) ?? 0;

const counted = (id: string, name: string, pick: string, hint?: string): ColumnInfo => ({
  id, name, pick, show: (row) => format.count(amount(row, id)), ...(hint === undefined ? {} : { hint }),
});

const timed = (id: string, name: string, pick: string, hint?: string): ColumnInfo => ({
  id, name, pick,
  show: (row) => {
    const value = number(row, id);
    return value === null ? "–" : format.time(value);
  },
  ...(hint === undefined ? {} : { hint }),
});

interface Tables {
  /** What the tables are by, and what they are called. */
  groups: readonly (readonly [string, string])[];
  /** The first is the one that bars are drawn for. */
  columns: readonly ColumnInfo[];
  /** What the first column counts. */
  unit: (count: number) => string;
}

const lostShare = (row: TopRow): number | null =>
  amount(row, "data_segments") > 0 ? amount(row, "retransmissions") / amount(row, "data_segments") : null;

const TABLES: Readonly<Record<Kind, Tables>> = {
  http: {
    groups: [["host", "Hosts"], ["url", "URLs"], ["server", "Servers"], ["client", "Clients"]],
    columns: [
      counted("requests", "Requests", "requests"),
      counted("errors_4xx", "4xx", "errors", "Responses with 4xx"),
      { ...counted("errors_5xx", "5xx", "errors", "Responses with 5xx"), warn: (row) => amount(row, "errors_5xx") > 0 },
      counted("unanswered", "Unanswered", "unanswered"),
      { id: "bytes", name: "Bytes", pick: "bytes", show: (row) => format.si(amount(row, "bytes"), "B"), hint: "Declared bytes of requests and responses" },
      timed("p50", "p50", "p95"),
      timed("p95", "p95", "p95"),
      timed("p99", "p99", "p95"),
      timed("max", "max", "p95"),
    ],
    unit: (count) => format.counted(count, "request"),
  },
  flows: {
    groups: [["name", "Names"], ["server", "Servers"], ["client", "Clients"], ["application", "Applications"]],
    columns: [
      { id: "bytes", name: "Bytes", pick: "bytes", show: (row) => format.si(amount(row, "bytes"), "B"), hint: "Bytes of IP packets, both directions" },
      counted("flows", "Flows", "flows", "Flows that ended"),
      counted("reset", "Reset", "failed", "Flows that one side broke off"),
      { ...counted("unanswered", "Unanswered", "failed", "Flows without an answer"), warn: (row) => amount(row, "unanswered") > 0.05 * Math.max(1, amount(row, "flows")) },
      {
        id: "retransmissions", name: "Sent again", pick: "retransmissions", hint: "Of TCP segments with payload",
        value: lostShare,
        show: (row) => {
          const share = lostShare(row);
          return share === null ? "–" : format.percent(share);
        },
        warn: (row) => (lostShare(row) ?? 0) > 0.03,
      },
      timed("rtt_p50", "RTT p50", "rtt_p95", "Client to server and back"),
      timed("rtt_p95", "RTT p95", "rtt_p95", "Client to server and back"),
    ],
    unit: (count) => format.si(count, "B"),
  },
  gateway: {
    groups: [["application", "Applications"], ["client", "Clients"], ["file", "Files"], ["finding", "Findings"]],
    columns: [
      counted("events", "Events", "events"),
      counted("connections", "Connections", "events", "Connections that were decided"),
      { ...counted("refused", "Refused", "stopped", "Dropped or rejected by rule"), warn: (row) => amount(row, "refused") > 0 },
      { ...counted("blocked", "Blocked", "stopped", "Cut off for what they carried"), warn: (row) => amount(row, "blocked") > 0 },
      counted("found", "Found", "found", "Keywords, file names and viruses"),
      { ...counted("infected", "Infected", "found", "Of what was found, viruses"), warn: (row) => amount(row, "infected") > 0 },
      counted("messages", "Messages", "events"),
      counted("files", "Files", "files"),
      { id: "bytes", name: "Bytes", pick: "bytes", show: (row) => format.si(amount(row, "bytes"), "B"), hint: "Bytes of files and messages" },
    ],
    unit: (count) => format.counted(count, "event"),
  },
  load: {
    groups: [["group", "Groups"], ["generator", "Generators"]],
    columns: [
      { id: "bytes", name: "Bytes", pick: "bytes", show: (row) => format.si(amount(row, "bytes"), "B"), hint: "Bytes of responses" },
      counted("sessions", "Sessions", "sessions", "Sessions that started"),
      counted("completed", "Completed", "sessions"),
      { ...counted("failed", "Failed", "failed"), warn: (row) => amount(row, "failed") > 0 },
      counted("requests", "Requests", "responses"),
      counted("responses", "Responses", "responses"),
    ],
    unit: (count) => format.si(count, "B"),
  },
};

/** What is known of clients, where it is: by a database of addresses, by their ClientHellos. */
const known = (id: string, name: string, hint: string): ColumnInfo => ({
  id, name, hint, text: true, pick: "",
  show: (row) => (row[id] == null ? "–" : id === "asn" ? `AS${row[id]}` : String(row[id])),
});
const KNOWN: readonly ColumnInfo[] = [
  known("country", "Country", "Of the client, by --geoip"),
  known("asn", "AS", "Of the client, by --geoip"),
  known("ja4", "JA4", "Of the last TLS handshake of the client that was seen whole"),
];

const tables = (): Tables => TABLES[kind.value];
/** The columns of the table that is shown: of what nothing is known there is no column. */
const columnsNow = (): readonly ColumnInfo[] => {
  const rows = table.value?.by === by() ? table.value.rows : [];
  const more = KNOWN.filter(({ id }) => rows.some((row) => row[id] != null));
  return more.length === 0 ? tables().columns : [...tables().columns, ...more];
};
/** Where a database says where addresses are. */
const PLACES: Tables["groups"] = [
  ["client_country", "Client countries"],
  ["server_country", "Server countries"],
  ["client_asn", "Client AS"],
  ["server_asn", "Server AS"],
];
const named = (): Tables["groups"] => (meta.value?.places === true ? [...tables().groups, ...PLACES] : tables().groups);
const groups = (): string[] => named().map(([by]) => by);
const by = (): string => chosen(groups(), group.value);
const column = (): string => chosen([...columnsNow().map(({ id }) => id), "key"], sort.value);
const picked = (): string => {
  const { columns } = tables();
  return (columns.find(({ id }) => id === sort.value) ?? columns[0])?.pick ?? "";
};

async function ask([group, pick, window]: readonly [string, string, Window]): Promise<void> {
  table.value = await fetchTop(group, pick, window, ROWS);
}

function sorted(rows: readonly TopRow[], info: ColumnInfo | undefined, down: boolean): TopRow[] {
  const sign = down ? -1 : 1;
  const value = info === undefined ? null : (info.value ?? ((row: TopRow) => number(row, info.id)));
  return [...rows].sort((one, other) => {
    if (info?.text === true) {
      const [a, b] = [info.show(one), info.show(other)];
      const isKnown = Number(one[info.id] == null) - Number(other[info.id] == null);
      return isKnown || sign * a.localeCompare(b, undefined, { numeric: true }) || one.key.localeCompare(other.key);
    }
    if (value === null) return sign * one.key.localeCompare(other.key);
    // Without a value: last, whatever the direction.
    const a = value(one);
    const b = value(other);
    if (a === null || b === null) return Number(a === null) - Number(b === null);
    return sign * (a - b) || one.key.localeCompare(other.key);
  });
}

/** The first of a choice is not in the address. */
const unlessFirst = (word: string, first: string | undefined): string => (word === first ? "" : word);

function choose(id: string): void {
  batch(() => {
    if (column() === id) descending.value = !descending.value;
    else {
      sort.value = unlessFirst(id, tables().columns[0]?.id);
      // Text from the start of the alphabet, numbers from the largest.
      descending.value = id !== "key" && !KNOWN.some((one) => one.id === id);
    }
  });
}

function show(id: string): void {
  group.value = unlessFirst(id, groups()[0]);
}

function nextTab(event: KeyboardEvent): void {
  const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (move === undefined) return;
  event.preventDefault();
  const all = groups();
  const to = all[(all.indexOf(by()) + move + all.length) % all.length] ?? "";
  show(to);
  document.getElementById(`tab-${to}`)?.focus();
}

export function TopCard() {
  useEffect(() => poll(() => [by(), picked(), topWindow.value] as const, ask), []);
  const rows = useComputed(() => {
    const words = search.value.trim().toLowerCase();
    const all = table.value?.by === by() ? table.value.rows : [];
    const found = words === "" ? all : all.filter((row) => row.key.toLowerCase().includes(words));
    return sorted(found, columnsNow().find(({ id }) => id === column()), descending.value);
  }).value;
  const { unit } = tables();
  const columns = columnsNow();
  const names = named();
  const at = by();
  const title = names.find(([id]) => id === at)?.[1] ?? "";
  const first = columns[0]?.id ?? "";
  const most = rows.reduce((largest, row) => Math.max(largest, amount(row, first)), 1);
  const floor = table.value?.floor ?? 0;
  return (
    <section class="card top" aria-label="Top" data-top={at}>
      <header class="card-head">
        <div class="tabs" role="tablist" aria-label="Group by" onKeyDown={nextTab}>
          {names.map(([id, name]) => (
            <button
              type="button"
              key={id}
              id={`tab-${id}`}
              role="tab"
              aria-selected={at === id}
              aria-controls="top-table"
              tabIndex={at === id ? 0 : -1}
              onClick={() => show(id)}
            >
              {name}
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
            aria-label={`Search ${title}`}
            value={search.value}
            onInput={(event) => (search.value = event.currentTarget.value.slice(0, 200))}
          />
        </span>
      </header>
      <div class="scroll" id="top-table" role="tabpanel" aria-labelledby={`tab-${at}`} tabIndex={0}>
        <table>
          <thead>
            <tr>
              <Heading id="key" name={title.replace(/ies$/, "y").replace(/s$/, "")} />
              {columns.map(({ id, name, hint }) => <Heading key={id} id={id} name={name} hint={hint ?? ""} />)}
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <tr key={row.key} data-key={row.key} {...(hasRecords() ? opens({ by: at, key: row.key }) : {})}>
                <th scope="row" title={row.key}>{row.key === "" ? "(none)" : row.key}</th>
                {columns.map((info) => (
                  <td key={info.id} class={`num ${info.warn?.(row) === true ? "warn" : ""}`} data-column={info.id} data-value={row[info.id]}>
                    {info.id === first ? (
                      <svg class="share-bar" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
                        <rect width={(amount(row, first) / most) * 100} height="10" />
                      </svg>
                    ) : null}
                    {info.show(row)}
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
        {floor > 0 ? ` The table is full: what is not in it had at most ${unit(floor)}, and counts may be that much too large.` : ""}
      </p>
    </section>
  );
}

function Heading({ id, name, hint }: { id: string; name: string; hint?: string }) {
  const on = column() === id;
  return (
    <th scope="col" class={id === "key" ? "" : "num"} aria-sort={on ? (descending.value ? "descending" : "ascending") : "none"}>
      <button type="button" data-sort={id} title={hint ?? ""} onClick={() => choose(id)}>
        {name}
        <span class="arrow" aria-hidden="true">{on ? (descending.value ? "▾" : "▴") : ""}</span>
      </button>
    </th>
  );
}
