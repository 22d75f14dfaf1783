//! `syslog://`: each record a message of syslog (RFC 5424) with a JSON object, over UDP (RFC 5426) or TCP with the length before
//! each message (RFC 6587 sec. 3.4.1).

use std::io::Write as _;

use linkweir_engine::{Sink, SinkError};
use linkweir_record::{RecordBatch as _, RecordKind};

use crate::delivery::{Delivery, GIVEN_UP};
use crate::format::Encoder;
use crate::jsonl::JsonlEncoder;
use crate::number::push_rfc3339;
use crate::options::OutputOptions;
use crate::queued::{Deliver, Queued};
use crate::transport::{Carrier, Ready, Sent, Transport, carrier, connect};

const SCHEME: &str = "syslog";

/// Facility local0, severity informational: 16 * 8 + 6 (RFC 5424 sec. 6.2.1).
const PRIORITY: u8 = 134;

/// The longest name of a host in a header (RFC 5424 sec. 6).
const MAX_HOST: usize = 255;

/// The longest datagram of UDP over IPv4.
const MAX_DATAGRAM: usize = 65_507;

/// Whether a destination is a collector of syslog.
pub(crate) fn is_syslog(destination: &str) -> bool {
    carrier(destination, SCHEME).is_some()
}

/// Sends these columns of records to the collector that `destination` names, on a thread of its own.
///
/// # Errors
/// [`SinkError::Refused`] where `destination` names no host and port, [`SinkError::Io`] where its name has no address, or where it
/// refuses the connection of a run over files.
pub(crate) fn open_syslog<K: RecordKind>(
    destination: &str,
    columns: &[usize],
    options: &OutputOptions,
) -> Result<Box<dyn Sink<K>>, SinkError> {
    let examples = "syslog://logs.example:514 or syslog+tcp://[2001:db8::1]:601";
    let (carrier, transport) = connect(destination, SCHEME, examples, options)?;
    let syslog = Syslog {
        carrier,
        transport,
        encoder: JsonlEncoder::new::<K>(columns),
        header: header(&options.probe, K::NAME),
        message: Vec::new(),
        framed: Vec::new(),
        may_be_refused: false,
    };
    Ok(Box::new(Queued::<K>::start(destination, syslog, options)?))
}

/// Makes messages of records and sends them.
struct Syslog {
    carrier: Carrier,
    transport: Transport,
    encoder: JsonlEncoder,
    /// Host, program, process and kind: what stands behind the time in every message.
    header: Vec<u8>,
    message: Vec<u8>,
    framed: Vec<u8>,
    /// Whether the message before may turn out to have been refused.
    may_be_refused: bool,
}

impl Syslog {
    fn send<K: RecordKind>(&mut self, view: &K::View<'_>, delivery: &Delivery) {
        self.message.clear();
        // Writing to a vector cannot fail.
        let _unfailing = write!(self.message, "<{PRIORITY}>1 ");
        push_rfc3339(&mut self.message, K::time_ns(view));
        self.message.extend_from_slice(&self.header);
        Encoder::<K>::record(&mut self.encoder, view, &mut self.message);
        // A message has no line end.
        self.message.pop();
        if self.carrier == Carrier::Udp && self.message.len() > MAX_DATAGRAM {
            delivery.lose("longer than a datagram (use syslog+tcp:// or --fields)", 1);
            return;
        }
        if self.transport.ready(delivery) == Ready::GivenUp {
            delivery.lose(GIVEN_UP, 1);
            return;
        }
        let message = match self.carrier {
            Carrier::Udp => &self.message,
            Carrier::Tcp => {
                self.framed.clear();
                let _unfailing = write!(self.framed, "{} ", self.message.len());
                self.framed.extend_from_slice(&self.message);
                &self.framed
            }
        };
        let sent = self.transport.send(message, delivery);
        let was_unsure = std::mem::replace(
            &mut self.may_be_refused,
            matches!(sent, Sent::Yes | Sent::EarlierRefused(_)),
        );
        match sent {
            Sent::Yes => delivery.deliver(1),
            Sent::EarlierRefused(error) => {
                if was_unsure {
                    delivery.lose_delivered(&cause(&error), 1);
                }
                delivery.deliver(1);
            }
            Sent::No(error) => delivery.lose(&cause(&error), 1),
            Sent::GivenUp => delivery.lose(GIVEN_UP, 1),
        }
    }
}

/// Why a message is lost.
fn cause(error: &std::io::Error) -> String {
    format!("sent when it did not listen ({error})")
}

/// Host, program, process, kind, and no structured data; only printable ASCII (RFC 5424 sec. 6).
fn header(probe: &str, kind: &str) -> Vec<u8> {
    let host: String = probe
        .chars()
        .filter(char::is_ascii_graphic)
        .take(MAX_HOST)
        .collect();
    let host = if host.is_empty() { "-" } else { &host };
    format!(" {host} linkweir {} {kind} - ", std::process::id()).into_bytes()
}

impl<K: RecordKind> Deliver<K> for Syslog {
    fn deliver(&mut self, batch: &K::Batch, delivery: &Delivery) {
        for view in batch.views() {
            self.send::<K>(&view, delivery);
        }
    }

    fn finish(&mut self, _: &Delivery) {
        self.transport.close();
    }
}
