// What is read from across the room: losses first, then how full the table is, then the rates.

import type { ComponentChildren } from "preact";
import type { Dropped, FlowTick, GatewayTick, HttpTick, LoadTick, Tick } from "./api";
import * as format from "./format";
import { lostIn } from "./chart";
import { gatewayNow } from "./gatewaynow";
import { kind, latest, meta } from "./state";

const CAUSES: Readonly<Record<string, string>> = {
  kernel: "kernel",
  ring: "ring",
  unusable_records: "unusable",
  table_full: "table full",
  sink: "output",
};

interface TileProps {
  id: string;
  label: string;
  value: string;
  /** The exact number, for tests and tools. */
  raw?: number;
  level?: "bad" | "warn" | "good" | undefined;
  children?: ComponentChildren;
}

function Tile({ id, label, value, raw, level, children }: TileProps) {
  return (
    <div class={`tile ${level === undefined ? "" : `tile-${level}`}`} data-tile={id} data-value={raw}>
      <span class="tile-label">{label}</span>
      <strong class="tile-value">{value}</strong>
      <span class="tile-note">{children}</span>
    </div>
  );
}

/** "1,204 kernel, 3 table full". */
function causes(dropped: Dropped): string {
  return Object.entries(dropped)
    .filter(([, lost]) => lost > 0)
    .map(([cause, lost]) => `${format.count(lost)} ${CAUSES[cause] ?? cause}`)
    .join(", ");
}

const perSecond = (tick: { interval_s: number } | null, count: number): number =>
  tick === null || tick.interval_s <= 0 ? 0 : count / tick.interval_s;

function HttpTiles({ tick }: { tick: HttpTick | null }) {
  const times = tick?.response_time_ns ?? null;
  return (
    <>
      <Tile id="rps" label="Requests/s" value={tick === null ? "–" : format.si(perSecond(tick, tick.requests))} raw={tick?.requests ?? 0}>
        {tick === null ? "" : tick.requests === 0 ? "no requests" : tick.unanswered > 0 ? `${format.percent(tick.unanswered / Math.max(1, tick.requests))} unanswered` : "all answered"}
      </Tile>
      <Tile id="p99" label="Response p99" value={times === null ? "–" : format.time(times.p99)} raw={times?.p99 ?? 0}>
        {times === null ? "" : `median ${format.time(times.p50)}`}
      </Tile>
    </>
  );
}

function FlowTiles({ tick }: { tick: FlowTick | null }) {
  const rtt = tick?.rtt_ns ?? null;
  const share = tick === null || tick.data_segments === 0 ? null : tick.retransmissions / tick.data_segments;
  return (
    <>
      <Tile id="fps" label="New flows/s" value={tick === null ? "–" : format.si(perSecond(tick, tick.new_flows))} raw={tick?.new_flows ?? 0}>
        {tick === null ? "" : `${format.si(perSecond(tick, tick.ended))} ended/s`}
      </Tile>
      <Tile id="rtt" label="RTT p95" value={rtt === null ? "–" : format.time(rtt.p95)} raw={rtt?.p95 ?? 0}>
        {rtt === null ? "" : `median ${format.time(rtt.p50)}`}
      </Tile>
      <Tile id="retransmissions" label="Sent again" value={share === null ? "–" : format.percent(share)} raw={tick?.retransmissions ?? 0} level={(share ?? 0) > 0.05 ? "bad" : (share ?? 0) > 0.02 ? "warn" : undefined}>
        {tick === null ? "" : "of TCP segments"}
      </Tile>
    </>
  );
}

function GatewayTiles({ tick }: { tick: GatewayTick | null }) {
  const stopped = tick === null ? 0 : tick.refused + tick.blocked;
  const status = gatewayNow.value?.status ?? null;
  const scanner = status?.scanner ?? null;
  return (
    <>
      <Tile id="stopped" label="Stopped/s" value={tick === null ? "–" : format.si(perSecond(tick, stopped))} raw={stopped} level={(tick?.blocked ?? 0) > 0 ? "warn" : undefined}>
        {tick === null ? "" : `${format.count(tick.refused)} by rule, ${format.count(tick.blocked)} content`}
      </Tile>
      <Tile id="held" label="Held packets" value={status === null ? "–" : format.count(status.held.packets)} raw={status?.held.packets ?? 0}>
        {status === null ? "" : `at most ${format.count(status.held.peak_packets)}`}
      </Tile>
      <Tile id="scanner" label="Scanner" value={scanner === null ? "–" : scanner.is_reachable ? `${format.count(scanner.infected)} found` : "down"} raw={scanner?.infected ?? 0} level={scanner !== null && !scanner.is_reachable ? "bad" : undefined}>
        {scanner === null ? "none" : `in ${format.counted(scanner.scans, "scan")}`}
      </Tile>
    </>
  );
}

function LoadTiles({ tick }: { tick: LoadTick | null }) {
  const times = tick?.response_time_ns ?? null;
  const lag = tick?.schedule_lag_ns ?? null;
  return (
    <>
      <Tile id="sps" label="Sessions/s" value={tick === null ? "–" : format.si(perSecond(tick, tick.started))} raw={tick?.started ?? 0}>
        {tick === null ? "" : `${format.count(tick.table.entries)} open`}
      </Tile>
      <Tile id="failed" label="Failed/s" value={tick === null ? "–" : format.si(perSecond(tick, tick.failed))} raw={tick?.failed ?? 0} level={(tick?.failed ?? 0) > 0 ? "bad" : undefined}>
        {tick === null ? "" : `${format.si(perSecond(tick, tick.responses))} responses/s`}
      </Tile>
      <Tile id="p99" label="Response p99" value={times === null ? "–" : format.time(times.p99)} raw={times?.p99 ?? 0}>
        {times === null ? "" : `median ${format.time(times.p50)}`}
      </Tile>
      <Tile id="lag" label="Lag p99" value={lag === null ? "–" : format.time(lag.p99)} raw={lag?.p99 ?? 0} level={(lag?.p99 ?? 0) > 1e6 ? "warn" : undefined}>
        {lag === null ? "" : `median ${format.time(lag.p50)}`}
      </Tile>
    </>
  );
}

function KindTiles({ tick }: { tick: Tick | null }) {
  switch (kind.value) {
    case "http": return <HttpTiles tick={tick as HttpTick | null} />;
    case "flows": return <FlowTiles tick={tick as FlowTick | null} />;
    case "gateway": return <GatewayTiles tick={tick as GatewayTick | null} />;
    case "load": return <LoadTiles tick={tick as LoadTick | null} />;
  }
}

/** How full the table is, or, if its capacity is unknown, how many entries it has. */
function TableTile({ tick }: { tick: Tick | null }) {
  const { entries, capacity } = tick?.table ?? { entries: 0, capacity: 0 };
  if (tick !== null && capacity === 0) {
    return <Tile id="table" label={kind.value === "load" ? "Open sessions" : "Connections"} value={format.count(entries)} raw={entries}>in the table</Tile>;
  }
  const fill = capacity > 0 ? entries / capacity : 0;
  return (
    <Tile id="table" label={kind.value === "load" ? "Open sessions" : "Table fill"} value={tick === null ? "–" : format.percent(fill)} raw={entries} level={fill > 0.9 ? "bad" : fill > 0.7 ? "warn" : undefined}>
      <meter class="fill" min={0} max={1} high={0.7} optimum={0} value={fill} aria-label="Table fill" />
      {tick === null ? "" : `${format.count(entries)} of ${format.count(capacity)}`}
    </Tile>
  );
}

export function Tiles() {
  const tick = latest.value;
  const lost = tick === null ? 0 : Object.values(tick.dropped_total).reduce((sum, each) => sum + each, 0);
  const lostNow = tick === null ? 0 : lostIn(tick);
  const firing = tick?.alerts.filter((alert) => alert.state === "firing").length ?? 0;
  const pending = tick?.alerts.filter((alert) => alert.state === "pending").length ?? 0;
  const each = (count: number): number => perSecond(tick, count);
  const started = meta.value?.started_ms ?? 0;
  const none = tick === null;
  return (
    <section class={`tiles tiles-${kind.value}`} aria-label="Now">
      <Tile id="dropped" label="Dropped" value={none ? "–" : lost < 1e7 ? format.exact(lost) : format.si(lost)} raw={lost} level={lost > 0 ? "bad" : none ? undefined : "good"}>
        {none ? "" : lost === 0 ? "nothing lost" : causes(tick.dropped_total)}
        {lostNow > 0 ? <b> · now +{format.count(lostNow)}</b> : null}
      </Tile>
      <TableTile tick={tick} />
      <Tile id="alerts" label="Alerts firing" value={none ? "–" : String(firing)} raw={firing} level={firing > 0 ? "bad" : pending > 0 ? "warn" : undefined}>
        {tick === null ? "" : tick.alerts.length === 0 ? "no rules" : pending > 0 ? `${pending} pending` : `of ${format.counted(tick.alerts.length, "rule")}`}
      </Tile>
      <Tile id="uptime" label="Uptime" value={none || started === 0 ? "–" : format.span((tick.t_ms - started) / 1000)}>
        {meta.value === null ? "" : `every ${format.time(meta.value.interval_s * 1e9)}`}
      </Tile>
      <Tile id="pps" label="Packets/s" value={none ? "–" : format.si(each(tick.packets))} raw={tick?.packets ?? 0}>
        {tick === null || tick.packets === 0 ? "no packets" : `${format.si(tick.bytes / tick.packets, "B")} each`}
      </Tile>
      <Tile id="bps" label="Throughput" value={none ? "–" : format.si(each(tick.bytes * 8), "bit/s")} raw={tick?.bytes ?? 0}>
        {none ? "" : kind.value === "gateway" ? "to user space" : kind.value === "load" ? "sent and received" : "on the wire"}
      </Tile>
      <KindTiles tick={tick} />
    </section>
  );
}
