//! Names of hosts: DNS, multicast DNS, LLMNR, NetBIOS.

use super::bytes::{be16, byte};
use super::{Application, Verdict, View};
use crate::dns::{Message, Name, PORT};

const MDNS_PORT: u16 = 5353;
const LLMNR_PORT: u16 = 5355;
const NETBIOS_NAMES: u16 = 137;
const NETBIOS_DATAGRAMS: u16 = 138;

/// DNS, or LLMNR (RFC 4795 section 2.5), over TCP: a length, then a message.
pub(super) fn tcp(view: &View<'_>) -> Verdict {
    let is_llmnr = view.has_port(LLMNR_PORT);
    let on_port = is_llmnr || view.has_port(PORT);
    let (Some(length), Some(message)) = (be16(view.own, 0), view.own.get(2..)) else {
        return if on_port { Verdict::More } else { Verdict::No };
    };
    let length = usize::from(length);
    if !(17..=16384).contains(&length) {
        return Verdict::No;
    }
    let is_prefix = message.len() < length && message.len() < 300;
    let message = message.get(..length).unwrap_or(message);
    let message = Message::parse(message);
    if is_llmnr && message.is_some_and(|message| is_llmnr_message(&message)) {
        return Verdict::Is(Application::Llmnr);
    }
    let is_its = message
        .is_some_and(|message| message.is_certain() || view.has_port(PORT) && has_name(&message));
    if is_its {
        Verdict::Is(Application::Dns)
    } else if is_prefix && on_port {
        Verdict::More
    } else {
        Verdict::No
    }
}

/// DNS and its kin over UDP.
pub(super) fn udp(datagram: &[u8], ports: [u16; 2]) -> Verdict {
    // Resolvers ask from any port, also from one that is another's.
    let has = |port: u16| ports.contains(&port) && !ports.contains(&PORT);
    if has(NETBIOS_NAMES) {
        return netbios_names(datagram);
    }
    if has(NETBIOS_DATAGRAMS) {
        return netbios_datagram(datagram);
    }
    let Some(message) = Message::parse(datagram) else {
        return Verdict::No;
    };
    if has(MDNS_PORT) {
        let [questions, answers, authorities, additional] = message.counts();
        let is_sane = questions <= 255
            && answers <= 255
            && authorities <= 255
            && additional <= 255
            && questions | answers > 0
            && (questions == 0 || has_name(&message));
        return Verdict::when(is_sane && message.opcode() == 0, Application::Mdns);
    }
    if has(LLMNR_PORT) {
        return Verdict::when(is_llmnr_message(&message), Application::Llmnr);
    }
    let is_its = message.is_certain() || ports.contains(&PORT) && has_name(&message);
    Verdict::when(is_its, Application::Dns)
}

/// Whether there is a question whose name is whole; counts as small as messages have them.
fn has_name(message: &Message<'_>) -> bool {
    let [questions, answers, authorities, additional] = message.counts();
    (1..=32).contains(&questions)
        && answers <= 512
        && authorities <= 512
        && additional <= 512
        && message.question(&mut Name::default()).is_some()
}

/// A question and its answer (RFC 4795 section 2.1.1): one question, whose name is in UTF-8 (section
/// 2.2), and nothing but it in a query.
fn is_llmnr_message(message: &Message<'_>) -> bool {
    let [questions, answers, authorities, additional] = message.counts();
    let mut name = Name::default();
    message.opcode() == 0
        && questions == 1
        && (message.is_response() || answers == 0 && authorities == 0)
        && answers.max(authorities).max(additional) <= 256
        && message.question(&mut name).is_some()
        && std::str::from_utf8(name.as_bytes()).is_ok()
}

/// RFC 1002 section 4.2: a header as of DNS, and a name of 32 letters.
fn netbios_names(datagram: &[u8]) -> Verdict {
    Verdict::when(has_netbios_name(datagram, 12), Application::NetBios)
}

/// The first level of a name of NetBIOS (RFC 1001 section 14.1): 32 letters from A to P.
fn has_netbios_name(datagram: &[u8], at: usize) -> bool {
    byte(datagram, at) == Some(32)
        && datagram
            .get(at + 1..at + 33)
            .is_some_and(|name| name.iter().all(|b| (b'A'..=b'P').contains(b)))
}

/// RFC 1002 section 4.4: type, flags, identifier, the sender's address and port, which some leave
/// zero; then lengths and names, in a query the name alone.
fn netbios_datagram(datagram: &[u8]) -> Verdict {
    let has_name = match byte(datagram, 0) {
        Some(0x10..=0x12) => has_netbios_name(datagram, 14),
        Some(0x14..=0x16) => has_netbios_name(datagram, 10),
        Some(0x13) => false,
        _ => return Verdict::No,
    };
    let is_its = byte(datagram, 1).is_some_and(|flags| flags < 0x20)
        && (has_name || be16(datagram, 8) == Some(NETBIOS_DATAGRAMS));
    Verdict::when(is_its, Application::NetBios)
}
