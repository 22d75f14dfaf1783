// The rules that do not hold, one line each.

import type { AlertStatus } from "./api";
import * as format from "./format";
import { hasRecords, opens } from "./drill";
import { kind, latest } from "./state";

const ORDER = { firing: 0, pending: 1, no_data: 2, resolved: 3, ok: 4 } as const;

function amount(value: number | null, unit: string | undefined): string {
  if (value === null) return "–";
  if (unit === "ns") return format.time(value);
  if (unit === "%") return format.percent(value / 100);
  return format.si(value, unit ?? "");
}

export function Alerts() {
  const tick = latest.value;
  if (tick === null) return null;
  const broken = tick.alerts
    .filter((alert) => alert.state !== "ok")
    .sort((one, other) => ORDER[one.state] - ORDER[other.state]);
  if (broken.length === 0) return null;
  const line = (alert: AlertStatus) => (
    <li key={alert.rule} class={`alert alert-${alert.state}`} data-rule={alert.rule} {...(kind.value === "http" && hasRecords() ? opens({ rule: alert.rule }) : {})}>
      <span class="alert-state">{alert.state.replace("_", " ")}</span>
      <span class="alert-rule">{alert.rule}</span>
      <span class="alert-value">
        now {amount(alert.value, alert.unit)}, limit {amount(alert.threshold, alert.unit)}
      </span>
      <span class="alert-since">for {format.span((tick.t_ms - alert.since_ms) / 1000)}</span>
    </li>
  );
  return (
    <ul class="alerts" aria-label="Alerts" role="status">
      {broken.map(line)}
    </ul>
  );
}
