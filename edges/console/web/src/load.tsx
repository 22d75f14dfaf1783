// The generators of a run, and the buttons that start and stop them where that is allowed.
// Names and faults come from the network: only ever text.

import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { fetchLoad, order, type Generator, type LoadStatus } from "./api";
import * as format from "./format";
import { Card, DataTable, type Column } from "./gateway";
import { zone } from "./state";

/** Asked for by the clock: before the start there is no interval to ask with. */
const EVERY_MS = 1000;

export const loadNow = signal<LoadStatus | null>(null);
/** What became of the last order. */
const answer = signal("");

const STATES: Readonly<Record<string, "quiet" | "warn" | "bad">> = { waiting: "quiet", ended: "quiet", stopping: "warn", gone: "bad" };

const time = (nanos: number | null): string => (nanos === null ? "–" : format.time(nanos));

const COLUMNS: readonly Column<Generator>[] = [
  { name: "Generator", text: true, show: (row) => row.name },
  { name: "State", show: (row) => row.state, level: (row) => STATES[row.state] },
  { name: "Sessions/s", hint: "In its last interval", show: (row) => format.si(row.sessions_per_s) },
  { name: "Responses/s", hint: "In its last interval", show: (row) => format.si(row.responses_per_s) },
  { name: "Open", show: (row) => format.count(row.open) },
  { name: "Started", show: (row) => format.count(row.started) },
  { name: "Failed", show: (row) => format.count(row.failed), level: (row) => (row.failed > 0 ? "warn" : "quiet") },
  { name: "p99", hint: "Response time in its last interval", show: (row) => time(row.response_p99_ns) },
  { name: "Lag p99", hint: "Schedule lag in its last interval", show: (row) => time(row.lag_p99_ns), level: (row) => ((row.lag_p99_ns ?? 0) > 1e6 ? "warn" : undefined) },
];

async function give(what: "start" | "stop"): Promise<void> {
  try {
    await order(what);
    answer.value = "";
  } catch (error) {
    answer.value = `The order was not taken: ${error instanceof Error ? error.message : "no connection"}`;
  }
}

/** Start needs one click, for nothing runs yet; stop asks back, for a run cannot be taken up again. */
function Orders({ status }: { status: LoadStatus }) {
  const ready = status.state === "waiting" && status.generators.length > 0;
  const runs = status.state === "running";
  return (
    <p class="orders">
      <button type="button" class="button" id="load-start" disabled={!ready} onClick={() => void give("start")}>Start</button>
      {" "}
      <button type="button" class="button" id="load-stop" disabled={!runs} onClick={() => {
        if (confirm("End the run of all generators now?")) void give("stop");
      }}>Stop</button>
      {" "}
      <span class="none" role="status">{answer.value}</span>
    </p>
  );
}

/** Asks while the page is there. */
export function useLoadNow(): void {
  useEffect(() => {
    const ask = (): void => {
      // The banner says that the connection is lost.
      fetchLoad().then((all) => (loadNow.value = all.status), () => undefined);
    };
    ask();
    const timer = setInterval(ask, EVERY_MS);
    return () => clearInterval(timer);
  }, []);
}

export function LoadCard() {
  const status = loadNow.value;
  if (status === null) return null;
  const gone = status.generators.filter((one) => one.fault !== null);
  const begun = status.begun_ms === null ? "not begun" : `begun ${format.clock(status.begun_ms, zone.value)}`;
  return (
    <Card id="generators" title="Generators" unit={`${status.arrivals} at ${status.target}`} size="card-wide" at={`${status.state}, ${begun}`}>
      {status.may_control ? <Orders status={status} /> : null}
      {gone.map((one) => <p class="none" key={one.name}>{one.name} is gone: {one.fault}</p>)}
      <DataTable columns={COLUMNS} rows={status.generators} name={(row) => row.name} none="No generator has come yet." />
    </Card>
  );
}
