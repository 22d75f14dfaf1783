//! What three of the observers have counted: the server's kernel, `linkweir flows` and the line.

use std::collections::BTreeMap;

use linkweir_testkit::gateway::Place;
use serde::Deserialize;

use crate::error::LabError;
use crate::program::{self, Ended};
use crate::testbed::Testbed;

/// What the server's kernel counts. Source: RFC 4022; the others are Linux's (`snmp_counter.rst`).
pub(super) const COUNTERS: [&str; 5] = [
    "TcpInSegs",
    "TcpOutSegs",
    "TcpRetransSegs",
    "TcpExtTCPSynRetrans",
    "TcpExtTCPFastRetrans",
];

/// The counters of the server's kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::traffic) struct Server(pub(super) BTreeMap<&'static str, u64>);

impl Server {
    /// As they stand. A counter that the kernel does not have is an error: nobody else counts it.
    pub(in crate::traffic) fn read(testbed: &Testbed<'_>) -> Result<Self, LabError> {
        let read = |name: &'static str| {
            let count = testbed.net.counter(Place::Server, name);
            let missing = || LabError::program("the server's kernel", format!("no counter {name}"));
            Ok((name, count.ok_or_else(missing)?))
        };
        COUNTERS
            .into_iter()
            .map(read)
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// What was counted between an earlier reading and this one.
    pub(in crate::traffic) fn since(&self, earlier: &Self) -> Self {
        let counts = self.0.keys().map(|name| {
            let count = self.count(name) - earlier.count(name);
            (*name, count)
        });
        Self(counts.collect())
    }

    pub(super) fn count(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(0)
    }

    /// Segments that it sent. `OutSegs` leaves out what is sent again, but for SYN-ACKs, which both
    /// count (`tcp_rtx_synack` in `net/ipv4/tcp_output.c`).
    pub(super) fn sent(&self) -> u64 {
        self.count("TcpOutSegs") + self.sent_again() - self.count("TcpExtTCPSynRetrans")
    }

    pub(super) fn sent_again(&self) -> u64 {
        self.count("TcpRetransSegs")
    }

    /// Sent again when a timer had run out: that of a retransmission, or of a loss probe. All of a
    /// recovery that acknowledgments began is counted as fast (`tcp_xmit_retransmit_queue`).
    pub(super) fn by_timer(&self) -> u64 {
        let others = self.count("TcpExtTCPSynRetrans") + self.count("TcpExtTCPFastRetrans");
        self.sent_again().saturating_sub(others)
    }
}

/// Fields of `tcp_flow` that count segments, and their sums.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub(in crate::traffic) struct Flows {
    pub(super) c_pkts_all: u64,
    pub(super) c_pkts_data: u64,
    pub(super) c_bytes_all: u64,
    pub(super) c_pkts_retx: u64,
    pub(super) c_syn_cnt: u64,
    pub(super) s_pkts_all: u64,
    pub(super) s_pkts_data: u64,
    pub(super) s_bytes_all: u64,
    pub(super) s_pkts_retx: u64,
    pub(super) s_syn_retx: u64,
    pub(super) s_pkts_fs: u64,
    pub(super) s_pkts_unfs: u64,
    pub(super) s_pkts_rto: u64,
    pub(super) s_pkts_unrto: u64,
    pub(super) s_pkts_tlp: u64,
}

impl Flows {
    /// Those of all records.
    pub(in crate::traffic) fn read(testbed: &Testbed<'_>) -> Result<Self, LabError> {
        let mut sums = Self::default();
        program::each(&testbed.path("flows.jsonl"), |flow| sums.add(&flow))?;
        Ok(sums)
    }

    const fn add(&mut self, flow: &Self) {
        self.c_pkts_all += flow.c_pkts_all;
        self.c_pkts_data += flow.c_pkts_data;
        self.c_bytes_all += flow.c_bytes_all;
        self.c_pkts_retx += flow.c_pkts_retx;
        self.c_syn_cnt += flow.c_syn_cnt;
        self.s_pkts_all += flow.s_pkts_all;
        self.s_pkts_data += flow.s_pkts_data;
        self.s_bytes_all += flow.s_bytes_all;
        self.s_pkts_retx += flow.s_pkts_retx;
        self.s_syn_retx += flow.s_syn_retx;
        self.s_pkts_fs += flow.s_pkts_fs;
        self.s_pkts_unfs += flow.s_pkts_unfs;
        self.s_pkts_rto += flow.s_pkts_rto;
        self.s_pkts_unrto += flow.s_pkts_unrto;
        self.s_pkts_tlp += flow.s_pkts_tlp;
    }
}

/// One direction of a line, in its summary. What is not there is `None`, and never a count of zero.
pub(super) struct Way<'a> {
    line: &'a Ended,
    name: &'static str,
}

impl<'a> Way<'a> {
    pub(super) const fn of(line: &'a Ended, name: &'static str) -> Self {
        Self { line, name }
    }

    fn get(&self, way: &str) -> Option<u64> {
        let way = format!("/line/{}/{way}", self.name);
        self.line.summary.pointer(&way)?.as_u64()
    }

    /// Segments of a kind that were received, lost or late.
    pub(super) fn one(&self, what: &str, kind: &str) -> Option<u64> {
        self.get(&format!("{what}/{kind}"))
    }

    /// Those of all kinds.
    pub(super) fn all(&self, what: &str) -> Option<u64> {
        let kinds = ["syn", "data", "fin", "ack", "rst"];
        kinds.iter().map(|kind| self.one(what, kind)).sum()
    }

    /// Those of a kind that were not lost.
    pub(super) fn kept(&self, kind: &str) -> Option<u64> {
        self.one("segments", kind)?
            .checked_sub(self.one("lost", kind)?)
    }

    /// All that were not lost.
    pub(super) fn left(&self) -> Option<u64> {
        self.all("segments")?.checked_sub(self.all("lost")?)
    }

    /// Those lost that have a place in the sequence, so that they have to be sent again.
    pub(super) fn lost_in_sequence(&self) -> Option<u64> {
        let kinds = ["syn", "data", "fin"];
        kinds.iter().map(|kind| self.one("lost", kind)).sum()
    }

    pub(super) fn payload(&self) -> Option<u64> {
        self.get("payload_bytes")
    }

    pub(super) fn payload_left(&self) -> Option<u64> {
        self.payload()?.checked_sub(self.get("lost_bytes")?)
    }
}
