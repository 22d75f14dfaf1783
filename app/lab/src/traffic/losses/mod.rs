//! What was lost, and what was sent again because of it, as each observer knows it.
//!
//! The probe stands between the gateway and the server, the line between the clients and the gateway.
//! So everything that the server sends passes the probe before it can be lost, and what the clients send
//! passes it only if it was not. Most rows are therefore equations and have no tolerance: what goes into
//! the line and is not lost comes out of it, and who sends a segment again either makes up for one that
//! was lost or sends one that arrives twice. Only *why* something was sent again is a conclusion that
//! `flows` draws from the wire, and has one.

mod counted;
#[cfg(test)]
mod tests;

use linkweir_sys::wait::wall_clock_ns;
use linkweir_testkit::gateway::Place;
use linkweir_wire::nanos;
use std::mem;
use std::time::Duration;

use crate::error::LabError;
use crate::program::Ended;
use crate::report::{Rule, Table, Unit};
use crate::testbed::Testbed;
use counted::Way;
pub(super) use counted::{Flows, Server};

/// A conclusion may be wrong in one case of ten, or in three of few.
const WRONG_PART: f64 = 0.1;
const WRONG_FEW: f64 = 3.0;
/// Payload of a segment at most, bytes: what a frame of 1500 carries.
const LONGEST: u64 = 1460;

/// Frames that the machine itself lost between two namespaces, because it had no room for them. They were
/// sent and did not arrive, and no equation holds nearer than this.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Undelivered {
    pub(super) clients: u64,
    pub(super) gateway: u64,
    pub(super) server: u64,
}

impl Undelivered {
    /// Until now, with what was sent before the other ends were up.
    pub(super) fn read(testbed: &Testbed<'_>) -> Self {
        Self {
            clients: testbed.net.undelivered(Place::Client),
            gateway: testbed.net.undelivered(Place::Gateway),
            server: testbed.net.undelivered(Place::Server),
        }
    }

    /// What was lost between an earlier reading and this one.
    pub(super) const fn since(self, earlier: Self) -> Self {
        Self {
            clients: self.clients - earlier.clients,
            gateway: self.gateway - earlier.gateway,
            server: self.server - earlier.server,
        }
    }

    const fn all(self) -> u64 {
        self.clients + self.gateway + self.server
    }
}

/// What was still to be said when the generator was about to end: perhaps nobody hears it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unheard {
    /// What the server's kernel counted from then on.
    pub(super) server: Server,
    /// Connections that it had not seen closed by then. The close of each may have been lost, and is not
    /// sent again.
    pub(super) open: u64,
}

/// The server as it was shortly before the generator ended. When exactly the generator took its last
/// frame nobody can say from outside, and a reading after its end misses what came in between.
#[derive(Debug)]
pub(super) struct Leaving {
    lead: Duration,
    earlier: Unheard,
    latest: Unheard,
    /// Nanoseconds since 1970.
    read_at: u64,
}

impl Leaving {
    /// The reading that is kept will be older than `lead`, and not twice as old.
    pub(super) fn new(testbed: &Testbed<'_>, lead: Duration) -> Result<Self, LabError> {
        let now = Unheard::begin(testbed)?;
        Ok(Self {
            lead,
            earlier: now.clone(),
            latest: now,
            read_at: wall_clock_ns(),
        })
    }

    /// Reads the server again, if the latest reading is old enough.
    pub(super) fn look(&mut self, testbed: &Testbed<'_>) {
        if wall_clock_ns().saturating_sub(self.read_at) < nanos(self.lead) {
            return;
        }
        if let Ok(now) = Unheard::begin(testbed) {
            self.earlier = mem::replace(&mut self.latest, now);
            self.read_at = wall_clock_ns();
        }
    }

    /// The reading before the latest.
    pub(super) fn earlier(self) -> Unheard {
        self.earlier
    }
}

impl Unheard {
    /// As things stand: what was counted until now.
    fn begin(testbed: &Testbed<'_>) -> Result<Self, LabError> {
        let open = testbed.net.open_connections(Place::Server);
        Ok(Self {
            server: Server::read(testbed)?,
            open: u64::try_from(open).unwrap_or(u64::MAX),
        })
    }

    /// What was counted since then.
    pub(super) fn until(self, counted: &Server) -> Self {
        Self {
            server: counted.since(&self.server),
            ..self
        }
    }
}

/// What every observer counted.
pub(super) struct Observations<'a> {
    /// All generators.
    pub(super) loads: Vec<&'a Ended>,
    pub(super) http: &'a Ended,
    pub(super) gateway: &'a Ended,
    pub(super) flows: Flows,
    pub(super) server: Server,
    pub(super) unheard: Unheard,
    pub(super) undelivered: Undelivered,
}

impl Observations<'_> {
    /// The tables that there are with a line and without.
    pub(super) fn tables(&self, line: Option<&Ended>) -> Vec<Table> {
        let mut tables = vec![self.retransmissions()];
        if let Some(line) = line {
            tables.insert(0, self.segments(line));
            tables.push(self.reasons(line));
        }
        tables
    }

    /// Each segment, counted wherever it passes.
    fn segments(&self, line: &Ended) -> Table {
        let names = ["load", "line", "flows", "http", "server"];
        let mut table = Table::new("segments over the line", &names);
        let flows = self.flows;
        let (up, down) = (Way::of(line, "forth"), Way::of(line, "back"));
        let load = |what: &str| Some(self.load(what));
        let http = |what: &str| self.http.count(&format!("http/{what}"));
        let server = |name| Some(self.server.count(name));
        let count = Unit::Count;
        let (same, same_bytes) = (self.same(), but_for(self.undelivered.all() * LONGEST));
        let mut row = |what: &str, unit, rule, cells: [Option<u64>; 5]| {
            // Counts of a run are far below 2^53.
            let cells = cells.map(|cell| cell.map(|n| n as f64));
            table.row(what, unit, rule, &cells);
        };
        let sent = [load("segments_sent"), up.all("segments"), None, None, None];
        row("clients: sent", count, same, sent);
        let shown = |cell| [None, cell, None, None, None];
        row("  lost", count, Rule::Shown, shown(up.all("lost")));
        row("  late", count, Rule::Shown, shown(up.all("late")));
        let came = [
            None,
            up.left(),
            Some(flows.c_pkts_all),
            None,
            server("TcpInSegs"),
        ];
        row("  arrived", count, same, came);
        let syn = [None, up.kept("syn"), Some(flows.c_syn_cnt), None, None];
        row("    with SYN", count, same, syn);
        // A request is a segment.
        let requests = http("requests") + http("retransmitted_requests");
        let data = [
            None,
            up.kept("data"),
            Some(flows.c_pkts_data),
            Some(requests),
            None,
        ];
        row("    with payload", count, same, data);
        let bytes = [None, up.payload_left(), Some(flows.c_bytes_all), None, None];
        row("    payload", Unit::Bytes, same_bytes, bytes);

        let sent = [
            None,
            down.all("segments"),
            Some(flows.s_pkts_all),
            None,
            Some(self.server.sent()),
        ];
        row("server: sent", count, same, sent);
        let data = [
            None,
            down.one("segments", "data"),
            Some(flows.s_pkts_data),
            None,
            None,
        ];
        row("    with payload", count, same, data);
        let bytes = [None, down.payload(), Some(flows.s_bytes_all), None, None];
        row("    payload", Unit::Bytes, same_bytes, bytes);
        row("  lost", count, Rule::Shown, shown(down.all("lost")));
        row("  late", count, Rule::Shown, shown(down.all("late")));
        let came = [load("segments_received"), down.left(), None, None, None];
        let unheard = self.same_but_for(self.unheard.server.sent());
        row("  arrived", count, unheard, came);
        table
    }

    /// What the server sent again all passes the probe.
    fn retransmissions(&self) -> Table {
        let names = ["load", "flows", "http", "gateway", "server"];
        let mut table = Table::new("retransmissions", &names);
        let (flows, server) = (self.flows, &self.server);
        let http = |what: &str| Some(self.http.count(&format!("http/{what}")));
        let both = |seen: u64, sent: u64| [None, Some(seen), None, None, Some(sent)];
        let lost = self.undelivered;
        let cables = [
            Some(lost.clients),
            None,
            None,
            Some(lost.gateway),
            Some(lost.server),
        ];
        table.count("frames the machine had no room for", Rule::Shown, &cables);
        let again = both(flows.s_pkts_retx, server.sent_again());
        table.count("server: sent again", self.same(), &again);
        let syn = both(flows.s_syn_retx, server.count("TcpExtTCPSynRetrans"));
        table.count("  SYN-ACK", self.same(), &syn);
        let fast = both(
            flows.s_pkts_fs + flows.s_pkts_unfs,
            server.count("TcpExtTCPFastRetrans"),
        );
        table.count("  because of acknowledgments", self.concluded(&fast), &fast);
        let timer = both(
            flows.s_pkts_rto + flows.s_pkts_unrto + flows.s_pkts_tlp,
            server.by_timer(),
        );
        table.count("  because of a timer", self.concluded(&timer), &timer);
        // A head is in a segment; of a longer response others may have been sent again too.
        let heads = [
            None,
            Some(flows.s_pkts_retx - flows.s_syn_retx),
            http("retransmitted_responses"),
            None,
            None,
        ];
        table.count("  responses among them", Rule::Falling(0.0), &heads);
        let clients = [
            Some(self.clients_again()),
            Some(flows.c_pkts_retx),
            None,
            None,
            None,
        ];
        // Of what is sent again some is lost again, and some makes up for what never came.
        table.count("clients: sent again", Rule::Falling(0.0), &clients);
        let requests = [
            None,
            Some(flows.c_pkts_retx),
            http("retransmitted_requests"),
            None,
            None,
        ];
        table.count("  requests among them", Rule::Falling(0.0), &requests);
        let gaps = self.gateway.count("gateway/counts/gap");
        let gaps = [None, None, None, Some(gaps), None];
        table.count("gaps that nobody filled", Rule::AtMost(0.0), &gaps);
        table
    }

    /// Whatever is sent again either makes up for a loss or arrives twice.
    fn reasons(&self, line: &Ended) -> Table {
        let names = ["sent again", "lost or twice there"];
        let mut table = Table::new("causes of retransmission", &names);
        let load = |what: &str| self.load(what);
        let (up, down) = (Way::of(line, "forth"), Way::of(line, "back"));
        // After the end of a connection too. What found no room is as good as lost.
        let twice = load("duplicates") + load("time_wait_answers") + load("not_held");
        let server = [
            Some(self.server.sent_again()),
            down.lost_in_sequence().map(|lost| lost + twice),
        ];
        // Of segments that come when nothing is known of their connection any more it is not counted
        // which have a place in the sequence.
        let unheard = self.unheard.server.sent_again() + load("strays");
        let unheard = self.same_but_for(unheard);
        table.count("server", unheard, &server);
        let clients = [
            Some(self.clients_again()),
            up.lost_in_sequence()
                .map(|lost| lost + self.flows.c_pkts_retx),
        ];
        table.count("clients", self.same_but_for(self.unheard.open), &clients);
        table
    }

    /// Nothing, where the machine had room for all frames.
    fn same(&self) -> Rule {
        self.same_but_for(0)
    }

    fn same_but_for(&self, count: u64) -> Rule {
        but_for(self.undelivered.all() + count)
    }

    /// What a conclusion may be wrong in.
    fn concluded(&self, cells: &[Option<u64>]) -> Rule {
        let largest = cells.iter().flatten().max().copied().unwrap_or(0);
        let wrong = (largest as f64 * WRONG_PART).max(WRONG_FEW).round();
        Rule::Within(wrong + self.undelivered.all() as f64)
    }

    fn clients_again(&self) -> u64 {
        self.load("retransmissions") + self.load("syn_retransmissions")
    }

    /// What the generators' TCP counts.
    fn load(&self, what: &str) -> u64 {
        let counts = self.loads.iter();
        counts
            .map(|load| load.count(&format!("load/tcp/{what}")))
            .sum()
    }
}

/// Nothing, but for so many.
fn but_for(count: u64) -> Rule {
    match count {
        0 => Rule::Same,
        count => Rule::Within(count as f64),
    }
}
