// The page from top to bottom.

import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import type { Kind } from "./api";
import { Alerts } from "./alerts";
import { Banners } from "./banners";
import { Breakdown, FlowBreakdown, GatewayBreakdown, LoadBreakdown } from "./breakdown";
import { CcdfCard } from "./ccdfcard";
import { TimeChart } from "./chart";
import { RecordsDialog } from "./drill";
import { Empty, nothingYet } from "./empty";
import * as format from "./format";
import { GatewayCards } from "./gateway";
import { GatewayEvents } from "./gatewayevents";
import { useGatewayNow } from "./gatewaynow";
import { Header, keys } from "./header";
import { LoadCard, useLoadNow } from "./load";
import { ProbesCard } from "./probes";
import { kind, latest, meta, ranges, view } from "./state";
import { Tiles } from "./tiles";
import { TopCard } from "./top";
import * as lines from "./lines";

export function App() {
  useEffect(() => {
    addEventListener("keydown", keys);
    return () => removeEventListener("keydown", keys);
  }, []);
  return (
    <>
      <Header />
      <main data-tick={latest.value?.id ?? 0} data-from={view.value[0]?.t_ms ?? 0}>
        <Banners />
        <Tiles />
        <Alerts />
        {meta.value?.merged === true ? <div class="grid"><ProbesCard /></div> : null}
        {nothingYet.value ? <Empty /> : CHARTS[kind.value]()}
      </main>
      <Footer />
      <RecordsDialog />
    </>
  );
}

const rate = (value: number): string => format.si(value);
const bits = (value: number): string => format.si(value, "bit/s");

function FlowCharts() {
  return (
    <div class="grid">
      <TimeChart id="bits" title="Throughput" unit="bits per second" lines={lines.throughput} show={bits} mark={(value) => format.axisNumber(value, "bit/s")} />
      <TimeChart id="flows" title="Flows" unit="per second" lines={lines.flows} show={rate} mark={format.axisNumber} />
      <TimeChart id="rtt" title="Round-trip time" unit="both halves of the path, log" lines={lines.roundTrips} show={format.time} mark={format.time} log />
      <TimeChart id="losses" title="Segments" unit="share of TCP segments with payload" lines={lines.losses} show={format.percent} mark={format.percent} />
      <CcdfCard />
      <TimeChart id="states" title="How flows ended" unit="per second, stacked" lines={lines.states} show={rate} mark={format.axisNumber} stacked />
      <FlowBreakdown />
      <TopCard />
      <TimeChart id="active" title="Active flows" unit="at the end of the interval" lines={lines.active} show={rate} mark={format.axisNumber} />
      <TimeChart id="packets" title="Packets" unit="per second" lines={lines.packets} show={rate} mark={format.axisNumber} />
      <TimeChart id="handshake" title="Handshake" unit="SYN to last ACK, log" lines={lines.handshakes} show={format.time} mark={format.time} log />
      <TimeChart id="rates" title="Throughput of a flow" unit="of those that ended, log" lines={lines.flowRates} show={bits} mark={(value) => format.axisNumber(value, "bit/s")} log />
    </div>
  );
}

function GatewayCharts() {
  useGatewayNow();
  return (
    <div class="grid grid-gateway">
      <GatewayCards />
      <GatewayEvents />
      <TimeChart id="stopped" title="Connections stopped" unit="per second, stacked" lines={lines.stopped} show={rate} mark={format.axisNumber} stacked />
      <TimeChart id="found" title="Found" unit="per second" lines={lines.found} show={rate} mark={format.axisNumber} />
      <TimeChart id="audited" title="Decided and recorded" unit="per second" lines={lines.audited} show={rate} mark={format.axisNumber} />
      <GatewayBreakdown />
      <TopCard />
      <CcdfCard />
      <TimeChart id="active" title="Connections" unit="classified or inspected" lines={lines.active} show={rate} mark={format.axisNumber} />
      <TimeChart id="packets" title="Packets" unit="to user space, per second" lines={lines.packets} show={rate} mark={format.axisNumber} />
      <TimeChart id="bits" title="Throughput" unit="to user space, bits per second" lines={lines.throughput} show={bits} mark={(value) => format.axisNumber(value, "bit/s")} />
    </div>
  );
}

function LoadCharts() {
  useLoadNow();
  return (
    <div class="grid">
      <LoadCard />
      <TimeChart id="sessions" title="Sessions" unit="per second" lines={lines.sessions} show={rate} mark={format.axisNumber} />
      <TimeChart id="latency" title="Response time" unit="from schedule and from sending, log" lines={lines.loadTimes} show={format.time} mark={format.time} log />
      <CcdfCard />
      <TimeChart id="codes" title="Responses by status" unit="per second, stacked" lines={lines.loadStatuses} show={rate} mark={format.axisNumber} stacked />
      <LoadBreakdown />
      <TopCard />
      <TimeChart id="open" title="Open sessions" unit="at the end of the interval" lines={lines.openSessions} show={rate} mark={format.axisNumber} />
      <TimeChart id="lag" title="Schedule lag" unit="log" lines={lines.lags} show={format.time} mark={format.time} log />
      <TimeChart id="exchanges" title="Requests and responses" unit="per second" lines={lines.exchanges} show={rate} mark={format.axisNumber} />
      <TimeChart id="bits" title="Throughput" unit="sent and received, bits per second" lines={lines.throughput} show={bits} mark={(value) => format.axisNumber(value, "bit/s")} />
    </div>
  );
}

function Charts() {
  return (
    <div class="grid">
      <TimeChart id="requests" title="Requests" unit="per second" lines={lines.requests} show={rate} mark={format.axisNumber} />
      <TimeChart id="latency" title="Response time" unit="percentiles, log" lines={lines.percentiles} show={format.time} mark={format.time} log />
      <CcdfCard />
      <TimeChart id="codes" title="Responses by status" unit="per second, stacked" lines={lines.statuses} show={rate} mark={format.axisNumber} stacked />
      <Breakdown />
      <TopCard />
      <TimeChart id="packets" title="Packets" unit="per second" lines={lines.packets} show={rate} mark={format.axisNumber} />
      <TimeChart id="bits" title="Throughput" unit="bits per second" lines={lines.throughput} show={bits} mark={(value) => format.axisNumber(value, "bit/s")} />
      <TimeChart id="unanswered" title="Without an answer" unit="per second" lines={lines.unanswered} show={rate} mark={format.axisNumber} />
      <TimeChart id="retransmissions" title="Retransmissions" unit="per second" lines={lines.retransmissions} show={rate} mark={format.axisNumber} />
    </div>
  );
}

const CHARTS: Readonly<Record<Kind, () => JSX.Element>> = {
  http: () => <Charts />,
  flows: () => <FlowCharts />,
  gateway: () => <GatewayCharts />,
  load: () => <LoadCharts />,
};

function Footer() {
  return (
    <footer class="foot">
      <span>
        Keys: <kbd>P</kbd> pause <kbd>1</kbd>–<kbd>{ranges.value.length}</kbd> range <kbd>U</kbd> UTC or local <kbd>D</kbd> theme <kbd>/</kbd> search
      </span>
      <span>Shaded intervals lost packets or records: their numbers are too small.</span>
    </footer>
  );
}
