//! The page of the HTTP report.

use linkweir_sketch::{Coarse, LogLinear, RateSeries, TopEntry, TopK};

use super::ReportMeta;
use super::http::HttpReport;
use super::page::{BarRow, Page, bar_table, escape};
use super::plot::{Axis, Marks, Plot, Scale, Series, Unit};
use linkweir_record::human::{
    counted, exact_seconds, moment, percent, scaled, span, thousands, to_f64,
};

/// Rows of the tables of hosts and URLs.
pub(super) const TOP_ROWS: usize = 15;
/// Most points of a series over time.
const PLOT_BINS: usize = 320;
/// A URL with fewer answers has no percentile worth comparing.
const ENOUGH_ANSWERS: u64 = 5;

impl HttpReport {
    /// The report as one HTML page without references to anything outside it.
    #[must_use]
    pub fn render(&self, meta: &ReportMeta) -> String {
        let mut page = Page::new(&meta.title);
        let clock = Clock::new(meta, [&self.requests_at, &self.orphans_at]);
        page.raw(&(about(meta) + &clock.note()));
        page.cards(&[loss_cards(meta), self.count_cards(&clock)].concat());
        page.raw("<div class=\"grid2\">\n");
        let times = self.response_times();
        page.section("Response time", false, &(times.svg() + &times.table()));
        page.section("Response time percentiles", false, &self.percentiles());
        let rate = self.requests_over_time(&clock);
        page.section("Requests over time", false, &(rate.svg() + &rate.table()));
        let faults = self.faults_over_time(&clock);
        page.section(
            "Unanswered requests and orphan responses over time",
            false,
            &(faults.svg() + &faults.table()),
        );
        page.section("Status codes", false, &self.status_codes());
        page.section("Methods", false, &self.method_table());
        page.section("Hosts", true, &top_table("host", &self.hosts));
        page.section(
            "URLs, without their query",
            true,
            &top_table("URL", &self.urls),
        );
        page.section("Slowest URLs", true, &self.slowest());
        let lengths = length_plot(
            "URL length",
            "URL length (bytes)",
            "requests",
            &self.uri_bytes,
        );
        page.section("URL length", false, &(lengths.svg() + &lengths.table()));
        let sizes = length_plot(
            "Response size",
            "response size (bytes)",
            "responses",
            &self.response_bytes,
        );
        page.section("Response size", false, &(sizes.svg() + &sizes.table()));
        page.raw("</div>\n");
        page.finish(&format!(
            "Made by {}. This page needs no network.",
            meta.program
        ))
    }

    fn count_cards(&self, clock: &Clock) -> Vec<(String, &'static str, bool)> {
        let mut cards = vec![
            (thousands(self.requests), "requests", false),
            (thousands(self.responses), "responses", false),
            (thousands(self.unanswered), "unanswered requests", false),
            (thousands(self.orphans), "orphan responses", false),
        ];
        let seconds = clock.seconds();
        if seconds > 0.0 {
            cards.push((
                scaled(to_f64(self.requests) / seconds, ""),
                "requests per second",
                false,
            ));
        }
        if let Some(median) = self.response_time.quantile(0.5) {
            cards.push((span(median), "median response time", false));
        }
        cards
    }

    fn response_times(&self) -> Plot {
        // Of transactions whose round trip is known, what is not the network.
        let curves = [
            ("response time", &self.response_time),
            ("server time", &self.server_time),
        ];
        let curves = curves.into_iter().filter(|(_, times)| times.count() > 0);
        let curves: Vec<_> = curves.collect();
        spans_plot(
            "Share of responses that took longer than a given time",
            ["response time", "responses"],
            &curves,
        )
    }

    fn percentiles(&self) -> String {
        if self.response_time.is_empty() {
            return "<p class=\"none\">No request was answered.</p>\n".to_owned();
        }
        percentile_bars(&self.response_time, "response")
    }

    fn requests_over_time(&self, clock: &Clock) -> Plot {
        clock.plot(
            "Requests per second over time",
            "requests per second",
            vec![("requests", &self.requests_at)],
        )
    }

    fn faults_over_time(&self, clock: &Clock) -> Plot {
        clock.plot(
            "Unanswered requests and orphan responses per second",
            "per second",
            vec![
                ("unanswered requests", &self.unanswered_at),
                ("orphan responses", &self.orphans_at),
            ],
        )
    }

    fn status_codes(&self) -> String {
        let mut codes: Vec<(usize, u64)> = self
            .codes
            .iter()
            .enumerate()
            .filter(|(_, count)| **count > 0)
            .map(|(code, count)| (code, *count))
            .collect();
        codes.sort_by_key(|(code, count)| (std::cmp::Reverse(*count), *code));
        let most = codes.first().map_or(1, |(_, count)| *count);
        let total: u64 = codes.iter().map(|(_, count)| *count).sum();
        let row = |(code, count): (usize, u64)| BarRow {
            key: if code == 0 {
                "above 999".to_owned()
            } else {
                format!("{code:03}")
            },
            share: to_f64(count) / to_f64(most),
            class: match code / 100 {
                1 => "c1",
                2 => "c2",
                3 => "c3",
                4 => "c4",
                5 => "c5",
                _ => "",
            },
            cells: vec![thousands(count), percent(count, total)],
        };
        let shown: Vec<BarRow> = codes.iter().copied().take(24).map(row).collect();
        let mut html = bar_table(&["code", "responses", "share"], &shown);
        if codes.len() > 24 {
            let rest: u64 = codes.iter().skip(24).map(|(_, count)| *count).sum();
            html += &format!(
                "<p class=\"note\">{}: {}.</p>\n",
                counted(codes.len() as u64 - 24, "other code"),
                counted(rest, "response")
            );
        }
        html
    }

    fn method_table(&self) -> String {
        let methods = self.methods.by_count();
        let most = methods.first().map_or(1, |(_, count)| *count).max(1);
        let row = |key: String, count: u64| BarRow {
            key,
            share: to_f64(count) / to_f64(most),
            class: "",
            cells: vec![thousands(count), percent(count, self.methods.total())],
        };
        let mut rows: Vec<BarRow> = methods
            .iter()
            .take(16)
            .map(|(key, count)| row(name_of(key, false), *count))
            .collect();
        let rest = self.methods.other() + methods.iter().skip(16).map(|(_, n)| *n).sum::<u64>();
        if rest > 0 {
            rows.push(row("other".to_owned(), rest));
        }
        bar_table(&["method", "requests", "share"], &rows)
    }

    fn slowest(&self) -> String {
        let mut urls: Vec<(u64, TopEntry<'_, Coarse>)> = self
            .urls
            .entries()
            .filter(|entry| entry.payload.count() >= ENOUGH_ANSWERS)
            .filter_map(|entry| Some((entry.payload.quantile(950)?, entry)))
            .collect();
        urls.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.key.cmp(b.1.key)));
        let most = urls.first().map_or(1, |(time, _)| *time).max(1);
        let rows: Vec<BarRow> = urls
            .iter()
            .take(TOP_ROWS)
            .map(|(p95, entry)| BarRow {
                key: name_of(entry.key, entry.is_truncated),
                share: to_f64(*p95) / to_f64(most),
                class: "",
                cells: vec![
                    thousands(entry.payload.count()),
                    about_span(entry.payload.quantile(500)),
                    about_span(Some(*p95)),
                    entry.payload.max().map_or_else(|| "–".to_owned(), span),
                ],
            })
            .collect();
        bar_table(&["URL", "responses", "p50", "p95", "max"], &rows)
            + "<p class=\"note\">By 95th percentile of the response time, among the URLs most often \
               asked for that have at least 5 responses.</p>\n"
    }
}

/// Distributions as the share of values above a span, with the percentiles of the first; `[x, noun]` are the label of
/// the span and what has it.
pub(super) fn spans_plot(title: &str, [x, noun]: [&str; 2], curves: &[(&str, &LogLinear)]) -> Plot {
    let curve = |(name, times): &(&str, &LogLinear)| {
        // The axis is logarithmic.
        let points = times.ccdf().into_iter().filter(|(nanos, _)| *nanos > 0);
        let points = points.map(|(nanos, share)| (to_f64(nanos) / 1e9, share));
        Series {
            name: (*name).to_owned(),
            marks: Marks::Line,
            points: points.filter(|(_, share)| *share > 0.0).collect(),
        }
    };
    let guide = |q: f64, name: &str| {
        let (_, first) = curves.first()?;
        Some((to_f64(first.quantile(q)?.max(1)) / 1e9, name.to_owned()))
    };
    Plot {
        title: title.to_owned(),
        x: Axis::new(x, Scale::Log, Unit::Seconds),
        y: Axis::new(
            format!("share of {noun} that took longer"),
            Scale::Log,
            Unit::Share,
        ),
        series: curves.iter().map(curve).collect(),
        guides: [guide(0.5, "p50"), guide(0.95, "p95"), guide(0.99, "p99")]
            .into_iter()
            .flatten()
            .collect(),
    }
}

/// Percentiles of spans as bars; `noun` is what has them.
pub(super) fn percentile_bars(times: &LogLinear, noun: &str) -> String {
    let (Some(min), Some(mean), Some(max)) = (times.min(), times.mean(), times.max()) else {
        return "<p class=\"none\">No data.</p>\n".to_owned();
    };
    let mut rows = vec![("minimum", min)];
    let named = [
        ("p50", 0.5),
        ("p90", 0.9),
        ("p95", 0.95),
        ("p99", 0.99),
        ("p99.9", 0.999),
    ];
    rows.extend(
        named
            .iter()
            .filter_map(|(name, q)| Some((*name, times.quantile(*q)?))),
    );
    rows.extend([("maximum", max), ("mean", mean)]);
    // The bars show orders of magnitude: the range is usually too wide for anything else.
    let log = |nanos: u64| to_f64(nanos.max(1)).log10();
    let (low, high) = (log(min).floor() - 0.2, log(max));
    let rows: Vec<BarRow> = rows
        .into_iter()
        .map(|(name, nanos)| BarRow {
            key: name.to_owned(),
            share: (log(nanos) - low) / (high - low),
            class: "",
            cells: vec![span(nanos), exact_seconds(u128::from(nanos))],
        })
        .collect();
    let note = format!(
        "<p class=\"note\">{}. Percentiles are at most 0.1 % too large; minimum, maximum \
         and mean are exact. Bars are logarithmic.</p>\n",
        counted(times.count(), noun)
    );
    bar_table(&["", "time", "seconds"], &rows) + &note
}

/// The lines under the heading.
pub(super) fn about(meta: &ReportMeta) -> String {
    let mut lines = Vec::new();
    if !meta.inputs.is_empty() {
        let shown: Vec<String> = meta
            .inputs
            .iter()
            .take(8)
            .map(|input| escape(input))
            .collect();
        let more = meta.inputs.len().saturating_sub(8);
        let more = if more > 0 {
            format!(" and {more} more")
        } else {
            String::new()
        };
        lines.push(format!("{}{more}", shown.join(", ")));
    }
    if let (Some(first), Some(last)) = (meta.first_ts_ns, meta.last_ts_ns) {
        let length = span(last.saturating_sub(first));
        lines.push(format!("{} to {} ({length})", moment(first), moment(last)));
    }
    if !meta.command_line.is_empty() {
        lines.push(format!("<code>{}</code>", escape(&meta.command_line)));
    }
    format!("<p class=\"about\">{}</p>\n", lines.join("<br>\n"))
}

/// Losses first, for they say how far the rest can be trusted; then what was read.
pub(super) fn loss_cards(meta: &ReportMeta) -> Vec<(String, &str, bool)> {
    let lost: u64 = meta
        .drops
        .iter()
        .fold(0, |sum, (_, count)| sum.saturating_add(*count));
    let mut cards = vec![(thousands(lost), "packets lost", lost > 0)];
    cards.extend(
        meta.drops
            .iter()
            .map(|(cause, n)| (thousands(*n), cause.as_str(), *n > 0)),
    );
    cards.extend(
        meta.notes
            .iter()
            .map(|(name, n)| (thousands(*n), name.as_str(), false)),
    );
    cards.push((thousands(meta.packets), "packets", false));
    cards.push((scaled(to_f64(meta.bytes), "B"), "in packets", false));
    cards
}

/// The unit in which a span of time is drawn: how many nanoseconds it has, and its name.
pub(super) const fn unit_of(span_ns: u64) -> (f64, &'static str) {
    match span_ns / 1_000_000_000 {
        0..300 => (1e9, "seconds"),
        300..18_000 => (60e9, "minutes"),
        18_000..432_000 => (3600e9, "hours"),
        _ => (86_400e9, "days"),
    }
}

pub(super) fn name_of(key: &[u8], is_truncated: bool) -> String {
    let mut name = String::from_utf8_lossy(key).into_owned();
    if is_truncated {
        name.push('…');
    }
    if name.is_empty() {
        "(none)".to_owned()
    } else {
        name
    }
}

/// A span known within an eighth.
pub(super) fn about_span(nanos: Option<u64>) -> String {
    nanos.map_or_else(
        || "–".to_owned(),
        |nanos| format!("≈ {}", span(two_digits(nanos))),
    )
}

/// Rounded to two significant digits, all that a coarse histogram knows.
fn two_digits(nanos: u64) -> u64 {
    let unit = 10_u64.saturating_pow(nanos.max(1).ilog10().saturating_sub(1));
    nanos.saturating_add(unit / 2) / unit * unit
}

fn top_table(what: &str, top: &TopK<Coarse>) -> String {
    let entries = top.top(TOP_ROWS);
    let most = entries.first().map_or(1, |entry| entry.count).max(1);
    let rows: Vec<BarRow> = entries
        .iter()
        .map(|entry| BarRow {
            key: name_of(entry.key, entry.is_truncated),
            share: to_f64(entry.count) / to_f64(most),
            class: "",
            cells: vec![
                thousands(entry.count),
                percent(entry.count, top.total()),
                about_span(entry.payload.quantile(500)),
                about_span(entry.payload.quantile(950)),
            ],
        })
        .collect();
    let mut html = bar_table(&[what, "requests", "share", "p50", "p95"], &rows);
    let error = entries.iter().map(|entry| entry.error).max().unwrap_or(0);
    if error > 0 {
        html += &format!(
            "<p class=\"note\">Counts may be up to {} too high.</p>\n",
            thousands(error)
        );
    }
    html
}

/// A log-log histogram: events per byte of length, in bins that grow with the length.
fn length_plot(title: &str, x: &str, what: &str, lengths: &LogLinear) -> Plot {
    // Sixteen bins a decade, but never narrower than one byte.
    let bin = |value: u64| (to_f64(value.max(1)).log10() * 16.0).floor();
    let mut points: Vec<(f64, f64)> = Vec::new();
    let mut current: Option<(f64, u64)> = None;
    let mut close = |current: Option<(f64, u64)>| {
        if let Some((number, count)) = current {
            let (low, high) = (
                10_f64.powf(number / 16.0).ceil(),
                10_f64.powf((number + 1.0) / 16.0).ceil(),
            );
            let width = (high - low).max(1.0);
            points.push(((low * (high - 1.0).max(low)).sqrt(), to_f64(count) / width));
        }
    };
    for (length, count) in lengths.buckets().filter(|(length, _)| *length > 0) {
        let number = bin(length);
        current = match current {
            Some((same, so_far)) if same.total_cmp(&number).is_eq() => Some((same, so_far + count)),
            other => {
                close(other);
                Some((number, count))
            }
        };
    }
    close(current);
    Plot {
        title: format!("{title}: log-log histogram"),
        x: Axis::new(x, Scale::Log, Unit::Count),
        y: Axis::new(
            format!("{what} per byte of length"),
            Scale::Log,
            Unit::Count,
        ),
        series: vec![Series {
            name: what.to_owned(),
            marks: Marks::Points,
            points,
        }],
        guides: lengths
            .quantile(0.5)
            .map(|median| (to_f64(median), format!("median {}", thousands(median))))
            .into_iter()
            .collect(),
    }
}

/// The time axis of a trace: from its first packet, in a unit that suits its length; of times that are
/// far from all others, without these.
pub(super) struct Clock {
    start: u64,
    end: u64,
    unit_ns: f64,
    label: String,
    /// Times that are left out, of how many, and the first of them.
    strays: Option<(u64, u64, u64)>,
}

impl Clock {
    pub(super) fn new(meta: &ReportMeta, series: [&RateSeries; 2]) -> Self {
        let [mut all, other] = series.map(RateSeries::clone);
        all.merge(&other);
        let (from, to) = all.main_range().unwrap_or_default();
        let left_out = all.total() - all.within(from, to).total();
        let (start, end) = if left_out == 0 {
            (
                meta.first_ts_ns.unwrap_or(from),
                meta.last_ts_ns.unwrap_or(to),
            )
        } else {
            (from, to)
        };
        let mut outside = all.bins().filter(|(at, _)| !(from..to).contains(at));
        let (unit_ns, unit) = unit_of(end.saturating_sub(start));
        Self {
            start,
            end,
            unit_ns,
            label: format!("{unit} since {}", moment(start)),
            strays: outside
                .next()
                .map(|(first, _)| (left_out, all.total(), first)),
        }
    }

    /// The time of the axis, seconds.
    fn seconds(&self) -> f64 {
        to_f64(self.end.saturating_sub(self.start)) / 1e9
    }

    /// What the plots leave out, as HTML.
    pub(super) fn note(&self) -> String {
        self.strays.map_or_else(String::new, |(count, all, first)| {
            format!(
                "<p class=\"about\">{} of {} times are far from all others, the first of them {}: the plots \
                 over time leave them out.</p>\n",
                thousands(count),
                thousands(all),
                moment(first)
            )
        })
    }

    pub(super) fn plot(&self, title: &str, y: &str, series: Vec<(&str, &RateSeries)>) -> Plot {
        let drawn = series.into_iter().map(|(name, series)| {
            let series = match self.strays {
                Some(_) => series.within(self.start, self.end),
                None => series.clone(),
            };
            let series = series.coarsened(PLOT_BINS);
            let mut points: Vec<(f64, f64)> = series
                .per_second()
                .map(|(time, rate)| (to_f64(time.saturating_sub(self.start)) / self.unit_ns, rate))
                .collect();
            // The last bin holds until its end.
            if let Some((x, rate)) = points.last().copied() {
                points.push((x + to_f64(series.width_ns()) / self.unit_ns, rate));
            }
            Series {
                name: name.to_owned(),
                marks: Marks::Step,
                points,
            }
        });
        Plot {
            title: title.to_owned(),
            x: Axis::new(self.label.clone(), Scale::Linear, Unit::Plain),
            y: Axis::new(y, Scale::Linear, Unit::Count),
            series: drawn.collect(),
            guides: Vec::new(),
        }
    }

    /// Values over time: name, and time in nanoseconds and value of each point. Stray times are left out.
    pub(super) fn lines(&self, title: &str, y: Axis, lines: Vec<(&str, Vec<(u64, f64)>)>) -> Plot {
        let is_shown = |time: u64| self.strays.is_none() || (self.start..self.end).contains(&time);
        let drawn = lines.into_iter().map(|(name, points)| {
            let points = points.into_iter().filter(|(time, _)| is_shown(*time));
            let place = |time: u64| to_f64(time.saturating_sub(self.start)) / self.unit_ns;
            Series {
                name: name.to_owned(),
                marks: Marks::Line,
                points: points.map(|(time, value)| (place(time), value)).collect(),
            }
        });
        Plot {
            title: title.to_owned(),
            x: Axis::new(self.label.clone(), Scale::Linear, Unit::Plain),
            y,
            series: drawn.collect(),
            guides: Vec::new(),
        }
    }
}
