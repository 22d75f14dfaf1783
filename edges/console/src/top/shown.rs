//! What the view shows of one kind of record: names, numbers and their order; no terminal here.

use linkweir_record::{FlowKind, HttpKind};

use super::number::{count, maybe_time, percent, si, time};
use linkweir_live::Kind;
use linkweir_live::api::{FlowFigures, FlowSort, FlowTopRow, Percentiles, Sort, Tick, TopRow};
use linkweir_live::text::to_f64;

/// How good it is that there is something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// As it should be.
    Good,
    /// All right.
    Fine,
    /// Perhaps not.
    Doubtful,
    /// Not as it should be.
    Bad,
}

/// One of the bars that share a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bar {
    /// At its left.
    pub name: String,
    /// How many.
    pub count: u64,
    /// Its colour.
    pub tone: Tone,
}

/// A curve over the last intervals.
#[derive(Debug)]
pub struct Curve<K: Kind> {
    /// Above it.
    pub name: &'static str,
    /// Of an interval.
    pub value: fn(&Tick<K::Figures>) -> Option<u64>,
    /// Its largest value, with an interval for its length.
    pub show: fn(u64, &Tick<K::Figures>) -> String,
}

/// A name and a value.
pub type Pair = (&'static str, String);

/// Heading of a column, its width, and the sort that it stands for.
pub type Heading<S> = (&'static str, u16, Option<S>);

/// The status of the process, between the bars and the table.
#[derive(Debug, Default)]
pub struct Panel {
    /// Names and values, line by line.
    pub lines: Vec<Vec<Pair>>,
    /// Headings of a table, and the widths of their columns; the first takes what is left.
    pub headings: &'static [(&'static str, u16)],
    /// Its rows.
    pub rows: Vec<Vec<String>>,
}

/// A kind of record that the terminal can show.
pub trait Shown: Kind {
    /// The line of rates.
    fn rates(tick: &Tick<Self::Figures>) -> Vec<Pair>;

    /// The line of times.
    ///
    /// # Errors
    /// There are none: the text to show instead.
    fn times(tick: &Tick<Self::Figures>) -> Result<Vec<Pair>, &'static str>;

    /// The two curves.
    fn curves() -> [Curve<Self>; 2];

    /// At most four bars, and the whole that they are parts of.
    fn bars(tick: &Tick<Self::Figures>) -> (Vec<Bar>, u64);

    /// Two lists of names and counts beside the bars.
    fn lists(tick: &Tick<Self::Figures>) -> [Vec<(String, u64)>; 2];

    /// The columns of the table after the key.
    fn headings() -> &'static [Heading<Self::Sort>];

    /// The key of a row.
    fn key(row: &Self::Row) -> &str;

    /// A row under the headings.
    fn cells(row: &Self::Row) -> Vec<String>;

    /// What a line for an interval has after losses and table.
    fn in_line(tick: &Tick<Self::Figures>) -> Vec<(String, String)>;

    /// What is shown of the process itself.
    fn panel(status: &Self::Status) -> Panel {
        let _ = status;
        Panel::default()
    }

    /// One of the last records as a line, and its colour.
    fn event_line(event: &Self::Event) -> (String, Tone) {
        let _ = event;
        (String::new(), Tone::Fine)
    }
}

/// Responses of a class: the first digit of their codes.
fn in_class(tick: &Tick, class: u16) -> u64 {
    tick.codes
        .iter()
        .filter(|(code, _)| **code / 100 == class)
        .fold(0, |sum, (_, count)| sum.saturating_add(*count))
}

/// What went over the wire, bits per second.
pub(super) fn bits_per_second<F>(tick: &Tick<F>) -> f64 {
    if tick.interval_s > 0.0 {
        to_f64(tick.bytes) * 8.0 / tick.interval_s
    } else {
        0.0
    }
}

impl Shown for HttpKind {
    fn rates(tick: &Tick) -> Vec<Pair> {
        let rate = |count| si(tick.per_second(count));
        vec![
            ("req/s", rate(tick.requests)),
            ("pkt/s", rate(tick.packets)),
            ("bit/s", si(bits_per_second(tick))),
            ("unanswered/s", rate(tick.unanswered)),
            ("retrans/s", rate(tick.retransmissions)),
        ]
    }

    fn times(tick: &Tick) -> Result<Vec<Pair>, &'static str> {
        let times = tick
            .response_time_ns
            .as_ref()
            .ok_or("no response in this interval")?;
        Ok(vec![
            ("p50", time(times.p50)),
            ("p90", time(times.p90)),
            ("p95", time(times.p95)),
            ("p99", time(times.p99)),
            ("p99.9", time(times.p999)),
            ("max", time(times.max)),
        ])
    }

    fn curves() -> [Curve<Self>; 2] {
        [
            Curve {
                name: "req/s",
                value: |tick| Some(tick.requests),
                show: |value, tick| si(tick.per_second(value)),
            },
            Curve {
                name: "p95",
                value: |tick| tick.response_time_ns.map(|times| times.p95),
                show: |value, _| time(value),
            },
        ]
    }

    fn bars(tick: &Tick) -> (Vec<Bar>, u64) {
        let tones = [Tone::Good, Tone::Fine, Tone::Doubtful, Tone::Bad];
        let bars = (2..=5).zip(tones).map(|(class, tone)| Bar {
            name: format!("{class}xx"),
            count: in_class(tick, class),
            tone,
        });
        (bars.collect(), tick.responses)
    }

    fn lists(tick: &Tick) -> [Vec<(String, u64)>; 2] {
        let codes = tick.codes.iter().map(|(code, n)| (code.to_string(), *n));
        let methods = tick.methods.iter().map(|(name, n)| (name.clone(), *n));
        [codes.collect(), methods.collect()]
    }

    fn headings() -> &'static [Heading<Sort>] {
        &[
            ("REQUESTS", 8, Some(Sort::Requests)),
            ("4XX+5XX", 7, Some(Sort::Errors)),
            ("UNANSW", 6, Some(Sort::Unanswered)),
            ("BYTES", 6, Some(Sort::Bytes)),
            ("P50", 6, None),
            ("P95", 6, Some(Sort::P95)),
            ("MAX", 6, None),
        ]
    }

    fn key(row: &TopRow) -> &str {
        &row.key
    }

    fn cells(row: &TopRow) -> Vec<String> {
        vec![
            count(row.requests),
            count(row.errors_4xx.saturating_add(row.errors_5xx)),
            count(row.unanswered),
            si(to_f64(row.bytes)),
            maybe_time(row.p50),
            maybe_time(row.p95),
            maybe_time(row.max),
        ]
    }

    fn in_line(tick: &Tick) -> Vec<(String, String)> {
        let mut out = Vec::new();
        let mut put = |name: &str, value: String| out.push((name.to_owned(), value));
        put("req/s", si(tick.per_second(tick.requests)));
        if let Some(times) = &tick.response_time_ns {
            put("p50", time(times.p50));
            put("p95", time(times.p95));
            put("p99", time(times.p99));
        }
        for class in 2..=5 {
            let responses = in_class(tick, class);
            if responses > 0 || class == 5 {
                put(&format!("{class}xx"), count(responses));
            }
        }
        put("unanswered", count(tick.unanswered));
        put("pkt/s", si(tick.per_second(tick.packets)));
        put("bit/s", si(bits_per_second(tick)));
        out
    }
}

/// Flows that were unanswered, reset or evicted.
const fn failed(figures: &FlowFigures) -> u64 {
    figures
        .ends
        .reset
        .saturating_add(figures.ends.unanswered)
        .saturating_add(figures.ends.evicted)
}

impl Shown for FlowKind {
    fn rates(tick: &Tick<FlowFigures>) -> Vec<Pair> {
        let rate = |count| si(tick.per_second(count));
        vec![
            // How many there are is in the line of the table.
            ("new/s", rate(tick.new_flows)),
            ("ended/s", rate(tick.ended)),
            ("pkt/s", rate(tick.packets)),
            ("bit/s", si(bits_per_second(tick))),
            ("retrans", percent(tick.retransmissions, tick.data_segments)),
        ]
    }

    fn times(tick: &Tick<FlowFigures>) -> Result<Vec<Pair>, &'static str> {
        let mut out = Vec::new();
        let p95 = |of: &Option<Percentiles>| maybe_time(of.map(|times| times.p95));
        if let Some(rtt) = &tick.rtt_ns {
            out.push(("rtt p50", time(rtt.p50)));
            out.push(("p95", time(rtt.p95)));
        }
        if tick.server_rtt_ns.is_some() || tick.client_rtt_ns.is_some() {
            out.push(("server p95", p95(&tick.server_rtt_ns)));
            out.push(("client p95", p95(&tick.client_rtt_ns)));
        }
        if tick.handshake_ns.is_some() {
            out.push(("handshake p95", p95(&tick.handshake_ns)));
        }
        if out.is_empty() {
            Err("no round-trip time in this interval")
        } else {
            Ok(out)
        }
    }

    fn curves() -> [Curve<Self>; 2] {
        [
            Curve {
                name: "bit/s",
                value: |tick| Some(tick.bytes.saturating_mul(8)),
                show: |value, tick| si(tick.per_second(value)),
            },
            Curve {
                name: "rtt p95",
                value: |tick| tick.rtt_ns.map(|times| times.p95),
                show: |value, _| time(value),
            },
        ]
    }

    fn bars(tick: &Tick<FlowFigures>) -> (Vec<Bar>, u64) {
        let ends = &tick.ends;
        let rest = [ends.idle, ends.reused, ends.open, ends.evicted];
        let bars = [
            ("closed", ends.closed, Tone::Good),
            (
                "idle, other",
                rest.iter().fold(0, |sum, n| u64::saturating_add(sum, *n)),
                Tone::Fine,
            ),
            ("reset", ends.reset, Tone::Doubtful),
            ("unanswered", ends.unanswered, Tone::Bad),
        ];
        let bars = bars.map(|(name, count, tone)| Bar {
            name: name.to_owned(),
            count,
            tone,
        });
        (bars.into(), tick.ended)
    }

    fn lists(tick: &Tick<FlowFigures>) -> [Vec<(String, u64)>; 2] {
        let applications = tick.applications.iter();
        let anomalies = tick.anomalies.iter();
        [
            applications
                .map(|(name, one)| ((*name).to_owned(), one.flows))
                .collect(),
            anomalies
                .map(|(class, n)| (class.replace('_', " "), *n))
                .collect(),
        ]
    }

    fn headings() -> &'static [Heading<FlowSort>] {
        &[
            ("BYTES", 6, Some(FlowSort::Bytes)),
            ("FLOWS", 6, Some(FlowSort::Flows)),
            ("FAILED", 6, Some(FlowSort::Failed)),
            ("RETRANS", 7, Some(FlowSort::Retransmissions)),
            ("RTT P50", 7, None),
            ("RTT P95", 7, Some(FlowSort::RttP95)),
        ]
    }

    fn key(row: &FlowTopRow) -> &str {
        &row.key
    }

    fn cells(row: &FlowTopRow) -> Vec<String> {
        vec![
            si(to_f64(row.bytes)),
            count(row.flows),
            count(row.reset.saturating_add(row.unanswered)),
            if row.data_segments == 0 {
                "-".to_owned()
            } else {
                percent(row.retransmissions, row.data_segments)
            },
            maybe_time(row.rtt_p50),
            maybe_time(row.rtt_p95),
        ]
    }

    fn in_line(tick: &Tick<FlowFigures>) -> Vec<(String, String)> {
        let mut out = Vec::new();
        let mut put = |name: &str, value: String| out.push((name.to_owned(), value));
        put("active", count(tick.table.entries));
        put("new/s", si(tick.per_second(tick.new_flows)));
        put("ended/s", si(tick.per_second(tick.ended)));
        put("failed", count(failed(tick)));
        put("retrans", percent(tick.retransmissions, tick.data_segments));
        if let Some(rtt) = &tick.rtt_ns {
            put("rtt-p50", time(rtt.p50));
            put("rtt-p95", time(rtt.p95));
        }
        put("pkt/s", si(tick.per_second(tick.packets)));
        put("bit/s", si(bits_per_second(tick)));
        out
    }
}
