//! Tstat's tree of directories: logs of flows and HTTP messages, and histograms of every step.
//!
//! ```text
//! DIR/2026_11_21_09_07.out/log_tcp_complete      flows, one line each
//!                          log_tcp_nocomplete
//!                          log_udp_complete
//!                          log_http_complete
//!                          log_dns_complete      questions and records of DNS
//!                          log_mm_complete       streams of RTP and RTCP
//!                          log_tcp_periodic      with partial records
//!                          log_udp_periodic
//!                          000/ 001/ .. LAST/    histograms of each step
//! ```
//!
//! A directory is for twelve steps (an hour with steps of 300 s) and named by the minute in which it
//! begins, the first one by the first packet. A flow stands in the directory of the time at which it was
//! known to have ended, so that a directory is complete soon after the next one has begun: at most one
//! older directory gets lines of shards that lag behind.
//!
//! Tstat names directories by local time; here by UTC unless [`TstatOptions::utc_offset_s`] says more.
//! Differences in what Tstat leaves behind: a directory of the same name, which holds what an earlier run has
//! measured, is refused or stays beside a numbered one ([`TstatOptions::existing`]); where it may be
//! replaced, only the logs and histograms in it are. Step directories appear when they are complete.
//!
//! Source: Tstat 3.3.0, the tree and lines as its binary writes them.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use linkweir_engine::{Sink, SinkError, SinkLosses};
use linkweir_record::RecordBatch;
use linkweir_record::flow::{Extent, Flow, FlowBatch, FlowKind, FlowState, Protocol, StreamRow};
use linkweir_sketch::Step;

use crate::steps::Steps;
use crate::tree::{LogKind, Tree, TstatOptions};
use crate::{dns, dump, http, lines, multimedia, periodic};

/// Writes Tstat's tree into `dir`, which is created where it does not exist.
///
/// # Errors
/// [`SinkError::Refused`] where `dir` is not a directory, [`SinkError::Io`] where it cannot be created.
pub fn open_tstat(dir: &Path, options: TstatOptions) -> Result<Box<dyn Sink<FlowKind>>, SinkError> {
    open(dir, options, true)
}

/// Writes only the directories of the steps into `dir`: histograms without logs.
///
/// # Errors
/// As [`open_tstat`].
pub fn open_histograms(
    dir: &Path,
    options: TstatOptions,
) -> Result<Box<dyn Sink<FlowKind>>, SinkError> {
    open(dir, options, false)
}

fn open(
    dir: &Path,
    options: TstatOptions,
    has_logs: bool,
) -> Result<Box<dyn Sink<FlowKind>>, SinkError> {
    Ok(Box::new(TstatSink {
        tree: Tree::open(dir, options, has_logs)?,
        options,
        has_logs,
        steps: Steps::default(),
        latest_ns: 0,
        given: 0,
        state: State::Open,
    }))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    Finished,
    Failed,
}

struct TstatSink {
    tree: Tree,
    options: TstatOptions,
    has_logs: bool,
    steps: Steps,
    /// The latest time anything told of, nanoseconds since the epoch.
    latest_ns: u64,
    /// Records that were to be lines of the logs.
    given: u64,
    state: State,
}

/// When the first packet of a batch was, as far as the batch tells.
fn earliest_ns(batch: &FlowBatch) -> Option<u64> {
    let flows = batch
        .views()
        .map(|flow| flow.row.start_ns.min(flow.row.first_ns));
    let messages = batch.messages().map(|message| message.row.time_ns);
    let steps = batch.steps().iter().map(|step| step.from_ns);
    let names = batch.dns().map(|line| line.row.time_ns);
    flows.chain(messages).chain(names).chain(steps).min()
}

impl TstatSink {
    fn check(&self) -> Result<(), SinkError> {
        let message = match self.state {
            State::Open => return Ok(()),
            State::Finished => "the output is complete already",
            State::Failed => "an earlier write failed; the logs hold what was written before",
        };
        Err(SinkError::Refused {
            destination: self.tree.destination().to_owned(),
            message: message.to_owned(),
        })
    }

    /// Remembers a failure.
    fn keep<T>(&mut self, result: Result<T, SinkError>) -> Result<T, SinkError> {
        if result.is_err() {
            self.state = State::Failed;
        }
        result
    }

    /// When a flow was known to have ended.
    fn closed_ns(&self, flow: &Flow<'_>) -> u64 {
        let row = flow.row;
        let packets = row.client.pkts_all.saturating_add(row.server.pkts_all);
        let waited = match (row.extent, row.state, row.protocol) {
            (Extent::Final, FlowState::Open, _) => return self.latest_ns.max(row.last_ns),
            (Extent::Final, FlowState::Unanswered, _) => self.options.syn_timeout,
            (Extent::Final, FlowState::Idle, Protocol::Tcp) => self.options.tcp_idle,
            (Extent::Final, FlowState::Idle, Protocol::Udp) if packets == 1 => {
                self.options.syn_timeout
            }
            (Extent::Final, FlowState::Idle, Protocol::Udp) => self.options.udp_idle,
            _ => Duration::ZERO,
        };
        let waited = linkweir_wire::nanos(waited);
        row.last_ns.saturating_add(waited)
    }

    /// Counts the records of a batch that are to be lines of the logs.
    fn count(&mut self, batch: &FlowBatch) {
        if self.has_logs {
            let all = self.options.has_partial_records;
            let flows = batch.views();
            let flows = flows.filter(|flow| all || flow.row.extent == Extent::Final);
            let others = batch.messages().count() + batch.streams().len() + batch.dns_count();
            self.given += (flows.count() + others) as u64;
        }
    }

    fn write_flow(&mut self, flow: &Flow<'_>) -> Result<(), SinkError> {
        let row = flow.row;
        let time = self.closed_ns(flow);
        self.latest_ns = self.latest_ns.max(time);
        let (kind, line): (_, fn(&mut Vec<u8>, &Flow<'_>)) = match (row.extent, row.protocol) {
            (Extent::Partial, _) if !self.options.has_partial_records => return Ok(()),
            (Extent::Partial, Protocol::Tcp) => (LogKind::TcpPeriodic, periodic::tcp),
            (Extent::Partial, Protocol::Udp) => (LogKind::UdpPeriodic, periodic::udp),
            (Extent::Final, Protocol::Udp) => (LogKind::UdpComplete, lines::udp_complete),
            (Extent::Final, Protocol::Tcp) if row.is_complete() => {
                (LogKind::TcpComplete, lines::tcp_complete)
            }
            (Extent::Final, Protocol::Tcp) => (LogKind::TcpNocomplete, lines::tcp_nocomplete),
        };
        self.tree.append(time, kind, |out| line(out, flow))
    }

    fn write_stream(&mut self, row: &StreamRow) -> Result<(), SinkError> {
        let time = if row.is_open {
            self.latest_ns.max(row.end_ns)
        } else {
            let waited = linkweir_wire::nanos(self.options.udp_idle);
            row.end_ns.saturating_add(waited)
        };
        self.latest_ns = self.latest_ns.max(time);
        self.tree.append(time, LogKind::MmComplete, |out| {
            multimedia::stream(out, row);
        })
    }

    fn write_batch(&mut self, batch: &FlowBatch) -> Result<(), SinkError> {
        if !self.tree.has_begun()
            && let Some(ns) = earliest_ns(batch)
        {
            self.tree.begin(ns);
        }
        if self.has_logs {
            for flow in batch.views() {
                self.write_flow(&flow)?;
            }
            for line in batch.dns() {
                let time = line.row.time_ns;
                self.latest_ns = self.latest_ns.max(time);
                self.tree.append(time, LogKind::DnsComplete, |out| {
                    dns::line(out, &line);
                })?;
            }
            for row in batch.streams() {
                self.write_stream(row)?;
            }
            for message in batch.messages() {
                let time = message.row.time_ns;
                self.latest_ns = self.latest_ns.max(time);
                self.tree.append(time, LogKind::HttpComplete, |out| {
                    http::message(out, &message);
                })?;
            }
        }
        for step in batch.steps() {
            self.latest_ns = self.latest_ns.max(step.to_ns.saturating_sub(1));
            self.steps.add(step);
            while let Some(step) = self.steps.next_complete() {
                self.write_step(&step, false)?;
            }
        }
        Ok(())
    }

    fn write_step(&mut self, step: &Arc<Step>, is_last: bool) -> Result<(), SinkError> {
        let directory = self.tree.step_directory(step.number, is_last)?;
        dump::write(&directory, step)
    }

    fn finish_all(&mut self) -> Result<(), SinkError> {
        let rest: Vec<_> = self.steps.rest().collect();
        for (step, is_last) in rest {
            self.write_step(&step, is_last)?;
        }
        self.tree.finish()
    }
}

impl Sink<FlowKind> for TstatSink {
    fn write(&mut self, batch: &FlowBatch) -> Result<(), SinkError> {
        self.count(batch);
        self.check()?;
        let result = self.write_batch(batch);
        self.keep(result)
    }

    fn miss(&mut self, batch: &FlowBatch) {
        self.count(batch);
    }

    fn losses(&self) -> SinkLosses {
        let missing = self.given - self.tree.lines();
        SinkLosses {
            count: if self.state == State::Failed {
                missing
            } else {
                0
            },
            first: None,
        }
    }

    fn flush(&mut self) -> Result<(), SinkError> {
        self.check()?;
        let result = self.tree.flush();
        self.keep(result)
    }

    fn finish(&mut self) -> Result<(), SinkError> {
        if self.state == State::Finished {
            return Ok(());
        }
        self.check()?;
        let result = self.finish_all();
        self.keep(result)?;
        self.state = State::Finished;
        Ok(())
    }
}
