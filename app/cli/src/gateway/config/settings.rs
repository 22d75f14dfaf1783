//! The tables `[gateway]`, `[limits]`, `[scanner]` and `[record]`.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use linkweir_engine::effect::MarkLayout;
use linkweir_gateway::policy::{AtLimit, Hold, Limits, ScanMode, ScanSettings};
use linkweir_netfilter::rules::Network;
use linkweir_scan::Address;

use super::section::Section;
use crate::exit::Wrong;

/// Where the running gateway listens for `status` and `reload`, unless the file says otherwise.
pub(super) const CONTROL: &str = "/run/linkweir/gateway.sock";

/// The table `[gateway]`.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) first_queue: u16,
    pub(crate) queue_count: u16,
    /// Packets that the kernel keeps of a queue.
    pub(crate) queue_length: u32,
    pub(crate) interfaces: Vec<String>,
    pub(crate) exclude: Vec<Network>,
    pub(crate) has_tcp: bool,
    pub(crate) has_udp: bool,
    pub(crate) has_ipv6: bool,
    pub(crate) is_fail_open: bool,
    pub(crate) marks: MarkLayout,
    pub(crate) control: PathBuf,
    /// How long the gateway may stand still before it ends itself.
    pub(crate) watchdog: Duration,
}

impl Settings {
    pub(super) fn read(section: &mut Section<'_, '_>) -> Result<Self, Wrong> {
        let first_queue = section.number_as("first-queue", 0, 0..65_536, u16::try_from)?;
        let queue_count = section.number_as("queues", 1, 1..65, |count| {
            let last = u64::from(first_queue) + count - 1;
            let wrong = format!("the last queue would be {last}; 65535 is the last");
            u16::try_from(last).map_err(|_| wrong)?;
            u16::try_from(count).map_err(|error| error.to_string())
        })?;
        let words = section.words("protocols")?;
        let place = section.place();
        for word in &words {
            if !matches!(word.text.as_str(), "tcp" | "udp") {
                return Err(place.wrong(&word.at, "`protocols` are tcp and udp"));
            }
        }
        let has = |name: &str| words.is_empty() || words.iter().any(|word| word.text == name);
        let mut exclude = Vec::new();
        for word in section.words("exclude")? {
            exclude.push(network(&word.text).map_err(|what| place.wrong(&word.at, what))?);
        }
        let mask = u64::from(MarkLayout::default().mask());
        let marks = section.number_as("mark-mask", mask, 0..1 << 32, |mask| {
            MarkLayout::from_mask(u32::try_from(mask).unwrap_or(0))
        })?;
        Ok(Self {
            first_queue,
            queue_count,
            queue_length: u32::try_from(section.number("queue-length", 16_384, 64..1 << 20)?)
                .unwrap_or(u32::MAX),
            interfaces: section
                .words("interfaces")?
                .into_iter()
                .map(|word| word.text)
                .collect(),
            exclude,
            has_tcp: has("tcp"),
            has_udp: has("udp"),
            has_ipv6: section.flag("ipv6", true)?,
            is_fail_open: section.choice("fail", true, &[("open", true), ("closed", false)])?,
            marks,
            control: section.path("control")?.unwrap_or_else(|| CONTROL.into()),
            watchdog: section.duration("watchdog", Duration::from_secs(3))?,
        })
    }

    /// The kernel's queues.
    pub(crate) const fn queues(&self) -> RangeInclusive<u16> {
        self.first_queue..=self.first_queue + self.queue_count - 1
    }
}

fn network(text: &str) -> Result<Network, String> {
    let wrong =
        || format!("`{text}` is no network; write 10.0.0.0/8, 2001:db8::/32 or one address");
    let (address, length) = text.split_once('/').unwrap_or((text, ""));
    let address: std::net::IpAddr = address.parse().map_err(|_| wrong())?;
    let width = if address.is_ipv4() { 32 } else { 128 };
    let length = if length.is_empty() && !text.contains('/') {
        width
    } else {
        length.parse().map_err(|_| wrong())?
    };
    if length > width {
        return Err(wrong());
    }
    Ok(Network { address, length })
}

/// The table `[limits]`.
pub(super) fn read_limits(section: Option<Section<'_, '_>>) -> Result<Limits, Wrong> {
    let default = Limits::default();
    let Some(mut section) = section else {
        return Ok(default);
    };
    let many = 1..1 << 24;
    let span = |nanos| Duration::from_nanos(nanos);
    let number = |section: &mut Section<'_, '_>, key, default: usize| {
        let number = section.number(key, default as u64, many.clone())?;
        Ok::<_, Wrong>(usize::try_from(number).unwrap_or(usize::MAX))
    };
    let limits = Limits {
        connections: number(&mut section, "connections", default.connections)?,
        half_open: number(&mut section, "half-open", default.half_open)?,
        classify_packets: u8::try_from(section.number(
            "classify-packets",
            default.classify_packets.into(),
            1..65,
        )?)
        .unwrap_or(u8::MAX),
        classify_bytes: section.bytes("classify-bytes", default.classify_bytes)?,
        held_packets: number(&mut section, "held-packets", default.held_packets)?,
        held_bytes: section.bytes("held-bytes", default.held_bytes)?,
        total_held_packets: number(
            &mut section,
            "total-held-packets",
            default.total_held_packets,
        )?,
        total_held_bytes: section.bytes("total-held-bytes", default.total_held_bytes)?,
        idle_timeout_ns: nanos(section.duration("idle-timeout", span(default.idle_timeout_ns))?),
        at_limit: section.choice(
            "at-limit",
            default.at_limit,
            &[("drop", AtLimit::Drop), ("pass", AtLimit::Pass)],
        )?,
        inspect_bytes: section.bytes("inspect-bytes", default.inspect_bytes)?,
        decoded_bytes: section.size("decoded-bytes", default.decoded_bytes)?,
    };
    section.end()?;
    Ok(limits)
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

/// The table `[scanner.clamd]`.
#[derive(Debug, Clone)]
pub(crate) struct ScannerSettings {
    pub(crate) address: Address,
    pub(crate) connections: usize,
    pub(crate) timeout: Duration,
    pub(crate) max_scan_bytes: u64,
    pub(crate) memory_bytes: usize,
    pub(crate) spool: Option<PathBuf>,
    pub(crate) scan: ScanSettings,
}

impl ScannerSettings {
    pub(super) fn read(section: Option<Section<'_, '_>>) -> Result<Option<Self>, Wrong> {
        let Some(mut scanners) = section else {
            return Ok(None);
        };
        let section = scanners.section("clamd")?;
        scanners.end()?;
        let Some(mut section) = section else {
            return Ok(None);
        };
        let Some(address) = section.word("address")? else {
            return Err(
                section.wrong("`address` is missing: the socket of clamd, a path or host:port")
            );
        };
        let place = section.place();
        let address = address
            .text
            .parse()
            .map_err(|error| place.wrong(&address.at, error))?;
        let timeout = section.duration("timeout", Duration::from_secs(5))?;
        let tail = section.bytes("tail", 1024)?;
        let mode = section.parsed(
            "window",
            ScanMode::Window {
                bytes: 32 * 1024,
                tail,
            },
            |text| match text {
                "file" => Ok(ScanMode::File),
                size => match crate::units::size(size) {
                    Ok(size @ 64..=0x100_0000) => Ok(ScanMode::Window {
                        bytes: usize::try_from(size).unwrap_or(usize::MAX),
                        tail,
                    }),
                    Ok(_) => Err("a size from 64 bytes to 16MiB, or `file`".to_owned()),
                    Err(error) => Err(format!("{error}, or `file`")),
                },
            },
        )?;
        if let ScanMode::Window { bytes, tail } = mode
            && tail >= bytes
        {
            return Err(section.wrong("`tail` must be shorter than `window`"));
        }
        let settings = Self {
            address,
            connections: usize::try_from(section.number("connections", 4, 1..257)?).unwrap_or(4),
            timeout,
            max_scan_bytes: section.size("max-scan", 25 << 20)?,
            memory_bytes: section.bytes("memory", 64 << 20)?,
            spool: section.path("spool")?,
            scan: ScanSettings {
                mode,
                timeout_ns: nanos(timeout),
                hold: Hold::Packet,
            },
        };
        section.end()?;
        Ok(Some(settings))
    }
}

/// The table `[record]`.
#[derive(Debug, Clone)]
pub(crate) struct RecordSettings {
    pub(crate) folder: Option<PathBuf>,
    pub(crate) quarantine: Option<PathBuf>,
    pub(crate) max_file: u64,
    pub(crate) max_total: u64,
    /// Whether the oldest files make room for new ones.
    pub(crate) is_ring: bool,
}

impl RecordSettings {
    pub(super) fn read(section: Option<Section<'_, '_>>) -> Result<Self, Wrong> {
        let mut settings = Self {
            folder: None,
            quarantine: None,
            max_file: 100 << 20,
            max_total: 10 << 30,
            is_ring: false,
        };
        let Some(mut section) = section else {
            return Ok(settings);
        };
        settings.folder = section.path("folder")?;
        settings.quarantine = section.path("quarantine")?;
        settings.max_file = section.size("max-file", settings.max_file)?;
        settings.max_total = section.size("max-total", settings.max_total)?;
        settings.is_ring = section.choice(
            "when-full",
            false,
            &[("refuse", false), ("delete-oldest", true)],
        )?;
        section.end()?;
        Ok(settings)
    }
}
