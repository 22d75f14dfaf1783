//! The tables `[gateway]`, `[limits]`, `[scanner]` and `[record]`.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use linkweir_engine::effect::MarkLayout;
use linkweir_files::WhenFull;
use linkweir_gateway::policy::{Action, AtLimit, Fail, Hold, Limits, ScanMode, ScanSettings};
use linkweir_record::Prefix;
use linkweir_scan::{Address, Protocol as ScanProtocol};
use serde::{Deserialize, Deserializer, de};
use toml::Spanned;

use super::values::{List, Parsed, Place, duration, nanos as nanos_of, size, whole};
use crate::exit::Wrong;

/// Where the running gateway listens for `status` and `reload`, unless the file says otherwise.
pub(super) const CONTROL: &str = "/run/linkweir/gateway.sock";

/// The table `[gateway]`, as it is written.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct GatewayTable {
    #[serde(deserialize_with = "whole::<0, 65_535, _, _>")]
    first_queue: u16,
    queues: Spanned<u16>,
    #[serde(deserialize_with = "whole::<64, 1_048_575, _, _>")]
    queue_length: u32,
    interfaces: List<String>,
    exclude: List<Parsed<Prefix>>,
    /// Databases of countries and AS numbers.
    pub(super) geoip: List<PathBuf>,
    protocols: List<Protocol>,
    ipv6: bool,
    fail: Fail,
    #[serde(deserialize_with = "mark_mask")]
    mark_mask: MarkLayout,
    control: PathBuf,
    #[serde(deserialize_with = "duration")]
    watchdog: Duration,
    /// What is done where no rule fits.
    default: Spanned<Action>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Protocol {
    Tcp,
    Udp,
}

impl Default for GatewayTable {
    fn default() -> Self {
        Self {
            first_queue: 0,
            queues: Spanned::new(0..0, 1),
            queue_length: 16_384,
            interfaces: List::default(),
            exclude: List::default(),
            geoip: List::default(),
            protocols: List::default(),
            ipv6: true,
            fail: Fail::Open,
            mark_mask: MarkLayout::default(),
            control: CONTROL.into(),
            watchdog: Duration::from_secs(3),
            default: Spanned::new(0..0, Action::Allow),
        }
    }
}

fn mark_mask<'de, D: Deserializer<'de>>(from: D) -> Result<MarkLayout, D::Error> {
    let mask = whole::<0, 0xffff_ffff, _, _>(from)?;
    MarkLayout::from_mask(mask).map_err(de::Error::custom)
}

/// The table `[gateway]`.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) first_queue: u16,
    pub(crate) queue_count: u16,
    /// Packets that the kernel keeps of a queue.
    pub(crate) queue_length: u32,
    pub(crate) interfaces: Vec<String>,
    pub(crate) exclude: Vec<Prefix>,
    pub(crate) has_tcp: bool,
    pub(crate) has_udp: bool,
    pub(crate) has_ipv6: bool,
    pub(crate) fail: Fail,
    pub(crate) marks: MarkLayout,
    pub(crate) control: PathBuf,
    /// How long the gateway may stand still before it ends itself.
    pub(crate) watchdog: Duration,
    /// What is done where no rule fits.
    pub(crate) default: Action,
}

impl Settings {
    pub(super) fn new(table: GatewayTable, place: Place<'_>) -> Result<Self, Wrong> {
        let count = *table.queues.get_ref();
        if !(1..=64).contains(&count) {
            let what = "`queues` is a whole number from 1 to 64";
            return Err(place.wrong(&table.queues.span(), what));
        }
        let last = u32::from(table.first_queue) + u32::from(count) - 1;
        if last > u32::from(u16::MAX) {
            let what = format!("the last queue would be {last}; 65535 is the last");
            return Err(place.wrong(&table.queues.span(), what));
        }
        if *table.default.get_ref() == Action::Inspect {
            let what = "`default` is allow, drop or reject";
            return Err(place.wrong(&table.default.span(), what));
        }
        let protocols = table.protocols.0;
        let has = |protocol: Protocol| {
            protocols.is_empty() || protocols.iter().any(|one| *one.get_ref() == protocol)
        };
        let exclude = table.exclude.0.into_iter();
        let interfaces = table.interfaces.0.into_iter();
        Ok(Self {
            first_queue: table.first_queue,
            queue_count: count,
            queue_length: table.queue_length,
            interfaces: interfaces.map(Spanned::into_inner).collect(),
            exclude: exclude.map(|one| one.into_inner().0).collect(),
            has_tcp: has(Protocol::Tcp),
            has_udp: has(Protocol::Udp),
            has_ipv6: table.ipv6,
            fail: table.fail,
            marks: table.mark_mask,
            control: place.resolve(table.control),
            watchdog: table.watchdog,
            default: table.default.into_inner(),
        })
    }

    /// Whether packets pass while no program serves the queues.
    pub(crate) fn is_fail_open(&self) -> bool {
        self.fail == Fail::Open
    }

    /// The kernel's queues.
    pub(crate) const fn queues(&self) -> RangeInclusive<u16> {
        self.first_queue..=self.first_queue + self.queue_count - 1
    }
}

/// Largest number of connections or packets in `[limits]`.
const MANY: u64 = (1 << 24) - 1;

/// The table `[limits]`.
#[derive(Deserialize)]
#[serde(
    remote = "Limits",
    default = "Limits::default",
    deny_unknown_fields,
    rename_all = "kebab-case"
)]
pub(super) struct LimitsTable {
    #[serde(deserialize_with = "whole::<1, MANY, _, _>")]
    connections: usize,
    #[serde(deserialize_with = "whole::<1, MANY, _, _>")]
    half_open: usize,
    #[serde(deserialize_with = "whole::<1, 64, _, _>")]
    classify_packets: u8,
    #[serde(deserialize_with = "size")]
    classify_bytes: usize,
    #[serde(deserialize_with = "whole::<1, MANY, _, _>")]
    held_packets: usize,
    #[serde(deserialize_with = "size")]
    held_bytes: usize,
    #[serde(deserialize_with = "whole::<1, MANY, _, _>")]
    total_held_packets: usize,
    #[serde(deserialize_with = "size")]
    total_held_bytes: usize,
    #[serde(rename = "idle-timeout", deserialize_with = "nanos_of")]
    idle_timeout_ns: u64,
    at_limit: AtLimit,
    #[serde(deserialize_with = "size")]
    inspect_bytes: usize,
    #[serde(deserialize_with = "size")]
    decoded_bytes: u64,
}

/// The table `[scanner.clamd]` or `[scanner.icap]`, as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct ScannerKeys {
    /// The socket of clamd, a path or host:port; of an ICAP server, host:port.
    address: Parsed<Address>,
    /// The name of an ICAP service.
    service: Option<Spanned<String>>,
    #[serde(default = "connections", deserialize_with = "whole::<1, 256, _, _>")]
    connections: usize,
    #[serde(default = "timeout", deserialize_with = "duration")]
    timeout: Duration,
    #[serde(default = "max_scan", deserialize_with = "size")]
    max_scan: u64,
    #[serde(default = "memory", deserialize_with = "size")]
    memory: usize,
    spool: Option<PathBuf>,
    #[serde(default)]
    window: Window,
    #[serde(default = "tail", deserialize_with = "size")]
    tail: usize,
}

const fn connections() -> usize {
    4
}

const fn timeout() -> Duration {
    Duration::from_secs(5)
}

const fn max_scan() -> u64 {
    25 << 20
}

const fn memory() -> usize {
    64 << 20
}

const fn tail() -> usize {
    1024
}

/// How much is scanned at a time, bytes; none: whole files.
#[derive(Debug)]
struct Window(Option<usize>);

impl Default for Window {
    fn default() -> Self {
        Self(Some(32 * 1024))
    }
}

impl<'de> Deserialize<'de> for Window {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let wrong = |what: &str| de::Error::custom(format!("{what}, or `file`"));
        match String::deserialize(from)?.as_str() {
            "file" => Ok(Self(None)),
            text => match crate::units::size(text) {
                Ok(bytes @ 64..=0x100_0000) => Ok(Self(usize::try_from(bytes).ok())),
                Ok(_) => Err(wrong("a size from 64 bytes to 16MiB")),
                Err(error) => Err(wrong(&error)),
            },
        }
    }
}

/// The table `[scanner.clamd]` or `[scanner.icap]`.
#[derive(Debug, Clone)]
pub(crate) struct ScannerSettings {
    pub(crate) address: Address,
    pub(crate) protocol: ScanProtocol,
    pub(crate) connections: usize,
    pub(crate) timeout: Duration,
    pub(crate) max_scan_bytes: u64,
    pub(crate) memory_bytes: usize,
    pub(crate) spool: Option<PathBuf>,
    pub(crate) scan: ScanSettings,
}

impl ScannerSettings {
    /// `is_icap` says which of the two tables it is.
    pub(super) fn new(
        table: Spanned<ScannerKeys>,
        is_icap: bool,
        place: Place<'_>,
    ) -> Result<Self, Wrong> {
        let at = table.span();
        let table = table.into_inner();
        let is_name = |name: &str| {
            let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./?=&".contains(&byte);
            !name.is_empty() && name.bytes().all(is_part)
        };
        let protocol = match (table.service, is_icap) {
            (None, false) => ScanProtocol::Clamd,
            (Some(service), false) => {
                return Err(place.wrong(&service.span(), "`service` is of [scanner.icap]"));
            }
            (Some(service), true) if is_name(service.get_ref()) => ScanProtocol::Icap {
                service: service.into_inner(),
            },
            (service, true) => {
                let what = "[scanner.icap] needs `service`, the name of the service in its URI, as \"virus_scan\"";
                return Err(place.wrong(&service.map_or(at, |service| service.span()), what));
            }
        };
        let tail = table.tail;
        let mode = match table.window.0 {
            None => ScanMode::File,
            Some(bytes) if tail < bytes => ScanMode::Window { bytes, tail },
            Some(_) => return Err(place.wrong(&at, "`tail` must be shorter than `window`")),
        };
        Ok(Self {
            address: table.address.0,
            protocol,
            connections: table.connections,
            timeout: table.timeout,
            max_scan_bytes: table.max_scan,
            memory_bytes: table.memory,
            spool: table.spool.map(|spool| place.resolve(spool)),
            scan: ScanSettings {
                mode,
                timeout_ns: linkweir_wire::nanos(table.timeout),
                hold: Hold::Packet,
            },
        })
    }
}

/// The table `[record]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct RecordSettings {
    #[serde(alias = "folder")]
    pub(crate) directory: Option<PathBuf>,
    pub(crate) quarantine: Option<PathBuf>,
    #[serde(deserialize_with = "size")]
    pub(crate) max_file: u64,
    #[serde(deserialize_with = "size")]
    pub(crate) max_total: u64,
    #[serde(with = "WhenFullWord")]
    pub(crate) when_full: WhenFull,
}

#[derive(Deserialize)]
#[serde(remote = "WhenFull", rename_all = "kebab-case")]
enum WhenFullWord {
    Refuse,
    DeleteOldest,
}

impl Default for RecordSettings {
    fn default() -> Self {
        Self {
            directory: None,
            quarantine: None,
            max_file: 100 << 20,
            max_total: 10 << 30,
            when_full: WhenFull::Refuse,
        }
    }
}

impl RecordSettings {
    /// With paths from the directory of the file.
    pub(super) fn at(mut self, place: Place<'_>) -> Self {
        for directory in [&mut self.directory, &mut self.quarantine] {
            *directory = directory.take().map(|path| place.resolve(path));
        }
        self
    }
}
