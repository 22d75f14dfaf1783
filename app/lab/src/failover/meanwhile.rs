//! What passed while there was no gateway, and what of that should not have.

use std::collections::BTreeSet;

use super::judged::{Carried, Observations, count};
use super::part::Fail;
use super::records::{Ends, Flow, Session};
use crate::report::{Rule, Table};

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
        let began = began.filter(|moment| outage.covers(*moment)).count();
        table.count(
            "connections that began behind it",
            rule,
            &[None, None, count(began)],
        );
        let of_guests = self.transactions.iter().filter(|one| {
            let is_during = one
                .request_ts_ns
                .is_some_and(|moment| outage.covers(moment));
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
            .map(|event| (event.client_ip, event.client_port))
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
            Rule::AtMost(0.0),
            &[None, None, None, count(arrived)],
        );
    }
}
