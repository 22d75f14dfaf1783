//! The page of the report of flows.

use linkweir_record::flow::Anomaly;
use linkweir_sketch::{LogLinear, TopK};

use super::ReportMeta;
use super::flow::{FlowReport, Keyed, STATES};
use super::http_page::{Clock, TOP_ROWS, about, about_span, loss_cards, name_of};
use super::page::{BarRow, Page, bar_table};
use super::plot::{Axis, Marks, Plot, Scale, Series, Unit};
use linkweir_record::human::{percent, scaled, span, thousands, to_f64};

/// How a value is written.
type Show = fn(u64) -> String;

impl FlowReport {
    /// The report as one HTML page without references to anything outside it.
    #[must_use]
    pub fn render(&self, meta: &ReportMeta) -> String {
        let mut page = Page::new(&meta.title);
        let clock = Clock::new(meta, [&self.begun_at, &self.ended_at]);
        page.raw(&(about(meta) + &clock.note()));
        page.cards(&[loss_cards(meta), self.count_cards()].concat());
        page.raw("<div class=\"grid2\">\n");
        let bits = clock.plot(
            "Bits per second over time",
            "bits per second",
            vec![
                ("from servers", &self.bits_down_at),
                ("from clients", &self.bits_up_at),
            ],
        );
        page.section(
            "Throughput over time",
            false,
            &(bits.svg()
                + "<p class=\"note\">The bytes of a flow are spread evenly from its first to its \
                   last packet.</p>\n"
                + &bits.table()),
        );
        let flows = clock.plot(
            "Flows per second over time",
            "flows per second",
            vec![
                ("first packets", &self.begun_at),
                ("last packets", &self.ended_at),
                ("failed", &self.failed_at),
            ],
        );
        page.section("Flows over time", false, &(flows.svg() + &flows.table()));
        let rtt = self.round_trips();
        page.section(
            "Round-trip time",
            false,
            &(rtt.svg()
                + "<p class=\"note\">The mean of each flow, between the capture point and the \
                   server, and between the capture point and the client.</p>\n"
                + &rtt.table()),
        );
        page.section("Times and sizes", false, &self.percentiles());
        page.section("How flows ended", false, &self.ends());
        page.section("Anomalies", false, &self.anomaly_table());
        page.section("Applications", true, &self.application_table());
        page.section("Servers by name", true, &top_table("name", &self.names));
        page.section("Servers", true, &top_table("server", &self.servers));
        let durations = Plot {
            title: "Share of flows that lasted longer than a given time".to_owned(),
            x: Axis::new("duration", Scale::Log, Unit::Seconds),
            y: Axis::new("share of flows that lasted longer", Scale::Log, Unit::Share),
            series: vec![ccdf("flows", &self.duration, 1e9)],
            guides: Vec::new(),
        };
        page.section(
            "Flow duration",
            false,
            &(durations.svg() + &durations.table()),
        );
        let sizes = Plot {
            title: "Share of flows larger than a given size".to_owned(),
            x: Axis::new("IP bytes of both directions", Scale::Log, Unit::Count),
            y: Axis::new("share of flows that are larger", Scale::Log, Unit::Share),
            series: vec![ccdf("flows", &self.size, 1.0)],
            guides: Vec::new(),
        };
        page.section("Flow size", false, &(sizes.svg() + &sizes.table()));
        page.raw("</div>\n");
        page.finish(&format!(
            "Made by {}. This page needs no network.",
            meta.program
        ))
    }

    fn flows(&self) -> u64 {
        self.tcp.saturating_add(self.udp)
    }

    fn count_cards(&self) -> Vec<(String, &'static str, bool)> {
        let mut cards = vec![
            (thousands(self.flows()), "flows", false),
            (thousands(self.tcp), "TCP flows", false),
            (thousands(self.udp), "UDP flows", false),
            (thousands(self.midstream), "TCP flows without SYN", false),
            (scaled(to_f64(self.bytes), "B"), "in flows", false),
            (
                percent(self.retransmissions, self.data_segments),
                "TCP segments retransmitted",
                false,
            ),
        ];
        let doubled = self.anomalies.get(Anomaly::NetworkDuplicate as usize);
        if let Some(doubled) = doubled.filter(|count| **count > 0) {
            cards.push((
                percent(*doubled, self.data_segments),
                "TCP segments duplicated by the network",
                false,
            ));
        }
        if let Some(median) = self.rtt.quantile(0.5) {
            cards.push((span(median), "median round-trip time", false));
        }
        cards
    }

    fn round_trips(&self) -> Plot {
        let halves = [
            ("server half", &self.server_rtt),
            ("client half", &self.client_rtt),
        ];
        Plot {
            title: "Share of flows with a longer round-trip time than a given one".to_owned(),
            x: Axis::new("mean round-trip time of a flow", Scale::Log, Unit::Seconds),
            y: Axis::new("share of flows that are slower", Scale::Log, Unit::Share),
            series: halves
                .into_iter()
                .filter(|(_, times)| times.count() > 0)
                .map(|(name, times)| ccdf(name, times, 1e9))
                .collect(),
            guides: Vec::new(),
        }
    }

    fn percentiles(&self) -> String {
        let times: [(&str, &LogLinear, Show); 6] = [
            ("round-trip time", &self.rtt, span),
            ("server half", &self.server_rtt, span),
            ("client half", &self.client_rtt, span),
            ("handshake", &self.handshake, span),
            ("duration", &self.duration, span),
            ("size", &self.size, |bytes| scaled(to_f64(bytes), "B")),
        ];
        let most = times.iter().map(|(_, values, _)| values.count()).max();
        let rows: Vec<BarRow> = times
            .into_iter()
            .map(|(name, values, show)| {
                let quantile = |q| values.quantile(q).map_or_else(|| "–".to_owned(), show);
                BarRow {
                    key: name.to_owned(),
                    share: to_f64(values.count()) / to_f64(most.unwrap_or(0).max(1)),
                    class: "",
                    cells: vec![
                        thousands(values.count()),
                        quantile(0.5),
                        quantile(0.95),
                        quantile(0.99),
                        values.max().map_or_else(|| "–".to_owned(), show),
                    ],
                }
            })
            .collect();
        bar_table(&["", "flows", "p50", "p95", "p99", "max"], &rows)
            + "<p class=\"note\">Percentiles are at most 0.1 % too large. A round-trip time is the \
               sum of the means of both halves.</p>\n"
    }

    fn ends(&self) -> String {
        let rows = STATES.iter().zip(self.states).map(|(state, count)| {
            let class = match state.as_str() {
                "closed" => "c2",
                "reset" => "c4",
                "unanswered" | "evicted" => "c5",
                _ => "c1",
            };
            (state.as_str().to_owned(), count, class)
        });
        counts("state", "flows", rows.collect(), self.flows())
    }

    fn anomaly_table(&self) -> String {
        let classes = Anomaly::ALL.iter().zip(self.anomalies);
        let rows = classes.map(|(class, count)| (class.as_str().replace('_', " "), count, "c4"));
        counts("class", "segments", rows.collect(), self.data_segments)
            + "<p class=\"note\">Out-of-sequence TCP segments; shares are of all segments with \
               payload.</p>\n"
    }

    fn application_table(&self) -> String {
        let mut applications = self.applications.clone();
        applications.sort_by_key(|one| (std::cmp::Reverse(one.bytes), one.name));
        let most = applications.first().map_or(1, |one| one.bytes).max(1);
        let rows: Vec<BarRow> = applications
            .iter()
            .map(|one| BarRow {
                key: one.name.to_owned(),
                share: to_f64(one.bytes) / to_f64(most),
                class: "",
                cells: vec![
                    scaled(to_f64(one.bytes), "B"),
                    percent(one.bytes, self.bytes),
                    thousands(one.flows),
                    percent(one.flows, self.flows()),
                ],
            })
            .collect();
        bar_table(
            &["application", "bytes", "share", "flows", "share of flows"],
            &rows,
        )
    }
}

/// A complementary distribution; `unit` is what a value is divided by.
fn ccdf(name: &str, values: &LogLinear, unit: f64) -> Series {
    let points = values
        .ccdf()
        .into_iter()
        .map(|(value, share)| (to_f64(value.max(1)) / unit, share))
        .filter(|(_, share)| *share > 0.0);
    Series {
        name: name.to_owned(),
        marks: Marks::Line,
        points: points.collect(),
    }
}

/// Names and counts that are there, largest first, and their shares of a whole.
fn counts(what: &str, of: &str, mut rows: Vec<(String, u64, &'static str)>, whole: u64) -> String {
    rows.retain(|(_, count, _)| *count > 0);
    rows.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let most = rows.first().map_or(1, |(_, count, _)| *count).max(1);
    let rows: Vec<BarRow> = rows
        .into_iter()
        .map(|(key, count, class)| BarRow {
            key,
            share: to_f64(count) / to_f64(most),
            class,
            cells: vec![thousands(count), percent(count, whole)],
        })
        .collect();
    bar_table(&[what, of, "share"], &rows)
}

fn top_table(what: &str, top: &TopK<Keyed>) -> String {
    let entries = top.top(TOP_ROWS);
    let most = entries.first().map_or(1, |entry| entry.count).max(1);
    let rows: Vec<BarRow> = entries
        .iter()
        .map(|entry| {
            let keyed = entry.payload;
            BarRow {
                key: name_of(entry.key, entry.is_truncated),
                share: to_f64(entry.count) / to_f64(most),
                class: "",
                cells: vec![
                    scaled(to_f64(entry.count), "B"),
                    percent(entry.count, top.total()),
                    thousands(keyed.flows),
                    percent(keyed.failed, keyed.flows),
                    percent(keyed.retransmissions, keyed.data_segments),
                    about_span(keyed.rtt.quantile(500)),
                    about_span(keyed.rtt.quantile(950)),
                ],
            }
        })
        .collect();
    let head = [
        what,
        "bytes",
        "share",
        "flows",
        "failed",
        "sent again",
        "RTT p50",
        "RTT p95",
    ];
    let mut html = bar_table(&head, &rows);
    let error = entries.iter().map(|entry| entry.error).max().unwrap_or(0);
    if error > 0 {
        html += &format!(
            "<p class=\"note\">Bytes may be up to {} too many.</p>\n",
            scaled(to_f64(error), "B")
        );
    }
    html
}
