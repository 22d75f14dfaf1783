//! Which directory is open, and where a line or a step goes.

use std::collections::VecDeque;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use linkweir_engine::SinkError;
use linkweir_wire::civil::date_time;

use linkweir_sink::{Existing, announce_name, exists, io_error, with_number};

use crate::log::Log;
use crate::{dns, dump, http, lines, multimedia, periodic};

/// Directories whose logs are open: the newest, and the one before for what comes late.
const OPEN_DIRECTORIES: usize = 2;
/// Directories known to have been made by this run.
const KNOWN_DIRECTORIES: usize = 64;
/// Names of directories tell minutes, so that a directory must be longer.
const MINUTE_NS: u64 = 60_000_000_000;

/// How the tree is written.
#[derive(Debug, Clone, Copy)]
pub struct TstatOptions {
    /// Length of a step.
    pub step: Duration,
    /// Steps per directory.
    pub steps_per_directory: u32,
    /// Whether the run makes partial records: they have logs of their own.
    pub has_partial_records: bool,
    /// How long the stage waits for a packet of a TCP flow.
    pub tcp_idle: Duration,
    /// How long it waits for one of a UDP flow.
    pub udp_idle: Duration,
    /// How long it waits where only SYNs, or one datagram, were seen.
    pub syn_timeout: Duration,
    /// Seconds that local time is ahead of UTC at a moment (seconds since the epoch), for the names
    /// of directories. Libraries do not ask the system.
    pub utc_offset_s: fn(u64) -> i32,
    /// What becomes of a directory that an earlier run has made for the same time.
    pub existing: Existing,
    /// Tells people that a directory has another name than usual.
    pub announce: fn(&str),
}

impl Default for TstatOptions {
    /// Tstat's step, directories and timeouts; UTC.
    fn default() -> Self {
        Self {
            step: Duration::from_secs(300),
            steps_per_directory: 12,
            has_partial_records: false,
            tcp_idle: Duration::from_secs(300),
            udp_idle: Duration::from_secs(200),
            syn_timeout: Duration::from_secs(10),
            utc_offset_s: |_| 0,
            existing: Existing::default(),
            announce: |_| {},
        }
    }
}

/// The logs of a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogKind {
    TcpComplete,
    TcpNocomplete,
    UdpComplete,
    HttpComplete,
    MmComplete,
    DnsComplete,
    TcpPeriodic,
    UdpPeriodic,
}

impl LogKind {
    /// In the order of their numbers.
    const ALL: [Self; 8] = [
        Self::TcpComplete,
        Self::TcpNocomplete,
        Self::UdpComplete,
        Self::HttpComplete,
        Self::MmComplete,
        Self::DnsComplete,
        Self::TcpPeriodic,
        Self::UdpPeriodic,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::TcpComplete => "log_tcp_complete",
            Self::TcpNocomplete => "log_tcp_nocomplete",
            Self::UdpComplete => "log_udp_complete",
            Self::HttpComplete => "log_http_complete",
            Self::MmComplete => "log_mm_complete",
            Self::DnsComplete => "log_dns_complete",
            Self::TcpPeriodic => "log_tcp_periodic",
            Self::UdpPeriodic => "log_udp_periodic",
        }
    }

    const fn is_periodic(self) -> bool {
        matches!(self, Self::TcpPeriodic | Self::UdpPeriodic)
    }

    fn header(self) -> fn(&mut Vec<u8>) {
        match self {
            Self::TcpComplete => lines::tcp_complete_header,
            Self::TcpNocomplete => lines::tcp_nocomplete_header,
            Self::UdpComplete => lines::udp_complete_header,
            Self::HttpComplete => http::header,
            Self::MmComplete => multimedia::header,
            Self::DnsComplete => dns::header,
            Self::TcpPeriodic => periodic::tcp_header,
            Self::UdpPeriodic => periodic::udp_header,
        }
    }
}

/// A directory with open logs.
#[derive(Debug)]
struct Directory {
    /// Which one, counted from the first.
    period: i64,
    /// By number of [`LogKind`], as many as are written.
    logs: Vec<Log>,
}

impl Directory {
    fn flush(&mut self) -> Result<(), SinkError> {
        self.logs.iter_mut().try_for_each(Log::flush)
    }

    fn finish(&mut self) -> Result<(), SinkError> {
        self.logs.iter_mut().try_for_each(Log::finish)
    }

    /// Lines that are in the logs.
    fn lines(&self) -> u64 {
        self.logs.iter().map(Log::lines).sum()
    }
}

/// The tree.
#[derive(Debug)]
pub(crate) struct Tree {
    dir: PathBuf,
    destination: String,
    options: TstatOptions,
    has_logs: bool,
    span_ns: u64,
    steps_per_directory: u64,
    /// First packet of the run, nanoseconds since the epoch.
    begin_ns: Option<u64>,
    /// The newest last.
    open: VecDeque<Directory>,
    /// Lines in the logs of directories that are complete.
    lines: u64,
    /// Directories of this run and the periods they are for.
    known: VecDeque<(i64, PathBuf)>,
}

impl Tree {
    pub(crate) fn open(
        dir: &Path,
        options: TstatOptions,
        has_logs: bool,
    ) -> Result<Self, SinkError> {
        let destination = dir.display().to_string();
        if dir.metadata().is_ok_and(|meta| !meta.is_dir()) {
            return Err(SinkError::Refused {
                destination,
                message: "is not a directory; Tstat's logs and histograms are a tree of files, \
                          so name a directory (it is created if needed)"
                    .to_owned(),
            });
        }
        // The directory is made, but not those above it: those would be a slip of the pen.
        match fs::create_dir(dir) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                return Err(io_error(&destination, error));
            }
            _ => {}
        }
        let span_ns = linkweir_wire::nanos(options.step);
        let span_ns = span_ns.max(1_000_000_000);
        let in_two_minutes = 2 * MINUTE_NS / span_ns;
        Ok(Self {
            dir: dir.to_owned(),
            destination,
            options,
            has_logs,
            span_ns,
            steps_per_directory: u64::from(options.steps_per_directory)
                .max(in_two_minutes)
                .max(1),
            begin_ns: None,
            open: VecDeque::new(),
            lines: 0,
            known: VecDeque::new(),
        })
    }

    /// The directory the user named.
    pub(crate) fn destination(&self) -> &str {
        &self.destination
    }

    /// Whether the first packet is known.
    pub(crate) const fn has_begun(&self) -> bool {
        self.begin_ns.is_some()
    }

    /// Tells of the first packet.
    pub(crate) const fn begin(&mut self, ns: u64) {
        self.begin_ns = Some(ns);
    }

    /// The directory of a step, counted from the first, and its place in it.
    fn place(&self, step: u64) -> (i64, u64) {
        let first = self.begin_ns.unwrap_or_default() / self.span_ns;
        let distance = i128::from(step) - i128::from(first);
        let per_directory = i128::from(self.steps_per_directory);
        let period = distance.div_euclid(per_directory);
        let place = distance.rem_euclid(per_directory);
        (
            i64::try_from(period).unwrap_or(i64::MAX),
            u64::try_from(place).unwrap_or_default(),
        )
    }

    /// `YYYY_MM_DD_HH_MM.out`, by the time at which the period begins.
    fn path(&self, period: i64) -> PathBuf {
        let begin = self.begin_ns.unwrap_or_default();
        let seconds = if period == 0 {
            begin / 1_000_000_000
        } else {
            let first = i128::from(begin / self.span_ns);
            let step = first + i128::from(period) * i128::from(self.steps_per_directory);
            let ns = step.max(0) * i128::from(self.span_ns);
            u64::try_from(ns / 1_000_000_000).unwrap_or(u64::MAX)
        };
        let offset = (self.options.utc_offset_s)(seconds);
        let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
        let local = seconds.saturating_add(i64::from(offset));
        let [year, month, day, hour, minute, _] = date_time(local);
        self.dir.join(format!(
            "{year:04}_{month:02}_{day:02}_{hour:02}_{minute:02}.out"
        ))
    }

    /// Makes the directory of a period, once per run. One of an earlier run is treated as its files would be:
    /// see [`TstatOptions::existing`].
    fn make(&mut self, period: i64) -> Result<PathBuf, SinkError> {
        let mut known = self.known.iter();
        if let Some((_, path)) = known.find(|(known, _)| *known == period) {
            return Ok(path.clone());
        }
        let path = self.free(self.path(period))?;
        let failed = |e| io_error(&path.display().to_string(), e);
        fs::create_dir_all(&path).map_err(failed)?;
        clean(&path, self.has_logs).map_err(failed)?;
        self.known.push_back((period, path.clone()));
        if self.known.len() > KNOWN_DIRECTORIES {
            self.known.pop_front();
        }
        Ok(path)
    }

    /// The directory to use where one of this name may hold what an earlier run has measured.
    fn free(&self, named: PathBuf) -> Result<PathBuf, SinkError> {
        let is_taken = |path: &Path| {
            let holds = fs::read_dir(path).map(|mut entries| entries.next().is_some());
            holds.unwrap_or(false)
        };
        let shown = || named.display().to_string();
        match self.options.existing {
            Existing::Refuse if is_taken(&named) => Err(exists(&shown())),
            Existing::Keep if is_taken(&named) => {
                let mut numbered = (1..).map(|number| with_number(&named, number));
                let free = numbered.find(|path| !is_taken(path));
                let free = free.unwrap_or_else(|| named.clone());
                announce_name(self.options.announce, &shown(), &free);
                Ok(free)
            }
            _ => Ok(named),
        }
    }

    /// Sees to it that the newest directory is at least this one.
    fn open_until(&mut self, period: i64) -> Result<(), SinkError> {
        if self
            .open
            .back()
            .is_some_and(|newest| newest.period >= period)
        {
            return Ok(());
        }
        let path = self.make(period)?;
        let mut logs = Vec::new();
        if self.has_logs {
            for kind in LogKind::ALL {
                if self.options.has_partial_records || !kind.is_periodic() {
                    logs.push(Log::create(path.join(kind.name()), kind.header())?);
                }
            }
        }
        self.open.push_back(Directory { period, logs });
        if self.open.len() > OPEN_DIRECTORIES
            && let Some(oldest) = self.open.pop_front()
        {
            return self.complete(oldest);
        }
        Ok(())
    }

    /// Appends lines to a log of the directory of `time_ns`; what comes later than that goes to the
    /// oldest that is open.
    #[inline]
    pub(crate) fn append(
        &mut self,
        time_ns: u64,
        kind: LogKind,
        line: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(), SinkError> {
        let (period, _) = self.place(time_ns / self.span_ns);
        self.open_until(period)?;
        let at = self
            .open
            .iter()
            .rposition(|directory| directory.period <= period);
        let Some(directory) = self.open.get_mut(at.unwrap_or(0)) else {
            return Ok(());
        };
        match directory.logs.get_mut(kind as usize) {
            Some(log) => log.append(line),
            None => Ok(()),
        }
    }

    /// The directory for the histograms of a step.
    pub(crate) fn step_directory(
        &mut self,
        step: u64,
        is_last: bool,
    ) -> Result<PathBuf, SinkError> {
        let (period, place) = self.place(step);
        self.open_until(period)?;
        let directory = self.make(period)?;
        Ok(if is_last {
            directory.join("LAST")
        } else {
            directory.join(format!("{place:03}"))
        })
    }

    /// Writes what is collected.
    pub(crate) fn flush(&mut self) -> Result<(), SinkError> {
        self.open.iter_mut().try_for_each(Directory::flush)
    }

    /// Completes all logs.
    pub(crate) fn finish(&mut self) -> Result<(), SinkError> {
        while let Some(directory) = self.open.pop_front() {
            self.complete(directory)?;
        }
        Ok(())
    }

    fn complete(&mut self, mut directory: Directory) -> Result<(), SinkError> {
        let finished = directory.finish();
        self.lines += directory.lines();
        finished
    }

    /// Lines that are in the logs.
    pub(crate) fn lines(&self) -> u64 {
        self.lines + self.open.iter().map(Directory::lines).sum::<u64>()
    }
}

/// Takes away the logs and step directories of an earlier run: nothing else.
fn clean(directory: &Path, has_logs: bool) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let name = entry?.file_name();
        let Some(name) = name.to_str() else { continue };
        let is_step =
            name == "LAST" || (name.len() >= 3 && name.bytes().all(|b| b.is_ascii_digit()));
        let is_partial = name.starts_with('.') && name.ends_with(".partial");
        if is_step || is_partial {
            match dump::clean(&directory.join(name)) {
                Err(e) if e.kind() != ErrorKind::NotADirectory => return Err(e),
                _ => {}
            }
        } else if has_logs && LogKind::ALL.iter().any(|kind| kind.name() == name) {
            fs::remove_file(directory.join(name))?;
        }
    }
    Ok(())
}
