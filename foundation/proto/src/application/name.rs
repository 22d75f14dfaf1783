//! The applications, their names and Tstat's numbers for them.

/// Tstat's index of what it does not know (its `l7types.h`).
const L7_UNKNOWN: u32 = 49;

macro_rules! applications {
    ($($(#[$doc:meta])* $variant:ident $name:literal con $con:literal l7 $l7:expr, p2p $p2p:literal udp $udp:literal;)*) => {
        /// An application that is recognised. What is not recognised has none.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        #[non_exhaustive]
        pub enum Application {
            $($(#[$doc])* $variant,)*
        }

        impl Application {
            /// All of them, in the order of their numbers.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The name in records and settings: a word, or where a flow carries several applications
            /// one after the other, theirs joined by commas.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The application of a name.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$variant),)* _ => None }
            }

            /// Tstat's bit mask of a TCP flow (column `con_t`); 0: it has none for it.
            #[must_use]
            pub const fn tstat_con_type(self) -> u32 {
                match self { $(Self::$variant => $con,)* }
            }

            /// Tstat's index of layer-7 histograms; 49: it has none for it.
            #[must_use]
            pub const fn tstat_l7(self) -> u32 {
                match self { $(Self::$variant => $l7,)* }
            }

            /// Tstat's number of a peer-to-peer protocol (column `p2p_t`, those of IPP2P); 0: none.
            #[must_use]
            pub const fn tstat_p2p_type(self) -> u32 {
                match self { $(Self::$variant => $p2p,)* }
            }

            /// Tstat's number of a UDP flow (columns `c_type`, `s_type`); 0: it has none for it.
            #[must_use]
            pub const fn tstat_udp_type(self) -> u32 {
                match self { $(Self::$variant => $udp,)* }
            }
        }
    };
}

applications! {
    /// HTTP/1 in clear text.
    Http "http" con 1 l7 0, p2p 0 udp 0;
    /// HTTP/2 in clear text.
    Http2 "http2" con 1 l7 0, p2p 0 udp 0;
    /// gRPC, over HTTP/2 in clear text.
    Grpc "grpc" con 1 l7 0, p2p 0 udp 0;
    /// TLS and SSL over TCP.
    Tls "tls" con 8192 l7 33, p2p 0 udp 0;
    /// QUIC of the IETF and of Google.
    Quic "quic" con 0 l7 45, p2p 0 udp 27;
    /// DNS over UDP and TCP.
    Dns "dns" con 0 l7 36, p2p 0 udp 19;
    /// BitTorrent: peers, trackers, its distributed hash table.
    BitTorrent "bittorrent" con 256 l7 15, p2p 9 udp 12;
    /// uTP, the transport that BitTorrent has over UDP (BEP 29).
    Utp "utp" con 0 l7 16, p2p 9 udp 20;
    /// eDonkey2000 and eMule.
    EDonkey "edonkey" con 256 l7 11, p2p 1 udp 8;
    /// Kademlia of eMule.
    Kad "kad" con 256 l7 12, p2p 17 udp 9;
    /// Gnutella.
    Gnutella "gnutella" con 256 l7 14, p2p 7 udp 11;
    /// FastTrack (KaZaA).
    FastTrack "fasttrack" con 256 l7 35, p2p 8 udp 14;
    /// Direct Connect.
    DirectConnect "directconnect" con 256 l7 17, p2p 5 udp 13;
    /// MSN Messenger.
    Msn "msn" con 32 l7 8, p2p 0 udp 0;
    /// File transfer of MSN Messenger.
    MsnFtp "msnftp" con 32 l7 8, p2p 0 udp 0;
    /// Yahoo! Messenger.
    Ymsg "ymsg" con 64 l7 10, p2p 0 udp 0;
    /// XMPP (Jabber).
    Xmpp "xmpp" con 128 l7 9, p2p 0 udp 0;
    /// Internet Relay Chat.
    Irc "irc" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// Secure Shell.
    Ssh "ssh" con 32768 l7 37, p2p 0 udp 0;
    /// Telnet.
    Telnet "telnet" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// Mail between servers and from clients.
    Smtp "smtp" con 1024 l7 25, p2p 0 udp 0;
    /// Mail to clients, POP3.
    Pop3 "pop3" con 2048 l7 26, p2p 0 udp 0;
    /// Mail to clients, IMAP.
    Imap "imap" con 4096 l7 27, p2p 0 udp 0;
    /// File transfer: the control connection.
    Ftp "ftp" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// Control of media streams.
    Rtsp "rtsp" con 2 l7 4, p2p 0 udp 0;
    /// Flash media streams.
    Rtmp "rtmp" con 65536 l7 38, p2p 0 udp 0;
    /// SHOUTcast and Icecast audio.
    Icy "icy" con 8 l7 3, p2p 0 udp 0;
    /// Media in real time.
    Rtp "rtp" con 4 l7 1, p2p 0 udp 3;
    /// Reports on media in real time.
    Rtcp "rtcp" con 16 l7 2, p2p 0 udp 4;
    /// Call signalling.
    Sip "sip" con 0 l7 43, p2p 0 udp 25;
    /// TLS over datagrams.
    Dtls "dtls" con 0 l7 44, p2p 0 udp 26;
    /// Traversal of address translators (STUN and TURN).
    Stun "stun" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// Network time.
    Ntp "ntp" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// Host configuration, IPv4 and IPv6.
    Dhcp "dhcp" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// Network management.
    Snmp "snmp" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// Multicast DNS.
    Mdns "mdns" con 0 l7 36, p2p 0 udp 19;
    /// Link-local multicast name resolution.
    Llmnr "llmnr" con 0 l7 36, p2p 0 udp 19;
    /// Discovery of UPnP devices.
    Ssdp "ssdp" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// Names and datagrams of NetBIOS.
    NetBios "netbios" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// Windows file shares.
    Smb "smb" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// Remote desktop of Windows.
    Rdp "rdp" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// Remote frame buffer (VNC).
    Vnc "vnc" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// MySQL and MariaDB.
    MySql "mysql" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// PostgreSQL.
    Postgres "postgresql" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// MQTT.
    Mqtt "mqtt" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// Directories.
    Ldap "ldap" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// Kerberos.
    Kerberos "kerberos" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// Border Gateway Protocol.
    Bgp "bgp" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// System logs.
    Syslog "syslog" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// Trivial file transfer.
    Tftp "tftp" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// WireGuard tunnels.
    WireGuard "wireguard" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// STUN, then DTLS (RFC 7983), as of WebRTC's data channels.
    StunDtls "stun,dtls" con 0 l7 44, p2p 0 udp 26;
    /// STUN, then media.
    StunRtp "stun,rtp" con 0 l7 1, p2p 0 udp 3;
    /// STUN, then reports on media.
    StunRtcp "stun,rtcp" con 0 l7 2, p2p 0 udp 4;
    /// STUN, then the keys by DTLS (RFC 5764), then media: WebRTC.
    StunDtlsRtp "stun,dtls,rtp" con 0 l7 1, p2p 0 udp 3;
    /// STUN, then the keys by DTLS, then reports on media.
    StunDtlsRtcp "stun,dtls,rtcp" con 0 l7 2, p2p 0 udp 4;
}

impl Application {
    /// Whether what this names has `other` in it: `stun,dtls` includes `stun`, `dtls` and itself.
    #[must_use]
    pub fn includes(self, other: Self) -> bool {
        let has = |word| self.as_str().split(',').any(|mine| mine == word);
        // What runs over another is of that too.
        let is_over = match self {
            Self::Http2 => other == Self::Http,
            Self::Grpc => matches!(other, Self::Http | Self::Http2),
            _ => false,
        };
        self == other || is_over || other.as_str().split(',').all(has)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_distinct_and_lead_back() {
        for application in Application::ALL {
            assert_eq!(
                Application::from_name(application.as_str()),
                Some(*application)
            );
        }
        assert_eq!(Application::from_name("unknown"), None);
    }

    #[test]
    fn several_applications_include_each() {
        use Application::{Dtls, Rtp, Stun, StunDtls, StunDtlsRtp};
        for other in [Stun, Dtls, Rtp, StunDtls, StunDtlsRtp] {
            assert!(StunDtlsRtp.includes(other), "{other:?}");
        }
        for (one, other) in [
            (Stun, Dtls),
            (Dtls, StunDtls),
            (StunDtls, Rtp),
            (StunDtls, StunDtlsRtp),
        ] {
            assert!(!one.includes(other), "{one:?} {other:?}");
        }
        for one in Application::ALL {
            for word in one.as_str().split(',') {
                let word = Application::from_name(word).unwrap();
                assert!(one.includes(word), "{one:?} {word:?}");
            }
        }
    }

    #[test]
    fn numbers_of_tstat() {
        // l7types.h and the documented bit mask.
        assert_eq!(Application::Http.tstat_con_type(), 1);
        assert_eq!(Application::Http.tstat_l7(), 0);
        assert_eq!(Application::BitTorrent.tstat_con_type(), 256);
        assert_eq!(Application::BitTorrent.tstat_p2p_type(), 9);
        assert_eq!(Application::FastTrack.tstat_l7(), 35);
        assert_eq!(Application::Quic.tstat_udp_type(), 27);
        assert_eq!(Application::Ntp.tstat_l7(), 49);
        let fits = |a: &Application| a.tstat_l7() <= 49 && a.tstat_udp_type() <= 27;
        assert!(Application::ALL.iter().all(fits));
    }
}
