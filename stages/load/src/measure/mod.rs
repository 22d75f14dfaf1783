//! Counts and times what became of everything, and makes the records.
//!
//! [`Measure`] is the [`Observer`] of a run. What it counts is [`Figures`]: everything in it merges by
//! addition and travels as JSON, so that several generators make one report. [`Figures::verdict`] says
//! whether the run measured the server or only the generator.
//!
//! Memory: histograms of at most 440 KiB each (usually a tenth of that), at most
//! [`MAX_BINS`] bins of a second or more, and with records an entry for each open session.
//!
//! Source: the Raw Packet Sender (Hryn, Jerzak, Chydzinski 2004): Table 2 (minimum, maximum, mean,
//! standard deviation, median, rate), Figs. 7 to 10 (response time and sessions over time).

use crate::outcome::{Exchange, Observer, SessionEnd};
use crate::population::Population;
use crate::seam::Client;
use counts::Records;
use linkweir_record::LoadBatch;
use linkweir_sketch::Coarse;
use linkweir_wire::Timestamp;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

mod counts;
mod figures;
mod open;
mod progress;
mod series;
mod times;
mod verdict;

pub use counts::{Failures, Statuses};
pub use figures::{Arrivals, Figures, Generator, Group, MAX_GROUPS, Stages};
pub use open::{Little, OpenSessions};
pub use progress::{GroupProgress, Progress, Recent};
pub use series::{Bin, MAX_BINS, Series};
pub use times::Times;
pub use verdict::{Limits, Verdict};

/// Who the clients are, as far as the figures ask.
pub trait Roll {
    /// Address of a client.
    fn address(&self, client: Client) -> IpAddr;
    /// Number of its group, in the order of [`Options::groups`].
    fn group(&self, client: Client) -> usize;
}

impl Roll for Population {
    #[inline]
    fn address(&self, client: Client) -> IpAddr {
        Self::address(self, client)
    }

    #[inline]
    fn group(&self, client: Client) -> usize {
        Self::group(self, client).into()
    }
}

impl<R: Roll> Roll for Arc<R> {
    #[inline]
    fn address(&self, client: Client) -> IpAddr {
        R::address(self, client)
    }

    #[inline]
    fn group(&self, client: Client) -> usize {
        R::group(self, client)
    }
}

/// What is measured.
#[derive(Debug, Clone)]
pub struct Options {
    /// The server, for the records.
    pub server: SocketAddr,
    /// Names of the groups of clients, at most [`MAX_GROUPS`]; empty where there are none.
    pub groups: Vec<String>,
    /// Whether records are made. Somebody must then [take](Measure::take_records) them.
    pub has_records: bool,
}

impl Options {
    /// With the groups of a population, where it has any beside that of the rest.
    #[must_use]
    pub fn of(population: &Population, server: SocketAddr, has_records: bool) -> Self {
        let groups = population.groups();
        let names = groups.iter().map(|group| group.name.clone());
        Self {
            server,
            groups: if groups.len() > 1 {
                names.collect()
            } else {
                Vec::new()
            },
            has_records,
        }
    }
}

/// Measures a run.
#[derive(Debug)]
pub struct Measure<R> {
    roll: R,
    server: SocketAddr,
    figures: Figures,
    records: Option<Records>,
    recent: Coarse,
    /// Times since the last look, where somebody looks.
    watched: Option<Box<Recent>>,
}

impl<R: Roll> Measure<R> {
    /// Nothing measured yet.
    pub fn new(roll: R, options: Options) -> Self {
        let groups = options.groups.into_iter().take(MAX_GROUPS);
        Self {
            roll,
            server: options.server,
            figures: Figures {
                groups: groups
                    .map(|name| Group {
                        name,
                        ..Group::default()
                    })
                    .collect(),
                ..Figures::default()
            },
            records: options.has_records.then(Records::default),
            recent: Coarse::default(),
            watched: None,
        }
    }

    /// From now on somebody looks: times are kept for [`Measure::progress`] too.
    pub fn watch(&mut self) {
        self.watched.get_or_insert_default();
    }

    /// A look at the run. What it takes is some counters and the histograms of the times since the last one,
    /// which are not copied.
    pub fn progress(&mut self) -> Progress {
        let recent = self.watched.as_deref_mut().map(std::mem::take);
        Progress::of(&self.figures, recent.unwrap_or_default())
    }

    /// What was measured so far.
    #[must_use]
    pub const fn figures(&self) -> &Figures {
        &self.figures
    }

    /// The same, for those who count what does not pass here: [`Figures::tcp`], [`Figures::generator`].
    pub const fn figures_mut(&mut self) -> &mut Figures {
        &mut self.figures
    }

    /// What was measured; the run is over.
    #[must_use]
    pub fn into_figures(self) -> Figures {
        self.figures
    }

    /// Number of records that wait to be taken.
    #[must_use]
    pub fn waiting_records(&self) -> usize {
        self.records.as_ref().map_or(0, Records::len)
    }

    /// Gives the records of sessions that ended since the last time; the memory of `into` is used for
    /// the next.
    pub fn take_records(&mut self, into: &mut LoadBatch) {
        if let Some(records) = &mut self.records {
            records.take(into);
        }
    }

    /// Response times since the last time, within an eighth; for a view of the run.
    pub fn take_recent(&mut self) -> Coarse {
        std::mem::take(&mut self.recent)
    }

    fn group(&mut self, client: Client) -> Option<&mut Group> {
        let number = self.roll.group(client);
        self.figures.groups.get_mut(number)
    }

    fn plan(&mut self, planned: Timestamp) {
        self.figures.planned += 1;
        if let Some(bin) = self.figures.series.at(planned) {
            bin.planned += 1;
        }
    }
}

impl<R: Roll> Observer for Measure<R> {
    fn on_start(&mut self, client: Client, planned: Timestamp, started: Timestamp) {
        self.plan(planned);
        let figures = &mut self.figures;
        figures.started += 1;
        let lag = started.nanos_since(planned);
        figures.stages.lag.record(lag);
        if let Some(watched) = &mut self.watched {
            watched.lag.record(lag);
        }
        figures.open.start(started, &mut figures.series);
        if let Some(bin) = figures.series.at(started) {
            bin.started += 1;
        }
        if let Some(group) = self.group(client) {
            group.started += 1;
        }
    }

    fn on_connect(&mut self, client: Client, handshake_ns: u64, _syn_retransmissions: u32) {
        self.figures.connections += 1;
        self.figures.stages.connect.record(handshake_ns);
        if let Some(watched) = &mut self.watched {
            watched.connect.record(handshake_ns);
        }
        if let Some(group) = self.group(client) {
            group.connect.record(handshake_ns);
        }
    }

    fn on_exchange(&mut self, exchange: &Exchange, _target: &[u8], local_port: u16) {
        if let Some(records) = &mut self.records {
            records.exchange(exchange, local_port);
        }
        let figures = &mut self.figures;
        if let Some(sent) = exchange.sent {
            figures.requests += 1;
            figures.request_bytes += exchange.request_bytes;
            let at = sent.as_nanos();
            let (first, last) = figures.sending.unwrap_or((at, at));
            figures.sending = Some((first.min(at), last.max(at)));
            if let Some(bin) = figures.series.at(sent) {
                bin.requests += 1;
            }
        }
        if let Some(nanos) = exchange.first_byte_ns() {
            figures.stages.first_byte.record(nanos);
        }
        figures.response_bytes += exchange.response_bytes;
        if let Some(failure) = exchange.failure {
            figures.failed_requests.record(failure);
        }
        let response = exchange.response_time_ns();
        if let (Some(nanos), Some(ended)) = (response, exchange.last_byte) {
            figures.responses += 1;
            figures.statuses.record(exchange.status);
            figures.stages.response.record(nanos);
            self.recent.record(nanos);
            if let Some(bin) = figures.series.at(ended) {
                bin.responses += 1;
                bin.response_bytes += exchange.response_bytes;
            }
            if let Some(bin) = figures.series.at(exchange.intended) {
                bin.response.record(nanos);
                bin.response_sum_ns = bin.response_sum_ns.saturating_add(nanos);
            }
            let service = exchange.service_time_ns();
            if let Some(nanos) = service {
                figures.stages.service.record(nanos);
            }
            if let Some(watched) = &mut self.watched {
                watched.response.record(nanos);
                if let Some(nanos) = service {
                    watched.service.record(nanos);
                }
            }
        }
        if let Some(group) = self.group(exchange.client) {
            group.requests += u64::from(exchange.sent.is_some());
            group.response_bytes += exchange.response_bytes;
            if let Some(nanos) = response {
                group.responses += 1;
                group.response.record(nanos);
            }
        }
    }

    fn on_page(&mut self, _client: Client, intended: Timestamp, ended: Timestamp) {
        self.figures.pages += 1;
        let nanos = ended.nanos_since(intended);
        self.figures.stages.page.record(nanos);
    }

    fn on_session(&mut self, end: &SessionEnd) {
        if let Some(started) = end.started {
            let figures = &mut self.figures;
            figures.open.end(started, end.ended, &mut figures.series);
        } else {
            self.plan(end.planned);
        }
        let figures = &mut self.figures;
        let bin = figures.series.at(end.ended);
        if let Some(failure) = end.failure {
            figures.failed.record(failure);
            bin.into_iter().for_each(|bin| bin.failed += 1);
        } else {
            figures.completed += 1;
            bin.into_iter().for_each(|bin| bin.completed += 1);
            let nanos = end.ended.nanos_since(end.planned);
            figures.stages.session.record(nanos);
        }
        if let Some(group) = self.group(end.client) {
            match end.failure {
                Some(_) => group.failed += 1,
                None => group.completed += 1,
            }
        }
        if let Some(records) = &mut self.records {
            let number = self.roll.group(end.client);
            let group = self.figures.groups.get(number);
            let name = group.map_or("", |group| group.name.as_str());
            records.session(end, &self.roll, name, self.server);
        }
    }
}

impl Exchange {
    /// From when the script wanted it to the last byte of the response; `None` where that never came.
    #[must_use]
    pub fn response_time_ns(&self) -> Option<u64> {
        Some(self.complete()?.nanos_since(self.intended))
    }

    /// From its first byte to the last byte of the response.
    #[must_use]
    pub fn service_time_ns(&self) -> Option<u64> {
        Some(self.complete()?.nanos_since(self.sent?))
    }

    /// From its first byte to the first segment of the final response.
    #[must_use]
    pub fn first_byte_ns(&self) -> Option<u64> {
        Some(self.first_byte?.nanos_since(self.sent?))
    }

    fn complete(&self) -> Option<Timestamp> {
        self.last_byte.filter(|_| self.failure.is_none())
    }
}

#[cfg(test)]
mod tests;
