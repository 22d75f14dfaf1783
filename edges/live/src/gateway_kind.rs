//! Events of a gateway as the content of intervals.
//!
//! Cost: two map look-ups by short names, up to four table look-ups and the texts of one line for the
//! list of the last events, for each event; nothing for a packet.

use linkweir_record::GatewayKind;
use linkweir_record::gateway::{GatewayEvent, GatewayEventKind};
use linkweir_sketch::{TopEntry, TopK};

use crate::alert::Scope;
use crate::api::{
    GatewayBy, GatewayCounts, GatewayFigures, GatewayKeyed, GatewayLine, GatewayOf, GatewaySort,
    GatewayTopRow,
};
use crate::exposition::Buckets;
use crate::exposition::Family;
use crate::gateway::GatewayStatus;
use crate::gateway_line::{application, line};
use crate::gateway_metrics::{self, SIZE_BOUNDS};
use crate::kind::{Clock, KeyTable, Kind, Records};
use crate::part::octets;
use crate::scopes::{is_application, is_same};

/// Maximum length of an application name in a table, bytes.
const APPLICATION_BYTES: usize = 32;
/// Maximum length of a file name in a table, bytes.
const FILE_BYTES: usize = 128;
/// Maximum length of a finding with its kind in a table, bytes.
const FINDING_BYTES: usize = 96;

/// Counts an event with a key.
fn count_keyed(keyed: &mut GatewayKeyed, event: &GatewayEvent<'_>) {
    match event.row.event {
        GatewayEventKind::Decided => {
            keyed.connections += 1;
            keyed.refused += u64::from(is_refusal(event));
        }
        GatewayEventKind::Blocked => keyed.blocked += 1,
        GatewayEventKind::Keyword | GatewayEventKind::FileName => keyed.found += 1,
        GatewayEventKind::Infected => {
            keyed.found += 1;
            keyed.infected += 1;
        }
        GatewayEventKind::Message => keyed.messages += 1,
        GatewayEventKind::File => keyed.files += 1,
        GatewayEventKind::Unscanned
        | GatewayEventKind::Limit
        | GatewayEventKind::Malformed
        | GatewayEventKind::Unseen => {}
    }
    keyed.bytes = keyed.bytes.saturating_add(event.row.size.unwrap_or(0));
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

/// Whether an event says that a rule drops or rejects its connection.
fn is_refusal(event: &GatewayEvent<'_>) -> bool {
    event.row.event == GatewayEventKind::Decided && matches!(event.row.action, "drop" | "reject")
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

impl Kind for GatewayKind {
    const SUBJECT: &'static str = "gateway";
    const HAS_STATUS: bool = true;
    const TABLES: &'static [KeyTable] = &[
        KeyTable::of_names("applications", APPLICATION_BYTES),
        KeyTable::of_addresses("clients"),
        KeyTable::of_names("files", FILE_BYTES),
        KeyTable::of_names("findings", FINDING_BYTES),
    ];
    const METRICS: &'static [Family<Records<Self>>] = gateway_metrics::EVENTS;
    const STATUS_METRICS: &'static [Family<GatewayStatus>] = gateway_metrics::STATUS;
    type Figures = GatewayFigures;
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

    /// Events come shortly after they happened: one that is older than every open interval counts in
    /// the oldest.
    fn time(view: &GatewayEvent<'_>, clock: Clock) -> u64 {
        view.row.ts_ns.max(clock.open_from)
    }

    fn prepare(view: &GatewayEvent<'_>, series: &mut GatewaySeries, scratch: &mut GatewayScratch) {
        if let (GatewayEventKind::File, Some(size)) = (view.row.event, view.row.size) {
            series.file_sizes.record(&SIZE_BOUNDS, size);
        }
        scratch.finding.clear();
        if let Some(kind) = finding(view.row.event) {
            scratch.finding.extend_from_slice(kind);
            scratch.finding.extend_from_slice(view.text.detail);
        }
    }

    fn count(view: &GatewayEvent<'_>, _scratch: &GatewayScratch, counts: &mut GatewayCounts) {
        let row = view.row;
        counts.kinds.record_n(row.event, 1);
        if row.event.has_connection() {
            counts.applications.record(application(view));
        }
        if !view.text.rule.is_empty() {
            counts.rules.record(view.text.rule);
        }
        counts.refused += u64::from(is_refusal(view));
        // A file that was only named has no size.
        if let (GatewayEventKind::File, Some(size)) = (row.event, row.size) {
            counts.transferred_bytes = counts.transferred_bytes.saturating_add(size);
            counts.file_size.record(size);
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
            Scope::Host(_) | Scope::Url(_) | Scope::Name(_) | Scope::Where { .. } => false,
        }
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
        // Most events have neither a file nor a finding.
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
            count_keyed(keyed, view);
        }
    }

    fn event(view: &GatewayEvent<'_>) -> Option<GatewayLine> {
        Some(line(view))
    }

    /// Every connection is decided.
    fn is_routine(event: &GatewayLine) -> bool {
        event.event == GatewayEventKind::Decided.as_str()
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
}
