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

use linkweir_engine::{Sink, SinkError};
use linkweir_record::RecordBatch;
use linkweir_record::flow::{Extent, Flow, FlowBatch, FlowKind};

use crate::chosen::chosen;
use crate::delivery::{Delivery, GIVEN_UP};
use crate::options::OutputOptions;
use crate::queued::{Deliver, Queued};
use crate::transport::{Carrier, Ready, Sent, Transport, carrier, connect};
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

/// Sends flows to the collector that `destination` names, on a thread of its own. One that is away is not an error
/// after opening: see [`Sink::losses`].
///
/// # Errors
/// [`SinkError::Refused`] where `destination` is not a collector, [`SinkError::Io`] where its name has no
/// address, or where it refuses the connection of a run over files.
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
        let examples = "ipfix://collector.example:4739 or ipfix://[2001:db8::1]:4739";
        let (carrier, transport) = connect(destination, SCHEME, examples, &options)?;
        let exporter = Exporter::new(carrier, transport, &options);
        let queued = Queued::start(destination, exporter, &options)?;
        Ok(Box::new(queued.only(if options.has_partial_records {
            |flow| flow.row.extent == Extent::Partial
        } else {
            |flow| flow.row.extent == Extent::Final
        })))
    })
}

/// Makes messages of flows and sends them.
struct Exporter {
    wall_clock_ns: fn() -> u64,
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
    /// When templates were sent last, and how many messages ago.
    templates_ns: u64,
    messages_since: u64,
    are_templates_due: bool,
    /// The latest end of a flow: the time where there is no clock.
    latest_ns: u64,
}

impl Exporter {
    fn new(carrier: Carrier, transport: Transport, options: &OutputOptions) -> Self {
        Self {
            wall_clock_ns: options.wall_clock_ns,
            carrier,
            transport,
            message: Message::default(),
            record: Vec::with_capacity(MAX_RECORD),
            sequence: 0,
            sent: Statistics::default(),
            flows_before: 0,
            templates_ns: 0,
            messages_since: 0,
            are_templates_due: true,
            latest_ns: 0,
        }
    }

    fn now_ns(&self) -> u64 {
        match (self.wall_clock_ns)() {
            0 => self.latest_ns,
            now => now,
        }
    }

    /// Appends a flow; sends the message first where it is full.
    fn add(&mut self, flow: &Flow<'_>, delivery: &Delivery) {
        self.latest_ns = self.latest_ns.max(flow.row.last_ns);
        if self.message.is_empty() {
            self.add_templates(delivery);
        }
        let template = FlowTemplate::of(flow);
        let mut record = std::mem::take(&mut self.record);
        record.clear();
        template.record(flow, &mut record);
        if !self.message.add(template.id(), &record, true) {
            self.send(delivery);
            self.add_templates(delivery);
            if !self.message.add(template.id(), &record, true) {
                // The templates fill the message.
                self.send(delivery);
                self.message.add(template.id(), &record, true);
            }
        }
        self.record = record;
    }

    /// Puts the templates and what goes with them before the next record, where it is time to.
    fn add_templates(&mut self, delivery: &Delivery) {
        if self.transport.ready(delivery) == Ready::New {
            // A new session knows nothing, and counts anew.
            self.are_templates_due = true;
            self.sequence = 0;
        }
        let now = self.now_ns();
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
            self.add_with(TEMPLATE_SET, delivery, |out| template.describe(out));
        }
        self.add_with(OPTIONS_SET, delivery, Statistics::describe);
        self.add_with(OPTIONS_SET, delivery, describe_type_information);
        for record in type_information() {
            self.add_with(TYPE_INFORMATION, delivery, |out| {
                out.extend_from_slice(&record);
            });
        }
        self.add_statistics(delivery);
    }

    fn add_statistics(&mut self, delivery: &Delivery) {
        let mut counts = self.sent;
        counts.not_sent = delivery.lost_count();
        self.add_with(STATISTICS, delivery, |out| counts.record(DOMAIN, out));
    }

    fn add_with(&mut self, set: u16, delivery: &Delivery, write: impl FnOnce(&mut Vec<u8>)) {
        let mut record = Vec::new();
        write(&mut record);
        if !self.message.add(set, &record, false) {
            self.send(delivery);
            self.message.add(set, &record, false);
        }
    }

    /// Sends the message, where there is anything in it.
    fn send(&mut self, delivery: &Delivery) {
        if self.message.is_empty() {
            return;
        }
        let now = self.now_ns();
        let (flows, records) = (self.message.flows(), self.message.records());
        // RFC 7011 sec. 3.1: seconds, which end in 2106.
        let export_s = u32::try_from(now / 1_000_000_000).unwrap_or(u32::MAX);
        let message = self.message.complete(export_s, self.sequence, DOMAIN);
        let bytes = message.len() as u64;
        let sent = self.transport.send(message, delivery);
        self.message.clear();
        let is_sent = matches!(sent, Sent::Yes | Sent::EarlierRefused(_));
        if let Sent::EarlierRefused(error) = &sent {
            let earlier = u64::from(self.flows_before);
            delivery.lose_delivered(&cause(error), earlier);
            self.sent.records = self.sent.records.saturating_sub(earlier);
        }
        match &sent {
            Sent::Yes | Sent::EarlierRefused(_) => {
                self.sent.messages += 1;
                self.sent.octets += bytes;
                self.sent.records += u64::from(flows);
                delivery.deliver(u64::from(flows));
            }
            Sent::No(error) => delivery.lose(&cause(error), u64::from(flows)),
            Sent::GivenUp => delivery.lose(GIVEN_UP, u64::from(flows)),
        }
        self.flows_before = if is_sent { flows } else { 0 };
        // A message lost on its way out leaves a gap, by which the collector sees the loss.
        self.sequence = self.sequence.wrapping_add(records);
        self.messages_since += 1;
        if matches!(sent, Sent::EarlierRefused(_) | Sent::No(_)) {
            // Whoever listens next has not heard the templates.
            self.are_templates_due = true;
        }
    }
}

/// Why a message is lost.
fn cause(error: &std::io::Error) -> String {
    format!("sent when it did not listen ({error})")
}

impl Deliver<FlowKind> for Exporter {
    fn deliver(&mut self, batch: &FlowBatch, delivery: &Delivery) {
        for flow in batch.views() {
            self.add(&flow, delivery);
        }
    }

    fn flush(&mut self, delivery: &Delivery) {
        self.send(delivery);
    }

    fn finish(&mut self, delivery: &Delivery) {
        if self.message.is_empty() {
            self.add_templates(delivery);
        }
        self.send(delivery);
        // RFC 7011 sec. 4.1: what was sent, so that the collector can tell what it lost.
        self.add_statistics(delivery);
        self.send(delivery);
        self.transport.close();
    }
}
