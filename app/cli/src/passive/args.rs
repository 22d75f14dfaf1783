//! Flags that several passive commands have.

use std::io::Read as _;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::anyhow;
use clap::{Args, ValueHint};
use linkweir_feed::ConsumerName;
use linkweir_geo::Databases;
use linkweir_keys::LiveLog;
use linkweir_record::{Anonymizer, Places};
use linkweir_sink::Rotation;

use crate::common_args::StoreArgs;
use crate::exit::Wrong;
use crate::units;

/// The end of the help of a passive command: its examples, then exit codes and signals.
macro_rules! after_help {
    ($examples:literal) => {
        concat!(
            "Examples:\n",
            $examples,
            "\n\nExit codes:\n",
            "  0  success\n",
            "  1  success, but data was lost (input truncated or corrupt, drops, evictions, fragments\n",
            "     missing, one of several outputs failed)\n",
            "  2  invalid usage or configuration\n",
            "  3  an input could not be read (missing, not a capture), or all outputs failed\n",
            "SIGINT or SIGTERM ends a run early, writes everything and exits with 0; a second one aborts.\n",
            "SIGHUP begins new output files; SIGUSR1 prints a line of progress."
        )
    };
}
pub(crate) use after_help;

/// What a passive command reads.
#[derive(Debug, Args)]
#[command(next_help_heading = "Input")]
pub(crate) struct InputArgs {
    /// Read this capture: a file, a directory (its captures and those of directories below, up to 32 levels
    /// deep, by name) or standard input (`-`). May be repeated; all inputs are one trace, in this order.
    /// Formats are pcap, pcapng, ERF and snoop, plain or compressed by gzip, zstd, xz or lz4; they are
    /// detected by content.
    #[arg(short = 'r', long = "read", value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub(crate) read: Vec<PathBuf>,

    /// Capture on this interface, for example `eth0`, or on `any`; `xdp:eth0` captures by `AF_XDP`.
    /// Requires `CAP_NET_RAW` (xdp: also `CAP_BPF` and `CAP_NET_ADMIN`). Runs until a signal or `-c`. May be
    /// repeated: the packets of all interfaces are measured together, in the order of time.
    #[arg(
        short = 'i',
        long,
        value_name = "IFACE",
        conflicts_with = "read",
        value_hint = ValueHint::Other
    )]
    pub(crate) interface: Vec<String>,

    /// The TLS secrets that are known, from `--keys` and from captures.
    #[arg(skip)]
    pub(crate) secrets: Arc<LiveLog>,

    /// List interfaces and exit.
    #[arg(short = 'D', long)]
    pub(crate) list_interfaces: bool,

    /// Read only packets that match this libpcap filter expression, for example `tcp port 80`; on an
    /// interface the kernel applies it [default: all packets].
    #[arg(short = 'f', long, value_name = "BPF")]
    pub(crate) filter: Option<String>,

    /// Stop after this many packets [default: all].
    #[arg(short = 'c', long, value_name = "PACKETS")]
    pub(crate) count: Option<u64>,

    /// Capture at most this many bytes of each packet of an interface; 0 means the default.
    #[arg(short = 's', long, value_name = "BYTES", default_value_t = 262_144, value_parser = clap::value_parser!(u32).range(..=262_144))]
    pub(crate) snaplen: u32,

    /// Do not put the interface into promiscuous mode.
    #[arg(short = 'p', long)]
    pub(crate) no_promiscuous: bool,

    /// Size of the capture ring of each worker and interface, in KiB; values below 1024 are raised to 1024.
    #[arg(short = 'B', long = "buffer-size", value_name = "KIB", default_value_t = 65_536, value_parser = clap::value_parser!(u32).range(1..=16_777_216), help_heading = "Performance")]
    pub(crate) buffer_size: u32,

    /// Size of a read from a file.
    #[arg(long, value_name = "SIZE", default_value = "512KiB", value_parser = units::size, help_heading = "Performance")]
    pub(crate) read_size: u64,
}

/// Reading from a feeder.
#[derive(Debug, Args)]
#[command(next_help_heading = "Input")]
pub(crate) struct FeederArgs {
    /// Read from feed NAME as consumer K, numbered from 0 (see `linkweir feed`; `flows` requires a feed
    /// with `--by flow`).
    #[arg(long, value_name = "NAME/K", conflicts_with_all = ["read", "interface"])]
    pub(crate) feed: Option<ConsumerName>,

    /// Maximum time to wait for a feeder that has not started yet.
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = units::duration)]
    pub(crate) feed_wait: Duration,
}

/// The number of worker threads.
#[derive(Debug, Args)]
#[command(next_help_heading = "Performance")]
pub(crate) struct WorkerArgs {
    /// Number of worker threads; `auto` is one per core. Records and totals do not depend on it, if the inputs are
    /// in order of time; the order of flows does, the most of them at once, and in which step of an archive one ends.
    #[arg(long, value_name = "N", default_value = "1", value_parser = units::workers)]
    pub(crate) workers: usize,
}

/// Which records are written.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct SampleArgs {
    /// Write one record of N, chosen by a hash of its transaction or flow: a record is written whole or not at
    /// all, and by every run the same, with any number of workers; 1/10 is part of 1/5. Totals, the live view,
    /// reports, stores and `--pcap-filter` still take everything. n records of the sample stand for n*N, with a
    /// standard error of sqrt(n*N*(N-1)).
    #[arg(long, value_name = "1/N", value_parser = units::one_of)]
    pub(crate) sample: Option<NonZeroU32>,
}

/// What a passive command writes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArgs {
    /// Write the records to this path, or to standard output (`-`); may be repeated. A file appears
    /// under its name when it is complete; until then it is `.NAME.partial`, and if the run is killed, the
    /// next one keeps that. `kafka://HOST[:PORT][,HOST...]/TOPIC` sends messages to a topic, `elasticsearch://HOST:PORT/INDEX` (or
    /// `elasticsearch+https://`) adds documents to an index, `syslog://HOST:PORT` (UDP; `syslog+tcp://` for TCP) sends to a collector of logs
    /// without TLS; `flows` also writes `ipfix://HOST:PORT` (UDP; `ipfix+tcp://` for TCP) and, with `--format tstat`, a
    /// directory [default: `-`; none with `--top`].
    #[arg(short = 'w', long = "write", value_name = "DEST", value_hint = ValueHint::AnyPath)]
    pub(crate) write: Vec<String>,

    /// Begin a new file after this size (`100MB`, `64MiB`) or capture time (`300s`, `1h`; on an interface
    /// also by the clock, without packets): out.jsonl becomes out-000001.jsonl and so on, after the
    /// highest number that exists [default: one file; after a SIGHUP also numbered].
    #[arg(long, value_name = "SIZE|DURATION")]
    pub(crate) rotate: Option<Rotation>,

    #[command(flatten)]
    pub(crate) store: StoreArgs,

    /// Write the totals of the run as one JSON object; `-` is standard output.
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub(crate) summary: Option<String>,

    /// Suppress the summary and the progress bar.
    #[arg(short, long)]
    pub(crate) quiet: bool,

    /// Read flags from a TOML file: keys are the long flag names (`read = ["a.pcap"]`); the command line
    /// takes precedence.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) config: Option<PathBuf>,
}

/// What is written of measured records.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct PageArgs {
    /// Write no records; only count.
    #[arg(long, conflicts_with = "write")]
    pub(crate) no_output: bool,

    /// Write a self-contained HTML page with plots; it needs no network.
    #[arg(long, value_name = "FILE.html", value_hint = ValueHint::FilePath)]
    pub(crate) report: Option<PathBuf>,

    /// Replace addresses by prefix-preserving Crypto-PAn with the key in this file (32 bytes, or 64
    /// hexadecimal digits). Host names that are addresses are replaced too; other text is kept.
    #[arg(long, value_name = "KEYFILE", value_hint = ValueHint::FilePath)]
    pub(crate) anonymize: Option<PathBuf>,

    /// Add the countries and AS numbers of client and server from a database of the user (`.mmdb` of the types City, Country,
    /// ASN, ISP and Enterprise; repeatable: the first that knows an address answers). It is read when the run begins; none
    /// comes with the program. With `--anonymize` they are those of the addresses before.
    #[arg(long, value_name = "FILE.mmdb", value_hint = ValueHint::FilePath)]
    pub(crate) geoip: Vec<PathBuf>,
}

impl PageArgs {
    /// What `--geoip` knows of addresses.
    pub(crate) fn places(&self) -> anyhow::Result<Option<Arc<dyn Places>>> {
        if self.geoip.is_empty() {
            return Ok(None);
        }
        let databases = Databases::open(&self.geoip)
            .map_err(|error| anyhow!(Wrong(format!("--geoip {error}"))))?;
        Ok(Some(Arc::new(databases)))
    }

    /// The key of `--anonymize`: 32 bytes, or as many in hexadecimal digits.
    pub(crate) fn anonymizer(&self) -> anyhow::Result<Option<Anonymizer>> {
        self.anonymize.as_deref().map(read_key).transpose()
    }
}

fn read_key(path: &Path) -> anyhow::Result<Anonymizer> {
    let name = path.display();
    let mut bytes = Vec::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(1024).read_to_end(&mut bytes))
        .map_err(|error| anyhow!(Wrong(format!("--anonymize {name}: {error}"))))?;
    let from_hex = |text: &[u8]| -> Option<Vec<u8>> {
        let (pairs, []) = text.as_chunks::<2>() else {
            return None;
        };
        pairs
            .iter()
            .map(|pair| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok())
            .collect()
    };
    let key = <[u8; 32]>::try_from(bytes.as_slice())
        .ok()
        .or_else(|| from_hex(bytes.trim_ascii())?.try_into().ok());
    let wrong = || {
        format!(
            "--anonymize {name}: a key is 32 bytes or 64 hexadecimal digits; make one with: head -c 32 /dev/urandom > {name}"
        )
    };
    key.map(|key| Anonymizer::new(&key))
        .ok_or_else(|| anyhow!(Wrong(wrong())))
}
