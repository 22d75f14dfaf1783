// The last events of a gateway, latest first. Names, messages and findings come from the network: only
// ever text.

import { signal, useComputed } from "@preact/signals";
import type { GatewayEvent } from "./api";
import * as format from "./format";
import { Card, DataTable, type Column } from "./gateway";
import { gatewayNow } from "./gatewaynow";
import { zone } from "./state";

/** Events shown. */
const ROWS = 100;
/** Also those that only say how a connection was decided: of these there are many. */
const everything = signal(false);

const about = (event: GatewayEvent): string => (event.message === "" ? event.file_name : event.message);

/** Who sends what to whom, where the protocol says it. */
function people(event: GatewayEvent): string {
  if (event.from === "" && event.to === "") return "";
  return `${event.from === "" ? "?" : event.from} → ${event.to === "" ? "?" : event.to}`;
}

function level(event: GatewayEvent): "bad" | "warn" | "quiet" | undefined {
  if (event.event === "infected" || event.event === "blocked" || event.event === "unseen") return "bad";
  if (["keyword", "file_name", "unscanned", "limit", "malformed"].includes(event.event)) return "warn";
  if (event.action === "drop" || event.action === "reject") return "warn";
  return event.event === "decided" ? "quiet" : undefined;
}

const COLUMNS: readonly Column<GatewayEvent>[] = [
  { name: "Time", text: true, show: (event) => format.clock(event.t_ms, zone.value) },
  { name: "Event", text: true, show: (event) => event.event.replaceAll("_", " "), level },
  { name: "Application", text: true, show: (event) => event.application },
  { name: "Client", text: true, show: (event) => event.client },
  { name: "Server", text: true, show: (event) => event.server },
  { name: "File or message", text: true, show: about },
  { name: "Size", show: (event) => (event.size === null ? "" : format.si(event.size, "B")) },
  { name: "Verdict", text: true, hint: "What is done, or the verdict on a file", show: (event) => (event.verdict === "" ? event.action : event.verdict) },
  { name: "Detail", text: true, show: (event) => [event.detail, people(event)].filter((part) => part !== "").join("; ") },
  { name: "Rule", text: true, show: (event) => event.rule },
];

export function GatewayEvents() {
  const rows = useComputed(() => {
    const all = (gatewayNow.value?.events ?? []).filter((event) => everything.value || event.event !== "decided");
    return all.slice(-ROWS).reverse();
  }).value;
  const choice = (
    <span class="segments" role="group" aria-label="Which events">
      <button type="button" aria-pressed={!everything.value} onClick={() => (everything.value = false)}>Found and recorded</button>
      <button type="button" aria-pressed={everything.value} onClick={() => (everything.value = true)}>All</button>
    </span>
  );
  return (
    <Card id="events" title="Last events" unit={rows.length === 0 ? "" : `the latest ${rows.length}, newest first`} at={choice} size="card-wide">
      <DataTable columns={COLUMNS} rows={rows} name={(event) => String(event.id)} none={everything.value ? "No event yet." : "Nothing has been found or recorded yet; “All” has the connections that were decided."} />
    </Card>
  );
}
