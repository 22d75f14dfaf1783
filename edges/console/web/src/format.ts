// Numbers for people: three significant digits, SI prefixes, a fixed decimal point.

const UP = ["", "k", "M", "G", "T", "P", "E"] as const;
const SUPERSCRIPT = "⁰¹²³⁴⁵⁶⁷⁸⁹";
/** Between a number and its unit: does not break, takes less room than a space. */
const THIN = "\u202f";

function digits(value: number): string {
  const size = Math.abs(value);
  if (size >= 99.95 || Number.isInteger(value)) return value.toFixed(0);
  return value.toFixed(size >= 9.995 ? 1 : 2);
}

/** 12345 -> "12.3 k"; with a unit "12.3 kbit/s". */
export function si(value: number, unit = ""): string {
  let scaled = value;
  let step = 0;
  // 999.5 would round to 1000.
  while (Math.abs(scaled) >= 999.5 && step < UP.length - 1) {
    scaled /= 1000;
    step += 1;
  }
  const suffix = `${UP[step] ?? ""}${unit}`;
  return suffix === "" ? digits(scaled) : digits(scaled) + THIN + suffix;
}

const grouped = new Intl.NumberFormat("en-GB", { maximumFractionDigits: 0 });

/** 1234567 -> "1,234,567". */
export function exact(value: number): string {
  return grouped.format(value);
}

/** Counts that are exact while they are short: "9,876", "12.3 k". */
export function count(value: number): string {
  return Math.abs(value) < 10000 && Number.isInteger(value) ? exact(value) : si(value);
}

/** "1 packet", "12.3 k packets": a noun that has its plural by an s. */
export function counted(value: number, noun: string): string {
  return `${count(value)} ${noun}${value === 1 ? "" : "s"}`;
}

/** 0.0123 -> "1.23 %". */
export function percent(share: number): string {
  const value = share * 100;
  if (value === 0) return `0${THIN}%`;
  if (value < 0.01) return `<${THIN}0.01${THIN}%`;
  return digits(value) + THIN + "%";
}

const TIME_UNITS: readonly [number, string][] = [
  [1e9, "s"],
  [1e6, "ms"],
  [1e3, "µs"],
];

/** Nanoseconds -> "12.3 ms". */
export function time(ns: number): string {
  for (const [size, unit] of TIME_UNITS) {
    if (ns >= size * 0.9995) return digits(ns / size) + THIN + unit;
  }
  return digits(ns) + THIN + "ns";
}

/** Seconds -> "3d 4h", "2h 05m", "4m 09s". */
export function span(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds));
  const two = (value: number): string => String(value).padStart(2, "0");
  const minutes = Math.floor(whole / 60);
  const hours = Math.floor(minutes / 60);
  const days = Math.floor(hours / 24);
  if (days > 0) return `${days}d ${two(hours % 24)}h`;
  if (hours > 0) return `${hours}h ${two(minutes % 60)}m`;
  if (minutes > 0) return `${minutes}m ${two(whole % 60)}s`;
  return `${whole}s`;
}

export type Zone = "utc" | "local";

const formats = new Map<string, Intl.DateTimeFormat>();

function clockFormat(zone: Zone, fields: Intl.DateTimeFormatOptions, key: string): Intl.DateTimeFormat {
  const id = `${zone} ${key}`;
  let format = formats.get(id);
  if (format === undefined) {
    const options: Intl.DateTimeFormatOptions = { ...fields, hourCycle: "h23" };
    if (zone === "utc") options.timeZone = "UTC";
    format = new Intl.DateTimeFormat("en-GB", options);
    formats.set(id, format);
  }
  return format;
}

/** Milliseconds since the epoch -> "13:04:59", or "13:04" without seconds. */
export function clock(ms: number, zone: Zone, seconds = true): string {
  const fields: Intl.DateTimeFormatOptions = { hour: "2-digit", minute: "2-digit" };
  if (seconds) fields.second = "2-digit";
  return clockFormat(zone, fields, seconds ? "s" : "m").format(ms);
}

/** Milliseconds since the epoch -> "21 Nov 2026". */
export function date(ms: number, zone: Zone): string {
  return clockFormat(zone, { day: "2-digit", month: "short", year: "numeric" }, "d").format(ms);
}

/** 0.001 -> "10⁻³"; 1 -> "1", 10 -> "10"; "" for anything else. */
export function powerOfTen(value: number): string {
  const exponent = Math.round(Math.log10(value));
  if (Math.abs(value / 10 ** exponent - 1) > 1e-6) return "";
  if (exponent === 0) return "1";
  if (exponent === 1) return "10";
  const raised = String(Math.abs(exponent)).replace(/\d/g, (digit) => SUPERSCRIPT[Number(digit)] ?? "");
  return `10${exponent < 0 ? "⁻" : ""}${raised}`;
}

/** Labels of a linear axis: as short as they can be. */
export function axisNumber(value: number, unit = ""): string {
  let scaled = value;
  let step = 0;
  while (Math.abs(scaled) >= 1000 && step < UP.length - 1) {
    scaled /= 1000;
    step += 1;
  }
  const suffix = `${UP[step] ?? ""}${unit}`;
  const number = String(Number(scaled.toFixed(2)));
  return suffix === "" ? number : number + THIN + suffix;
}
