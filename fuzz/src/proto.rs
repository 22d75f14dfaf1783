//! Parsers of protocols on arbitrary bytes.

use linkweir_proto::application::{Opening, UdpMemory, Verdict, classify_tcp, classify_udp};
use linkweir_proto::dns::{Data, MAX_NAME, Message, Name, take_framed};
use linkweir_proto::http1::{
    MAX_HEAD, Outcome, chunked_length, classify, parse_request, parse_response,
};
use linkweir_proto::http2::direction::{Direction, Headers, Listener};
use linkweir_proto::http2::frame::{FrameHeader, HEADER, content, promised, settings};
use linkweir_proto::http2::hpack::{Decoder, Field, MAX_FIELDS, Strings};
use linkweir_proto::http3::frame::{FrameHeader as Http3Header, purpose, table_capacity};
use linkweir_proto::http3::qpack::{Decoder as Qpack, Section};
use linkweir_proto::quic::{
    ClientInitials, Frames, Kind, LongHeader, Progress, parse_google_hello, public_version,
    user_agent,
};
use linkweir_proto::rtp::{Compound, MediaPacket, is_control};
use linkweir_proto::tls::{
    Carrier, Ja4, Parsed, RecordHeader, Ssl2Hello, certificate_name, parse_client_hello,
    parse_server_hello,
};

const PORTS: [u16; 16] = [
    0, 21, 25, 53, 80, 110, 123, 143, 389, 443, 1863, 1900, 1935, 3389, 5353, 40_000,
];

/// Classifies arbitrary openings: the first byte is what the ports are, the second and third how long
/// the client's part is. An answer about a side stays what it is when the other side is known to be
/// silent, and datagrams end the wait.
pub(crate) fn application(input: &[u8]) {
    let Some((&[ports, high, low], payload)) = input.split_first_chunk() else {
        return;
    };
    let (client_port, server_port) = (
        PORTS[usize::from(ports >> 4)],
        PORTS[usize::from(ports & 15)],
    );
    let at = usize::from(u16::from_be_bytes([high, low])).min(payload.len());
    let (client, server) = payload.split_at(at);
    let opening = Opening {
        client,
        server,
        client_port,
        server_port,
    };
    let verdict = classify_tcp(&opening);
    assert_eq!(verdict, classify_tcp(&opening));
    if client.is_empty() && server.is_empty() {
        assert_eq!(verdict, Verdict::More);
    }
    let mut memory = UdpMemory::default();
    for round in 0..300 {
        let is_from_client = round % 2 == 0;
        let datagram = if is_from_client { client } else { server };
        match classify_udp(
            datagram,
            is_from_client,
            client_port,
            server_port,
            &mut memory,
        ) {
            Verdict::More => assert!(round < 20, "waits for ever"),
            Verdict::Likely(_) => assert!(round < 254, "waits for ever"),
            Verdict::Is(_) | Verdict::No => break,
        }
    }
}

fn read(bytes: &[u8]) {
    let Some(message) = Message::parse(bytes) else {
        return;
    };
    let mut name = Name::default();
    let question = message.question(&mut name);
    assert!(name.as_bytes().len() <= MAX_NAME);
    assert!(question.is_some() || !message.is_certain());
    let [_, announced, ..] = message.counts();
    let mut records = 0;
    for answer in message.answers() {
        records += 1;
        let mut is_whole = message.read_name(answer.owner, &mut name);
        match answer.data {
            Data::Cname(target) | Data::Name(_, target) => {
                is_whole |= message.read_name(target, &mut name);
            }
            Data::Txt(at) => assert!(message.texts(at).all(|text| text.len() < 256)),
            _ => {}
        }
        assert!(is_whole || name.as_bytes().is_empty());
        assert!(name.as_bytes().len() <= MAX_NAME);
    }
    assert!(records <= usize::from(announced));
}

/// Reads arbitrary bytes as messages of DNS, and as a stream of them: no name is longer than names
/// are, and there are no more records than the header says.
pub(crate) fn dns(input: &[u8]) {
    read(input);
    let mut rest = input;
    while let Some((message, behind)) = take_framed(rest) {
        read(message);
        rest = behind;
    }
}

/// Parses arbitrary bytes as heads: whatever they are, slices stay inside, and a head that is whole
/// is the same head however it is cut.
pub(crate) fn http1(input: &[u8]) {
    let _ = classify(input);
    if let Outcome::Complete(head, len) = parse_request(input) {
        assert!(len <= input.len().min(MAX_HEAD));
        assert!(!head.method.is_empty() && !head.target.is_empty());
        assert_eq!(parse_request(&input[..len]), Outcome::Complete(head, len));
        if len > 1 {
            assert!(!matches!(
                parse_request(&input[..len - 1]),
                Outcome::Complete(..)
            ));
        }
    }
    if let Outcome::Complete(head, len) = parse_response(input) {
        assert!(len <= input.len().min(MAX_HEAD));
        assert!((100..=999).contains(&head.status_code));
        assert_eq!(parse_response(&input[..len]), Outcome::Complete(head, len));
    }
    if let Some(len) = chunked_length(input) {
        assert!(len <= input.len());
        assert_eq!(chunked_length(&input[..len]), Some(len));
    }
}

/// Reads arbitrary bytes as a packet of RTP and as a compound packet of RTCP: no payload is longer than the
/// datagram, and no packet has more reports than it can announce and hold.
pub(crate) fn rtp(input: &[u8]) {
    let len = u32::try_from(input.len()).unwrap_or(u32::MAX);
    if let Some(packet) = MediaPacket::parse(input) {
        assert!(packet.payload_len(len) <= len && packet.header_len >= 12);
    }
    if let Some(compound) = Compound::parse(input) {
        assert!(is_control(input));
        let mut bytes = 0;
        for packet in compound.packets() {
            let blocks = packet.blocks.count();
            assert!(blocks <= 31);
            bytes += 4 + 24 * blocks;
        }
        assert!(bytes <= input.len());
    }
}

/// Takes arbitrary bytes as datagrams of a client (each with its length in two bytes in front), as
/// Google's hello and as transport parameters: whatever they are, slices stay inside, and a client
/// is decrypted four times at most.
pub(crate) fn quic(input: &[u8]) {
    let _ = (
        public_version(input),
        parse_google_hello(input),
        user_agent(input),
    );
    let mut client = ClientInitials::new();
    let mut rest = input;
    let mut initials = 0;
    while let Some(([high, low], behind)) = rest.split_first_chunk() {
        let len = usize::from(*high) << 8 | usize::from(*low);
        let (mut datagram, next) = behind.split_at_checked(len).unwrap_or((behind, &[]));
        rest = next;
        while let Some(header) = LongHeader::parse(datagram) {
            assert!(header.number_at <= datagram.len());
            if header.kind == Kind::Initial {
                initials += 1;
                let progress = client.on_packet(datagram, &header);
                assert!(initials < 4 || progress != Progress::More);
                assert!(client.hello().len() <= 8192);
            }
            if header.len == 0 {
                break;
            }
            datagram = datagram.get(header.len..).unwrap_or_default();
        }
    }
}

/// Parses arbitrary bytes as hellos, certificates and records: what is whole is the same however
/// much follows, and what is cut is never whole.
pub(crate) fn tls(input: &[u8]) {
    if let Some(header) = input.first_chunk() {
        let _ = (RecordHeader::parse(*header), Ssl2Hello::parse(*header));
    }
    let len = |message: &[u8]| {
        4 + usize::from(message[1]) * 65536
            + usize::from(message[2]) * 256
            + usize::from(message[3])
    };
    if let Some(ja4) = Ja4::of(Carrier::Quic, input) {
        // More bytes change nothing, fewer leave none.
        let (whole, cut) = (&input[..len(input)], &input[..len(input) - 1]);
        assert_eq!(Ja4::of(Carrier::Quic, whole), Some(ja4));
        assert_eq!(Ja4::of(Carrier::Quic, cut), None);
        assert!(ja4.as_bytes().is_ascii());
    }
    if let Parsed::Complete(hello) = parse_client_hello(input) {
        let len = len(input);
        assert!(hello.alpn.count() <= len && hello.session_id.len() <= 32);
        assert_eq!(parse_client_hello(&input[..len]), Parsed::Complete(hello));
        assert!(!matches!(
            parse_client_hello(&input[..len - 1]),
            Parsed::Complete(_)
        ));
    }
    if let Parsed::Complete(hello) = parse_server_hello(input) {
        let len = len(input);
        assert_eq!(parse_server_hello(&input[..len]), Parsed::Complete(hello));
        assert!(!matches!(
            parse_server_hello(&input[..len - 1]),
            Parsed::Complete(_)
        ));
    }
    if let Parsed::Complete(name) = certificate_name(input) {
        // More bytes change nothing.
        let longer = [input, &[0; 8]].concat();
        assert!(matches!(certificate_name(&longer), Parsed::Complete(same) if same == name));
    }
}

/// Frames with their payloads as header blocks, read from the beginning and late: what both know is the same. No entry
/// is larger than the smaller table: payloads are short.
pub(crate) fn http2(input: &[u8]) {
    let (mut first, mut late) = (Decoder::new(), Decoder::joined_late());
    let mut strings = Strings::default();
    let mut rest = input;
    while let Some((header, behind)) = rest.split_first_chunk::<HEADER>() {
        let header = FrameHeader::parse(header);
        let length = (header.length as usize % 512).min(behind.len());
        let (payload, behind) = behind.split_at(length);
        rest = behind;
        if let Some(block) = content(&header, payload) {
            let (mut whole, mut partial) = (Vec::new(), Vec::new());
            let mut held = 0;
            let own = |part: Option<&[u8]>| part.map(<[u8]>::to_vec);
            let all = first.decode(
                block,
                &mut strings,
                |_| true,
                |field| {
                    held += field.name.map_or(0, <[u8]>::len) + field.value.map_or(0, <[u8]>::len);
                    whole.push((own(field.name), own(field.value)));
                },
            );
            assert!(held <= MAX_FIELDS);
            let some = late.decode(
                block,
                &mut strings,
                |_| true,
                |field| {
                    partial.push((own(field.name), own(field.value)));
                },
            );
            assert_eq!(all.map(|all| all.fields), some.map(|some| some.fields));
            for (one, other) in whole.iter().zip(&partial) {
                assert!(one.0.is_none() || other.0.is_none() || one.0 == other.0);
                assert!(one.1.is_none() || other.1.is_none() || one.1 == other.1);
            }
        }
        let _promised = promised(&header, payload);
        assert!(settings(payload).count() <= payload.len() / 6);
    }
}

/// What a direction says of content: no more than there was.
#[derive(Default)]
struct Content {
    captured: usize,
    all: u64,
}

impl Listener for Content {
    fn field(&mut self, _: Field<'_>) {}
    fn headers(&mut self, headers: &Headers) {
        assert!(headers.from_ns <= headers.to_ns);
    }
    fn data(&mut self, _: u32, bytes: &[u8], len: u32, _: bool, _: u64) {
        self.captured += bytes.len();
        self.all += u64::from(len);
    }
    fn reset(&mut self, _: u32, _: u32, _: u64) {}
    fn goaway(&mut self, _: u32, _: u64) {}
}

/// A direction in segments with gaps: the first byte says how it begins, then each segment has its length and how
/// many bytes are missing behind it in front.
pub(crate) fn http2_direction(input: &[u8]) {
    let Some((how, mut rest)) = input.split_first() else {
        return;
    };
    let mut direction = match how % 3 {
        0 => Direction::of_client(),
        1 => Direction::of_server(),
        _ => Direction::joined_late(),
    };
    let (mut content, mut strings) = (Content::default(), Strings::default());
    let (mut pushed, mut missing, mut now) = (0, 0_u64, 0);
    while let Some((&[len, gap], behind)) = rest.split_first_chunk() {
        let (segment, behind) = behind.split_at(usize::from(len).min(behind.len()));
        rest = behind;
        now += 1;
        direction.push(segment, now, &mut strings, &mut content);
        direction.gap(u32::from(gap), now, &mut content);
        pushed += segment.len();
        missing += u64::from(gap);
        assert!(content.captured <= pushed);
        assert!(content.all <= pushed as u64 + missing);
        assert!(direction.counters().skipped <= pushed as u64);
    }
}

/// Insertions into the table of QPACK, in two pieces, and a field section; and the same bytes as frames of QUIC and HTTP/3.
/// However the insertions are cut, the section says the same.
///
/// Input: the capacity in steps of 32 bytes, the length of the insertions, where they are cut; insertions, section.
pub(crate) fn qpack(input: &[u8]) {
    let Some((&[capacity, len, at], rest)) = input.split_first_chunk() else {
        return;
    };
    std::hint::black_box(Frames::of(rest).count());
    std::hint::black_box((
        purpose(rest),
        Http3Header::parse(rest),
        table_capacity(rest),
    ));
    let (insertions, section) = rest.split_at(usize::from(len).min(rest.len()));
    let read = |cut: usize| {
        let mut decoder = Qpack::default();
        let mut strings = Strings::default();
        decoder.allow(u64::from(capacity) * 32);
        let (first, _) = insertions.split_at(cut.min(insertions.len()));
        let read = decoder
            .instructions(first, &mut strings)
            .unwrap_or(first.len());
        let rest = insertions.get(read..).unwrap_or_default();
        let _faults = decoder.instructions(rest, &mut strings);
        let mut held = 0;
        let decoded = decoder.decode(section, &mut strings, |field| {
            let len = |part: Option<&[u8]>| part.map_or(0, <[u8]>::len);
            held += len(field.name) + len(field.value);
        });
        assert!(held <= MAX_FIELDS);
        if let Ok(Section::Read(decoded)) = decoded {
            assert!(decoded.unknown <= decoded.fields);
        }
        decoded
    };
    assert_eq!(read(usize::from(at)), read(usize::MAX));
}
