//! TLS within a flow: its records are walked by their headers, and what is in clear of the
//! handshake is read.
//!
//! Within a record of application data a segment costs one subtraction. A hello or a certificate
//! that spans segments or records waits in a buffer of the pool. Of TLS 1.3 the end of the
//! handshake is encrypted: its records count as application data, as anybody without the keys
//! must.

use linkweir_proto::tls::{
    Alpn, Carrier, ContentType, Ja4, MessageHeader, Parsed, RecordHeader, Ssl2Hello,
    certificate_name, first_certificate, message_type, parse_client_hello, parse_server_hello,
};
use linkweir_record::flow::{FlowBatch, Protocol};
use linkweir_wire::Side;

use super::gather::{GatherId, MAX_BYTES};
use super::handle::Handle;
use super::sessions::SinceStart;
use super::state::State;
use super::texts::{Budget, Text};
use super::{Layer7, Segment, Shared};

impl Layer7 {
    /// Payload of a TLS flow in stream order.
    #[inline]
    pub(super) fn on_tls(&mut self, handle: Handle, segment: &Segment<'_>, out: &mut FlowBatch) {
        let Some(state) = self.slab.get_mut(handle) else {
            return;
        };
        let records = state.side_mut(segment.side).records();
        let len = u32::try_from(segment.payload.len()).unwrap_or(u32::MAX);
        let len = len.saturating_add(segment.missing);
        // The middle of a record: nothing to see.
        if len < records.left && records.content == ContentType::ApplicationData {
            records.left -= len;
            records.data_bytes += u64::from(len);
            return;
        }
        walk(state, &mut self.shared, segment);
        if let Some(handshakes) = &self.shared.handshakes {
            let out = &mut out.handshakes;
            handshakes.write(state, segment.ends, Protocol::Tcp, false, out);
        }
    }
}

/// A gap in one direction.
pub(super) fn lost(state: &mut State, shared: &mut Shared, side: Side, bytes: u32) {
    give_up(state, shared, side);
    state.side_mut(side).records().pass(bytes, false);
}

/// Reads as much of a waiting message as is there, and forgets it.
fn give_up(state: &mut State, shared: &mut Shared, side: Side) {
    let mut id = std::mem::take(&mut state.side_mut(side).gather);
    if !id.is_some() {
        return;
    }
    let bytes = shared.pool.lift(id);
    read_message(state, &mut shared.budget, side, &bytes);
    shared.pool.put_back(id, bytes);
    shared.pool.release(&mut id);
    state.side_mut(side).records().is_closed = true;
}

/// Walks over the records in a segment.
fn walk(state: &mut State, shared: &mut Shared, segment: &Segment<'_>) {
    let side = segment.side;
    let now = SinceStart::at(segment.ts_ns.saturating_sub(segment.ends.start_ns));
    let mut rest = segment.payload;
    if shared.handshakes.is_some() {
        state.begin_handshake(now);
    }
    let records = state.side_mut(side).records();
    if records.is_lost {
        // A segment that begins with a header is where to go on.
        let is_header = |header: &[u8; 5]| RecordHeader::parse(*header).is_some();
        if !rest.first_chunk().is_some_and(is_header) {
            return;
        }
        records.is_lost = false;
    }
    while !rest.is_empty() {
        let records = state.side_mut(side).records();
        if records.left > 0 {
            let count = rest.len().min(records.left as usize);
            let (part, behind) = rest.split_at_checked(count).unwrap_or((rest, &[]));
            rest = behind;
            // No more than `left`.
            records.left -= u32::try_from(part.len()).unwrap_or(records.left);
            match records.content {
                ContentType::ApplicationData => records.data_bytes += part.len() as u64,
                ContentType::Handshake => {
                    if records.first_data.get().is_none() {
                        records.last_handshake = now;
                    }
                    if !records.is_closed {
                        read_handshake(state, shared, side, part, segment.ts_ns);
                    }
                }
                ContentType::Alert => {
                    if let ([_, description], false) = (part, records.is_closed)
                        && let Some(handshake) = state.handshake_mut()
                    {
                        handshake.on_alert(*description);
                    }
                }
                ContentType::ChangeCipherSpec | ContentType::Heartbeat => {}
            }
            continue;
        }
        let Some(bytes) = records.header.take(&mut rest) else {
            break;
        };
        if let Some(header) = RecordHeader::parse(bytes) {
            begin_record(state, side, header, now);
        } else if let (false, Some(hello)) = (records.has_begun, Ssl2Hello::parse(bytes)) {
            records.has_begun = true;
            records.version = hello.version;
            records.last_handshake = now;
            records.content = ContentType::Alert;
            records.left = u32::from(hello.len).saturating_sub(5);
        } else {
            records.is_lost = true;
            give_up(state, shared, side);
            return;
        }
    }
    if segment.missing > 0 {
        give_up(state, shared, side);
        let records = state.side_mut(side).records();
        records.pass(segment.missing, true);
    }
}

fn begin_record(state: &mut State, side: Side, header: RecordHeader, now: SinceStart) {
    let records = state.side_mut(side).records();
    records.has_begun = true;
    records.content = header.content;
    records.left = u32::from(header.len);
    let is_before_data = records.first_data.get().is_none();
    match header.content {
        ContentType::ApplicationData => {
            records.is_closed = true;
            if is_before_data && header.len > 0 {
                records.first_data = now;
            }
        }
        ContentType::Handshake | ContentType::ChangeCipherSpec if is_before_data => {
            records.last_handshake = now;
        }
        _ => {}
    }
    if header.content == ContentType::ChangeCipherSpec {
        change_cipher(state, side);
    }
}

/// A side encrypts from here on. Of TLS 1.3 it means nothing (RFC 8446 appendix D.4), and records
/// that are encrypted have another type.
fn change_cipher(state: &mut State, side: Side) {
    if state.side_mut(Side::Server).records().version >= 0x0304 {
        return;
    }
    let was_open = !std::mem::replace(&mut state.side_mut(side).records().is_closed, true);
    let session = &mut state.tls;
    // RFC 5246 sec. 7.3: a session is resumed where the server's hello is followed by the change of
    // ciphers; with a ticket RFC 5077 sec. 3.1.
    if was_open && side == Side::Server && session.is_answered && !session.is_full {
        session.resumed = if session.has_ticket { 2 } else { 1 };
    }
}

/// Whether a handshake message is gathered and read.
const fn is_read(kind: u8) -> bool {
    matches!(
        kind,
        message_type::CLIENT_HELLO | message_type::SERVER_HELLO | message_type::CERTIFICATE
    )
}

/// Reads the messages in a piece of a handshake record.
fn read_handshake(state: &mut State, shared: &mut Shared, side: Side, piece: &[u8], ts_ns: u64) {
    let mut rest = piece;
    // A message takes one turn, or two where it was cut.
    while !rest.is_empty() {
        let own = state.side_mut(side);
        if own.records().is_closed {
            return;
        }
        if own.records().skip > 0 {
            let count = rest.len().min(own.records().skip as usize);
            let records = own.records();
            records.skip -= u32::try_from(count).unwrap_or(records.skip);
            rest = rest.get(count..).unwrap_or_default();
            continue;
        }
        if own.gather.is_some() {
            let mut id = std::mem::take(&mut own.gather);
            let taken = continue_message(state, shared, side, &mut id, rest, ts_ns);
            state.side_mut(side).gather = id;
            rest = rest.get(taken..).unwrap_or_default();
            continue;
        }
        let Some(header) = rest.first_chunk() else {
            wait(state, shared, side, rest, ts_ns);
            return;
        };
        let header = MessageHeader::parse(*header);
        let len = MessageHeader::LEN + header.len as usize;
        let message = rest.get(..len);
        if !is_read(header.kind) {
            if header.kind == message_type::SERVER_KEY_EXCHANGE
                && let Some(handshake) = state.handshake_mut()
            {
                handshake.on_key_exchange(rest.get(MessageHeader::LEN..).unwrap_or_default());
            }
            pass_message(state, side, header.kind);
        } else if let Some(message) = message {
            read_message(state, &mut shared.budget, side, message);
        } else if is_enough(state, rest) {
            // Of a certificate the beginning.
            read_message(state, &mut shared.budget, side, rest);
        } else {
            wait(state, shared, side, rest, ts_ns);
            return;
        }
        state.side_mut(side).records().skip = u32::try_from(len).unwrap_or(u32::MAX);
    }
}

/// Keeps the beginning of a message; where there is no room, reads what is there.
fn wait(state: &mut State, shared: &mut Shared, side: Side, bytes: &[u8], ts_ns: u64) {
    let own = state.side_mut(side);
    if !shared.pool.append(&mut own.gather, bytes, MAX_BYTES, ts_ns) {
        shared.pool.release(&mut own.gather);
        own.records().is_closed = true;
        read_message(state, &mut shared.budget, side, bytes);
    }
}

/// Whether a message that is cut says already what is wanted of it.
fn is_enough(state: &State, message: &[u8]) -> bool {
    message.first() == Some(&message_type::CERTIFICATE)
        && match state.has_handshake() {
            false => matches!(certificate_name(message), Parsed::Complete(_)),
            true => first_certificate(message).is_some(),
        }
}

/// Puts bytes behind the message that waits; how many of them were taken. Reads the message when it
/// is whole or too long, and gives its buffer back.
fn continue_message(
    state: &mut State,
    shared: &mut Shared,
    side: Side,
    id: &mut GatherId,
    bytes: &[u8],
    ts_ns: u64,
) -> usize {
    let have = shared.pool.bytes(*id).len();
    let header = shared.pool.bytes(*id).first_chunk();
    let Some(header) = header.map(|header| MessageHeader::parse(*header)) else {
        // First the rest of the header.
        let part = bytes
            .get(..MessageHeader::LEN - have.min(3))
            .unwrap_or(bytes);
        shared.pool.append(id, part, MAX_BYTES, ts_ns);
        if let Some(header) = shared.pool.bytes(*id).first_chunk() {
            let header = MessageHeader::parse(*header);
            if !is_read(header.kind) {
                pass_message(state, side, header.kind);
                shared.pool.release(id);
                state.side_mut(side).records().skip = header.len;
            }
        }
        return part.len();
    };
    let len = MessageHeader::LEN + header.len as usize;
    let missing = len.saturating_sub(have);
    let part = bytes.get(..missing).unwrap_or(bytes);
    let fits = shared.pool.append(id, part, MAX_BYTES, ts_ns);
    if !fits || part.len() == missing || is_enough(state, shared.pool.bytes(*id)) {
        let message = shared.pool.lift(*id);
        read_message(state, &mut shared.budget, side, &message);
        shared.pool.put_back(*id, message);
        shared.pool.release(id);
        let skip = missing - part.len();
        state.side_mut(side).records().skip = u32::try_from(skip).unwrap_or(u32::MAX);
    }
    part.len()
}

/// A message that is not read.
fn pass_message(state: &mut State, side: Side, kind: u8) {
    match kind {
        message_type::SERVER_KEY_EXCHANGE | message_type::SERVER_HELLO_DONE => {
            state.tls.is_full = true;
        }
        0..=6 | 8 | 13..=16 | 20..=25 => {}
        // No message has this number: bytes are missing, or encrypted.
        _ => state.side_mut(side).records().is_closed = true,
    }
}

/// Reads a message, whole or cut.
fn read_message(state: &mut State, budget: &mut Budget, side: Side, message: &[u8]) {
    match message.first() {
        Some(&message_type::CLIENT_HELLO) => {
            if let Some(hello) = parse_client_hello(message).seen() {
                state.side_mut(side).records().version = hello.version;
                state.tls.has_ticket |= hello.has_ticket;
                state.tls.has_ech |= hello.has_ech;
                state.texts.set(Text::Sni, hello.server_name, budget);
                set_alpn(state, budget, Text::ClientAlpn, hello.alpn);
                set_ja4(state, budget, Carrier::Tcp, message);
            }
        }
        Some(&message_type::SERVER_HELLO) => {
            if let Some(hello) = parse_server_hello(message).seen() {
                state.side_mut(side).records().version = hello.version;
                state.tls.is_answered = true;
                if let Some(handshake) = state.handshake_mut() {
                    handshake.on_server_hello(&hello);
                }
                if hello.has_pre_shared_key {
                    state.tls.resumed = 2;
                }
                set_alpn(state, budget, Text::ServerAlpn, hello.alpn);
            }
        }
        Some(&message_type::CERTIFICATE) => {
            state.tls.is_full = true;
            if let (Side::Server, Some(handshake)) = (side, state.handshake_mut()) {
                handshake.on_certificate(message);
            }
            if let (Side::Server, Parsed::Complete(name)) = (side, certificate_name(message)) {
                state.texts.set(Text::CertificateName, name, budget);
            }
        }
        _ => {}
    }
}

/// The fingerprint of a client, of its first hello that is whole.
pub(super) fn set_ja4(state: &mut State, budget: &mut Budget, carrier: Carrier, message: &[u8]) {
    if state.texts.get(Text::Ja4).is_empty()
        && let Some(ja4) = Ja4::of(carrier, message)
    {
        state.texts.set(Text::Ja4, ja4.as_bytes(), budget);
    }
}

/// Protocols, joined by commas.
pub(super) fn set_alpn(state: &mut State, budget: &mut Budget, which: Text, alpn: Alpn<'_>) {
    let mut joined = [0; 255];
    let mut len = 0;
    for name in alpn {
        let comma: &[u8] = if len == 0 { b"" } else { b"," };
        let end = len + comma.len() + name.len();
        let Some(room) = joined.get_mut(len..end) else {
            break;
        };
        let (first, second) = room.split_at_mut(comma.len());
        first.copy_from_slice(comma);
        second.copy_from_slice(name);
        len = end;
    }
    let joined = joined.get(..len).unwrap_or_default();
    state.texts.set(which, joined, budget);
}
