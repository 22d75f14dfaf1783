//! The page of the report of a load run.
//!
//! Source: Table 2 and Figs. 7 to 10 of the Raw Packet Sender (Hryn, Jerzak, Chydzinski 2004).

use super::http_page::unit_of;
use super::load::{LoadReport, SeriesBin, StageTimes};
use super::page::{BarRow, Page, bar_table, escape, facts, table};
use super::plot::{Axis, Marks, Plot, Scale, Series, Unit};
use linkweir_record::human::{moment, percent, scaled, span, thousands, to_f64};

impl LoadReport<'_> {
    /// The report as one HTML page without references to anything outside it.
    #[must_use]
    pub fn render(&self) -> String {
        let mut page = Page::new(&self.title);
        page.raw(&self.verdict());
        page.cards(&self.cards());
        page.raw("<div class=\"grid2\">\n");
        page.section("Times", true, &self.stage_table());
        let clock = Clock::new(&self.series);
        let over_time = [
            (
                "Response time over time",
                clock.response_times(&self.series),
                "Of the requests that were wanted at that time, however late they were answered. The \
                 99th percentile is within an eighth.",
            ),
            (
                "Sessions over time",
                clock.sessions(&self.series, self.bin_ns),
                "Sessions that the schedule wanted and that started, and how many were open on average.",
            ),
            (
                "Requests and responses over time",
                clock.requests(&self.series, self.bin_ns),
                "",
            ),
        ];
        for (heading, plot, note) in over_time {
            page.section(heading, false, &drawn(&plot, note));
        }
        page.section(
            "Distribution",
            false,
            &drawn(&self.distribution(), DISTRIBUTION),
        );
        page.section(
            "Percentiles of the response time",
            false,
            &self.percentiles(),
        );
        page.section("Status codes", false, &self.status_codes());
        page.section(
            "Sessions that failed",
            false,
            &counted("cause", &self.failures, self.planned),
        );
        page.section(
            "Requests without a complete response",
            false,
            &counted("cause", &self.failed_requests, self.requests),
        );
        if !self.groups.is_empty() {
            page.section("Groups of clients", true, &self.group_table());
        }
        page.section("TCP", false, &counted("event", &self.tcp, 0));
        page.section("Checks", true, &facts(&self.checks));
        page.section("Run", true, &facts(&self.run));
        page.raw("</div>\n");
        page.finish(&format!(
            "Made by {}. This page needs no network.",
            self.program
        ))
    }

    fn verdict(&self) -> String {
        if self.invalid.is_empty() {
            return "<p class=\"about\">Valid: the generator kept its schedule and lost nothing.</p>\n"
                .to_owned();
        }
        let reasons: String = self
            .invalid
            .iter()
            .map(|reason| format!("<li>{}</li>", escape(reason)))
            .collect();
        format!(
            "<div class=\"cards\"><div class=\"card lost\"><b>INVALID</b><span>The generator itself was the \
             bottleneck: these figures are not those of the server.</span><ul>{reasons}</ul></div></div>\n"
        )
    }

    fn cards(&self) -> Vec<(String, &'static str, bool)> {
        let mut cards = vec![
            (thousands(self.planned), "sessions planned", false),
            (thousands(self.started), "sessions started", false),
            (thousands(self.completed), "sessions completed", false),
            (thousands(self.failed), "sessions failed", self.failed > 0),
            (thousands(self.peak_open), "sessions open at most", false),
            (thousands(self.responses), "responses", false),
            (
                scaled(to_f64(self.response_bytes), "B"),
                "of responses",
                false,
            ),
        ];
        if let Some(rate) = self.rate_per_s {
            cards.push((scaled(rate, ""), "requests per second", false));
        }
        let response = self.stages.first().map(|stage| stage.times);
        if let Some(median) = response.and_then(|times| times.quantile(0.5)) {
            cards.push((span(median), "median response time", false));
        }
        cards
    }

    /// The row of the paper's table for each stage, and percentiles behind it.
    fn stage_table(&self) -> String {
        let head = [
            "", "count", "min", "max", "avg", "stdev", "median", "p90", "p99", "p99.9",
        ];
        let rows = self.stages.iter().filter(|stage| !stage.times.is_empty());
        let rows = rows.map(|stage| {
            let at = |q| stage.times.quantile(q);
            let cells = vec![
                thousands(stage.times.count()),
                time(stage.times.min()),
                time(stage.times.max()),
                float(stage.mean_ns),
                float(stage.stdev_ns),
                time(at(0.5)),
                time(at(0.9)),
                time(at(0.99)),
                time(at(0.999)),
            ];
            (stage.name.to_owned(), cells)
        });
        let meanings: Vec<String> = self
            .stages
            .iter()
            .map(|stage| format!("{}: {}", escape(stage.name), escape(stage.meaning)))
            .collect();
        table(&head, rows) + &format!("<p class=\"note\">{}.</p>\n", meanings.join("; "))
    }

    fn distribution(&self) -> Plot {
        let shown = [
            "response time",
            "service time",
            "first byte",
            "schedule lag",
        ];
        let stages = self
            .stages
            .iter()
            .filter(|stage| shown.contains(&stage.name) && !stage.times.is_empty());
        let response = self.stages.first().map(|stage| stage.times);
        let guide = |q: f64, name: &str| {
            let nanos = response.and_then(|times| times.quantile(q))?;
            Some((to_f64(nanos.max(1)) / 1e9, name.to_owned()))
        };
        Plot {
            title: "Share of times that are longer than a given time".to_owned(),
            x: Axis::new("time", Scale::Log, Unit::Seconds),
            y: Axis::new("share that took longer", Scale::Log, Unit::Share),
            series: stages.map(ccdf).collect(),
            guides: [guide(0.5, "p50"), guide(0.99, "p99"), guide(0.999, "p99.9")]
                .into_iter()
                .flatten()
                .collect(),
        }
    }

    fn percentiles(&self) -> String {
        let Some(times) = self.stages.first().map(|stage| stage.times) else {
            return String::new();
        };
        let named = [
            ("p50", 0.5),
            ("p75", 0.75),
            ("p90", 0.9),
            ("p95", 0.95),
            ("p99", 0.99),
            ("p99.9", 0.999),
            ("p99.99", 0.9999),
            ("maximum", 1.0),
        ];
        let Some((low, high)) = times.min().zip(times.max()) else {
            return "<p class=\"none\">No request was answered.</p>\n".to_owned();
        };
        // The bars show orders of magnitude: the range is usually too wide for anything else.
        let log = |nanos: u64| to_f64(nanos.max(1)).log10();
        let (from, to) = (log(low).floor() - 0.2, log(high));
        let rows: Vec<BarRow> = named
            .into_iter()
            .filter_map(|(name, q)| Some((name, times.quantile(q)?)))
            .map(|(name, nanos)| BarRow {
                key: name.to_owned(),
                share: (log(nanos) - from) / (to - from),
                class: "",
                cells: vec![span(nanos)],
            })
            .collect();
        bar_table(&["", "response time"], &rows)
            + "<p class=\"note\">At most 0.1 % too large; the maximum is exact. Bars are logarithmic.</p>\n"
    }

    fn status_codes(&self) -> String {
        let most = self.statuses.iter().map(|(_, count)| *count).max();
        let rows: Vec<BarRow> = self
            .statuses
            .iter()
            .map(|(code, count)| BarRow {
                key: format!("{code:03}"),
                share: to_f64(*count) / to_f64(most.unwrap_or(1).max(1)),
                class: match code / 100 {
                    1 => "c1",
                    2 => "c2",
                    3 => "c3",
                    4 => "c4",
                    5 => "c5",
                    _ => "",
                },
                cells: vec![thousands(*count), percent(*count, self.responses)],
            })
            .collect();
        bar_table(&["code", "responses", "share"], &rows)
    }

    fn group_table(&self) -> String {
        let head = [
            "group",
            "sessions",
            "failed",
            "requests",
            "bytes",
            "connect p50",
            "response p50",
            "p90",
            "p99",
            "max",
        ];
        let rows = self.groups.iter().map(|group| {
            let at = |q| time(group.response.quantile(q));
            let cells = vec![
                thousands(group.started),
                thousands(group.failed),
                thousands(group.requests),
                scaled(to_f64(group.response_bytes), "B"),
                time(group.connect.quantile(0.5)),
                at(0.5),
                at(0.9),
                at(0.99),
                at(1.0),
            ];
            (group.name.to_owned(), cells)
        });
        table(&head, rows)
    }
}

const DISTRIBUTION: &str = "Share of times that are longer (CCDF), both axes logarithmic. The response time \
                            runs from when a request was wanted, the service time from when it was sent.";

fn drawn(plot: &Plot, note: &str) -> String {
    let note = match note {
        "" => String::new(),
        note => format!("<p class=\"note\">{}</p>\n", escape(note)),
    };
    plot.svg() + &note + &plot.table()
}

/// The share of times that are longer, for each time.
fn ccdf(stage: &StageTimes<'_>) -> Series {
    let points = stage.times.ccdf().into_iter();
    Series {
        name: stage.name.to_owned(),
        marks: Marks::Line,
        points: points
            .filter(|(_, share)| *share > 0.0)
            .map(|(nanos, share)| (to_f64(nanos.max(1)) / 1e9, share))
            .collect(),
    }
}

/// Counts by name with their share of `whole`, where there is one; zeros are left out.
fn counted(what: &str, counts: &[(String, u64)], whole: u64) -> String {
    let shown: Vec<&(String, u64)> = counts.iter().filter(|(_, count)| *count > 0).collect();
    if shown.is_empty() {
        return "<p class=\"none\">None.</p>\n".to_owned();
    }
    let most = shown.iter().map(|(_, count)| *count).max().unwrap_or(1);
    let rows: Vec<BarRow> = shown
        .into_iter()
        .map(|(name, count)| {
            let mut cells = vec![thousands(*count)];
            if whole > 0 {
                cells.push(percent(*count, whole));
            }
            BarRow {
                key: name.replace('_', " "),
                share: to_f64(*count) / to_f64(most),
                class: "",
                cells,
            }
        })
        .collect();
    if whole > 0 {
        bar_table(&[what, "count", "share"], &rows)
    } else {
        bar_table(&[what, "count"], &rows)
    }
}

fn time(nanos: Option<u64>) -> String {
    nanos.map_or_else(|| "–".to_owned(), span)
}

fn float(nanos: Option<f64>) -> String {
    nanos.map_or_else(|| "–".to_owned(), |nanos| span(rounded(nanos)))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "float to integer casts saturate"
)]
fn rounded(nanos: f64) -> u64 {
    nanos.round() as u64
}

/// The time axis of a run, in a unit that suits its length.
struct Clock {
    start: u64,
    unit_ns: f64,
    label: String,
}

impl Clock {
    fn new(series: &[SeriesBin]) -> Self {
        let start = series.first().map_or(0, |bin| bin.start_ns);
        let end = series.last().map_or(0, |bin| bin.start_ns);
        let (unit_ns, unit) = unit_of(end.saturating_sub(start));
        Self {
            start,
            unit_ns,
            label: format!("{unit} since {}", moment(start)),
        }
    }

    fn series(
        &self,
        name: &str,
        bins: &[SeriesBin],
        value: impl Fn(&SeriesBin) -> Option<f64>,
    ) -> Series {
        let x = |bin: &SeriesBin| to_f64(bin.start_ns.saturating_sub(self.start)) / self.unit_ns;
        // Seconds without data are gaps.
        let points = bins
            .iter()
            .map(|bin| (x(bin), value(bin).unwrap_or(f64::NAN)));
        Series {
            name: name.to_owned(),
            marks: Marks::Line,
            points: points.collect(),
        }
    }

    fn plot(&self, title: &str, y: Axis, series: Vec<Series>) -> Plot {
        Plot {
            title: title.to_owned(),
            x: Axis::new(self.label.clone(), Scale::Linear, Unit::Plain),
            y,
            series,
            guides: Vec::new(),
        }
    }

    fn response_times(&self, bins: &[SeriesBin]) -> Plot {
        let seconds = |nanos: Option<u64>| nanos.map(|nanos| to_f64(nanos.max(1)) / 1e9);
        self.plot(
            "Response time over time",
            Axis::new("response time", Scale::Log, Unit::Seconds),
            vec![
                self.series("mean", bins, |bin| seconds(bin.mean_ns)),
                self.series("99th percentile", bins, |bin| seconds(bin.p99_ns)),
                self.series("maximum", bins, |bin| seconds(bin.max_ns)),
            ],
        )
    }

    fn sessions(&self, bins: &[SeriesBin], bin_ns: u64) -> Plot {
        let rate = |count: u64| Some(to_f64(count) * 1e9 / to_f64(bin_ns.max(1)));
        self.plot(
            "Sessions over time",
            Axis::new("sessions, sessions per second", Scale::Linear, Unit::Count),
            vec![
                self.series("open", bins, |bin| Some(bin.open)),
                self.series("planned per second", bins, |bin| rate(bin.planned)),
                self.series("started per second", bins, |bin| rate(bin.started)),
                self.series("failed per second", bins, |bin| rate(bin.failed)),
            ],
        )
    }

    fn requests(&self, bins: &[SeriesBin], bin_ns: u64) -> Plot {
        let rate = |count: u64| Some(to_f64(count) * 1e9 / to_f64(bin_ns.max(1)));
        self.plot(
            "Requests and responses per second",
            Axis::new("per second", Scale::Linear, Unit::Count),
            vec![
                self.series("requests", bins, |bin| rate(bin.requests)),
                self.series("responses", bins, |bin| rate(bin.responses)),
            ],
        )
    }
}

#[cfg(test)]
mod tests {
    use linkweir_sketch::LogLinear;

    use super::*;
    use crate::load::GroupTimes;

    #[test]
    fn the_page_shows_everything_and_nothing_becomes_markup() {
        let mut times = LogLinear::new();
        [12_400_000, 76_600_000, 9_117_000_000]
            .into_iter()
            .for_each(|nanos| times.record(nanos));
        let bin = |second: u64| SeriesBin {
            start_ns: (1_700_000_000 + second) * 1_000_000_000,
            started: 3,
            open: 1.5,
            mean_ns: Some(76_600_000),
            ..SeriesBin::default()
        };
        let mut report = LoadReport {
            title: "Load of <server>".to_owned(),
            run: vec![
                ("seed".to_owned(), "7".to_owned()),
                ("script".to_owned(), "<b>".to_owned()),
            ],
            planned: 4,
            failed: 1,
            stages: vec![StageTimes {
                name: "response time",
                meaning: "from when it was wanted",
                times: &times,
                mean_ns: Some(98_700_000.0),
                stdev_ns: Some(265_200_000.0),
            }],
            bin_ns: 1_000_000_000,
            series: vec![bin(0), bin(1)],
            statuses: vec![(200, 3)],
            failures: vec![("no_room".to_owned(), 1), ("reset".to_owned(), 0)],
            groups: vec![GroupTimes {
                name: "dsl<i>",
                started: 3,
                failed: 1,
                requests: 3,
                response_bytes: 9,
                response: &times,
                connect: &times,
            }],
            ..LoadReport::default()
        };
        let html = report.render();
        for text in [
            "12.4 ms",
            "98.7 ms",
            "265 ms",
            "76.6 ms",
            "9.12 s",
            "&lt;server&gt;",
            "&lt;b&gt;",
            "dsl&lt;i&gt;",
            "no room",
            "Valid:",
            "seconds since 2023-11-14",
        ] {
            assert!(html.contains(text), "{text}");
        }
        assert!(!html.contains("dsl<i>") && !html.contains("<dd><b>") && !html.contains("INVALID"));
        assert!(
            !html.contains(">reset<"),
            "causes that never came are left out"
        );
        report.invalid = vec!["The schedule was not kept.".to_owned()];
        let html = report.render();
        assert!(html.contains("INVALID") && html.contains("The schedule was not kept."));
    }

    #[test]
    fn a_run_without_anything_is_a_page_too() {
        let html = LoadReport::default().render();
        assert!(html.contains("No data.") && html.ends_with("</html>\n"));
    }
}
