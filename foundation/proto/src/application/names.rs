//! Names of hosts: DNS, multicast DNS, LLMNR, NetBIOS.

use super::bytes::{be16, byte};
use super::{Application, Verdict, View};
use crate::dns::{Message, Name, PORT};

const MDNS_PORT: u16 = 5353;
const LLMNR_PORT: u16 = 5355;
const NETBIOS_NAMES: u16 = 137;
const NETBIOS_DATAGRAMS: u16 = 138;

/// DNS over TCP: a length, then a message.
pub(super) fn tcp(view: &View<'_>) -> Verdict {
    let (Some(length), Some(message)) = (be16(view.own, 0), view.own.get(2..)) else {
        return if view.has_port(PORT) {
            Verdict::More
        } else {
            Verdict::No
        };
    };
    let length = usize::from(length);
    if !(17..=16384).contains(&length) {
        return Verdict::No;
    }
    let is_prefix = message.len() < length && message.len() < 300;
    let message = message.get(..length).unwrap_or(message);
    let is_its = Message::parse(message)
        .is_some_and(|message| message.is_certain() || view.has_port(PORT) && has_name(&message));
    if is_its {
        Verdict::Is(Application::Dns)
    } else if is_prefix && view.has_port(PORT) {
        Verdict::More
    } else {
        Verdict::No
    }
}

/// DNS and its kin over UDP.
pub(super) fn udp(datagram: &[u8], ports: [u16; 2]) -> Verdict {
    let has = |port: u16| ports.contains(&port);
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
        return Verdict::when(message.is_certain(), Application::Llmnr);
    }
    let is_its = message.is_certain() || has(PORT) && has_name(&message);
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

/// RFC 1002 section 4.2: a header as of DNS, and a name of 32 letters.
fn netbios_names(datagram: &[u8]) -> Verdict {
    let is_name = byte(datagram, 12) == Some(32)
        && datagram
            .get(13..45)
            .is_some_and(|name| name.iter().all(|b| (b'A'..=b'P').contains(b)));
    Verdict::when(is_name, Application::NetBios)
}

/// RFC 1002 section 4.4: type, flags, identifier, the sender's address and port.
fn netbios_datagram(datagram: &[u8]) -> Verdict {
    let is_its = matches!(byte(datagram, 0), Some(0x10..=0x16))
        && byte(datagram, 1).is_some_and(|flags| flags < 0x20)
        && be16(datagram, 8) == Some(NETBIOS_DATAGRAMS);
    Verdict::when(is_its, Application::NetBios)
}
