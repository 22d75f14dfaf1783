// The console's API with made-up traffic, to work on the page without a capture.
//
//   node dev/mock.mjs [--flows] [--port 8099] [--history 400] [--interval 1] [--empty] [--no-drops] [--end-after S]
//
// Headers are those of the real server, so that a breach of its content security policy shows here.

import { createServer } from "node:http";
import { readFileSync } from "node:fs";

const option = (name, fallback) => {
  const at = process.argv.indexOf(`--${name}`);
  return at < 0 ? fallback : Number(process.argv[at + 1]);
};
const flag = (name) => process.argv.includes(`--${name}`);

const port = option("port", 8099);
const interval = option("interval", 1);
const history = option("history", 400);
const endAfter = option("end-after", 0);
const empty = flag("empty");
const drops = !flag("no-drops");
const flows = flag("flows");

const dist = new URL("../dist/", import.meta.url);
const files = { "/": ["index.html", "text/html; charset=utf-8"], "/assets/app.js": ["app.js", "text/javascript; charset=utf-8"], "/assets/app.css": ["app.css", "text/css; charset=utf-8"] };
const headers = {
  "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:",
  "X-Content-Type-Options": "nosniff",
  "Referrer-Policy": "no-referrer",
  "Cache-Control": "no-store",
};

// A small generator with a seed: the same picture every time.
let seed = 7;
const random = () => {
  seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
  return seed / 2 ** 32;
};
const normal = () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());

const started = Date.now() - history * interval * 1000;
const ticks = [];
const totals = { packets: 0, bytes: 0, requests: 0, responses: 0, complete: 0, unanswered: 0, orphans: 0, retransmissions: 0, codes: {}, methods: {}, versions: {}, grpc_statuses: {}, response_time_ns: null, dropped: { kernel: 0, ring: 0, unusable_records: 0, table_full: 0, sink: 0 }, table: { entries: 0, capacity: 1_000_000 } };
let finished = false;

const add = (to, from) => {
  for (const [name, count] of Object.entries(from)) to[name] = (to[name] ?? 0) + count;
};

/** Figures of flows around a median. */
const spread = (count, p50, wide) => (count === 0 ? null : {
  count, min: Math.round(p50 / 20), mean: Math.round(p50 * 1.6), p50: Math.round(p50), p90: Math.round(p50 * wide * 0.7), p95: Math.round(p50 * wide), p99: Math.round(p50 * wide * 2.6), p999: Math.round(p50 * wide * 7), max: Math.round(p50 * wide * 30),
});

function flowFigures(id, wave, slow) {
  const ended = empty ? 0 : Math.round(3100 * wave * interval * (0.97 + 0.06 * random()));
  const ended_udp = Math.round(ended * 0.36);
  const ended_tcp = ended - ended_udp;
  const reset = Math.round(ended_tcp * (slow ? 0.14 : 0.05) * (0.8 + 0.4 * random()));
  const unanswered = Math.round(ended_tcp * (slow ? 0.07 : 0.012) * (0.8 + 0.4 * random()));
  const idle = ended_udp + Math.round(ended_tcp * 0.06);
  const data_segments = Math.round(61_000 * wave * interval);
  const lost = slow ? 0.034 : 0.008;
  const segment = (part) => Math.round(data_segments * lost * part * (0.7 + 0.6 * random()));
  const anomalies = { rto: segment(0.3), fast_retransmit: segment(0.42), reordering: segment(0.2), tail_loss_probe: segment(0.12), network_duplicate: segment(0.02), unnecessary_rto: segment(0.03), flow_control: segment(0.05), unknown: segment(0.02) };
  const application = (flows, bytes) => ({ flows: Math.round(ended * flows), bytes: Math.round(70e6 * wave * bytes * interval) });
  const base = 21e6 * (1 + 0.12 * Math.sin(id / 40)) * (slow ? 1.9 : 1) * Math.exp(0.04 * normal());
  return {
    new_flows: Math.round(ended * (0.98 + 0.05 * random())), ended, ended_tcp, ended_udp, midstream: Math.round(ended_tcp * 0.01),
    ends: { closed: ended - reset - unanswered - idle, reset, idle, unanswered, evicted: 0, reused: 2, open: 0 },
    flow_packets: 90_000, flow_bytes: 70_000_000, data_segments, retransmissions: anomalies.rto + anomalies.fast_retransmit + anomalies.tail_loss_probe, payload_bytes: 60_000_000, retransmitted_bytes: 400_000,
    out_of_order: anomalies.reordering, zero_windows: segment(0.01), anomalies,
    applications: empty ? {} : { tls: application(0.41, 0.55), quic: application(0.12, 0.31), http: application(0.08, 0.05), dns: application(0.23, 0.003), ssh: application(0.004, 0.02), bittorrent: application(0.03, 0.04), unknown: application(0.09, 0.02), smtp: application(0.004, 0.003), imap: application(0.006, 0.002), rtp: application(0.01, 0.01) },
    rtt_ns: spread(ended_tcp, base, 6), server_rtt_ns: spread(ended_tcp, base * 0.8, 7), client_rtt_ns: spread(ended_tcp, base * 0.09, 4), handshake_ns: spread(ended_tcp, base * 1.05, 5), throughput_bps: spread(ended, 340_000, 22), duration_ns: spread(ended, 900e6, 40),
  };
}

function make(id, t_ms) {
  const wave = 1 + 0.25 * Math.sin(id / 70) + 0.06 * normal();
  const slow = id % 260 > 200 && id % 260 < 230;
  const requests = empty ? 0 : Math.max(0, Math.round(8200 * wave * interval));
  const unanswered = Math.round(requests * (slow ? 0.006 : 0.0008) * (0.6 + 0.8 * random()));
  const complete = requests - unanswered;
  const orphans = Math.round(complete * 0.0003 * random());
  const share = { 301: 0.012, 304: 0.11, 400: 0.003, 401: 0.005, 404: 0.021, 429: slow ? 0.01 : 0.0005, 500: slow ? 0.012 : 0.0009, 502: slow ? 0.02 : 0.0006, 503: slow ? 0.03 : 0.0004, 206: 0.008, 204: 0.03 };
  const codes = {};
  let rest = complete + orphans;
  for (const [code, part] of Object.entries(share)) {
    const count = Math.min(rest, Math.round(complete * part * (0.7 + 0.6 * random())));
    if (count > 0) codes[code] = count;
    rest -= count;
  }
  if (rest > 0) codes[200] = rest;
  const methods = {};
  let left = requests;
  for (const [name, part] of Object.entries({ POST: 0.14, HEAD: 0.03, PUT: 0.01, OPTIONS: 0.006, DELETE: 0.002, PROPFIND: 0.0004 })) {
    const count = Math.round(requests * part * (0.9 + 0.2 * random()));
    if (count > 0) methods[name] = count;
    left -= count;
  }
  if (left > 0) methods.GET = left;
  const base = 9e6 * (1 + 0.15 * Math.sin(id / 40)) * (slow ? 2.2 : 1) * Math.exp(0.05 * normal());
  const times = complete === 0 ? null : {
    count: complete, min: 180_000, mean: Math.round(base * 1.9), p50: Math.round(base), p90: Math.round(base * 4.4), p95: Math.round(base * 7),
    p99: Math.round(base * (slow ? 60 : 19) * Math.exp(0.1 * normal())), p999: Math.round(base * (slow ? 190 : 75) * Math.exp(0.2 * normal())), max: Math.round(base * 300),
  };
  const lost = drops && id % 260 >= 205 && id % 260 < 211;
  const dropped = { kernel: lost ? Math.round(900 + 700 * random()) : 0, ring: 0, unusable_records: 0, table_full: drops && id % 260 === 208 ? 3 : 0, sink: 0 };
  const packets = Math.round((empty ? 210 : 94_000 * wave) * interval);
  const tick = {
    id, t_ms, interval_s: interval, packets, bytes: Math.round(packets * (780 + 20 * normal())), requests, responses: complete + orphans, complete, unanswered, orphans,
    retransmissions: Math.round(requests * 0.004 * (slow ? 5 : 1) * random()), codes, methods, versions: { 1.1: requests - (requests >> 2), 2: requests >> 2 }, grpc_statuses: {}, response_time_ns: times, dropped,
    dropped_total: {}, table: { entries: Math.round(41_000 * wave * (slow ? 3 : 1)), capacity: 1_000_000 },
    alerts: [
      { rule: "p95 of host shop.example > 80 ms for 3 intervals", state: slow ? "firing" : "ok", value: times?.p95 ?? null, threshold: 8e7, unit: "ns", since_ms: t_ms - (slow ? ((id % 260) - 200) * 1000 * interval : 60_000) },
      { rule: "5xx share > 2 %", state: slow ? "pending" : "ok", value: slow ? 6.1 : 0.2, threshold: 2, unit: "%", since_ms: t_ms - 4000 },
      { rule: "dropped > 0 /s", state: lost ? "firing" : "ok", value: dropped.kernel, threshold: 0, unit: "/s", since_ms: t_ms - 2000 },
    ],
  };
  if (flows) {
    for (const name of ["requests", "responses", "complete", "unanswered", "orphans", "codes", "methods", "versions", "grpc_statuses", "response_time_ns"]) delete tick[name];
    Object.assign(tick, flowFigures(id, wave, slow));
    tick.alerts[0] = { ...tick.alerts[0], rule: "p95 of rtt of name video.example > 150 ms for 3 intervals", value: tick.rtt_ns?.p95 ?? null, threshold: 15e7 };
    tick.alerts[1] = { ...tick.alerts[1], rule: "retransmissions share > 2 %" };
  }
  for (const name of flows ? ["packets", "bytes"] : ["packets", "bytes", "requests", "responses", "complete", "unanswered", "orphans", "retransmissions"]) totals[name] += tick[name];
  if (!flows) {
    add(totals.codes, codes);
    add(totals.methods, methods);
  }
  add(totals.dropped, dropped);
  totals.table = tick.table;
  if (times !== null && !flows) totals.response_time_ns = times;
  tick.dropped_total = { ...totals.dropped };
  ticks.push(tick);
  if (ticks.length > 900) ticks.shift();
  return tick;
}

for (let id = 1; id <= history; id += 1) make(id, started + id * interval * 1000);

const KEYS = {
  host: ["shop.example", "api.shop.example", "static.example.net", "login.example", "search.example", "cdn-7.example.net", "intranet.example", "10.20.0.17", "<b>bold</b>.example", "media.example"],
  url: ["shop.example/item/{id}", "api.shop.example/v2/cart/{uuid}", "static.example.net/js/app.{hex}.js", "login.example/oauth/token", "search.example/q", "shop.example/", "<img src=x onerror=alert(1)>.example/{id}/a/very/long/path/that/does/not/end/so/soon/as/one/would/like/it/to", "media.example/live/{id}/segment"],
  server: ["10.20.0.17:80", "10.20.0.18:80", "10.20.0.19:8080", "[2001:db8::17]:80", "10.20.3.4:3128"],
  client: ["192.0.2.10", "192.0.2.11", "198.51.100.7", "2001:db8:1::5", "203.0.113.99"],
};

const FLOW_KEYS = {
  name: ["video.example", "www.example.net", "mail.example", "<b>cdn</b>.example", "api.shop.example", "updates.example.org"],
  server: ["203.0.113.7:443", "203.0.113.8:443", "[2001:db8::17]:443", "198.51.100.4:993", "192.0.2.53:53"],
  client: KEYS.client,
  application: ["tls", "quic", "http", "bittorrent", "ssh", "unknown", "rtp", "dns", "smtp", "imap"],
};

function flowTop(query) {
  const by = query.get("by") ?? "name";
  const sort = query.get("sort") ?? "bytes";
  const window = query.get("window") ?? "60";
  const scale = empty ? 0 : window === "60" ? 60 : window === "300" ? 300 : history;
  const rows = scale === 0 ? [] : Array.from({ length: by === "application" ? 10 : 38 }, (_, rank) => {
    const bytes = Math.round((24e6 * scale) / (rank + 1) ** 1.15);
    const count = Math.round((400 * scale) / (rank + 1) ** 0.9);
    const data_segments = rank % 8 === 7 ? 0 : Math.round(bytes / 1100);
    const rtt = 3e6 * (1 + ((rank * 7) % 11));
    return {
      key: FLOW_KEYS[by][rank] ?? `${by}-${rank}.example`, bytes, flows: count, reset: Math.round(count * 0.01 * ((rank * 5) % 13)), unanswered: Math.round(count * 0.002 * ((rank * 3) % 7)),
      data_segments, retransmissions: Math.round(data_segments * 0.004 * ((rank * 11) % 12)), rtt_p50: data_segments === 0 ? null : rtt, rtt_p95: data_segments === 0 ? null : rtt * 5,
    };
  });
  const value = { bytes: (r) => r.bytes, flows: (r) => r.flows, rtt_p95: (r) => r.rtt_p95 ?? 0, retransmissions: (r) => r.retransmissions / Math.max(1, r.data_segments), failed: (r) => r.reset + r.unanswered }[sort];
  rows.sort((a, b) => value(b) - value(a));
  return { by, window, rows: rows.slice(0, Number(query.get("n") ?? 50)), floor: 0 };
}

function top(query) {
  const by = query.get("by") ?? "host";
  const sort = query.get("sort") ?? "requests";
  const window = query.get("window") ?? "60";
  const scale = empty ? 0 : window === "60" ? 60 : window === "300" ? 300 : totals.requests / 8200;
  const rows = scale === 0 ? [] : Array.from({ length: by === "server" ? 5 : 38 }, (_, rank) => {
    const requests = Math.round((2600 * scale) / (rank + 1) ** 1.15);
    const p50 = 4e6 * (1 + ((rank * 7) % 11));
    return {
      key: KEYS[by][rank] ?? `${by}-${rank}.example`, requests, errors_4xx: Math.round(requests * 0.002 * ((rank * 5) % 13)), errors_5xx: Math.round(requests * 0.0006 * ((rank * 3) % 7)),
      unanswered: Math.round(requests * 0.0004 * ((rank * 11) % 5)), bytes: requests * 4100 * (1 + (rank % 9)), p50, p95: p50 * 6, p99: rank % 9 === 8 ? null : p50 * 18, max: p50 * 240,
    };
  });
  const value = { requests: (r) => r.requests, errors: (r) => r.errors_4xx + r.errors_5xx, p95: (r) => r.p95, bytes: (r) => r.bytes, unanswered: (r) => r.unanswered }[sort];
  rows.sort((a, b) => value(b) - value(a));
  return { by, window, rows: rows.slice(0, Number(query.get("n") ?? 50)), floor: 12 };
}

function ccdf(query) {
  const stretch = { 60: 1, 300: 1.25, all: 1.6 }[query.get("window") ?? "60"] ?? 1;
  const points = [];
  for (let step = 0; step < 140; step += 1) {
    const ns = 2e5 * 1.085 ** step;
    const share = 1 / (1 + (ns / (9e6 * stretch)) ** 1.7);
    if (share > 2e-6) points.push([Math.round(ns), share]);
  }
  return { count: empty ? 0 : Math.round(490_000 * stretch), points: empty ? [] : points };
}

const meta = () => ({ kind: flows ? "flows" : "http", version: "0.1.0", source: "eth1", live: true, interval_s: interval, started_ms: started, finished });
const listeners = new Set();
const event = (tick) => `id: ${tick.id}\nevent: tick\ndata: ${JSON.stringify(tick)}\n\n`;

createServer((request, response) => {
  const url = new URL(request.url, "http://localhost");
  const json = (value) => {
    response.writeHead(200, { ...headers, "Content-Type": "application/json" });
    response.end(JSON.stringify(value));
  };
  const file = files[url.pathname];
  if (file !== undefined) {
    response.writeHead(200, { ...headers, "Content-Type": file[1] });
    response.end(readFileSync(new URL(file[0], dist)));
  } else if (url.pathname === "/api/snapshot") json({ meta: meta(), ticks, totals });
  else if (url.pathname === "/api/top") json((flows ? flowTop : top)(url.searchParams));
  else if (url.pathname === "/api/ccdf") json(ccdf(url.searchParams));
  else if (url.pathname === "/api/stream") {
    response.writeHead(200, { ...headers, "Content-Type": "text/event-stream" });
    const last = Number(request.headers["last-event-id"] ?? ticks.at(-1)?.id ?? 0);
    for (const tick of ticks) if (tick.id > last) response.write(event(tick));
    listeners.add(response);
    response.on("close", () => listeners.delete(response));
  } else if (url.pathname.startsWith("/api/download.")) {
    const csv = url.pathname.endsWith("csv");
    response.writeHead(200, { ...headers, "Content-Type": csv ? "text/csv; charset=utf-8" : "application/json", "Content-Disposition": `attachment; filename="linkweir-${url.searchParams.get("what")}.${csv ? "csv" : "json"}"` });
    response.end(csv ? `id,t_ms,requests\n${ticks.map((tick) => `${tick.id},${tick.t_ms},${tick.requests}\n`).join("")}` : JSON.stringify(ticks));
  } else {
    response.writeHead(404, headers);
    response.end();
  }
}).listen(port, "127.0.0.1", () => console.log(`http://127.0.0.1:${port}/`));

let id = history;
const timer = setInterval(() => {
  id += 1;
  const tick = make(id, started + id * interval * 1000);
  for (const listener of listeners) listener.write(event(tick));
  if (endAfter > 0 && id - history >= endAfter) {
    clearInterval(timer);
    finished = true;
    for (const listener of listeners) listener.write("event: end\ndata: {}\n\n");
  }
}, interval * 1000);
