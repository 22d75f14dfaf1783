//! Export to an IPFIX collector: `ipfix://host:port` over UDP, `ipfix+tcp://host:port` over TCP.
//!
//! One record per flow with both directions in it (RFC 5103): IANA's elements, and elements of an
//! enterprise for what IANA has no number for (round-trip times, classes of retransmissions). Their
//! names and types go with the templates (RFC 5610), so a collector need not be told.
//!
//! Where the run makes partial records, those are exported and the final ones are not: their counters
//! are differences that add up to it, and a collector adds up what it gets.
//!
//! Cost: about 350 bytes per TCP flow, 90 per UDP flow; one message of at most 1,400 bytes in memory.
//!
//! Source: RFC 7011.

mod element;
mod message;
mod template;
#[cfg(test)]
mod tests;

use linkweir_engine::{Sink, SinkError, SinkLosses};
use linkweir_record::RecordBatch;
use linkweir_record::flow::{Extent, Flow, FlowBatch, FlowKind};

use crate::chosen::chosen;
use crate::options::OutputOptions;
use crate::transport::{Carrier, Sent, Transport, carrier, connect};
use message::{MAX_RECORD, Message};
use template::{
    FlowTemplate, OPTIONS_SET, STATISTICS, Statistics, TEMPLATE_SET, TYPE_INFORMATION,
    describe_type_information, type_information,
};

/// Templates are sent again over UDP after this time (RFC 7011 sec. 8.4 asks for a period; ten
/// minutes is the usual one)
const TEMPLATE_PERIOD_NS: u64 = 600_000_000_000;

/// ... and after so many messages, for a collector that was started late or lost some.
const TEMPLATE_MESSAGES: u64 = 1_000;

/// The one observation domain of a run: its workers see parts of one traffic.
const DOMAIN: u32 = 1;

const SCHEME: &str = "ipfix";

/// Whether a destination is a collector: `ipfix://`, `ipfix+udp://`, `ipfix+tcp://`.
#[must_use]
pub fn is_collector(destination: &str) -> bool {
    carrier(destination, SCHEME).is_some()
}

/// Sends flows to the collector that `destination` names. One that is away is not an error after opening:
/// see [`Sink::losses`].
///
/// # Errors
/// [`SinkError::Refused`] where `destination` is not a collector, [`SinkError::Io`] where its name has no
/// address or it refuses the connection.
pub fn open_ipfix(
    destination: &str,
    options: OutputOptions,
) -> Result<Box<dyn Sink<FlowKind>>, SinkError> {
    if !options.fields.is_empty() {
        return Err(SinkError::Refused {
            destination: destination.to_owned(),
            message: "--fields does not go with IPFIX: all columns are sent".to_owned(),
        });
    }
    chosen(options, |options| {
        Ok(Box::new(IpfixSink::open(destination, options)?))
    })
}

/// A sink of flows that sends them to a collector.
struct IpfixSink {
    destination: String,
    options: OutputOptions,
    carrier: Carrier,
    transport: Transport,
    message: Message,
    /// Scratch for one record.
    record: Vec<u8>,
    /// Data records sent in this transport session, modulo 2^32.
    sequence: u32,
    sent: Statistics,
    /// Flows in the message before, which may turn out to have been refused.
    flows_before: u32,
    losses: SinkLosses,
    /// When templates were sent last, and how many messages ago.
    templates_ns: u64,
    messages_since: u64,
    are_templates_due: bool,
    /// The latest end of a flow: the time where there is no clock.
    latest_ns: u64,
    is_finished: bool,
}

impl IpfixSink {
    fn open(destination: &str, options: OutputOptions) -> Result<Self, SinkError> {
        let examples = "ipfix://collector.example:4739 or ipfix://[2001:db8::1]:4739";
        let (carrier, transport) = connect(destination, SCHEME, examples, &options)?;
        Ok(Self {
            destination: destination.to_owned(),
            options,
            carrier,
            transport,
            message: Message::default(),
            record: Vec::with_capacity(MAX_RECORD),
            sequence: 0,
            sent: Statistics::default(),
            flows_before: 0,
            losses: SinkLosses::default(),
            templates_ns: 0,
            messages_since: 0,
            are_templates_due: true,
            latest_ns: 0,
            is_finished: false,
        })
    }

    fn now_ns(&self) -> u64 {
        match (self.options.wall_clock_ns)() {
            0 => self.latest_ns,
            now => now,
        }
    }

    /// Appends a flow; sends the message first where it is full.
    fn add(&mut self, flow: &Flow<'_>) {
        self.latest_ns = self.latest_ns.max(flow.row.last_ns);
        if self.message.is_empty() {
            self.add_templates();
        }
        let template = FlowTemplate::of(flow);
        let mut record = std::mem::take(&mut self.record);
        record.clear();
        template.record(flow, &mut record);
        if !self.message.add(template.id(), &record, true) {
            self.send();
            self.add_templates();
            if !self.message.add(template.id(), &record, true) {
                // The templates fill the message.
                self.send();
                self.message.add(template.id(), &record, true);
            }
        }
        self.record = record;
    }

    /// Puts the templates and what goes with them before the next record, where it is time to.
    fn add_templates(&mut self) {
        let now = self.now_ns();
        if self.transport.renew(now) {
            // A new session knows nothing, and counts anew.
            self.are_templates_due = true;
            self.sequence = 0;
        }
        let is_time = self.carrier == Carrier::Udp
            && (self.messages_since >= TEMPLATE_MESSAGES
                || now.saturating_sub(self.templates_ns) >= TEMPLATE_PERIOD_NS);
        if !self.are_templates_due && !is_time {
            return;
        }
        self.are_templates_due = false;
        self.templates_ns = now;
        self.messages_since = 0;
        for template in FlowTemplate::ALL {
            self.add_with(TEMPLATE_SET, |out| template.describe(out));
        }
        self.add_with(OPTIONS_SET, Statistics::describe);
        self.add_with(OPTIONS_SET, describe_type_information);
        for record in type_information() {
            self.add_with(TYPE_INFORMATION, |out| out.extend_from_slice(&record));
        }
        self.add_statistics();
    }

    fn add_statistics(&mut self) {
        let mut counts = self.sent;
        counts.not_sent = self.losses.count;
        self.add_with(STATISTICS, |out| counts.record(DOMAIN, out));
    }

    fn add_with(&mut self, set: u16, write: impl FnOnce(&mut Vec<u8>)) {
        let mut record = Vec::new();
        write(&mut record);
        if !self.message.add(set, &record, false) {
            self.send();
            self.message.add(set, &record, false);
        }
    }

    /// Sends the message, where there is anything in it.
    fn send(&mut self) {
        if self.message.is_empty() {
            return;
        }
        let now = self.now_ns();
        let (flows, records) = (self.message.flows(), self.message.records());
        // RFC 7011 sec. 3.1: seconds, which end in 2106.
        let export_s = u32::try_from(now / 1_000_000_000).unwrap_or(u32::MAX);
        let message = self.message.complete(export_s, self.sequence, DOMAIN);
        let bytes = message.len() as u64;
        let sent = self.transport.send(message, now);
        self.message.clear();
        let is_sent = matches!(sent, Sent::Yes | Sent::EarlierRefused(_));
        if is_sent {
            self.sent.messages += 1;
            self.sent.octets += bytes;
            self.sent.records += u64::from(flows);
        } else {
            self.losses.count += u64::from(flows);
        }
        if matches!(sent, Sent::EarlierRefused(_)) {
            let earlier = u64::from(self.flows_before);
            self.losses.count += earlier;
            self.sent.records = self.sent.records.saturating_sub(earlier);
        }
        self.flows_before = if is_sent { flows } else { 0 };
        // A message lost on its way out leaves a gap, by which the collector sees the loss.
        self.sequence = self.sequence.wrapping_add(records);
        self.messages_since += 1;
        match sent {
            Sent::Yes | Sent::NotTried => {}
            Sent::EarlierRefused(error) | Sent::No(error) => {
                // Whoever listens next has not heard the templates.
                self.are_templates_due = true;
                let destination = &self.destination;
                self.losses.first.get_or_insert_with(|| {
                    format!("{destination}: {error}; flows are lost until it listens")
                });
            }
        }
    }
}

impl Sink<FlowKind> for IpfixSink {
    fn write(&mut self, batch: &FlowBatch) -> Result<(), SinkError> {
        let wanted = if self.options.has_partial_records {
            Extent::Partial
        } else {
            Extent::Final
        };
        for flow in batch.views() {
            if flow.row.extent == wanted {
                self.add(&flow);
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), SinkError> {
        self.send();
        Ok(())
    }

    fn finish(&mut self) -> Result<(), SinkError> {
        if self.is_finished {
            return Ok(());
        }
        self.is_finished = true;
        if self.message.is_empty() {
            self.add_templates();
        }
        self.send();
        // RFC 7011 sec. 4.1: what was sent, so that the collector can tell what it lost.
        self.add_statistics();
        self.send();
        self.transport.close();
        Ok(())
    }

    fn losses(&self) -> SinkLosses {
        self.losses.clone()
    }
}
