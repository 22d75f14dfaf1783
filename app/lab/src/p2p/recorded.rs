//! What the records say, in counts.
//!
//! Those who look at the wire: before the gateway, where all is that the clients sent, and behind it,
//! where only that is what it let pass.

use super::policy::KEYWORD;
use super::rate::{Count, summed};
use crate::error::LabError;
use crate::gateway::EVENTS;
use crate::program::{self, Ended, Program, is_capturing};
use crate::testbed::Testbed;
use linkweir_testkit::gateway::{LAN, Place, WAN};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

/// Fields of `gateway_event`.
#[derive(Debug, Deserialize)]
struct Event {
    event: String,
    client_ip: IpAddr,
    application: Option<String>,
    action: Option<String>,
    sha256: Option<String>,
    message: Option<String>,
}

/// Fields of `tcp_flow` and `udp_flow`.
#[derive(Debug, Deserialize)]
struct Flow {
    c_ip: IpAddr,
    application: String,
    record: String,
    /// Milliseconds since 1970.
    first: Option<f64>,
    c_bytes_uniq: Option<f64>,
    s_bytes_uniq: Option<f64>,
}

/// Fields of `http_transaction`.
#[derive(Debug, Deserialize)]
struct Transaction {
    uri: Option<String>,
}

/// What `linkweir flows` says of one side.
#[derive(Debug, Default)]
pub(super) struct Flows {
    connections: BTreeMap<(String, IpAddr), u64>,
    /// Content from the server by application, in periods.
    periods: BTreeMap<String, Vec<(f64, f64)>>,
}

/// What all records say.
#[derive(Debug, Default)]
pub(super) struct Recorded {
    pub(super) before: Flows,
    pub(super) behind: Flows,
    decided: BTreeMap<(String, IpAddr, String), u64>,
    found: BTreeMap<(String, String), u64>,
    /// The hashes of files that passed, by application.
    pub(super) files: BTreeSet<(String, String)>,
    /// Messages without the keyword.
    pub(super) messages: u64,
    uris: Vec<String>,
}

impl Recorded {
    /// Reads them.
    pub(super) fn read(testbed: &Testbed<'_>) -> Result<Self, LabError> {
        let mut recorded = Self {
            before: Flows::read(testbed, BEFORE)?,
            behind: Flows::read(testbed, BEHIND)?,
            ..Self::default()
        };
        program::each(&testbed.path(EVENTS), |event: Event| recorded.take(event))?;
        program::each(&testbed.path("http.jsonl"), |one: Transaction| {
            recorded.uris.extend(one.uri);
        })?;
        Ok(recorded)
    }

    fn take(&mut self, event: Event) {
        let application = event.application.unwrap_or_default();
        match event.event.as_str() {
            "decided" => {
                let key = (
                    application,
                    event.client_ip,
                    event.action.unwrap_or_default(),
                );
                *self.decided.entry(key).or_default() += 1;
            }
            "file" => {
                let hash = event.sha256.unwrap_or_default();
                self.files.insert((application, hash));
            }
            "message" => {
                let is_secret = event.message.is_some_and(|text| text.contains(KEYWORD));
                self.messages += u64::from(!is_secret);
            }
            other => {
                let key = (other.to_owned(), application);
                *self.found.entry(key).or_default() += 1;
            }
        }
    }

    /// Connections of a client that the gateway decided to be of this application; all clients for
    /// `None`.
    pub(super) fn decided(&self, application: &str, client: Option<IpAddr>) -> u64 {
        let ours = self.decided.iter().filter(|((name, ip, _), _)| {
            name == application && client.is_none_or(|client| client == *ip)
        });
        ours.map(|(_, count)| count).sum()
    }

    /// All connections that it decided.
    pub(super) fn all_decided(&self) -> u64 {
        self.decided.values().sum()
    }

    /// Those of a client with which this was done.
    pub(super) fn done(&self, application: &str, client: IpAddr, action: &str) -> u64 {
        let key = (application.to_owned(), client, action.to_owned());
        self.decided.get(&key).copied().unwrap_or(0)
    }

    /// How often something was found in connections of an application, as `infected`.
    pub(super) fn found(&self, event: &str, application: &str) -> u64 {
        let key = (event.to_owned(), application.to_owned());
        self.found.get(&key).copied().unwrap_or(0)
    }

    /// Requests whose path begins so.
    pub(super) fn requests(&self, begin: &str) -> u64 {
        let ours = self.uris.iter().filter(|uri| uri.starts_with(begin));
        ours.map(|_| 1).sum()
    }
}

impl Flows {
    fn read(testbed: &Testbed<'_>, name: &str) -> Result<Self, LabError> {
        let mut flows = Self::default();
        program::each(&testbed.path(&format!("{name}.jsonl")), |flow: Flow| {
            flows.take(flow);
        })?;
        Ok(flows)
    }

    fn take(&mut self, flow: Flow) {
        if flow.record == "final" {
            let key = (flow.application, flow.c_ip);
            *self.connections.entry(key).or_default() += 1;
        } else if let Some(first) = flow.first {
            // Who opened the connection of a torrent is not who fetches.
            let bytes = flow.s_bytes_uniq.unwrap_or(0.0) + flow.c_bytes_uniq.unwrap_or(0.0);
            let periods = self.periods.entry(flow.application).or_default();
            periods.push((first / 1e3, bytes));
        }
    }

    /// Connections of an application, of one client or of all.
    pub(super) fn connections(&self, application: &str, client: Option<IpAddr>) -> u64 {
        let ours = self.connections.iter().filter(|((name, ip), _)| {
            name == application && client.is_none_or(|client| client == *ip)
        });
        ours.map(|(_, count)| count).sum()
    }

    /// Content of an application until then.
    pub(super) fn counts(&self, application: &str) -> Vec<Count> {
        summed(self.periods(application))
    }

    /// Content of an application in periods, each with the second in which it began.
    pub(super) fn periods(&self, application: &str) -> Vec<(f64, f64)> {
        self.periods.get(application).cloned().unwrap_or_default()
    }
}

/// Records of `flows` before the gateway.
pub(super) const BEFORE: &str = "flows-before";
/// Records of `flows` behind it.
pub(super) const BEHIND: &str = "flows-behind";
/// How often `flows` writes what was added to a flow: points of the picture.
const PERIOD: &str = "250ms";

/// `linkweir flows` at both sides, and `linkweir http` behind.
pub(super) struct Observers {
    programs: [(&'static str, Program); 3],
}

/// What they found.
pub(super) struct Seen {
    pub(super) before: Ended,
    pub(super) behind: Ended,
    pub(super) http: Ended,
}

impl Observers {
    /// Starts all, and waits until they capture.
    pub(super) fn start(testbed: &Testbed<'_>) -> Result<Self, LabError> {
        let flows = |name: &str, interface: &str| {
            let out = format!("{name}.jsonl");
            let words = ["flows", "-i", interface, "--periodic", PERIOD, "-w", &out];
            Program::start_seen(testbed, Place::Gateway, name, &words)
        };
        let words = ["http", "-i", WAN, "-w", "http.jsonl"];
        let mut observers = Self {
            programs: [
                ("flows before the gateway", flows(BEFORE, LAN)?),
                ("flows behind it", flows(BEHIND, WAN)?),
                (
                    "http",
                    Program::start_seen(testbed, Place::Gateway, "http", &words)?,
                ),
            ],
        };
        for (_, program) in &mut observers.programs {
            is_capturing(testbed, program)?;
        }
        Ok(observers)
    }

    /// Where their pages are.
    pub(super) fn consoles(&self) -> impl Iterator<Item = (&'static str, SocketAddr)> + '_ {
        let pages = self.programs.iter();
        pages.filter_map(|(name, program)| Some((*name, program.console?)))
    }

    /// Ends all.
    pub(super) fn finish(self) -> Result<Seen, LabError> {
        let [before, behind, http] = self.programs.map(|(_, program)| program.finish());
        Ok(Seen {
            before: before?,
            behind: behind?,
            http: http?,
        })
    }
}
