// Logarithmic axes: limits and marks at 1, 2 and 5 times a power of ten.
// (The chart library's own formatter prints 0.0001 as "0".)

const STEPS = [1, 2, 5, 10] as const;

/** The largest 1, 2 or 5 times a power of ten that is not above `value`. */
export function floor125(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value));
  const lead = value / power;
  const step = lead >= 5 ? 5 : lead >= 2 ? 2 : 1;
  return step * power;
}

/** The smallest 1, 2 or 5 times a power of ten that is not below `value`. */
export function ceil125(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value));
  for (const step of STEPS) {
    if (step * power >= value * (1 - 1e-9)) return step * power;
  }
  return 10 * power;
}

/** Limits that hold all values and span at least a decade. */
export function logLimits(low: number | null, high: number | null, fallback: [number, number]): [number, number] {
  if (low === null || high === null || !(low > 0) || !(high > 0)) return fallback;
  const from = floor125(low);
  const to = ceil125(high);
  return [from, Math.max(to, from * 10)];
}

/** Marks from `low` to `high`: 1-2-5 over up to two decades, else powers of ten. */
export function logMarks(low: number, high: number): number[] {
  const marks: number[] = [];
  const fine = Math.log10(high / low) <= 2.001;
  const last = Math.ceil(Math.log10(high));
  for (let exponent = Math.floor(Math.log10(low)); exponent <= last; exponent += 1) {
    for (const step of fine ? [1, 2, 5] : [1]) {
      // Negative powers by division: 5 / 1000 is exact where 5 * 10 ** -3 is not.
      const mark = exponent < 0 ? step / 10 ** -exponent : step * 10 ** exponent;
      if (mark >= low * (1 - 1e-9) && mark <= high * (1 + 1e-9)) marks.push(mark);
    }
  }
  return marks;
}
