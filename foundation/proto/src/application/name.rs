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
    /// `MongoDB`.
    MongoDb "mongodb" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// Redis.
    Redis "redis" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// memcached.
    Memcached "memcached" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// Cassandra.
    Cassandra "cassandra" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// Microsoft SQL Server and Sybase: Tabular Data Stream.
    Tds "tds" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// Oracle Net: Transparent Network Substrate.
    Tns "tns" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// ClickHouse, its native protocol.
    ClickHouse "clickhouse" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// Blocks of SCSI over TCP.
    Iscsi "iscsi" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// Network block devices.
    Nbd "nbd" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// Ceph's messenger.
    Ceph "ceph" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// Advanced Message Queuing, 0-9 to 1.0.
    Amqp "amqp" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// Text messages of brokers.
    Stomp "stomp" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// NATS.
    Nats "nats" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// Kafka.
    Kafka "kafka" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// `ZeroMQ`.
    ZeroMq "zeromq" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// Short messages between centres and clients.
    Smpp "smpp" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// Accounts of mobile networks.
    Diameter "diameter" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// Messages of hospitals, HL7 version 2.
    Hl7 "hl7" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// Images of hospitals.
    Dicom "dicom" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// `FastCGI`.
    FastCgi "fastcgi" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// Apache to its containers.
    Ajp "ajp" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// Zabbix agents and servers.
    Zabbix "zabbix" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// Modbus over TCP.
    Modbus "modbus" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// Distributed Network Protocol (IEEE 1815).
    Dnp3 "dnp3" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// Controllers of Siemens.
    S7 "s7comm" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// Telecontrol, IEC 60870-5-104.
    Iec104 "iec104" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// EtherNet/IP, which carries CIP.
    Enip "enip" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// OPC Unified Architecture.
    OpcUa "opcua" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// Controllers of Omron.
    Fins "fins" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// Buildings: BACnet/IP.
    Bacnet "bacnet" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// Buildings: KNXnet/IP.
    Knx "knx" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// Instruments: HART-IP.
    HartIp "hartip" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// Synchrophasors (IEEE C37.118).
    C37118 "c37118" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// Real-time publish and subscribe of DDS.
    Rtps "rtps" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// Constrained Application Protocol.
    Coap "coap" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// Services in vehicles: SOME/IP.
    SomeIp "someip" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// Keys of `IPsec`: IKE and ISAKMP.
    Ike "ike" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// Accounts of dial-in and wireless networks.
    Radius "radius" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// Detection of faults between routers.
    Bfd "bfd" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// Tunnels of mobile networks: their control.
    Gtp "gtp" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// Layer 2 tunnels: their control.
    L2tp "l2tp" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// `OpenVPN`, from its opening.
    OpenVpn "openvpn" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// sFlow exports.
    Sflow "sflow" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// IPFIX exports.
    Ipfix "ipfix" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// `NetFlow` exports, versions 5 and 9.
    Netflow "netflow" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// Labels of MPLS.
    Ldp "ldp" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// X displays and their managers.
    Xdmcp "xdmcp" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// Routing Information Protocol.
    Rip "rip" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// Standby routers of Cisco.
    Hsrp "hsrp" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// Service Location Protocol.
    Slp "slp" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// Mappings of ports: NAT-PMP and PCP.
    NatPmp "natpmp" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// Management of boards: RMCP with IPMI or ASF.
    Rmcp "rmcp" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// Precision Time Protocol, version 2.
    Ptp "ptp" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// Sun's remote procedure calls but NFS.
    Rpc "rpc" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// Network file system.
    Nfs "nfs" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// Point-to-point tunnels: their control.
    Pptp "pptp" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// Accounts of network devices: TACACS+.
    Tacacs "tacacs" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// Controllers of switches.
    OpenFlow "openflow" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// Proxies of versions 4 and 5.
    Socks "socks" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// Remote login of BSD.
    Rlogin "rlogin" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// tinc tunnels.
    Tinc "tinc" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// Munin nodes.
    Munin "munin" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// Discovery of paths between Tailscale nodes.
    Tailscale "tailscale" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// Radios and their routers.
    Dlep "dlep" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// Git's own transport.
    Git "git" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// rsync daemons.
    Rsync "rsync" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// Subversion's own protocol.
    Svn "svn" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// X Window System.
    X11 "x11" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// Remote procedure calls of DCE and Windows.
    DceRpc "dcerpc" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// Bitcoin nodes.
    Bitcoin "bitcoin" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// Ethereum nodes: discovery and `RLPx`.
    Ethereum "ethereum" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// News.
    Nntp "nntp" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// Media gateways, MGCP.
    Mgcp "mgcp" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// Media gateways, H.248 in text.
    Megaco "megaco" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// Call signalling of H.323.
    H323 "h323" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// MPEG transport streams.
    MpegTs "mpegts" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// Questions to game servers of Valve.
    SourceEngine "sourceengine" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// `RakNet` games, from their opening.
    RakNet "raknet" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
    /// Discovery of devices by SOAP.
    WsDiscovery "wsd" con 0 l7 L7_UNKNOWN, p2p 0 udp 0;
}

impl Application {
    /// Whether datagrams may be it: one of those that [`classify_udp`](super::classify_udp) knows.
    #[must_use]
    pub const fn is_over_udp(self) -> bool {
        matches!(
            self,
            Self::Quic
                | Self::Dns
                | Self::BitTorrent
                | Self::Utp
                | Self::EDonkey
                | Self::Kad
                | Self::Gnutella
                | Self::FastTrack
                | Self::Rtp
                | Self::Rtcp
                | Self::Sip
                | Self::Dtls
                | Self::Stun
                | Self::StunDtls
                | Self::StunRtp
                | Self::StunRtcp
                | Self::StunDtlsRtp
                | Self::StunDtlsRtcp
                | Self::Ntp
                | Self::Dhcp
                | Self::Snmp
                | Self::Mdns
                | Self::Llmnr
                | Self::Ssdp
                | Self::NetBios
                | Self::Ldap
                | Self::Kerberos
                | Self::Syslog
                | Self::Tftp
                | Self::WireGuard
                | Self::Dnp3
                | Self::Enip
                | Self::Bacnet
                | Self::Knx
                | Self::HartIp
                | Self::C37118
                | Self::Rtps
                | Self::Coap
                | Self::SomeIp
                | Self::Ike
                | Self::Radius
                | Self::Bfd
                | Self::Gtp
                | Self::L2tp
                | Self::OpenVpn
                | Self::Sflow
                | Self::Ipfix
                | Self::Netflow
                | Self::Ldp
                | Self::Xdmcp
                | Self::Rip
                | Self::Hsrp
                | Self::Slp
                | Self::NatPmp
                | Self::Rmcp
                | Self::Ptp
                | Self::Rpc
                | Self::Nfs
                | Self::Tailscale
                | Self::Dlep
                | Self::DceRpc
                | Self::Ethereum
                | Self::Mgcp
                | Self::Megaco
                | Self::MpegTs
                | Self::SourceEngine
                | Self::RakNet
                | Self::WsDiscovery
        )
    }

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
