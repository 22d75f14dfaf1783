//! `syslog://`: each record a message of syslog (RFC 5424) with a JSON object, over UDP (RFC 5426) or TCP with the length before
//! each message (RFC 6587 sec. 3.4.1).

use std::io::Write as _;

use linkweir_engine::{Sink, SinkError, SinkLosses};
use linkweir_record::{RecordBatch as _, RecordKind};

use crate::format::Encoder;
use crate::jsonl::JsonlEncoder;
use crate::number::push_rfc3339;
use crate::options::OutputOptions;
use crate::transport::{Carrier, Sent, Transport, carrier, connect};

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

/// A sink that sends records to a collector of syslog.
pub(crate) struct SyslogSink<K> {
    destination: String,
    carrier: Carrier,
    transport: Transport,
    encoder: JsonlEncoder,
    /// Host, program, process and kind: what stands behind the time in every message.
    header: Vec<u8>,
    wall_clock_ns: fn() -> u64,
    message: Vec<u8>,
    framed: Vec<u8>,
    /// Whether the message before may turn out to have been refused.
    may_be_refused: bool,
    losses: SinkLosses,
    kind: std::marker::PhantomData<fn(K)>,
}

impl<K: RecordKind> SyslogSink<K> {
    /// Sends these columns to the collector that `destination` names. One that is away is not an error after opening.
    ///
    /// # Errors
    /// [`SinkError::Refused`] where `destination` names no host and port, [`SinkError::Io`] where its name has no address or it
    /// refuses the connection.
    pub(crate) fn open(
        destination: &str,
        columns: &[usize],
        options: &OutputOptions,
    ) -> Result<Self, SinkError> {
        let examples = "syslog://logs.example:514 or syslog+tcp://[2001:db8::1]:601";
        let (carrier, transport) = connect(destination, SCHEME, examples, options)?;
        Ok(Self {
            destination: destination.to_owned(),
            carrier,
            transport,
            encoder: JsonlEncoder::new::<K>(columns),
            header: header(&options.probe, K::NAME),
            wall_clock_ns: options.wall_clock_ns,
            message: Vec::new(),
            framed: Vec::new(),
            may_be_refused: false,
            losses: SinkLosses::default(),
            kind: std::marker::PhantomData,
        })
    }

    fn send(&mut self, view: &K::View<'_>) {
        self.message.clear();
        // Writing to a vector cannot fail.
        let _unfailing = write!(self.message, "<{PRIORITY}>1 ");
        push_rfc3339(&mut self.message, K::time_ns(view));
        self.message.extend_from_slice(&self.header);
        Encoder::<K>::record(&mut self.encoder, view, &mut self.message);
        // A message has no line end.
        self.message.pop();
        if self.carrier == Carrier::Udp && self.message.len() > MAX_DATAGRAM {
            let destination = &self.destination;
            self.losses.count += 1;
            self.losses.first.get_or_insert_with(|| {
                format!("{destination}: a record is longer than a datagram; use syslog+tcp:// or --fields")
            });
            return;
        }
        let now = (self.wall_clock_ns)();
        self.transport.renew(now);
        let message = match self.carrier {
            Carrier::Udp => &self.message,
            Carrier::Tcp => {
                self.framed.clear();
                let _unfailing = write!(self.framed, "{} ", self.message.len());
                self.framed.extend_from_slice(&self.message);
                &self.framed
            }
        };
        let sent = self.transport.send(message, now);
        let was_unsure = std::mem::replace(
            &mut self.may_be_refused,
            matches!(sent, Sent::Yes | Sent::EarlierRefused(_)),
        );
        self.losses.count += match sent {
            Sent::Yes => 0,
            Sent::EarlierRefused(_) => u64::from(was_unsure),
            Sent::No(_) | Sent::NotTried => 1,
        };
        if let Sent::EarlierRefused(error) | Sent::No(error) = sent {
            let destination = &self.destination;
            self.losses.first.get_or_insert_with(|| {
                format!("{destination}: {error}; records are lost until it listens")
            });
        }
    }
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

impl<K: RecordKind> Sink<K> for SyslogSink<K> {
    fn write(&mut self, batch: &K::Batch) -> Result<(), SinkError> {
        for view in batch.views() {
            self.send(&view);
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), SinkError> {
        Ok(())
    }

    fn losses(&self) -> SinkLosses {
        self.losses.clone()
    }

    fn finish(&mut self) -> Result<(), SinkError> {
        self.transport.close();
        Ok(())
    }
}
