// The records behind a row of a table or behind an alert. All of it is text from the network: only ever text.

import { effect, signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { fetchRecords, Refused, type Behind, type Order, type Records } from "./api";
import * as format from "./format";
import { kind, meta, zone } from "./state";

const asked = signal<Behind | null>(null);
const order = signal<Order>("slowest");
const found = signal<Records | null>(null);
const trouble = signal("");
const copied = signal(false);

/** Whether rows of tables of this kind have records behind them. */
export const hasRecords = (): boolean =>
  (kind.value === "http" || kind.value === "flows") && meta.value?.merged !== true;

export function openRecords(behind: Behind): void {
  asked.value = behind;
}

/** What a row or an alert needs to be opened by pointer and by keyboard. */
export function opens(behind: Behind) {
  return {
    tabIndex: 0,
    title: "Show the last records behind this",
    onClick: () => openRecords(behind),
    onKeyDown: (event: KeyboardEvent) => {
      if (event.key === "Enter") openRecords(behind);
    },
  };
}

effect(() => {
  const behind = asked.value;
  const first = order.value;
  found.value = null;
  trouble.value = "";
  copied.value = false;
  if (behind === null) return;
  fetchRecords(behind, first).then(
    (records) => {
      if (asked.peek() === behind && order.peek() === first) found.value = records;
    },
    (error: unknown) => {
      trouble.value = error instanceof Refused ? "There are no records behind this." : "No connection.";
    },
  );
});

type Row = Records["records"][number];

const text = (row: Row, name: string): string => String(row[name] ?? "");
const amount = (row: Row, name: string): number => Number(row[name] ?? 0);
const clock = (nanoseconds: number): string => format.clock(nanoseconds / 1e6, zone.value);
const taken = (row: Row, name: string): string => (row[name] === undefined ? "–" : format.time(amount(row, name)));
const end = (row: Row, ip: string, port: string): string => `${text(row, ip)}:${text(row, port)}`;

type Shown = readonly (readonly [string, (row: Row) => string])[];

const HTTP: Shown = [
  ["Time", (row) => clock(amount(row, "request_ts_ns") || amount(row, "response_ts_ns"))],
  ["Response time", (row) => taken(row, "response_time_ns")],
  ["Status", (row) => text(row, "status_code") || text(row, "state")],
  ["Request", (row) => `${text(row, "method")} ${text(row, "host")}${text(row, "uri")}`],
  ["Client", (row) => end(row, "client_ip", "client_port")],
  ["Server", (row) => end(row, "server_ip", "server_port")],
  ["Country, AS", (row) => place(row)],
  ["JA4", (row) => text(row, "ja4")],
];

const FLOWS: Shown = [
  ["Time", (row) => clock(amount(row, "first_ns"))],
  ["Duration", (row) => taken(row, "durat_ns")],
  ["End", (row) => text(row, "state")],
  ["Application", (row) => text(row, "application")],
  ["Name", (row) => text(row, "sni") || text(row, "http_hostname") || text(row, "fqdn")],
  ["Client", (row) => end(row, "c_ip", "c_port")],
  ["Server", (row) => end(row, "s_ip", "s_port")],
  ["Bytes", (row) => format.si(amount(row, "c_ip_bytes") + amount(row, "s_ip_bytes"), "B")],
  ["Country, AS", (row) => place(row)],
  ["JA4", (row) => text(row, "ja4")],
];

/** Where both ends are, where a database says so. */
function place(row: Row): string {
  const of = (side: string): string =>
    [text(row, `${side}_country`), row[`${side}_asn`] === undefined ? "" : `AS${text(row, `${side}_asn`)}`].filter((one) => one !== "").join(" ");
  return [of("client"), of("server")].filter((one) => one !== "").join(" → ");
}

export function RecordsDialog() {
  const box = useRef<HTMLDialogElement>(null);
  const behind = asked.value;
  useEffect(() => {
    if (behind !== null && box.current?.open === false) box.current.showModal();
    if (behind === null) box.current?.close();
  }, [behind]);
  const all = found.value;
  const rows = all?.records ?? [];
  // A column in which nothing stands takes room for nothing.
  const columns = (kind.value === "flows" ? FLOWS : HTTP).filter(([, show]) => rows.some((row) => show(row) !== ""));
  const title = behind === null ? "" : "rule" in behind ? behind.rule : behind.key || "(none)";
  const copy = (): void => {
    // A page that is not on loopback or TLS has no clipboard: the text can be selected.
    navigator.clipboard?.writeText(`--where '${all?.where ?? ""}'`).then(() => (copied.value = true), () => undefined);
  };
  return (
    <dialog class="records" ref={box} aria-labelledby="records-title" onClose={() => (asked.value = null)}>
      <header class="card-head">
        <h2 id="records-title">Records of {title}</h2>
        <div class="segments" role="group" aria-label="Order">
          {(["slowest", "newest"] as const).map((one) => (
            <button type="button" key={one} data-order={one} aria-pressed={order.value === one} onClick={() => (order.value = one)}>
              {one === "slowest" ? "Slowest first" : "Newest first"}
            </button>
          ))}
        </div>
        <button type="button" class="button" id="records-close" onClick={() => (asked.value = null)}>Close</button>
      </header>
      {trouble.value === "" ? null : <p class="none">{trouble.value}</p>}
      {all === null ? null : (
        <p class="records-where">
          <code>{`--where '${all.where}'`}</code>
          <button type="button" class="button" onClick={copy}>{copied.value ? "Copied" : "Copy"}</button>
          <span class="unit">{rows.length} of {format.count(all.matching)} among the last {format.counted(all.of, "record")}</span>
        </p>
      )}
      <div class="records-rows" tabIndex={0}>
        <table data-records={rows.length}>
          <thead><tr>{columns.map(([name]) => <th key={name} scope="col">{name}</th>)}</tr></thead>
          <tbody>
            {rows.map((row, at) => (
              <tr key={at} data-host={text(row, "host")}>{columns.map(([name, show]) => <td key={name}>{show(row)}</td>)}</tr>
            ))}
          </tbody>
        </table>
      </div>
    </dialog>
  );
}
