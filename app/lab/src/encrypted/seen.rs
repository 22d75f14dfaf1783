//! What each observer knows of the transactions of a client.

use super::client::Reading;
use super::clients::Client;
use super::plan;
use super::server::Visit;
use super::trace::{Reader, Traces, records};
use crate::error::LabError;
use crate::program::all;
use crate::testbed::Testbed;
use serde::Deserialize;
use std::collections::HashMap;
use std::net::IpAddr;
use std::path::Path;

/// A client that was busy, and when.
pub(super) struct Window {
    pub(super) client: Client,
    pub(super) begin_ns: u64,
    pub(super) end_ns: u64,
    pub(super) clock: Vec<Reading>,
}

/// What is known of one client over one line.
pub(super) struct Seen {
    pub(super) client: Client,
    /// Transactions by the client's clock.
    pub(super) clock: usize,
    /// By the server's log, of those numbers.
    pub(super) logged: usize,
    /// At the clients, both directions.
    pub(super) near: View,
    /// The same, by what the clients send alone.
    pub(super) one_way: View,
    /// In front of the server.
    pub(super) far: View,
}

/// What records with keys and estimates say at one place.
#[derive(Debug, Default)]
pub(super) struct View {
    /// Transactions with a response, by the keys.
    pub(super) keyed: Vec<Keyed>,
    /// One for each estimate.
    pub(super) estimates: Vec<Estimate>,
}

/// A transaction with keys, times in seconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Keyed {
    pub(super) took_s: f64,
    pub(super) clock: Option<Reading>,
    pub(super) visit: Option<Visit>,
    /// Whether an estimate has its request.
    pub(super) is_estimated: bool,
}

/// How certain an estimate is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Confidence {
    Exact,
    Likely,
    CannotTell,
}

/// An estimate, and the transaction whose request it has.
#[derive(Debug, Clone, Copy)]
pub(super) struct Estimate {
    pub(super) confidence: Confidence,
    pub(super) took_s: Option<f64>,
    pub(super) last_s: Option<f64>,
    pub(super) server_s: Option<f64>,
    /// None where no request is in that packet.
    pub(super) truth: Option<Keyed>,
}

impl Estimate {
    /// Whether both packets, of the request and the first byte of the response, are those of the keys.
    pub(super) fn is_right(&self) -> bool {
        // Both are differences of the same times of packets.
        matches!((self.took_s, self.truth), (Some(took), Some(truth)) if (took - truth.took_s).abs() < 1e-9)
    }
}

/// Fields of `http_transaction`.
#[derive(Debug, Deserialize)]
struct Record {
    client_ip: IpAddr,
    client_port: u16,
    request_ts_ns: Option<u64>,
    response_time_ns: Option<u64>,
    ttlb_ns: Option<u64>,
    server_time_ns: Option<i64>,
    uri: Option<String>,
    confidence: Option<Confidence>,
}

/// Where a request is: the packet, and the connection.
type Place = (u64, IpAddr, u16);

/// Reads all captures of a line.
pub(super) fn read(
    testbed: &Testbed<'_>,
    traces: &Traces,
    windows: Vec<Window>,
    visits: &HashMap<u64, Visit>,
) -> Result<Vec<Seen>, LabError> {
    let all = |capture: &Path, reader| all::<Record>(&records(testbed, capture, reader)?);
    let both = |capture: &Path| -> Result<_, LabError> {
        let keyed = all(capture, Reader::Keys(&traces.keys))?;
        Ok((keyed, all(capture, Reader::Estimates)?))
    };
    let (near, far) = (both(&traces.clients)?, both(&traces.server)?);
    let one_way = all(&traces.clients, Reader::OneWay)?;
    let seen = windows.into_iter().map(|window| {
        let readings: HashMap<u64, Reading> = window
            .clock
            .iter()
            .map(|reading| (reading.id, *reading))
            .collect();
        let view = |keyed: &[Record], estimates: &[Record]| {
            view(&window, &readings, visits, keyed, estimates)
        };
        Seen {
            client: window.client,
            clock: readings.len(),
            logged: readings.keys().filter(|id| visits.contains_key(id)).count(),
            near: view(&near.0, &near.1),
            one_way: view(&near.0, &one_way),
            far: view(&far.0, &far.1),
        }
    });
    Ok(seen.collect())
}

fn view(
    window: &Window,
    readings: &HashMap<u64, Reading>,
    visits: &HashMap<u64, Visit>,
    keyed: &[Record],
    estimates: &[Record],
) -> View {
    let is_in = |record: &&Record| {
        let at = record.request_ts_ns;
        at.is_some_and(|at| (window.begin_ns..window.end_ns).contains(&at))
    };
    let mut view = View::default();
    let mut places: HashMap<Place, Vec<usize>> = HashMap::new();
    for record in keyed.iter().filter(is_in) {
        let (Some(at), Some(took)) = (record.request_ts_ns, record.response_time_ns) else {
            continue;
        };
        let id = record.uri.as_deref().and_then(plan::number);
        let place = (at, record.client_ip, record.client_port);
        places.entry(place).or_default().push(view.keyed.len());
        view.keyed.push(Keyed {
            took_s: seconds(took),
            clock: id.and_then(|id| readings.get(&id).copied()),
            visit: id.and_then(|id| visits.get(&id).copied()),
            is_estimated: false,
        });
    }
    for record in estimates.iter().filter(is_in) {
        let (Some(at), Some(confidence)) = (record.request_ts_ns, record.confidence) else {
            continue;
        };
        let took_s = record.response_time_ns.map(seconds);
        let place = (at, record.client_ip, record.client_port);
        let truth = places.get_mut(&place).and_then(|there| {
            let far = |index: &usize| {
                let truth = view.keyed.get(*index).map_or(0.0, |keyed| keyed.took_s);
                (truth - took_s.unwrap_or(truth)).abs()
            };
            let nearest = there
                .iter()
                .enumerate()
                .min_by(|(_, a), (_, b)| far(a).total_cmp(&far(b)));
            let nearest = nearest.map(|(at, _)| at)?;
            let keyed = view.keyed.get_mut(there.swap_remove(nearest))?;
            keyed.is_estimated = true;
            Some(*keyed)
        });
        view.estimates.push(Estimate {
            confidence,
            took_s,
            last_s: record.ttlb_ns.map(seconds),
            server_s: record.server_time_ns.map(|nanos| nanos as f64 / 1e9),
            truth,
        });
    }
    view
}

fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}
