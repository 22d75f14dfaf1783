//! What the view shows of a load generator.

use linkweir_live::api::{LoadFigures, LoadSort, LoadTopRow, Tick};
use linkweir_live::load::{GeneratorStatus, LoadRun, LoadStatus};
use linkweir_live::text::{clean, to_f64};

use super::number::{clock, count, maybe_time, si, time};
use super::shown::{Bar, Curve, Heading, Pair, Panel, Shown, Tone, bits_per_second};

/// Responses of a class: the first digit of their codes.
fn in_class(tick: &Tick<LoadFigures>, class: u16) -> u64 {
    tick.codes
        .iter()
        .filter(|(code, _)| **code / 100 == class)
        .fold(0, |sum, (_, count)| sum.saturating_add(*count))
}

fn generator(one: &GeneratorStatus) -> Vec<String> {
    vec![
        clean(one.name.as_bytes()),
        one.state.as_str().to_owned(),
        si(one.sessions_per_s),
        si(one.responses_per_s),
        count(one.open),
        count(one.failed),
        maybe_time(one.response_p99_ns),
        maybe_time(one.lag_p99_ns),
    ]
}

impl Shown for LoadRun {
    fn rates(tick: &Tick<LoadFigures>) -> Vec<Pair> {
        let rate = |count| si(tick.per_second(count));
        vec![
            ("sessions/s", rate(tick.started)),
            ("req/s", rate(tick.requests)),
            ("resp/s", rate(tick.responses)),
            ("failed/s", rate(tick.failed)),
            ("bit/s", si(bits_per_second(tick))),
        ]
    }

    fn times(tick: &Tick<LoadFigures>) -> Result<Vec<Pair>, &'static str> {
        let times = tick.response_time_ns.as_ref();
        let times = times.ok_or("no response in this interval")?;
        let p99 = |of: &Option<linkweir_live::api::Percentiles>| maybe_time(of.map(|t| t.p99));
        Ok(vec![
            ("p50", time(times.p50)),
            ("p90", time(times.p90)),
            ("p99", time(times.p99)),
            ("max", time(times.max)),
            ("service p99", p99(&tick.service_time_ns)),
            ("lag p99", p99(&tick.schedule_lag_ns)),
        ])
    }

    fn curves() -> [Curve<Self>; 2] {
        [
            Curve {
                name: "resp/s",
                value: |tick| Some(tick.responses),
                show: |value, tick| si(tick.per_second(value)),
            },
            Curve {
                name: "p99",
                value: |tick| tick.response_time_ns.map(|times| times.p99),
                show: |value, _| time(value),
            },
        ]
    }

    fn bars(tick: &Tick<LoadFigures>) -> (Vec<Bar>, u64) {
        let tones = [Tone::Good, Tone::Fine, Tone::Doubtful, Tone::Bad];
        let bars = (2..=5).zip(tones).map(|(class, tone)| Bar {
            name: format!("{class}xx"),
            count: in_class(tick, class),
            tone,
        });
        (bars.collect(), tick.responses)
    }

    fn lists(tick: &Tick<LoadFigures>) -> [Vec<(String, u64)>; 2] {
        let codes = tick.codes.iter().map(|(code, n)| (code.to_string(), *n));
        let causes = tick.causes.iter();
        [
            codes.collect(),
            causes
                .map(|(cause, n)| (cause.replace('_', " "), *n))
                .collect(),
        ]
    }

    fn headings() -> &'static [Heading<LoadSort>] {
        &[
            ("BYTES", 6, Some(LoadSort::Bytes)),
            ("SESSIONS", 8, Some(LoadSort::Sessions)),
            ("DONE", 6, None),
            ("FAILED", 6, Some(LoadSort::Failed)),
            ("REQUESTS", 8, None),
            ("RESP", 6, Some(LoadSort::Responses)),
        ]
    }

    fn key(row: &LoadTopRow) -> &str {
        &row.key
    }

    fn cells(row: &LoadTopRow) -> Vec<String> {
        vec![
            si(to_f64(row.bytes)),
            count(row.sessions),
            count(row.completed),
            count(row.failed),
            count(row.requests),
            count(row.responses),
        ]
    }

    fn in_line(tick: &Tick<LoadFigures>) -> Vec<(String, String)> {
        let mut out = Vec::new();
        let mut put = |name: &str, value: String| out.push((name.to_owned(), value));
        put("sessions/s", si(tick.per_second(tick.started)));
        put("open", count(tick.table.entries));
        put("failed", count(tick.failed));
        put("resp/s", si(tick.per_second(tick.responses)));
        if let Some(times) = &tick.response_time_ns {
            put("p50", time(times.p50));
            put("p99", time(times.p99));
        }
        put("5xx", count(in_class(tick, 5)));
        if let Some(lag) = &tick.schedule_lag_ns {
            put("lag-p99", time(lag.p99));
        }
        put("pkt/s", si(tick.per_second(tick.packets)));
        put("bit/s", si(bits_per_second(tick)));
        out
    }

    fn panel(status: &LoadStatus) -> Panel {
        let mut first = vec![
            ("state", status.state.as_str().to_owned()),
            ("open", count(status.open)),
            ("at most", count(status.peak_open)),
        ];
        first.extend(status.begun_ms.map(|begun| ("begun", clock(begun))));
        let many = status.generators.len() > 1;
        let faults = status.generators.iter().filter_map(|one| {
            let fault = one.fault.as_ref()?;
            Some(("gone", clean(fault.as_bytes())))
        });
        let mut lines = vec![
            first,
            vec![
                ("target", clean(status.target.as_bytes())),
                ("arrivals", clean(status.arrivals.as_bytes())),
            ],
        ];
        lines.extend(faults.map(|fault| vec![fault]));
        // One generator is the run.
        let rows = status.generators.iter().filter(|_| many);
        Panel {
            lines,
            headings: &[
                ("GENERATOR", 0),
                ("STATE", 8),
                ("SESS/S", 6),
                ("RESP/S", 6),
                ("OPEN", 6),
                ("FAILED", 6),
                ("P99", 6),
                ("LAG P99", 7),
            ],
            rows: rows.map(generator).collect(),
        }
    }
}
