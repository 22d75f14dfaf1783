//! Events of a gateway as the content of intervals.
//!
//! Cost: two map look-ups by short names, up to four table look-ups and the texts of one line for the
//! list of the last events, for each event; nothing for a packet.

use std::collections::BTreeMap;

use linkweir_record::GatewayKind;
use linkweir_record::gateway::{GatewayEvent, GatewayEventKind};
use linkweir_sketch::{BoundedCounts, LogLinear, Payload, TopEntry, TopK};
use serde_json::Value;

use crate::alert::{GatewayNumbers, Rule, RuleError, Scope, is_refusal};
use crate::api::{
    GatewayBy, GatewayFigures, GatewayLine, GatewayOf, GatewaySort, GatewayTopRow, Percentiles,
    Tick, Totals,
};
use crate::buckets::Buckets;
use crate::gateway::GatewayStatus;
use crate::gateway_line::line;
use crate::gateway_metrics::{self, SIZE_BOUNDS};
use crate::kind::{Clock, Column, Kind};
use crate::metrics::Exposition;
use crate::part::{ADDRESS_BYTES, address_text, octets};
use crate::scopes::{is_application, is_same};
use crate::text::clean;

/// Applications and rules with counters of their own, each.
const MAX_NAMES: usize = 64;
/// Longest name of an application that is told from others in a table.
const APPLICATION_BYTES: usize = 32;
/// Longest name of a file that is told from others.
const FILE_BYTES: usize = 128;
/// Longest finding, with its kind, that is told from others.
const FINDING_BYTES: usize = 96;

/// Counts of an interval, or of a run.
#[derive(Debug)]
pub struct GatewayCounts {
    all: GatewayNumbers,
    applications: BoundedCounts,
    rules: BoundedCounts,
}

impl Default for GatewayCounts {
    fn default() -> Self {
        Self {
            all: GatewayNumbers::default(),
            applications: BoundedCounts::new(MAX_NAMES),
            rules: BoundedCounts::new(MAX_NAMES),
        }
    }
}

/// What is kept with a key.
#[derive(Debug, Clone, Default)]
pub struct GatewayKeyed {
    connections: u64,
    refused: u64,
    blocked: u64,
    found: u64,
    infected: u64,
    messages: u64,
    files: u64,
    bytes: u64,
}

impl Payload for GatewayKeyed {
    fn merge(&mut self, other: &Self) {
        self.connections += other.connections;
        self.refused += other.refused;
        self.blocked += other.blocked;
        self.found += other.found;
        self.infected += other.infected;
        self.messages += other.messages;
        self.files += other.files;
        self.bytes = self.bytes.saturating_add(other.bytes);
    }

    fn reset(&mut self) {
        *self = Self::default();
    }
}

impl GatewayKeyed {
    fn record(&mut self, event: &GatewayEvent<'_>) {
        match event.row.event {
            GatewayEventKind::Decided => {
                self.connections += 1;
                self.refused += u64::from(is_refusal(event));
            }
            GatewayEventKind::Blocked => self.blocked += 1,
            GatewayEventKind::Keyword | GatewayEventKind::FileName => self.found += 1,
            GatewayEventKind::Infected => {
                self.found += 1;
                self.infected += 1;
            }
            GatewayEventKind::Message => self.messages += 1,
            GatewayEventKind::File => self.files += 1,
            GatewayEventKind::Unscanned
            | GatewayEventKind::Limit
            | GatewayEventKind::Malformed
            | GatewayEventKind::Unseen => {}
        }
        self.bytes = self.bytes.saturating_add(event.row.size.unwrap_or(0));
    }
}

/// What `/metrics` has of the whole run only.
#[derive(Debug, Clone, Default)]
pub struct GatewaySeries {
    /// Sizes of files, bytes.
    pub(super) file_sizes: Buckets<{ SIZE_BOUNDS.len() }>,
}

/// Texts of the event at hand.
#[derive(Debug, Default)]
pub struct GatewayScratch {
    /// Kind and text of what was found; empty where nothing was.
    finding: Vec<u8>,
}

/// The application of an event, which has one or is of none that is known; empty where it is about no connection.
pub(super) const fn application<'a>(event: &GatewayEvent<'a>) -> &'a [u8] {
    if event.text.application.is_empty() && event.row.event.has_connection() {
        b"unknown"
    } else {
        event.text.application
    }
}

/// What an event found: the word in front of it in a table.
const fn finding(event: GatewayEventKind) -> Option<&'static [u8]> {
    match event {
        GatewayEventKind::Keyword => Some(b"keyword: "),
        GatewayEventKind::FileName => Some(b"name: "),
        GatewayEventKind::Infected => Some(b"virus: "),
        _ => None,
    }
}

fn named(counts: &BoundedCounts) -> BTreeMap<String, u64> {
    let mut names = BTreeMap::new();
    for (name, count) in counts.iter() {
        *names.entry(clean(name)).or_insert(0) += count;
    }
    if counts.other() > 0 {
        *names.entry("other".to_owned()).or_insert(0) += counts.other();
    }
    names
}

impl Kind for GatewayKind {
    const SUBJECT: &'static str = "gateway";
    const HAS_STATUS: bool = true;
    type Figures = GatewayFigures;
    type Numbers = GatewayNumbers;
    type Counts = GatewayCounts;
    type Keyed = GatewayKeyed;
    type Series = GatewaySeries;
    type Scratch = GatewayScratch;
    type By = GatewayBy;
    type Sort = GatewaySort;
    type Of = GatewayOf;
    type Row = GatewayTopRow;
    type Status = GatewayStatus;
    type Event = GatewayLine;

    fn rule(text: &str) -> Result<Rule, RuleError> {
        Rule::of_gateway(text)
    }

    /// Events come moments after they happened: one that is older than every open interval counts in
    /// the oldest.
    fn time(view: &GatewayEvent<'_>, clock: Clock) -> u64 {
        view.row.ts_ns.max(clock.open_from)
    }

    fn count(
        view: &GatewayEvent<'_>,
        counts: &mut GatewayCounts,
        series: &mut GatewaySeries,
        scratch: &mut GatewayScratch,
    ) {
        counts.all.count(view);
        if view.row.event.has_connection() {
            counts.applications.record(application(view));
        }
        if !view.text.rule.is_empty() {
            counts.rules.record(view.text.rule);
        }
        if let (GatewayEventKind::File, Some(size)) = (view.row.event, view.row.size) {
            series.file_sizes.record(&SIZE_BOUNDS, size);
        }
        scratch.finding.clear();
        if let Some(kind) = finding(view.row.event) {
            scratch.finding.extend_from_slice(kind);
            scratch.finding.extend_from_slice(view.text.detail);
        }
    }

    fn is_in(view: &GatewayEvent<'_>, scope: &Scope, _scratch: &GatewayScratch) -> bool {
        let row = view.row;
        match scope {
            Scope::Run => true,
            Scope::Application(name) => is_application(application(view), name),
            Scope::Client(address) => is_same(row.client_ip, *address),
            Scope::Server(address, port) => {
                port.is_none_or(|port| port == row.server_port) && is_same(row.server_ip, *address)
            }
            Scope::Host(_) | Scope::Url(_) | Scope::Name(_) => false,
        }
    }

    fn count_in(view: &GatewayEvent<'_>, _scratch: &GatewayScratch, numbers: &mut GatewayNumbers) {
        numbers.count(view);
    }

    fn has_keys(view: &GatewayEvent<'_>) -> bool {
        view.row.event.has_connection()
    }

    fn count_keys(
        view: &GatewayEvent<'_>,
        tables: &mut [TopK<GatewayKeyed>],
        scratch: &GatewayScratch,
    ) {
        let [applications, clients, files, findings] = tables else {
            return;
        };
        // What an event does not have is no key: most have neither a file nor a finding.
        let given = |key: &'_ [u8]| !key.is_empty();
        let file = view.text.file_name;
        for keyed in [
            applications.record(application(view)),
            clients.record(&octets(view.row.client_ip)),
            given(file).then(|| files.record(file)).flatten(),
            given(&scratch.finding)
                .then(|| findings.record(&scratch.finding))
                .flatten(),
        ]
        .into_iter()
        .flatten()
        {
            keyed.record(view);
        }
    }

    fn event(view: &GatewayEvent<'_>) -> Option<GatewayLine> {
        Some(line(view))
    }

    /// Every connection is decided.
    fn is_routine(event: &GatewayLine) -> bool {
        event.event == GatewayEventKind::Decided.as_str()
    }

    fn merge(mine: &mut GatewayCounts, theirs: &GatewayCounts) {
        mine.all.merge(&theirs.all);
        mine.applications.merge(&theirs.applications);
        mine.rules.merge(&theirs.rules);
    }

    fn all(counts: &GatewayCounts) -> &GatewayNumbers {
        &counts.all
    }

    fn distribution(counts: &GatewayCounts, of: GatewayOf) -> &LogLinear {
        match of {
            GatewayOf::FileSize => &counts.all.file_size,
        }
    }

    fn figures(counts: &GatewayCounts) -> GatewayFigures {
        let all = &counts.all;
        GatewayFigures {
            events: all.events(),
            kinds: GatewayEventKind::ALL
                .iter()
                .zip(&all.kinds)
                .filter(|(_, count)| **count > 0)
                .map(|(kind, count)| (kind.as_str(), *count))
                .collect(),
            applications: named(&counts.applications),
            rules: named(&counts.rules),
            refused: all.refused,
            blocked: all.kind(GatewayEventKind::Blocked),
            transferred_bytes: all.transferred_bytes,
            file_size: crate::interval::percentiles(&all.file_size),
        }
    }

    fn add(mine: &mut GatewayFigures, theirs: GatewayFigures) {
        mine.events += theirs.events;
        for (kind, count) in theirs.kinds {
            *mine.kinds.entry(kind).or_default() += count;
        }
        // Names are of the configuration, but nothing here grows with it over a long run.
        for (mine, theirs) in [
            (&mut mine.applications, theirs.applications),
            (&mut mine.rules, theirs.rules),
        ] {
            for (name, count) in theirs {
                let is_known = mine.len() < MAX_NAMES || mine.contains_key(&name);
                let name = if is_known { name } else { "other".to_owned() };
                *mine.entry(name).or_default() += count;
            }
        }
        mine.refused += theirs.refused;
        mine.blocked += theirs.blocked;
        mine.transferred_bytes = mine
            .transferred_bytes
            .saturating_add(theirs.transferred_bytes);
    }

    fn put(figures: &mut GatewayFigures, of: GatewayOf, percentiles: Option<Percentiles>) {
        match of {
            GatewayOf::FileSize => figures.file_size = percentiles,
        }
    }

    fn key_bytes(by: GatewayBy) -> usize {
        match by {
            GatewayBy::Application => APPLICATION_BYTES,
            GatewayBy::Client => ADDRESS_BYTES,
            GatewayBy::File => FILE_BYTES,
            GatewayBy::Finding => FINDING_BYTES,
        }
    }

    fn rank(entry: &TopEntry<'_, GatewayKeyed>, sort: GatewaySort) -> u64 {
        let keyed = entry.payload;
        match sort {
            GatewaySort::Events => entry.count,
            GatewaySort::Stopped => keyed.refused + keyed.blocked,
            GatewaySort::Found => keyed.found,
            GatewaySort::Files => keyed.files,
            GatewaySort::Bytes => keyed.bytes,
        }
    }

    fn row(by: GatewayBy, entry: &TopEntry<'_, GatewayKeyed>) -> GatewayTopRow {
        let keyed = entry.payload;
        let mut key = match by {
            GatewayBy::Client => address_text(entry.key),
            GatewayBy::Application | GatewayBy::File | GatewayBy::Finding => clean(entry.key),
        };
        if entry.is_truncated {
            key.push_str("...");
        }
        GatewayTopRow {
            key,
            events: entry.count,
            connections: keyed.connections,
            refused: keyed.refused,
            blocked: keyed.blocked,
            found: keyed.found,
            infected: keyed.infected,
            messages: keyed.messages,
            files: keyed.files,
            bytes: keyed.bytes,
        }
    }

    fn columns(tick: &Tick<GatewayFigures>) -> (Vec<Column>, Vec<(String, Value)>) {
        let figures = &tick.figures;
        let mut columns: Vec<Column> = vec![("events", figures.events.into())];
        let kinds = GatewayEventKind::ALL.iter();
        columns.extend(kinds.map(|kind| (kind.as_str(), figures.kind(kind.as_str()).into())));
        let size = figures.file_size;
        columns.extend([
            ("refused", figures.refused.into()),
            ("transferred_bytes", figures.transferred_bytes.into()),
            ("file_size_count", size.map_or(0, |size| size.count).into()),
            ("file_size_p50", size.map(|size| size.p50).into()),
            ("file_size_p95", size.map(|size| size.p95).into()),
            ("file_size_p99", size.map(|size| size.p99).into()),
        ]);
        let applications = figures.applications.iter();
        let applications = applications
            .map(|(name, count)| (format!("events_application_{name}"), (*count).into()));
        let rules = figures.rules.iter();
        let rules = rules.map(|(name, count)| (format!("events_rule_{name}"), (*count).into()));
        (columns, applications.chain(rules).collect())
    }

    fn table_name(by: GatewayBy) -> &'static str {
        match by {
            GatewayBy::Application => "applications",
            GatewayBy::Client => "clients",
            GatewayBy::File => "files",
            GatewayBy::Finding => "findings",
        }
    }

    fn row_columns() -> &'static [&'static str] {
        &[
            "key",
            "events",
            "connections",
            "refused",
            "blocked",
            "found",
            "infected",
            "messages",
            "files",
            "bytes",
        ]
    }

    fn expose(out: &mut Exposition, totals: &Totals<GatewayFigures>, series: &GatewaySeries) {
        gateway_metrics::events(out, totals, series);
    }

    fn expose_status(out: &mut Exposition, status: &GatewayStatus) {
        gateway_metrics::status(out, status);
    }
}
