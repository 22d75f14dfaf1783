// The state of a gateway: what it is, its applications, rules, queues, scanner and vault. Names and
// errors are only ever text.

import type { ComponentChildren } from "preact";
import type { GatewayStatus, ScannerStatus, VaultStatus } from "./api";
import * as format from "./format";
import { gatewayNow } from "./gatewaynow";

const bytes = (value: number): string => format.si(value, "B");
const spaced = (name: string): string => name.replaceAll("_", " ");
const sum = (counts: Readonly<Record<string, number>>): number => Object.values(counts).reduce((all, one) => all + one, 0);

/** "3 timeout, 1 refused"; largest first. */
function causes(counts: Readonly<Record<string, number>>, show: (value: number) => string = format.count): string {
  return Object.entries(counts)
    .filter(([, count]) => count > 0)
    .sort(([, one], [, other]) => other - one)
    .map(([cause, count]) => `${show(count)} ${spaced(cause)}`)
    .join(", ");
}

interface CardProps {
  id: string;
  title: string;
  unit?: string;
  at?: ComponentChildren;
  /** A class for a card that is wider than others. */
  size?: "card-wide" | "card-most" | "";
  children: ComponentChildren;
}

export function Card({ id, title, unit = "", at = "", size = "", children }: CardProps) {
  return (
    <section class={`card ${size}`} data-card={id}>
      <header class="card-head">
        <h2>{title} <span class="unit">{unit}</span></h2>
        <span class={typeof at === "string" ? "at" : "choices"}>{at}</span>
      </header>
      {children}
    </section>
  );
}

interface Fact {
  name: string;
  value: string;
  level?: "bad" | "warn";
}

function Facts({ facts }: { facts: readonly (Fact | null)[] }) {
  return (
    <dl class="facts">
      {facts.map((fact) => (fact === null ? null : (
        <div key={fact.name}>
          <dt>{fact.name}</dt>
          <dd class={fact.level ?? ""} title={fact.value}>{fact.value}</dd>
        </div>
      )))}
    </dl>
  );
}

export interface Column<R> {
  name: string;
  show: (row: R) => string;
  hint?: string;
  /** Text, at the left. */
  text?: boolean;
  level?: (row: R) => "bad" | "warn" | "quiet" | undefined;
}

interface TableProps<R> {
  columns: readonly Column<R>[];
  rows: readonly R[];
  name: (row: R) => string;
  none: string;
}

export function DataTable<R>({ columns, rows, name, none }: TableProps<R>) {
  if (rows.length === 0) return <p class="none">{none}</p>;
  return (
    <div class="scroll">
      <table class="data">
        <thead>
          <tr>{columns.map((column) => <th key={column.name} scope="col" class={column.text === true ? "" : "num"} title={column.hint ?? ""}>{column.name}</th>)}</tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={name(row)} data-row={name(row)}>
              {columns.map((column) => {
                const value = column.show(row);
                return <td key={column.name} class={`${column.text === true ? "text" : "num"} ${column.level?.(row) ?? ""}`} title={column.text === true ? value : ""}>{value}</td>;
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

type Application = GatewayStatus["applications"][string] & { name: string };
const counted = (name: keyof GatewayStatus["applications"][string], title: string, hint: string, bad = false): Column<Application> => ({
  name: title, hint, show: (row) => (row[name] === 0 ? "–" : format.count(row[name])), level: (row) => (row[name] === 0 ? "quiet" : bad ? "warn" : undefined),
});
const APPLICATIONS: readonly Column<Application>[] = [
  { name: "Application", text: true, show: (row) => row.name },
  counted("connections", "Connections", "Connections that were decided"),
  counted("packets", "Packets", "Packets that came to user space"),
  { name: "Bytes", hint: "IP bytes of these packets", show: (row) => bytes(row.bytes) },
  counted("allowed", "Allowed", "By rule, without inspection"),
  counted("inspected", "Inspected", "By rule"),
  counted("dropped", "Dropped", "By rule", true),
  counted("rejected", "Rejected", "By rule", true),
  counted("blocked", "Blocked", "Inspected connections that were cut off for what they carried", true),
];

function Applications({ status }: { status: GatewayStatus }) {
  const rows = Object.entries(status.applications)
    .map(([name, one]) => ({ name, ...one }))
    .sort((one, other) => other.bytes - one.bytes || other.connections - one.connections || one.name.localeCompare(other.name));
  return (
    <Card id="applications" title="Applications" unit="since the start" at={`${format.counted(status.connections, "connection")} now`} size="card-most">
      <DataTable columns={APPLICATIONS} rows={rows} name={(row) => row.name} none="No connection has been decided yet." />
    </Card>
  );
}

type Rule = GatewayStatus["rules"][string] & { name: string };
const RULES: readonly Column<Rule>[] = [
  { name: "Rule", text: true, show: (row) => row.name },
  { name: "Packets", show: (row) => format.count(row.packets) },
  { name: "Bytes", show: (row) => bytes(row.bytes) },
];

function Rules({ status }: { status: GatewayStatus }) {
  const rows = Object.entries(status.rules).map(([name, one]) => ({ name, ...one })).sort((one, other) => other.bytes - one.bytes);
  return (
    <Card id="rules" title="Rules" unit="as the kernel counts">
      <DataTable columns={RULES} rows={rows} name={(row) => row.name} none="The kernel's counters cannot be read." />
    </Card>
  );
}

type Queue = GatewayStatus["queues"][number];
const QUEUES: readonly Column<Queue>[] = [
  { name: "Queue", show: (row) => String(row.number) },
  { name: "Waiting", hint: "Packets in it now, held ones too", show: (row) => format.count(row.waiting) },
  { name: "Through", hint: "Packets that went through it", show: (row) => format.count(row.total) },
  { name: "Queue full", hint: "Packets that the kernel dropped because the queue was full", show: (row) => format.count(row.dropped), level: (row) => (row.dropped > 0 ? "bad" : "quiet") },
  { name: "Buffer full", hint: "Packets that the kernel dropped because the buffer of the socket was full", show: (row) => format.count(row.user_dropped), level: (row) => (row.user_dropped > 0 ? "bad" : "quiet") },
];

function Queues({ status }: { status: GatewayStatus }) {
  const { held } = status;
  return (
    <Card id="queues" title="Queues" unit="of the kernel" at={`${format.count(held.packets)} held, ${bytes(held.bytes)}`}>
      <DataTable columns={QUEUES} rows={status.queues} name={(row) => String(row.number)} none="No queue is served." />
    </Card>
  );
}

const latency = (scanner: ScannerStatus, name: string): Fact | null => {
  const micros = scanner.latency_us[name];
  return micros === undefined ? null : { name: `Answer ${name}`, value: format.time(micros * 1000) };
};

function Scanner({ scanner }: { scanner: ScannerStatus | null }) {
  if (scanner === null) {
    return <Card id="scanner" title="Scanner"><p class="none">The policy names no scanner.</p></Card>;
  }
  const failed = sum(scanner.failed);
  return (
    <Card id="scanner" title="Scanner" unit={scanner.address} at={scanner.is_reachable ? "reachable" : ""}>
      <Facts
        facts={[
          scanner.is_reachable ? null : { name: "State", value: "not reachable", level: "bad" },
          { name: "Infected", value: `${format.count(scanner.infected)} of ${format.counted(scanner.scans, "scan")}`, ...(scanner.infected > 0 ? { level: "warn" } : {}) },
          { name: "Without answer", value: failed === 0 ? "none" : causes(scanner.failed), ...(failed > 0 ? { level: "warn" } : {}) },
          { name: "Waiting", value: format.count(scanner.waiting) },
          { name: "Scanned", value: bytes(scanner.bytes) },
          ...["p50", "p90", "p99", "max"].map((name) => latency(scanner, name)),
          scanner.version === "" ? null : { name: "Version", value: scanner.version },
          scanner.last_error === null ? null : { name: "Last error", value: scanner.last_error, level: "warn" },
        ]}
      />
    </Card>
  );
}

function Vault({ vault }: { vault: VaultStatus | null }) {
  if (vault === null) return null;
  const dropped = sum(vault.dropped_bytes);
  return (
    <Card id="vault" title="Recorded files" at={bytes(vault.bytes)}>
      <Facts
        facts={[
          { name: "Whole files", value: format.count(vault.kept) },
          { name: "Parts of files", value: format.count(vault.parts) },
          { name: "In quarantine", value: format.count(vault.quarantined), ...(vault.quarantined > 0 ? { level: "warn" } : {}) },
          { name: "Being written", value: format.count(vault.open) },
          { name: "Not kept", value: dropped === 0 ? "nothing" : causes(vault.dropped_bytes, bytes), ...(dropped > 0 ? { level: "warn" } : {}) },
          vault.last_error === null ? null : { name: "Last error", value: vault.last_error, level: "warn" },
        ]}
      />
    </Card>
  );
}

function State({ status }: { status: GatewayStatus }) {
  const { held } = status;
  const odd = sum(status.counts);
  return (
    <Card id="state" title="Gateway" unit={status.program} at={`process ${status.pid}`}>
      <Facts
        facts={[
          { name: "Running for", value: format.span(status.uptime_s) },
          { name: "Policy", value: status.config },
          { name: "Loaded again", value: status.reloads === 0 ? "never" : status.reloads === 1 ? "once" : `${format.count(status.reloads)} times` },
          { name: "Without linkweir", value: status.fail === "closed" ? "traffic stops (fail closed)" : status.fail === "open" ? "traffic passes (fail open)" : status.fail },
          { name: "To user space", value: `${format.counted(status.packets, "packet")}, ${bytes(status.bytes)}` },
          { name: "Held now", value: `${format.counted(held.packets, "packet")}, ${bytes(held.bytes)}; at most ${format.count(held.peak_packets)}` },
          { name: "Forgotten", value: status.evicted === 0 ? "no connection" : format.counted(status.evicted, "connection"), ...(status.evicted > 0 ? { level: "warn" } : {}) },
          { name: "Passed unseen", value: status.unseen === 0 ? "nothing" : format.counted(status.unseen, "packet"), ...(status.unseen > 0 ? { level: "bad" } : {}) },
          { name: "Events lost", value: status.events_lost === 0 ? "none" : format.count(status.events_lost), ...(status.events_lost > 0 ? { level: "bad" } : {}) },
          { name: "Out of the ordinary", value: odd === 0 ? "nothing" : causes(status.counts) },
        ]}
      />
    </Card>
  );
}

/** The cards of the state; one in place of all before there is one. */
export function GatewayCards() {
  const status = gatewayNow.value?.status ?? null;
  if (status === null) {
    return <Card id="state" title="Gateway"><p class="none">The gateway has not reported its status yet.</p></Card>;
  }
  return (
    <>
      <State status={status} />
      <div class="stack">
        <Queues status={status} />
        <Vault vault={status.vault} />
      </div>
      <Scanner scanner={status.scanner} />
      <Applications status={status} />
      <Rules status={status} />
    </>
  );
}
