// The page from top to bottom.

import { useEffect } from "preact/hooks";
import { Alerts } from "./alerts";
import { Banners } from "./banners";
import { Breakdown } from "./breakdown";
import { CcdfCard } from "./ccdfcard";
import { TimeChart } from "./chart";
import { Empty, nothingYet } from "./empty";
import * as format from "./format";
import { Header, keys } from "./header";
import { latest } from "./state";
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
      <main data-tick={latest.value?.id ?? 0}>
        <Banners />
        <Tiles />
        <Alerts />
        {nothingYet.value ? <Empty /> : <Charts />}
      </main>
      <Footer />
    </>
  );
}

function Charts() {
  const rate = (value: number): string => format.si(value);
  const bits = (value: number): string => format.si(value, "b/s");
  return (
    <div class="grid">
      <TimeChart id="requests" title="Requests" unit="per second" lines={lines.requests} show={rate} mark={format.axisNumber} />
      <TimeChart id="latency" title="Response time" unit="percentiles, log" lines={lines.percentiles} show={format.time} mark={format.time} log />
      <CcdfCard />
      <TimeChart id="codes" title="Responses by status" unit="per second, stacked" lines={lines.statuses} show={rate} mark={format.axisNumber} stacked />
      <Breakdown />
      <TopCard />
      <TimeChart id="packets" title="Packets" unit="per second" lines={lines.packets} show={rate} mark={format.axisNumber} />
      <TimeChart id="bits" title="Throughput" unit="bits per second" lines={lines.throughput} show={bits} mark={(value) => format.axisNumber(value, "b/s")} />
      <TimeChart id="unanswered" title="Without an answer" unit="per second" lines={lines.unanswered} show={rate} mark={format.axisNumber} />
      <TimeChart id="retransmissions" title="Retransmissions" unit="per second" lines={lines.retransmissions} show={rate} mark={format.axisNumber} />
    </div>
  );
}

function Footer() {
  return (
    <footer class="foot">
      <span>
        Keys: <kbd>P</kbd> pause <kbd>1</kbd>–<kbd>4</kbd> range <kbd>U</kbd> UTC or local <kbd>D</kbd> theme <kbd>/</kbd> search
      </span>
      <span>Shaded intervals lost packets or records: their numbers are too small.</span>
    </footer>
  );
}
