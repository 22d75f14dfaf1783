//! The first bytes of a connection, and what they say.

use linkweir_proto::application::{
    Application, UdpMemory, Verdict, classify_tcp, classify_udp, has_bittorrent_handshake,
};
use linkweir_proto::quic::{ClientInitials, LongHeader, Progress};
use linkweir_proto::tls::{
    Carrier, Ja4, MessageHeader, Parsed, RecordHeader, certificate_dns_names, certificate_name,
    message_type, parse_client_hello, parse_server_hello,
};

use super::Ends;
use crate::inspect::Side;
use crate::policy::{Action, Label, Policy, Shown, Wait};

/// The content type of handshake messages (RFC 8446 sec. 5.1).
const HANDSHAKE: u8 = 22;
/// Datagrams that are inspected where a rule drops some: what comes first disguises nothing.
const DATAGRAMS: u8 = 16;
/// Bytes in which the name of a `ClientHello` is looked for where a rule asks for it: what a record has.
const MAX_HELLO: usize = 1 << 14;
/// Bytes that the packets after which a connection is unknown must have together.
const ENOUGH_BYTES: usize = 128;
/// Bytes of no application that is known yet.
const UNKNOWN_YET: Classified = Classified::More(Label::Unknown, Wait::Application);
/// A hello that is not complete.
const HELLO_OF_TLS: Classified = Classified::More(Label::Known(Application::Tls), Wait::Hello);
const HELLO_OF_QUIC: Classified = Classified::More(Label::Known(Application::Quic), Wait::Hello);

/// What the first bytes say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Classified {
    /// It is this, and shows this of itself.
    Is(Label, Shown),
    /// It is this so far, and its rule allows it; what comes behind it is looked at, too. Said once.
    Passes(Label, Shown),
    /// More bytes may decide; what it is so far, and what they may bring.
    More(Label, Wait),
    /// A rule asks for what does not come.
    Hidden(&'static str),
}

/// The first bytes of both sides.
#[derive(Debug, Default)]
pub(crate) struct Opening {
    /// Of the client, then of the server; empty as long as nothing came.
    bytes: [Vec<u8>; 2],
    packets: u8,
    udp: UdpMemory,
    /// What datagrams so far were, where a rule may drop what comes behind.
    so_far: Option<(Label, Shown)>,
    quic: Option<Box<ClientInitials>>,
    /// What it is so far, and what it waits for.
    waits: Waits,
}

/// What a connection is so far, and what it waits for.
#[derive(Debug, Clone, Copy)]
struct Waits(Label, Wait);

impl Default for Waits {
    fn default() -> Self {
        Self(Label::Unknown, Wait::Application)
    }
}

impl Opening {
    /// What it is so far, and what it waits for.
    pub(crate) const fn waits(&self) -> (Label, Wait) {
        let Waits(label, wait) = self.waits;
        (label, wait)
    }

    fn note(&mut self, classified: Classified) -> Classified {
        if let Classified::More(label, wait) = classified {
            self.waits = Waits(label, wait);
        }
        classified
    }

    /// What a side has sent so far, in order: what the inspector has not seen yet.
    pub(crate) fn bytes(&self, side: Side) -> &[u8] {
        let [client, server] = &self.bytes;
        match side {
            Side::Client => client,
            Side::Server => server,
        }
    }

    /// Takes the next bytes of a side of a TCP connection.
    ///
    /// All of a packet is kept, also beyond the bound: a packet passes as a whole and its rest would
    /// be missing later.
    pub(crate) fn on_bytes(
        &mut self,
        side: Side,
        bytes: &[u8],
        ends: Ends,
        policy: &Policy,
    ) -> Classified {
        self.packets = self.packets.saturating_add(1);
        let [client, server] = &mut self.bytes;
        match side {
            Side::Client => client.extend_from_slice(bytes),
            Side::Server => server.extend_from_slice(bytes),
        }
        let most = policy.limits.classify_bytes;
        // Packets of a few bytes are no evidence of anything, and whoever sends them first would decide.
        let total: usize = self.bytes.iter().map(Vec::len).sum();
        let enough = policy.limits.classify_packets;
        let is_over = (self.packets >= enough && total >= ENOUGH_BYTES)
            || self.packets >= enough.saturating_mul(8)
            || self.bytes.iter().any(|bytes| bytes.len() >= most);
        let [client, server] = self.bytes.each_ref().map(Vec::as_slice);
        let [looked_at, answered] =
            [client, server].map(|bytes| bytes.get(..most).unwrap_or(bytes));
        let own = own_signature(policy, looked_at, answered, most);
        if let Verdicts::Is(at) = own {
            return Classified::Is(Label::Own(at), Shown::default());
        }
        let verdict = classify_tcp(&linkweir_proto::application::Opening {
            client: looked_at,
            server: answered,
            client_port: ends.client.1,
            server_port: ends.server.1,
        });
        let classified = match verdict {
            // A field further down may say that it is FastTrack or Gnutella: nothing depends on it where one rule inspects all
            // of them, and nothing passes meanwhile.
            Verdict::Likely(application)
                if !is_over && !policy.inspects_alike(application, &ends) =>
            {
                Classified::More(Label::Known(application), Wait::Head)
            }
            // The name may still come.
            Verdict::Is(Application::Tls) => match client_shows(client, policy) {
                None if !is_over => HELLO_OF_TLS,
                // Where a rule asks for it, neither tiny segments nor what stands before it hide it.
                None if policy.asks_tls() && client.len() < MAX_HELLO => HELLO_OF_TLS,
                None if policy.asks_tls() => Classified::Hidden("a ClientHello beyond 16 KiB"),
                shown => {
                    // What a client sends without an answer is not kept for ever.
                    let waits = client.len() < 2 * MAX_HELLO && server.len() < MAX_HELLO;
                    let shown = shown.unwrap_or_default();
                    if policy.asks_certificate(&ends) {
                        with_certificate(shown, server, waits)
                    } else {
                        is(Application::Tls, shown)
                    }
                }
            },
            Verdict::Is(application) | Verdict::Likely(application) => {
                is(application, Shown::default())
            }
            Verdict::More if !is_over => UNKNOWN_YET,
            Verdict::More | Verdict::No => hidden(policy, looked_at, answered, is_over),
        };
        let classified = own.may_change(classified, ends, policy, is_over);
        self.note(classified)
    }

    /// Takes a datagram.
    pub(crate) fn on_datagram(
        &mut self,
        side: Side,
        bytes: &[u8],
        ends: Ends,
        policy: &Policy,
    ) -> Classified {
        let so_far = self
            .so_far
            .as_ref()
            .map_or(Label::Unknown, |(label, _)| *label);
        let is_last = self.packets.saturating_add(1) >= DATAGRAMS;
        match self.look_at(side, bytes, ends, policy) {
            // What goes on behind something known says nothing of itself, as a QUIC connection does.
            Classified::Is(Label::Unknown, _) if so_far != Label::Unknown => self.begin_again(),
            Classified::Is(label, shown)
                if policy.rule(label, &ends, &shown).action == Action::Allow
                    && policy.rule_against_datagrams(&ends).is_some() =>
            {
                self.begin_again();
                if so_far == Label::Unknown {
                    self.so_far = Some((label, shown.clone()));
                    if label != Label::Unknown && !is_last {
                        return Classified::Passes(label, shown);
                    }
                }
            }
            other => return self.note(other),
        }
        let classified = match self.so_far.take_if(|_| is_last) {
            Some((label, shown)) => Classified::Is(label, shown),
            None => Classified::More(so_far, Wait::Datagrams),
        };
        self.note(classified)
    }

    /// The next datagram is inspected as if it were the first.
    fn begin_again(&mut self) {
        self.bytes = Default::default();
        self.udp = UdpMemory::default();
        self.quic = None;
    }

    fn look_at(&mut self, side: Side, bytes: &[u8], ends: Ends, policy: &Policy) -> Classified {
        self.packets = self.packets.saturating_add(1);
        let enough = policy.limits.classify_packets;
        let is_over = self.packets >= enough;
        let most = policy.limits.classify_bytes;
        // Datagrams have no order: the first of each side counts.
        let first = match side {
            Side::Client => 0,
            Side::Server => 1,
        };
        if let Some(kept) = self.bytes.get_mut(first).filter(|kept| kept.is_empty()) {
            kept.extend_from_slice(bytes.get(..most).unwrap_or(bytes));
        }
        let [looked_at, answered] = self.bytes.each_ref().map(Vec::as_slice);
        let own = own_signature(policy, looked_at, answered, most);
        if let Verdicts::Is(at) = own {
            return Classified::Is(Label::Own(at), Shown::default());
        }
        let classified = self.known(side, bytes, ends, policy, is_over);
        own.may_change(classified, ends, policy, is_over)
    }

    /// What a datagram says to the signatures of the program.
    fn known(
        &mut self,
        side: Side,
        bytes: &[u8],
        ends: Ends,
        policy: &Policy,
        is_over: bool,
    ) -> Classified {
        let enough = policy.limits.classify_packets;
        if self.quic.is_some() {
            return self.on_quic(side, bytes, policy, is_over);
        }
        let is_from_client = side == Side::Client;
        let verdict = classify_udp(
            bytes,
            is_from_client,
            ends.client.1,
            ends.server.1,
            &mut self.udp,
        );
        match verdict {
            // What opens the way is some dozen datagrams, and what goes on has another rule.
            Verdict::Likely(so_far)
                if self.packets < enough.saturating_mul(8)
                    && policy.rule_of_more(so_far, &ends).is_some() =>
            {
                Classified::More(Label::Known(so_far), Wait::More)
            }
            Verdict::Is(Application::Quic) => {
                self.quic = Some(Box::default());
                self.on_quic(side, bytes, policy, is_over)
            }
            Verdict::Is(application) | Verdict::Likely(application) => {
                is(application, Shown::default())
            }
            Verdict::More if !is_over => UNKNOWN_YET,
            Verdict::More | Verdict::No => Classified::Is(Label::Unknown, Shown::default()),
        }
    }

    /// Looks for the server name in the client's Initial packets.
    fn on_quic(
        &mut self,
        side: Side,
        datagram: &[u8],
        policy: &Policy,
        is_over: bool,
    ) -> Classified {
        let Some(client) = self.quic.as_mut().filter(|_| side == Side::Client) else {
            return if is_over {
                is(Application::Quic, Shown::default())
            } else {
                HELLO_OF_QUIC
            };
        };
        let mut progress = Progress::More;
        let mut has_initial = false;
        let mut rest = datagram;
        while progress == Progress::More {
            let Some(header) = LongHeader::parse(rest) else {
                break;
            };
            has_initial = true;
            progress = client.on_packet(rest, &header);
            rest = rest.get(header.len..).unwrap_or_default();
        }
        // A client that has gone on to short headers says no name any more.
        if progress == Progress::More && has_initial && !is_over {
            return HELLO_OF_QUIC;
        }
        let shown = shown_of(client.hello(), Carrier::Quic, policy);
        is(Application::Quic, shown)
    }
}

/// A peer of BitTorrent that first exchanges keys (MSE) and then goes on in clear. It is waited for only
/// where a rule asks for it.
fn hidden(policy: &Policy, client: &[u8], server: &[u8], is_over: bool) -> Classified {
    if policy.names(Application::BitTorrent) {
        if has_bittorrent_handshake(client) || has_bittorrent_handshake(server) {
            return is(Application::BitTorrent, Shown::default());
        }
        if !is_over {
            return UNKNOWN_YET;
        }
    }
    Classified::Is(Label::Unknown, Shown::default())
}

const fn is(application: Application, shown: Shown) -> Classified {
    Classified::Is(Label::Known(application), shown)
}

/// What the signatures of the policy say together.
enum Verdicts {
    Is(u16),
    Open,
    No,
}

impl Verdicts {
    /// What is decided where a signature may still fit: what passes meanwhile must not pass a rule that looks, or that
    /// lets nothing pass.
    fn may_change(
        &self,
        classified: Classified,
        ends: Ends,
        policy: &Policy,
        is_over: bool,
    ) -> Classified {
        match (self, &classified) {
            (Self::Open, Classified::Is(label, shown))
                if !is_over
                    && (*label == Label::Unknown
                        || policy.rule(*label, &ends, shown).action == Action::Allow
                            && !policy.reads_requests(*label, &ends, shown)) =>
            {
                Classified::More(*label, Wait::Signature)
            }
            _ => classified,
        }
    }
}

fn own_signature(policy: &Policy, client: &[u8], server: &[u8], most: usize) -> Verdicts {
    use crate::policy::Fit;
    let mut all = Verdicts::No;
    for (at, signature) in policy.signatures.iter().enumerate() {
        match signature.fit(client, server, most) {
            Fit::Yes => return Verdicts::Is(u16::try_from(at).unwrap_or(u16::MAX)),
            Fit::Open => all = Verdicts::Open,
            Fit::No => {}
        }
    }
    all
}

/// What the `ClientHello` at the start of a stream shows; nothing where more bytes may bring what is asked for, empty
/// where there is none.
fn client_shows(stream: &[u8], policy: &Policy) -> Option<Shown> {
    let Some(message) = handshake_of(stream) else {
        return Some(Shown::default());
    };
    match parse_client_hello(&message) {
        Parsed::Complete(_) => Some(shown_of(&message, Carrier::Tcp, policy)),
        Parsed::Partial(hello) if !hello.server_name.is_empty() && !policy.asks_hello() => {
            Some(shown_of(&message, Carrier::Tcp, policy))
        }
        Parsed::Partial(_) => None,
        // SSL 2, or the server's stream only.
        Parsed::Not if stream.is_empty() => None,
        Parsed::Not => Some(Shown::default()),
    }
}

/// The first handshake message of a stream, and what follows it in the records: a message may go over several. Nothing where
/// a record is of another kind.
fn handshake_of(stream: &[u8]) -> Option<Vec<u8>> {
    let mut message = Vec::new();
    let mut rest = stream;
    while let Some((header, after)) = rest.split_first_chunk::<{ RecordHeader::LEN }>() {
        // Servers do not look at the minor version of the first records (RFC 8446 sec. 5.1).
        let [HANDSHAKE, 3, _, high, low] = *header else {
            return None;
        };
        let len = usize::from(u16::from_be_bytes([high, low]));
        message.extend_from_slice(after.get(..len).unwrap_or(after));
        rest = after.get(len..).unwrap_or_default();
        if is_whole(&message) {
            break;
        }
    }
    Some(message)
}

/// What a hello shows of what rules ask for.
fn shown_of(message: &[u8], carrier: Carrier, policy: &Policy) -> Shown {
    let Some(hello) = parse_client_hello(message).seen() else {
        return Shown::default();
    };
    let asks = policy.asks_hello();
    Shown {
        server_name: host(hello.server_name),
        ja4: asks.then(|| Ja4::of(carrier, message)).flatten(),
        alpn: hello.alpn.filter(|_| asks).map(<[u8]>::to_vec).collect(),
        has_ech: Some(hello.has_ech),
        certificate: Vec::new(),
    }
}

/// Waits for the server's certificate where a rule asks for it and it comes in clear.
fn with_certificate(shown: Shown, server: &[u8], waits: bool) -> Classified {
    match certificate_in(server) {
        None if waits => Classified::More(Label::Known(Application::Tls), Wait::Certificate),
        certificate => {
            let certificate = certificate.unwrap_or_default();
            is(
                Application::Tls,
                Shown {
                    certificate,
                    ..shown
                },
            )
        }
    }
}

/// The names in the certificate that a server's stream begins with; nothing where more bytes may bring it, empty where it does
/// not come in clear: of TLS 1.3, of a resumed session, or where something else comes.
fn certificate_in(stream: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut messages = Vec::new();
    let mut rest = stream;
    let mut goes_on = true;
    while let Some((header, after)) = rest.split_first_chunk::<{ RecordHeader::LEN }>() {
        let [HANDSHAKE, 3, _, high, low] = *header else {
            goes_on = false;
            break;
        };
        let len = usize::from(u16::from_be_bytes([high, low]));
        messages.extend_from_slice(after.get(..len).unwrap_or(after));
        rest = after.get(len..).unwrap_or_default();
    }
    let mut rest = messages.as_slice();
    while let Some((header, _)) = rest.split_first_chunk::<{ MessageHeader::LEN }>() {
        let header = MessageHeader::parse(*header);
        let len = MessageHeader::LEN + header.len as usize;
        let Some(message) = rest.get(..len) else {
            break;
        };
        match header.kind {
            message_type::SERVER_HELLO => {
                const TLS_1_3: u16 = 0x0304;
                let hello = parse_server_hello(message).seen();
                if hello.is_none_or(|hello| hello.version >= TLS_1_3) {
                    return Some(Vec::new());
                }
            }
            message_type::CERTIFICATE => {
                let mut names = certificate_dns_names(message);
                names.extend(certificate_name(message).seen());
                return Some(names.into_iter().map(<[u8]>::to_vec).collect());
            }
            _ => return Some(Vec::new()),
        }
        rest = rest.get(len..).unwrap_or_default();
    }
    (!goes_on).then(Vec::new)
}

/// A server name without the dot of the root, which servers leave out.
fn host(name: &[u8]) -> Vec<u8> {
    name.strip_suffix(b".").unwrap_or(name).to_vec()
}

fn is_whole(message: &[u8]) -> bool {
    message
        .split_first_chunk::<{ MessageHeader::LEN }>()
        .is_some_and(|(header, body)| body.len() >= MessageHeader::parse(*header).len as usize)
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};
    use std::sync::Arc;

    use linkweir_engine::effect::MarkLayout;
    use linkweir_record::Place;

    use super::*;
    use crate::policy::{Action, Applications, Limits, Rule, Signature};

    const ENDS: Ends = Ends {
        client: (IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), 40_000),
        server: (IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 40_001),
        places: [Place::new("", 0), Place::new("", 0)],
        minute: 0,
        used_up: 0,
    };

    /// A rule for each application of these, by its name.
    fn policy(applications: &[(&str, Action)]) -> Policy {
        let rules = applications.iter().map(|(name, action)| {
            let application = Application::from_name(name).expect("an application");
            let mut rule = Rule::any(name, 1, *action);
            rule.applications = Applications::Of(vec![Label::Known(application)]);
            Arc::new(rule)
        });
        Policy {
            marks: MarkLayout::default(),
            limits: Limits::default(),
            signatures: Vec::new(),
            rules: rules.collect(),
            default: Arc::new(Rule::any("default", 0, Action::Allow)),
            places: None,
            local_minute: None,
            quotas: None,
        }
    }

    /// The rules, and after how many datagrams a flow is decided, as what and by which of them.
    type Case<'a> = (&'a [(&'a str, Action)], (usize, &'a str, &'a str));

    /// After how many datagrams a flow is decided, as what and by which rule.
    fn decided(policy: &Policy, datagrams: &[Vec<u8>]) -> Option<(usize, String, String)> {
        let mut opening = Opening::default();
        (1..).zip(datagrams).find_map(|(number, datagram)| {
            match opening.on_datagram(Side::Client, datagram, ENDS, policy) {
                Classified::Is(label, name) => {
                    let rule = policy.rule(label, &ENDS, &name);
                    Some((number, policy.name(label).to_owned(), rule.name.clone()))
                }
                Classified::Passes(..) | Classified::More(..) | Classified::Hidden(_) => None,
            }
        })
    }

    #[test]
    fn stun_waits_where_what_goes_on_has_another_rule() {
        use Action::{Allow, Drop};
        let stun = [&[0, 1, 0, 0, 0x21, 0x12, 0xA4, 0x42][..], &[5; 12]].concat();
        let hello = [&[22, 0xFE, 0xFD][..], &[0; 9], &[20, 1], &[0; 19]].concat();
        let media = (1..4).map(|sequence| {
            let header = [0x80, 111, 0, sequence, 0, 0, 0, 0, 0, 0, 0xCA, 0xFE];
            [&header[..], &[0xD5; 40]].concat()
        });
        let mut flow = vec![stun.clone(); 20];
        flow.push(hello);
        flow.extend(media);
        let cases: [Case<'_>; 10] = [
            // Nothing depends on what goes on: no wait.
            (&[], (1, "stun", "default")),
            (&[("stun", Drop)], (1, "stun", "stun")),
            (&[("stun", Drop), ("dtls", Allow)], (1, "stun", "stun")),
            // Of a rule that drops, 16 are inspected.
            (&[("wireguard", Drop)], (16, "stun", "default")),
            // TLS is over TCP alone.
            (&[("tls", Drop)], (1, "stun", "default")),
            (&[("tls", Allow)], (1, "stun", "default")),
            (&[("dtls", Drop)], (21, "stun,dtls", "dtls")),
            (
                &[("dtls", Allow), ("stun", Drop)],
                (21, "stun,dtls", "dtls"),
            ),
            (&[("rtp", Drop)], (24, "stun,dtls,rtp", "rtp")),
            (&[("stun,dtls", Drop)], (21, "stun,dtls", "stun,dtls")),
        ];
        for (rules, (number, label, rule)) in cases {
            let expected = Some((number, label.to_owned(), rule.to_owned()));
            assert_eq!(decided(&policy(rules), &flow), expected, "{rules:?}");
        }
        // It ends.
        let decided = decided(&policy(&[("dtls", Drop)]), &vec![stun; 80]);
        assert_eq!(decided, Some((64, "stun".to_owned(), "default".to_owned())));
    }

    #[test]
    fn what_comes_first_disguises_nothing() {
        use Action::{Allow, Drop};
        let dns = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x01a\x04test\0\0\x01\0\x01".to_vec();
        let torrent = b"d1:ad2:id20:abcdefghij01234567899:info_hash20:mnopqrstuvwxyz123456e1:q9:get_peers1:t2:aa1:y1:qe".to_vec();
        let ends = Ends {
            server: (ENDS.server.0, 53),
            ..ENDS
        };
        let after = |policy: &Policy, harmless: usize| {
            let mut opening = Opening::default();
            let flow = std::iter::repeat_n(&dns, harmless).chain(std::iter::repeat_n(&torrent, 3));
            (1..).zip(flow).find_map(|(number, datagram)| {
                match opening.on_datagram(Side::Client, datagram, ends, policy) {
                    Classified::Is(label, _) => Some((number, policy.name(label).to_owned())),
                    Classified::Passes(..) | Classified::More(..) | Classified::Hidden(_) => None,
                }
            })
        };
        let dropping = policy(&[("bittorrent", Drop)]);
        for harmless in [0, 1, 8, 15] {
            let expected = Some((harmless + 1, "bittorrent".to_owned()));
            assert_eq!(after(&dropping, harmless), expected);
        }
        assert_eq!(after(&dropping, 16), Some((16, "dns".to_owned())));
        assert_eq!(
            after(&policy(&[("bittorrent", Allow)]), 1),
            Some((1, "dns".to_owned()))
        );
    }

    #[test]
    fn a_datagram_is_certain_where_no_other_rule_can_be_for_its_flow() {
        use crate::policy::{NamePattern, NamePatterns};
        let dns = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x01a\x04test\0\0\x01\0\x01".to_vec();
        let ends = Ends {
            server: (ENDS.server.0, 53),
            ..ENDS
        };
        let any = || NamePatterns(vec![NamePattern::new("*.ads.test")]);
        let rule = |applications: &[Application], asks: fn(&mut Rule, NamePatterns)| {
            let mut rule = Rule::any("ads", 2, Action::Reject);
            if !applications.is_empty() {
                let labels = applications.iter().copied().map(Label::Known);
                rule.applications = Applications::Of(labels.collect());
            }
            asks(&mut rule, any());
            rule
        };
        let hosts = |rule: &mut Rule, any| rule.conditions.request.hosts = any;
        let types = |rule: &mut Rule, any| rule.conditions.response.mime_types = any;
        let names = |rule: &mut Rule, any| rule.conditions.tls.server_names = any;
        let nothing = |_: &mut Rule, _| {};
        let is_dns = is(Application::Dns, Shown::default());
        let passes = Classified::Passes(Label::Known(Application::Dns), Shown::default());
        for (other, expected) in [
            (rule(&[], hosts), &is_dns),
            (rule(&[], types), &is_dns),
            (rule(&[Application::Http], hosts), &is_dns),
            (rule(&[Application::Http], nothing), &is_dns),
            (rule(&[Application::Tls], names), &is_dns),
            (rule(&[Application::BitTorrent], names), &is_dns),
            // What is behind it may be QUIC, or what passes for a query.
            (rule(&[], names), &passes),
            (rule(&[Application::Quic], names), &passes),
            (rule(&[Application::BitTorrent], nothing), &passes),
        ] {
            for is_first in [false, true] {
                let mut policy = policy(&[("dns", Action::Allow)]);
                let at = usize::from(!is_first);
                policy.rules.insert(at, Arc::new(other.clone()));
                let mut opening = Opening::default();
                let first = opening.on_datagram(Side::Client, &dns, ends, &policy);
                assert_eq!(&first, expected, "{:?}", other.applications);
            }
        }
    }

    #[test]
    fn a_response_is_known_whatever_ends_its_lines() {
        let policy = policy(&[("http", Action::Drop)]);
        for end in ["\r\n\r\n", "\n\n", "\n\r\n", "\r\n\n"] {
            let response = format!("HTTP/1.1 200 OK\nContent-Length: 4{end}body");
            let mut opening = Opening::default();
            let request = b"GET /a HTTP/1.1\r\nHost: a";
            let first = opening.on_bytes(Side::Client, request, ENDS, &policy);
            assert_eq!(
                first,
                Classified::More(Label::Known(Application::Http), Wait::Head)
            );
            let second = opening.on_bytes(Side::Server, response.as_bytes(), ENDS, &policy);
            assert_eq!(second, is(Application::Http, Shown::default()), "{end:?}");
        }
    }

    #[test]
    fn a_signature_that_may_still_fit_keeps_nothing_from_a_rule_that_looks() {
        let request = b"GET /a HTTP/1.1\r\nHost: a\r\n\r\n";
        for (action, waits) in [
            (Action::Allow, true),
            (Action::Inspect, false),
            (Action::Drop, false),
            (Action::Reject, false),
        ] {
            let mut policy = policy(&[("http", action)]);
            policy.signatures.push(Signature {
                name: "own".to_owned(),
                client: Some("regex:joinlobby".parse().expect("a pattern")),
                server: None,
            });
            let mut opening = Opening::default();
            let first = opening.on_bytes(Side::Client, request, ENDS, &policy);
            if !waits {
                assert_eq!(first, is(Application::Http, Shown::default()), "{action:?}");
                continue;
            }
            assert_eq!(
                first,
                Classified::More(Label::Known(Application::Http), Wait::Signature)
            );
            let second = opening.on_bytes(Side::Client, b"joinlobby", ENDS, &policy);
            assert_eq!(second, Classified::Is(Label::Own(0), Shown::default()));
        }
    }

    #[test]
    fn what_goes_on_in_a_known_flow_is_not_unknown() {
        use Action::{Allow, Drop};
        let dns = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x01a\x04test\0\0\x01\0\x01".to_vec();
        let mut strict = policy(&[("dns", Allow)]);
        let mut rule = Rule::any("unknown", 2, Drop);
        rule.applications = Applications::Of(vec![Label::Unknown]);
        strict.rules.push(Arc::new(rule));
        let flow = [vec![dns], vec![vec![0xA5; 60]; 40]].concat();
        let expected = Some((1, "dns".to_owned(), "dns".to_owned()));
        assert_eq!(decided(&strict, &flow), expected);
        let (_, _, rule) = decided(&strict, &flow[1..]).expect("it is decided");
        assert_eq!(rule, "unknown");
    }

    /// A `ClientHello` in records of this minor version, with an extension of so many bytes before the name.
    fn hello(name: &str, before: usize, minor: u8) -> Vec<u8> {
        let short = |length: usize| u16::try_from(length).expect("small").to_be_bytes();
        let mut extensions = [&[0xFA, 0xFA][..], &short(before), &vec![0; before]].concat();
        extensions.extend(
            [
                &[0, 0][..],
                &short(name.len() + 5),
                &short(name.len() + 3),
                &[0],
            ]
            .concat(),
        );
        extensions.extend([&short(name.len())[..], name.as_bytes()].concat());
        let mut body = [&[3, 3][..], &[7; 32], &[0, 0, 2, 0x13, 1, 1, 0]].concat();
        body.extend([&short(extensions.len())[..], &extensions].concat());
        let message = [&[1, 0][..], &short(body.len()), &body].concat();
        [&[22, 3, minor][..], &short(message.len()), &message].concat()
    }

    #[test]
    fn nothing_hides_a_server_name() {
        let mut policy = policy(&[("tls", Action::Drop)]);
        let mut rule = Rule::clone(&policy.rules[0]);
        rule.conditions.tls.server_names =
            crate::policy::NamePatterns(vec![crate::policy::NamePattern::new("evil.test")]);
        policy.rules = vec![Arc::new(rule)];
        let odd = client_shows(&hello("evil.test", 0, 0x99), &policy);
        assert_eq!(odd.map(|odd| odd.server_name), Some(b"evil.test".to_vec()));
        for (hello, segment) in [
            (hello("evil.test", 0, 1), 1400),
            (hello("evil.test", 0, 1), 1),
            (hello("evil.test", 5000, 1), 1400),
            (hello("evil.test", 5000, 1), 7),
            (hello("evil.test.", 0, 1), 1400),
        ] {
            let mut opening = Opening::default();
            let decided = hello.chunks(segment).find_map(|part| {
                match opening.on_bytes(Side::Client, part, ENDS, &policy) {
                    Classified::Is(label, shown) => {
                        Some((policy.name(label).to_owned(), shown.server_name))
                    }
                    Classified::Passes(..) | Classified::More(..) | Classified::Hidden(_) => None,
                }
            });
            assert_eq!(
                decided,
                Some(("tls".to_owned(), b"evil.test".to_vec())),
                "{segment}"
            );
        }
    }
}
