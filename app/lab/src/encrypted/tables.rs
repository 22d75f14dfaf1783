//! The tables of both lines: who counted what, and how far an estimate is from those who know.

use super::Part;
use super::clients::STREAMS;
use super::seen::{Confidence, Estimate, Keyed, Seen, View};
use super::settings::{Protocol, Settings, Software};
use crate::curves::{quantile, response_times};
use crate::report::{Picture, Report, Rule, Table, Unit};

/// Estimates of HTTP/1.1 that have both packets right, at least.
const RIGHT_HTTP1: f64 = 0.995;
/// The same of `likely` estimates where a connection carries one request at a time.
const RIGHT_ALONE: f64 = 0.98;
/// The same where it carries several, and of QUIC, where no records are seen.
const RIGHT_SEVERAL: f64 = 0.95;
/// Error of the median estimate, as a part of the time that the client's clock says, at most.
const MEDIAN: f64 = 0.005;
/// The same of the 99th percentile.
const P99: f64 = 0.02;
/// The median by acknowledgments alone.
const MEDIAN_ONE_WAY: f64 = 0.02;
/// Responses that acknowledgments can time, seconds.
const LONG_S: f64 = 0.05;
/// The log of nginx has milliseconds.
const LOG_S: f64 = 1.5e-3;

/// All of it.
pub(super) fn report(settings: &Settings, parts: &[Part<Vec<Seen>>]) -> Report {
    let mut report = Report::default();
    lines(settings, &mut report);
    for part in parts {
        report.tables.push(counts(part));
        for (what, has_several) in [("one at a time", false), ("several at a time", true)] {
            let seen: Vec<&Seen> = part
                .found
                .iter()
                .filter(|seen| seen.client.has_several == has_several)
                .collect();
            if seen.is_empty() {
                continue;
            }
            let rules = Rules {
                http: settings.http,
                is_clean: part.harm.loss == 0.0,
                has_several,
            };
            let what = match settings.http {
                Protocol::Http1 => String::new(),
                _ => format!(", {what}"),
            };
            let title = |place: &str| format!("{} line{what}: {place}", part.name);
            report
                .tables
                .push(classes(&title("estimates at the clients"), &seen, rules));
            let (table, is_judged) = errors(&title("errors of response times"), &seen, rules);
            report.tables.push(table);
            if !is_judged {
                let busy = format!(
                    "NOT JUDGED, {} line: a client's clock itself is further from its packets than an estimate may \
                     be from the clock, as on a machine that does other things too.",
                    part.name
                );
                report.notes.push(busy);
            }
            report
                .tables
                .push(log(&title("beside the server's log"), &seen, rules));
            if settings.http != Protocol::Http3 {
                report.tables.push(one_way(
                    &title("by what the clients send alone"),
                    &seen,
                    rules,
                ));
            }
        }
        report.pictures.push(picture(part));
    }
    report.notes.dedup();
    report.notes.push(format!(
        "right: the packets of request and response are those that the keys give. Several at a time: {STREAMS} requests on a \
         connection. Errors are parts of the true time."
    ));
    report
}

/// The server and both lines.
pub(super) fn lines(settings: &Settings, report: &mut Report) {
    let server = match settings.server {
        Software::Nginx => "nginx",
        Software::Caddy => "Caddy",
    };
    report.fact("server", server);
    report.fact("line", format!("{:?} in each direction", settings.latency));
    report.fact(
        "lossy line",
        format!(
            "the same, {} % lost, {} % {:?} later",
            settings.loss * 100.0,
            settings.reorder * 100.0,
            settings.delay
        ),
    );
}

/// What a row may be.
#[derive(Debug, Clone, Copy)]
struct Rules {
    http: Protocol,
    is_clean: bool,
    has_several: bool,
}

impl Rules {
    /// A goal that holds where nothing is lost and a connection carries one request at a time.
    const fn quiet(self, rule: Rule) -> Rule {
        match self.is_clean && !self.has_several {
            true => rule,
            false => Rule::Shown,
        }
    }
}

/// A figure of each client.
fn cells(seen: &[&Seen], figure: impl Fn(&Seen) -> Option<f64>) -> Vec<Option<f64>> {
    seen.iter().map(|seen| figure(seen)).collect()
}

fn names(seen: &[&Seen]) -> Vec<&'static str> {
    seen.iter().map(|seen| seen.client.name).collect()
}

fn counts(part: &Part<Vec<Seen>>) -> Table {
    let title = format!("{} line: transactions", part.name);
    let mut table = Table::new(&title, &["client", "log", "keys"]);
    for seen in &part.found {
        let named = seen.near.keyed.iter().filter(|keyed| keyed.clock.is_some());
        let cells = [seen.clock, seen.logged, named.count()];
        let cells = cells.map(|count| u64::try_from(count).ok());
        table.count(seen.client.name, Rule::Same, &cells);
    }
    table
}

/// How many estimates there are of which confidence, and how many of them are right.
fn classes(title: &str, seen: &[&Seen], rules: Rules) -> Table {
    let mut table = Table::new(title, &names(seen));
    let count = |seen: &Seen| Some(seen.near.keyed.len() as f64);
    table.show("transactions by the keys", Unit::Count, &cells(seen, count));
    let found = |seen: &Seen| {
        let found = seen.near.keyed.iter().filter(|keyed| keyed.is_estimated);
        part(found.count(), seen.near.keyed.len())
    };
    table.show(
        "  their requests estimated",
        Unit::Part,
        &cells(seen, found),
    );
    for (name, confidence) in [
        ("exact", Confidence::Exact),
        ("likely", Confidence::Likely),
        ("cannot_tell", Confidence::CannotTell),
    ] {
        let of = |seen: &Seen| {
            let of = seen.near.of(confidence);
            part(of.count(), seen.near.estimates.len())
        };
        table.show(&format!("  {name}"), Unit::Part, &cells(seen, of));
    }
    let right = |confidence| {
        move |seen: &Seen| {
            let of = seen.near.of(confidence);
            part(
                of.filter(|one| one.is_right()).count(),
                seen.near.of(confidence).count(),
            )
        }
    };
    let (exact, likely) = match (rules.http, rules.has_several) {
        (Protocol::Http1, _) => (Rule::AtLeast(RIGHT_HTTP1), Rule::Shown),
        (Protocol::Http2, false) => (Rule::Shown, Rule::AtLeast(RIGHT_ALONE)),
        // What is lost in QUIC nobody sees.
        (Protocol::Http3, _) if !rules.is_clean => (Rule::Shown, Rule::Shown),
        _ => (Rule::Shown, Rule::AtLeast(RIGHT_SEVERAL)),
    };
    let rights = cells(seen, right(Confidence::Likely));
    // Where nothing is called likely there is nothing to judge.
    let likely = match rights.iter().any(Option::is_some) {
        true => likely,
        false => Rule::Shown,
    };
    if rules.http == Protocol::Http1 {
        table.row(
            "right, of exact",
            Unit::Part,
            exact,
            &cells(seen, right(Confidence::Exact)),
        );
    }
    table.row("right, of likely", Unit::Part, likely, &rights);
    if rules.http == Protocol::Http1 {
        let rights = |seen: &Seen| {
            seen.near
                .estimates
                .iter()
                .filter(|one| one.is_right())
                .count()
        };
        let all = |seen: &Seen| part(rights(seen), seen.near.keyed.len());
        table.show("right, of all transactions", Unit::Part, &cells(seen, all));
        // Of few transactions of a client a single one would be more than the goal leaves.
        let count = seen.iter().map(|seen| seen.near.keyed.len()).sum();
        let together = part(seen.iter().map(|seen| rights(seen)).sum(), count);
        let mut figures = vec![None; seen.len()];
        if let Some(first) = figures.first_mut() {
            *first = together;
        }
        let rule = rules.quiet(Rule::AtLeast(RIGHT_HTTP1));
        table.row("  of all clients together", Unit::Part, rule, &figures);
    }
    let invented = |seen: &Seen| {
        let invented = seen.near.estimates.iter().filter(|one| one.truth.is_none());
        part(invented.count(), seen.near.estimates.len())
    };
    table.show(
        "no request in that packet",
        Unit::Part,
        &cells(seen, invented),
    );
    table
}

/// Errors of estimates with a time, beside the client's clock and beside the keys. A clock that differs more from the
/// packets of its own requests than an estimate may cannot judge: the client waited for a core.
fn errors(title: &str, seen: &[&Seen], rules: Rules) -> (Table, bool) {
    let mut table = Table::new(title, &names(seen));
    let first_of = |keyed: &Keyed| Some(keyed.clock?.first_ns? as f64 / 1e9);
    let first = |one: &Estimate, keyed: &Keyed| part_of(one.took_s?, first_of(keyed)?);
    let keys = |one: &Estimate, keyed: &Keyed| part_of(one.took_s?, keyed.took_s);
    let control = |one: &Estimate, keyed: &Keyed| {
        one.took_s?;
        part_of(keyed.took_s, first_of(keyed)?)
    };
    let last = |one: &Estimate, keyed: &Keyed| {
        one.took_s?;
        part_of(one.last_s?, keyed.clock?.last_ns as f64 / 1e9)
    };
    let mut is_judged = true;
    for (name, q, limit) in [("median", 0.5, MEDIAN), ("99 %", 0.99, P99)] {
        let clock = cells(seen, |seen| seen.near.quantile(q, &control));
        let is_fair = clock.iter().flatten().all(|error| *error <= limit);
        let goal = rules.quiet(Rule::AtMost(limit));
        is_judged &= is_fair || goal == Rule::Shown;
        let beside_clock = if is_fair { goal } else { Rule::Shown };
        let mut row = |what: &str, rule, figures: &[Option<f64>]| {
            if figures.iter().any(Option::is_some) {
                table.row(&format!("{what}, {name}"), Unit::Part, rule, figures);
            }
        };
        row(
            "estimate beside the clock",
            beside_clock,
            &cells(seen, |seen| seen.near.quantile(q, &first)),
        );
        row("packets beside the clock", Rule::Shown, &clock);
        row(
            "estimate beside the keys",
            goal,
            &cells(seen, |seen| seen.near.quantile(q, &keys)),
        );
        row(
            "last byte beside the clock",
            Rule::Shown,
            &cells(seen, |seen| seen.near.quantile(q, &last)),
        );
    }
    (table, is_judged)
}

/// How far a time is from a true one, as a part of that.
fn part_of(time: f64, truth: f64) -> Option<f64> {
    (truth > 0.0).then(|| ((time - truth) / truth).abs())
}

/// Estimates in front of the server beside its log, and the server's time as it is seen at the clients.
fn log(title: &str, seen: &[&Seen], rules: Rules) -> Table {
    let mut table = Table::new(title, &names(seen));
    let logged = |_: &Estimate, keyed: &Keyed| Some(keyed.visit?.took_s);
    let figures = cells(seen, |seen| seen.far.quantile(0.5, &logged));
    table.show("log, median", Unit::Seconds, &figures);
    let last = |one: &Estimate, keyed: &Keyed| {
        one.took_s?;
        Some((one.took_s? - keyed.visit?.took_s).abs())
    };
    let rule = rules.quiet(Rule::AtMost(LOG_S));
    let figures = cells(seen, |seen| seen.far.quantile(0.5, &last));
    table.row(
        "response time at the server, median difference",
        Unit::Seconds,
        rule,
        &figures,
    );
    let server = |one: &Estimate, keyed: &Keyed| {
        one.took_s?;
        Some((one.server_s? - keyed.visit?.took_s).abs())
    };
    let figures = cells(seen, |seen| seen.near.quantile(0.5, &server));
    table.show(
        "server time at the clients, median difference",
        Unit::Seconds,
        &figures,
    );
    table
}

/// Estimates by acknowledgments, of responses of some length.
fn one_way(title: &str, seen: &[&Seen], rules: Rules) -> Table {
    let mut table = Table::new(title, &names(seen));
    let timed = |seen: &Seen| {
        let timed = seen
            .one_way
            .estimates
            .iter()
            .filter(|one| one.took_s.is_some() && one.truth.is_some());
        part(timed.count(), seen.one_way.keyed.len())
    };
    table.show(
        "transactions with a response time",
        Unit::Part,
        &cells(seen, timed),
    );
    let error = |one: &Estimate, keyed: &Keyed| {
        let took = one.took_s?;
        (keyed.took_s >= LONG_S).then(|| ((took - keyed.took_s) / keyed.took_s).abs())
    };
    for (name, q, rule) in [
        (
            "median error, of 50 ms and more",
            0.5,
            Rule::AtMost(MEDIAN_ONE_WAY),
        ),
        ("99 %", 0.99, Rule::Shown),
    ] {
        let rule = rules.quiet(rule);
        let figures = cells(seen, |seen| seen.one_way.quantile(q, &error));
        table.row(name, Unit::Part, rule, &figures);
    }
    table
}

/// Response times of all clients of a line with one request at a time, as each observer has them.
fn picture(part: &Part<Vec<Seen>>) -> Picture {
    let seen = || part.found.iter().filter(|seen| !seen.client.has_several);
    let keyed = || seen().flat_map(|seen| &seen.near.keyed);
    let clock = keyed().filter_map(|keyed| Some(keyed.clock?.first_ns? as f64 / 1e9));
    let keys = keyed().map(|keyed| keyed.took_s);
    let estimates = seen()
        .flat_map(|seen| &seen.near.estimates)
        .filter_map(|one| one.took_s);
    let observers = vec![
        ("client's clock", clock.collect()),
        ("with keys", keys.collect()),
        ("estimated", estimates.collect()),
    ];
    response_times(format!("Response time, {} line", part.name), observers)
}

/// A figure of an estimate and the transaction that it is of.
type Figure<'a> = dyn Fn(&Estimate, &Keyed) -> Option<f64> + 'a;

impl View {
    fn of(&self, confidence: Confidence) -> impl Iterator<Item = &Estimate> {
        self.estimates
            .iter()
            .filter(move |one| one.confidence == confidence)
    }

    fn quantile(&self, q: f64, figure: &Figure<'_>) -> Option<f64> {
        let figures = self
            .estimates
            .iter()
            .filter_map(|one| figure(one, one.truth.as_ref()?));
        let mut figures: Vec<f64> = figures.collect();
        figures.sort_by(f64::total_cmp);
        quantile(&figures, q)
    }
}

fn part(count: usize, of: usize) -> Option<f64> {
    (of > 0).then(|| count as f64 / of as f64)
}
