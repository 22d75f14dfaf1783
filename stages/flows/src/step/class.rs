//! Tstat's classes of application protocols.
//!
//! Source: Tstat 3.3.0, the lists of protocols in `l7types.h`, `protocol.h` and `struct.h`.

use linkweir_record::flow::{FlowRow, Protocol};

use super::sites::{HTTP_CLASSES, HttpClass, TLS_CLASSES, TlsClass};

/// Tstat's class of an application protocol: an index into the bins of `L7_TCP_num_*`,
/// `tcp_bitrate_*` and their likes for UDP, below [`L7Class::COUNT`]. While a flow lasts, one of TLS or HTTP
/// has a number beyond, which also names its class of sites: then packets are counted for both by one
/// addition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct L7Class(pub u8);

/// Bits of `con_t` with their classes; a later one wins.
const TCP_BITS: [(u32, u8); 16] = [
    (131_072, 39), // encrypted BitTorrent (MSE)
    (16_384, 28),  // obfuscated
    (65_536, 38),  // RTMP
    (1, 0),        // HTTP
    (2, 4),        // RTSP
    (4, 1),        // RTP
    (8, 3),        // ICY
    (16, 2),       // RTCP
    (32, 8),       // MSN
    (64, 10),      // Yahoo
    (128, 9),      // XMPP
    (1024, 25),    // SMTP
    (2048, 26),    // POP3
    (4096, 27),    // IMAP
    (8192, 33),    // TLS
    (32_768, 37),  // SSH
];
/// Bit of peer-to-peer protocols, distinguished by `p2p_t`.
const P2P_BIT: u32 = 256;
/// Bit of Skype.
const SKYPE_BIT: u32 = 512;

/// Classes by `p2p_t`, from 1: eDonkey, `KaZaA`, eDonkey, Direct Connect (twice), Gnutella (twice),
/// `KaZaA`, `BitTorrent`, Apple, Soulseek, `WinMX`, Ares, MUTE, WASTE, XDCC.
const P2P: [u8; 16] = [
    11, 35, 11, 17, 17, 14, 14, 35, 15, 18, 19, 20, 21, 22, 23, 24,
];

/// Classes by the number of a UDP protocol.
const UDP: [u8; 32] = [
    49, 49, 49, 1, 2, 5, 6, 32, 11, 12, 13, 14, 15, 17, 35, 29, 30, 31, 34, 36, 16, 16, 40, 41, 42,
    43, 44, 45, 49, 1, 47, 48,
];

/// Class of HTTP.
const L7_HTTP: u8 = 0;
/// Class of TLS.
const L7_TLS: u8 = 33;
/// First number of TLS of a class of its own.
const TLS: u8 = 64;
/// First number of HTTP of a class of its own.
const HTTP: u8 = TLS + TLS_CLASSES;

impl L7Class {
    /// Not recognised.
    pub const UNKNOWN: Self = Self(49);
    /// One more than the largest.
    pub const COUNT: usize = 50;

    /// One more than the largest that also names a class of sites.
    pub(super) const PLACES: usize = (HTTP + HTTP_CLASSES) as usize;

    /// TLS of this class.
    pub(crate) const fn tls(class: TlsClass) -> Self {
        Self(TLS + class)
    }

    /// HTTP of this class.
    pub(crate) const fn http(class: HttpClass) -> Self {
        Self(HTTP + class)
    }

    /// Whether more payload may say more: not recognised yet, or TLS or HTTP of no class yet.
    #[inline]
    pub(crate) const fn is_open(self) -> bool {
        matches!(self.0, 49 | L7_TLS | L7_HTTP)
    }

    /// The class of the application alone.
    pub(super) const fn application(self) -> u8 {
        match self.0 {
            HTTP.. => L7_HTTP,
            TLS.. => L7_TLS,
            class => class,
        }
    }

    /// The class of TLS, of a flow of TLS.
    pub(super) const fn tls_class(self) -> Option<TlsClass> {
        match self.0 {
            HTTP.. => None,
            TLS.. => Some(self.0 - TLS),
            L7_TLS => Some(0),
            _ => None,
        }
    }

    /// The class of HTTP, of a flow of HTTP.
    pub(super) const fn http_class(self) -> Option<HttpClass> {
        match self.0 {
            HTTP.. => Some(self.0 - HTTP),
            L7_HTTP => Some(0),
            _ => None,
        }
    }

    /// The class of a flow with these columns (see [`FlowRow`]).
    #[must_use]
    pub fn of(protocol: Protocol, con_t: u32, p2p_t: u32) -> Self {
        let at = |table: &[u8], index: Option<u32>| {
            let index = usize::try_from(index?).ok()?;
            table.get(index).copied().map(Self)
        };
        let class = match protocol {
            Protocol::Udp => at(&UDP, Some(con_t)),
            Protocol::Tcp if con_t & SKYPE_BIT != 0 => Some(Self(7)),
            Protocol::Tcp if con_t & P2P_BIT != 0 => at(&P2P, p2p_t.checked_sub(1)),
            Protocol::Tcp => TCP_BITS
                .iter()
                .rev()
                .find(|(bit, _)| con_t & bit != 0)
                .map(|(_, class)| Self(*class)),
        };
        class.unwrap_or_default()
    }

    /// The class of a record.
    #[must_use]
    pub fn of_row(row: &FlowRow) -> Self {
        Self::of(row.protocol, row.con_t, row.p2p_t)
    }

    /// Its number.
    #[inline]
    #[must_use]
    pub const fn number(self) -> u8 {
        self.0
    }
}

impl Default for L7Class {
    fn default() -> Self {
        Self::UNKNOWN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_of_sites_are_of_their_application() {
        let tls = L7Class::tls(TLS_CLASSES - 1);
        assert_eq!(
            (tls.application(), tls.tls_class(), tls.http_class()),
            (33, Some(8), None)
        );
        let http = L7Class::http(HTTP_CLASSES - 1);
        assert_eq!(
            (http.application(), http.tls_class(), http.http_class()),
            (0, None, Some(26))
        );
        assert!(usize::from(http.number()) < L7Class::PLACES);
        assert!(!tls.is_open() && !http.is_open() && L7Class::UNKNOWN.is_open());
        let quic = L7Class(45);
        assert_eq!(
            (quic.application(), quic.tls_class(), quic.is_open()),
            (45, None, false)
        );
    }

    #[test]
    fn classes() {
        let tcp = |con_t, p2p_t| L7Class::of(Protocol::Tcp, con_t, p2p_t).number();
        assert_eq!(tcp(0, 0), 49);
        assert_eq!(tcp(1, 0), 0);
        assert_eq!(tcp(8192 | 1, 0), 33);
        assert_eq!(tcp(256, 9), 15);
        assert_eq!(tcp(256, 0), 49);
        assert_eq!(tcp(256, 99), 49);
        assert_eq!(tcp(512 | 256, 1), 7);
        let udp = |con_t| L7Class::of(Protocol::Udp, con_t, 0).number();
        assert_eq!((udp(0), udp(19), udp(27), udp(8)), (49, 36, 45, 11));
        assert_eq!(udp(u32::MAX), 49);
        let tables = UDP
            .iter()
            .chain(&P2P)
            .chain(TCP_BITS.iter().map(|(_, c)| c));
        assert!(
            tables
                .clone()
                .all(|class| usize::from(*class) < L7Class::COUNT)
        );
    }
}
