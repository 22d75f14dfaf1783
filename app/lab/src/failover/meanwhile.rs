//! What passed while there was no gateway, and what of that should not have.
//!
//! The connections that the gateway's kernel knows, and whether somebody has decided about them.

use super::judged::{Carried, Observations, count};
use super::part::{Fail, Part};
use super::records::{Ends, Event, Flow, Session};
use crate::error::LabError;
use crate::report::{Rule, Table};
use crate::testbed::Testbed;
use linkweir_testkit::gateway::Place;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

impl Observations<'_> {
    pub(super) fn meanwhile(&self) -> Table {
        let mut table = Table::new(&self.title("outage"), &["load", "http", "flows"]);
        // What fails open goes on, what fails closed stops.
        let rule = match self.fail {
            Fail::Open => Rule::AtLeast(1.0),
            Fail::Closed => Rule::AtMost(0.0),
        };
        let outage = self.outage;
        let began = self.connections.iter().map(Flow::began);
        let began = began.filter(|timestamp| outage.covers(*timestamp)).count();
        table.count(
            "connections that began behind it",
            rule,
            &[None, None, count(began)],
        );
        let of_guests = self.transactions.iter().filter(|one| {
            let is_during = one
                .request_ts_ns
                .is_some_and(|timestamp| outage.covers(timestamp));
            is_during && self.part.is_guest(one.client_ip)
        });
        table.count(
            "requests of inspected clients behind it",
            rule,
            &[None, count(of_guests.count()), None],
        );
        let complete = |is_guest: bool| {
            let sessions = self.sessions.iter().filter(|one| {
                let is_during = one.is_complete() && outage.covers(one.ended_ts_ns);
                is_during && self.part.is_guest(one.client_ip) == is_guest
            });
            count(sessions.count())
        };
        table.count(
            "sessions of inspected clients completed",
            rule,
            &[complete(true), None, None],
        );
        table.count(
            "sessions of others completed: those that were decided go on",
            Rule::AtLeast(1.0),
            &[complete(false), None, None],
        );
        let is_apart = |one: &&Session| outage.spares(one.planned_ts_ns, one.ended_ts_ns);
        let apart = self.sessions.iter().filter(is_apart);
        let failed = apart.clone().filter(|one| !one.is_complete()).count();
        table.count(
            "sessions failed that were over before, or began after",
            Rule::AtMost(0.0),
            &[count(failed), None, None],
        );
        let later = apart.filter(|one| one.planned_ts_ns > outage.serving && one.is_complete());
        table.count(
            "sessions of inspected clients begun and completed after",
            Rule::AtLeast(1.0),
            &[
                count(
                    later
                        .filter(|one| self.part.is_guest(one.client_ip))
                        .count(),
                ),
                None,
                None,
            ],
        );
        if self.fail == Fail::Open {
            let failed = self.load.sum("load/failed");
            table.count(
                "sessions failed at all",
                Rule::AtMost(0.0),
                &[Some(failed), None, None],
            );
        }
        table
    }

    pub(super) fn planted(&self) -> Table {
        let mut table = Table::new(
            &self.title("planted transfers"),
            &["sent", "stopped", "reported", "arrived"],
        );
        for carried in self.carried {
            self.one_kind(&mut table, carried);
        }
        table
    }

    fn one_kind(&self, table: &mut Table, carried: &Carried) {
        let name = carried.kind.name();
        let told: BTreeSet<Ends> = self
            .events
            .iter()
            .flatten()
            .filter(|event| event.event == carried.kind.event())
            .filter_map(Event::ends)
            .collect();
        let (arrived, stopped): (Vec<&Session>, Vec<&Session>) =
            carried.sessions.iter().partition(|one| one.is_complete());
        let told_of = |sessions: &[&Session]| {
            let told = sessions.iter().filter(|one| told.contains(&one.ends()));
            told.count()
        };
        table.count(
            &format!("{name}: sent; stopped, of these reported; arrived"),
            Rule::Shown,
            &[
                count(carried.sessions.len()),
                count(stopped.len()),
                count(told_of(&stopped)),
                count(arrived.len()),
            ],
        );
        table.count(
            &format!("{name}: reported, and arrived"),
            Rule::AtMost(0.0),
            &[None, None, None, count(told_of(&arrived))],
        );
        let outage = self.outage;
        let is_apart = |one: &&&Session| outage.spares(one.planned_ts_ns, one.ended_ts_ns);
        let untold = stopped.iter().filter(is_apart);
        let untold = untold.filter(|one| !told.contains(&one.ends())).count();
        let lost = (self.settings.planted * super::judged::UNWRITTEN_S).ceil() + 1.0;
        table.count(
            &format!("{name}: stopped by a gateway, and not reported"),
            Rule::AtMost(lost),
            &[None, count(untold), None, None],
        );
        let apart = arrived.iter().filter(is_apart).count();
        let (what, arrived) = match self.fail {
            Fail::Open => ("arrived though a gateway was there", apart),
            Fail::Closed => ("arrived", arrived.len()),
        };
        table.count(
            &format!("{name}: {what}"),
            Rule::AtMost(crate::gateway::unseen(self.gateway)),
            &[None, None, None, count(arrived)],
        );
    }
}

/// How long the kernel remembers a connection that is over, seconds: longer than a part takes.
const MEMORY: u32 = 180;
/// The bits of a mark that the gateway uses: `mark-mask` of its policy.
const MASK: u32 = 0x0fff_0000;

/// Has the kernel remember connections until they are counted.
pub(super) fn remember(testbed: &Testbed<'_>) -> Result<(), LabError> {
    for state in ["close", "close_wait", "last_ack", "time_wait", "fin_wait"] {
        let setting = format!("net.netfilter.nf_conntrack_tcp_timeout_{state}={MEMORY}");
        testbed.set(Place::Gateway, &setting)?;
    }
    Ok(())
}

/// The connections of a part and the gateway's bits of their marks; `None` where the kernel has no such
/// table.
pub(super) fn connections(testbed: &Testbed<'_>, part: Part) -> Option<BTreeMap<Ends, u32>> {
    let table = testbed.net.table("nf_conntrack");
    if table.is_empty() {
        return None;
    }
    let all = table.lines().filter_map(connection);
    Some(all.filter(|((client, _), _)| part.has(*client)).collect())
}

/// A line as `ipv4 2 tcp 6 117 TIME_WAIT src=A dst=B sport=P dport=Q src=.. .. mark=M zone=0 use=2`.
fn connection(line: &str) -> Option<(Ends, u32)> {
    let mut words = line.split_ascii_whitespace();
    words.by_ref().find(|word| *word == "tcp")?;
    let mut value = |key: &str| words.by_ref().find_map(|word| word.strip_prefix(key));
    // The first of each is of the original direction.
    let client: IpAddr = value("src=")?.parse().ok()?;
    let port = value("sport=")?.parse().ok()?;
    let mark: u32 = value("mark=")?.parse().ok()?;
    Some(((client, port), mark & MASK))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read() {
        let line = "ipv4     2 tcp      6 117 TIME_WAIT src=10.40.1.2 dst=10.88.2.2 sport=33001 dport=80 \
                    src=10.88.2.2 dst=10.40.1.2 sport=80 dport=33001 [ASSURED] mark=589825 zone=0 use=2";
        let ends = (IpAddr::from([10, 40, 1, 2]), 33001);
        assert_eq!(connection(line), Some((ends, 0x9_0000)));
        assert_eq!(
            connection("ipv4 2 udp 17 29 src=10.40.1.2 dst=10.88.2.2 mark=0"),
            None
        );
    }
}
