//! Which series there are: names, units, kinds, and where each of them stands.

use std::sync::LazyLock;

use super::Buckets;

/// What a cell of a series holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A sum over the step; rows also keep the smallest and the largest of their steps.
    Counter,
    /// A level at some moment of the step (its peak); rows keep mean, smallest and largest.
    Gauge,
    /// A distribution of values.
    Distribution(Buckets),
}

/// A series of the archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Series {
    /// Its name: letters, digits and `_`.
    pub name: String,
    /// The unit of its values.
    pub unit: String,
    /// What its cells hold.
    pub kind: Kind,
}

/// The series of an archive, in the order of its cells: counters and gauges, then distributions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Catalogue {
    series: Vec<Series>,
    scalars: usize,
}

impl Catalogue {
    /// The most series.
    pub const MAX_SERIES: usize = 4096;

    /// A catalogue; `None` where a distribution stands before a counter, a shape makes no sense or
    /// there are too many.
    #[must_use]
    pub fn new(series: Vec<Series>) -> Option<Self> {
        let is_scalar = |one: &Series| !matches!(one.kind, Kind::Distribution(_));
        let scalars = series.iter().take_while(|one| is_scalar(one)).count();
        let are_sound = series.iter().skip(scalars).all(|one| match one.kind {
            Kind::Distribution(shape) => shape.is_valid(),
            Kind::Counter | Kind::Gauge => false,
        });
        (are_sound && series.len() <= Self::MAX_SERIES).then_some(Self { series, scalars })
    }

    /// The series, in order.
    #[must_use]
    pub fn series(&self) -> &[Series] {
        &self.series
    }

    /// How many are counters and gauges.
    #[must_use]
    pub const fn scalars(&self) -> usize {
        self.scalars
    }

    /// Where a series stands.
    #[must_use]
    pub fn position(&self, name: &str) -> Option<usize> {
        self.series.iter().position(|one| one.name == name)
    }
}

/// A series of [`catalogue`], by its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SeriesId(pub u16);

/// Which way traffic went, seen from the internal network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Direction {
    /// From an external to an internal address.
    In,
    /// From an internal to an external address.
    Out,
    /// Between internal addresses.
    Loc,
    /// Between external addresses.
    Ext,
}

impl Direction {
    /// From whether source and destination are internal.
    #[inline]
    #[must_use]
    pub const fn of(source_is_internal: bool, destination_is_internal: bool) -> Self {
        match (source_is_internal, destination_is_internal) {
            (false, true) => Self::In,
            (true, false) => Self::Out,
            (true, true) => Self::Loc,
            (false, false) => Self::Ext,
        }
    }
}

/// What carries a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Transport {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// ICMP of IPv4 and IPv6.
    Icmp,
    /// Anything else.
    Other,
}

/// How a flow ended, in three kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Ended {
    /// A TCP flow that Tstat's logs count as complete.
    TcpComplete,
    /// Another TCP flow.
    TcpIncomplete,
    /// A UDP flow.
    Udp,
}

/// Distributions, each by direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Measure {
    /// Unique payload of one side of a TCP flow over the time from the first packet of the flow to
    /// the last payload of the side (as Tstat), bit/s.
    TcpThroughput,
    /// Unique payload of one side of a TCP flow, bytes.
    TcpBytes,
    /// Packets of one side of a TCP flow.
    TcpPackets,
    /// First to last packet of a TCP flow, nanoseconds, by who opened it.
    TcpDuration,
    /// Smallest round-trip time of what one side sent, nanoseconds.
    TcpRttMin,
    /// Mean round-trip time of what one side sent, nanoseconds.
    TcpRttAvg,
    /// Largest round-trip time of what one side sent, nanoseconds.
    TcpRttMax,
    /// Maximum segment size that one side announced, bytes.
    TcpMss,
    /// Largest window that one side announced, bytes.
    TcpWindowMax,
    /// Most bytes of one side in flight.
    TcpInFlightMax,
    /// Payload of one side of a UDP flow, bytes.
    UdpBytes,
    /// Packets of one side of a UDP flow.
    UdpPackets,
    /// First to last packet of a UDP flow, nanoseconds, by who opened it.
    UdpDuration,
}

const DIRECTIONS: [&str; D as usize] = ["in", "out", "loc", "ext"];
const TRANSPORTS: [&str; 4] = ["tcp", "udp", "icmp", "other"];
const ENDS: [&str; 3] = ["tcp_complete", "tcp_incomplete", "udp"];

/// The applications with series of their own; the last takes all others.
pub const APPLICATIONS: [&str; APPS as usize] = [
    "http",
    "tls",
    "quic",
    "dns",
    "ssh",
    "smtp",
    "pop3",
    "imap",
    "ftp",
    "xmpp",
    "irc",
    "msn",
    "rtp",
    "rtcp",
    "stun",
    "bittorrent",
    "edonkey",
    "gnutella",
    "fasttrack",
    "ntp",
    "rtsp",
    "rtmp",
    "unknown",
    "other",
];

/// Classes of out-of-sequence segments, in the order of their numbers (those of `Anomaly` in the
/// records).
pub const ANOMALIES: [&str; CLASSES as usize] = [
    "rto",
    "fast_retransmit",
    "reordering",
    "network_duplicate",
    "unknown",
    "flow_control",
    "unnecessary_rto",
    "unnecessary_fast_retransmit",
    "tail_loss_probe",
];

/// Name, unit and shape of each [`Measure`], in its order.
const MEASURES: [(&str, &str, Buckets); 13] = [
    ("tcp_throughput", "bit/s", shape(6, 38, 3)),
    ("tcp_bytes", "bytes", shape(6, 40, 3)),
    ("tcp_packets", "packets", shape(0, 28, 3)),
    ("tcp_duration", "ns", shape(20, 47, 3)),
    ("tcp_rtt_min", "ns", shape(10, 36, 3)),
    ("tcp_rtt_avg", "ns", shape(10, 36, 3)),
    ("tcp_rtt_max", "ns", shape(10, 36, 3)),
    ("tcp_mss", "bytes", shape(7, 16, 4)),
    ("tcp_window_max", "bytes", shape(6, 30, 3)),
    ("tcp_in_flight_max", "bytes", shape(6, 30, 3)),
    ("udp_bytes", "bytes", shape(4, 38, 3)),
    ("udp_packets", "packets", shape(0, 28, 3)),
    ("udp_duration", "ns", shape(20, 47, 3)),
];

const fn shape(low_bits: u8, high_bits: u8, sub_bits: u8) -> Buckets {
    Buckets {
        low_bits,
        high_bits,
        sub_bits,
    }
}

// Where each group begins. The order is that of `build`, and a test compares them.
const D: u16 = 4;
const APPS: u16 = 24;
const CLASSES: u16 = 9;
const PACKETS: u16 = 0;
const BYTES: u16 = PACKETS + 4 * D;
const OPENED: u16 = BYTES + 4 * D;
const ENDED: u16 = OPENED + 2 * D;
const APP_FLOWS: u16 = ENDED + 3 * D;
const APP_BYTES: u16 = APP_FLOWS + APPS;
const ANOMALY: u16 = APP_BYTES + 3 * APPS;
const RETRANSMITTED: u16 = ANOMALY + CLASSES * D;
const EVICTED: u16 = RETRANSMITTED + D;
const DROPPED: u16 = EVICTED + 1;
const ACTIVE: u16 = DROPPED + 1;
const SCALARS: u16 = ACTIVE + 2;

impl SeriesId {
    /// Packets.
    #[inline]
    #[must_use]
    pub const fn packets(transport: Transport, direction: Direction) -> Self {
        Self(PACKETS + transport as u16 * D + direction as u16)
    }

    /// Bytes of IP packets, headers included.
    #[inline]
    #[must_use]
    pub const fn bytes(transport: Transport, direction: Direction) -> Self {
        Self(BYTES + transport as u16 * D + direction as u16)
    }

    /// Flows that began, by who opened them. `None` unless TCP or UDP.
    #[must_use]
    pub const fn opened(transport: Transport, direction: Direction) -> Option<Self> {
        match transport {
            Transport::Tcp | Transport::Udp => {
                Some(Self(OPENED + transport as u16 * D + direction as u16))
            }
            Transport::Icmp | Transport::Other => None,
        }
    }

    /// Flows that ended, by who opened them.
    #[must_use]
    pub const fn ended(how: Ended, direction: Direction) -> Self {
        Self(ENDED + how as u16 * D + direction as u16)
    }

    /// Most flows at once: a gauge. `None` unless TCP or UDP.
    #[must_use]
    pub const fn active(transport: Transport) -> Option<Self> {
        match transport {
            Transport::Tcp | Transport::Udp => Some(Self(ACTIVE + transport as u16)),
            Transport::Icmp | Transport::Other => None,
        }
    }

    /// Place of an application in [`APPLICATIONS`]: the last where it is not there. Of several, joined by
    /// commas, the one that came last and is there: a flow counts once.
    #[must_use]
    pub fn application(name: &str) -> u16 {
        let last = APPLICATIONS.len() - 1;
        let place = |name| APPLICATIONS.iter().position(|one| *one == name);
        let at = name.rsplit(',').find_map(place);
        u16::try_from(at.unwrap_or(last)).unwrap_or(0)
    }

    /// Flows of an application that ended.
    #[must_use]
    pub const fn application_flows(application: u16) -> Self {
        Self(APP_FLOWS + application)
    }

    /// Bytes of IP packets of flows of an application that ended. `None` between externals.
    #[must_use]
    pub const fn application_bytes(application: u16, direction: Direction) -> Option<Self> {
        match direction {
            Direction::Ext => None,
            _ => Some(Self(APP_BYTES + application * 3 + direction as u16)),
        }
    }

    /// Out-of-sequence segments of a class (place in [`ANOMALIES`]).
    #[must_use]
    pub const fn anomaly(class: u16, direction: Direction) -> Self {
        Self(ANOMALY + class * D + direction as u16)
    }

    /// Payload that had been seen before, bytes.
    #[must_use]
    pub const fn retransmitted_bytes(direction: Direction) -> Self {
        Self(RETRANSMITTED + direction as u16)
    }

    /// Flows that had to leave because the table was full.
    #[must_use]
    pub const fn evicted() -> Self {
        Self(EVICTED)
    }

    /// Packets that did not reach the measurement.
    #[must_use]
    pub const fn dropped() -> Self {
        Self(DROPPED)
    }

    /// A distribution. `None` between externals, which is not kept.
    #[must_use]
    pub const fn distribution(measure: Measure, direction: Direction) -> Option<Self> {
        match direction {
            Direction::Ext => None,
            _ => Some(Self(SCALARS + measure as u16 * 3 + direction as u16)),
        }
    }
}

/// The series of this version.
#[must_use]
pub fn catalogue() -> &'static Catalogue {
    static CATALOGUE: LazyLock<Catalogue> = LazyLock::new(build);
    &CATALOGUE
}

fn build() -> Catalogue {
    let mut all = Vec::with_capacity(256);
    let mut put = |name: String, unit: &str, kind: Kind| {
        let unit = unit.to_owned();
        all.push(Series { name, unit, kind });
    };
    let counter = Kind::Counter;
    for (what, transports) in [
        ("packets", TRANSPORTS.as_slice()),
        ("bytes", &TRANSPORTS),
        ("flows_opened", &["tcp", "udp"]),
        ("flows_ended", &ENDS),
    ] {
        let unit = if what.starts_with("flows") {
            "flows"
        } else {
            what
        };
        for transport in transports {
            for direction in DIRECTIONS {
                put(format!("{what}_{transport}_{direction}"), unit, counter);
            }
        }
    }
    for application in APPLICATIONS {
        put(format!("app_flows_{application}"), "flows", counter);
    }
    for application in APPLICATIONS {
        for direction in ["in", "out", "loc"] {
            put(
                format!("app_bytes_{application}_{direction}"),
                "bytes",
                counter,
            );
        }
    }
    for class in ANOMALIES {
        for direction in DIRECTIONS {
            put(format!("anomaly_{class}_{direction}"), "packets", counter);
        }
    }
    for direction in DIRECTIONS {
        put(format!("retransmitted_bytes_{direction}"), "bytes", counter);
    }
    put("flows_evicted".to_owned(), "flows", counter);
    put("packets_dropped".to_owned(), "packets", counter);
    for transport in ["tcp", "udp"] {
        put(format!("flows_active_{transport}"), "flows", Kind::Gauge);
    }
    let scalars = all.len();
    for (name, unit, shape) in MEASURES {
        for direction in ["in", "out", "loc"] {
            all.push(Series {
                name: format!("{name}_{direction}"),
                unit: unit.to_owned(),
                kind: Kind::Distribution(shape),
            });
        }
    }
    Catalogue {
        series: all,
        scalars,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(id: SeriesId) -> &'static str {
        &catalogue().series()[usize::from(id.0)].name
    }

    #[test]
    fn every_series_stands_where_its_number_says() {
        use Direction::{Ext, In, Loc, Out};
        assert_eq!(catalogue().scalars(), usize::from(SCALARS));
        assert_eq!(
            name(SeriesId::packets(Transport::Tcp, In)),
            "packets_tcp_in"
        );
        assert_eq!(
            name(SeriesId::bytes(Transport::Other, Ext)),
            "bytes_other_ext"
        );
        let opened = SeriesId::opened(Transport::Udp, Out).unwrap();
        assert_eq!(name(opened), "flows_opened_udp_out");
        assert_eq!(
            name(SeriesId::ended(Ended::Udp, Loc)),
            "flows_ended_udp_loc"
        );
        assert_eq!(
            name(SeriesId::active(Transport::Udp).unwrap()),
            "flows_active_udp"
        );
        for (at, application) in APPLICATIONS.iter().enumerate() {
            let at = u16::try_from(at).unwrap();
            assert_eq!(SeriesId::application(application), at);
            assert_eq!(
                name(SeriesId::application_flows(at)),
                format!("app_flows_{application}")
            );
            let bytes = SeriesId::application_bytes(at, Loc).unwrap();
            assert_eq!(name(bytes), format!("app_bytes_{application}_loc"));
        }
        assert_eq!(
            name(SeriesId::application_flows(SeriesId::application("gopher"))),
            "app_flows_other"
        );
        for (several, one) in [
            ("stun,dtls", "stun"),
            ("stun,dtls,rtp", "rtp"),
            ("gopher,finger", "other"),
        ] {
            let (several, one) = (SeriesId::application(several), SeriesId::application(one));
            assert_eq!(several, one);
        }
        assert_eq!(
            name(SeriesId::anomaly(8, Ext)),
            "anomaly_tail_loss_probe_ext"
        );
        assert_eq!(
            name(SeriesId::retransmitted_bytes(In)),
            "retransmitted_bytes_in"
        );
        assert_eq!(name(SeriesId::evicted()), "flows_evicted");
        assert_eq!(name(SeriesId::dropped()), "packets_dropped");
        let first = SeriesId::distribution(Measure::TcpThroughput, In).unwrap();
        assert_eq!(name(first), "tcp_throughput_in");
        let last = SeriesId::distribution(Measure::UdpDuration, Loc).unwrap();
        assert_eq!(name(last), "udp_duration_loc");
        assert_eq!(usize::from(last.0) + 1, catalogue().series().len());
        assert_eq!(SeriesId::distribution(Measure::TcpMss, Ext), None);
    }

    #[test]
    fn names_are_unique_and_plain() {
        let all = catalogue().series();
        let names: std::collections::BTreeSet<&str> = all.iter().map(|one| &*one.name).collect();
        assert_eq!(names.len(), all.len());
        assert!(names.iter().all(|name| {
            name.len() <= 60 && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        }));
        assert!(Catalogue::new(all.to_vec()).is_some());
        let reversed = all.iter().rev().cloned().collect();
        assert_eq!(Catalogue::new(reversed), None);
    }
}
