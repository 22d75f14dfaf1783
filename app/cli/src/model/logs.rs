//! Logs as one stream of requests in the order of time, and the sessions in it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, Read};
use std::time::Duration;

use anyhow::anyhow;
use linkweir_model::bins::Bins;
use linkweir_model::coverage::{Coverage, Mark, Side};
use linkweir_model::log::calendar::format_date;
use linkweir_model::log::{Cause, Decoder, Faults, LogFormat, Request, detect};
use linkweir_model::sessions::{Rule, Sessions, Totals};
use linkweir_record::human::counted;
use linkweir_wire::nanos;

use super::args::{LogArgs, LogForm, SpanArgs};
use super::columns::{Columns, Stored, stored};
use super::{no_arrivals, wrong};
use crate::opened::Opened;

/// Bytes read at once.
const CHUNK_BYTES: usize = 64 << 10;

/// What the logs held.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) totals: Totals,
    /// Sessions that begin in the time that was asked for.
    pub(super) sessions: u64,
    /// What could not be read: input, cause, how often, line of the first.
    pub(super) faults: Vec<(String, Cause, u64, u64)>,
    /// Inputs that end in damage: name and what happened.
    pub(super) damaged: Vec<(String, String)>,
    /// The first and the last moment of the time that is meant and that the logs cover.
    pub(super) watched: Option<(u64, u64)>,
}

impl Found {
    /// Whether something is missing or doubtful.
    pub(super) fn is_complete(&self) -> bool {
        self.damaged.is_empty()
            && self.totals.late == 0
            && self.totals.forgotten == 0
            && !self.faults.iter().any(|(_, cause, ..)| cause.is_damage())
    }

    /// What is missing or doubtful, one sentence each.
    pub(super) fn complaints(&self) -> Vec<String> {
        let mut all = Vec::new();
        for (name, cause, count, first) in &self.faults {
            if cause.is_damage() {
                all.push(format!(
                    "{name}: {} not read ({}), the first is line {first}",
                    counted(*count, "line"),
                    cause.as_str()
                ));
            }
        }
        for (name, what) in &self.damaged {
            all.push(format!("{name}: {what}; what is before it was read"));
        }
        if self.totals.late > 0 {
            all.push(format!(
                "{} further from the place in time than --disorder; sort the log",
                counted(self.totals.late, "request")
            ));
        }
        if self.totals.forgotten > 0 {
            all.push(format!(
                "{} evicted within the timeout; raise --max-clients",
                counted(self.totals.forgotten, "client")
            ));
        }
        all
    }
}

/// A form of log: bytes that are decoded as they come, or columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Bytes(LogFormat),
    Columns(Stored),
}

/// The form of an input; nothing where it is not a log.
pub(super) fn form(opened: &Opened, asked: LogForm) -> Option<Form> {
    if let Some(stored) = stored(&opened.beginning)
        && matches!(asked, LogForm::Auto | LogForm::Http)
    {
        return Some(Form::Columns(stored));
    }
    bytes_form(opened, asked).map(Form::Bytes)
}

fn bytes_form(opened: &Opened, asked: LogForm) -> Option<LogFormat> {
    let found = detect(&opened.beginning).filter(|format| asked.allows(*format));
    let first = opened.beginning.split(|byte| *byte == b'\n').next();
    found.or_else(|| match asked {
        LogForm::Auto => None,
        LogForm::Clf => Some(LogFormat::Common),
        LogForm::Wc98 => Some(LogFormat::WorldCup),
        LogForm::Http => match first {
            Some([b'{', ..]) => Some(LogFormat::HttpJson),
            Some(line) if line.contains(&b'|') => Some(LogFormat::HttpText),
            _ => Some(LogFormat::HttpCsv),
        },
    })
}

/// Finds the sessions of logs; `begin` gets the time of each that begins in the span. Where they are counted
/// in bins of such a length, a log with a longer gap than is meant is refused, whatever `begin` says to what
/// is beyond it.
pub(super) fn sessions(
    mut merged: Merged,
    args: &LogArgs,
    span: SpanArgs,
    bin: Option<Duration>,
    mut begin: impl FnMut(u64) -> anyhow::Result<()>,
) -> anyhow::Result<Found> {
    let mut sessions = Sessions::new(Rule {
        timeout_ns: nanos(args.timeout),
        disorder_ns: nanos(args.disorder),
        most_clients: usize::try_from(args.max_clients).unwrap_or(usize::MAX),
    });
    let (from, to) = span.limits();
    let mut found = Found::default();
    let mut failed = None;
    let mut begun = |time_ns: u64| {
        if (from..to).contains(&time_ns) && failed.is_none() {
            found.sessions += 1;
            failed = begin(time_ns).err();
        }
    };
    let mut coverage = Coverage::new(nanos(span.max_gap));
    while let Some((log, request)) = merged.next() {
        coverage.add(Mark {
            time_ns: request.time_ns,
            place: (log, request.line),
        });
        sessions.request(request, &mut begun);
    }
    sessions.finish(&mut begun);
    found.watched = coverage.watched((from, to));
    if let (Some(bin), Some(sides)) = (bin, coverage.gap((from, to))) {
        let places = sides.map(|side| merged.shown(side.mark.place));
        let fits = found
            .watched
            .is_some_and(|(first, last)| Bins::can_hold(nanos(bin), first, last));
        return Err(long_gap(sides, &places, fits));
    }
    if let Some(error) = failed {
        return Err(error);
    }
    found.totals = sessions.totals();
    for stream in merged.streams {
        let faults = stream.source.faults();
        found.faults.extend(
            faults
                .iter()
                .map(|(cause, count, first)| (stream.name.clone(), cause, count, first)),
        );
        if let Some(what) = stream.damage {
            found.damaged.push((stream.name, what));
        }
    }
    Ok(found)
}

/// That bins would fill a longer gap than is meant: the lines around it, which of them stands alone, and how
/// it is left out. The gap can be allowed where the bins then `fit`.
fn long_gap([before, after]: [Side; 2], places: &[String; 2], fits: bool) -> anyhow::Error {
    let [place, next_place] = places;
    let (is_behind, fewer) = (after.all <= before.all, after.all.min(before.all));
    // Where there is less behind the gap it ends there, else it begins there.
    let limit = if is_behind { "--to" } else { "--from" };
    let limit = format!("{limit} {}", format_date(after.mark.time_ns));
    let alone = match (before.near, after.near) {
        (1, 2..) => Some((place, !is_behind)),
        (2.., 1) => Some((next_place, is_behind)),
        _ => None,
    };
    let doubt = match alone {
        Some((place, true)) if fewer == 1 => {
            format!("{place} stands alone: is its time wrong? Leave it out with {limit}")
        }
        Some((place, true)) => format!(
            "{place} stands alone: is its time wrong? Leave it out, and all that is beyond it, with {limit}"
        ),
        Some((place, false)) => {
            format!("{place} stands alone: is its time wrong? Take it out of the log")
        }
        None => format!(
            "is a time wrong? Leave out {} with {limit}",
            counted(fewer, "request")
        ),
    };
    let times = (before.mark.time_ns, after.mark.time_ns);
    let places = [format!(" ({place})"), format!(" ({next_place})")];
    wrong(no_arrivals(times, places, &doubt, fits))
}

/// Where the requests of a log come from.
enum Source {
    Bytes {
        log: Opened,
        decoder: Box<Decoder>,
        buffer: Vec<u8>,
    },
    Columns(Columns),
}

impl Source {
    fn open(log: Opened, form: Form) -> anyhow::Result<Self> {
        Ok(match form {
            Form::Bytes(format) => Self::Bytes {
                log,
                decoder: Box::new(Decoder::new(format)),
                buffer: vec![0; CHUNK_BYTES],
            },
            Form::Columns(stored) => Self::Columns(Columns::open(log, stored)?),
        })
    }

    /// Appends the next requests; whether there may be more.
    fn read(&mut self, batch: &mut Vec<Request>) -> anyhow::Result<bool> {
        match self {
            Self::Bytes {
                log,
                decoder,
                buffer,
            } => match log.read(buffer) {
                Ok(0) => {
                    decoder.finish(batch);
                    Ok(false)
                }
                Ok(got) => {
                    decoder.feed(buffer.get(..got).unwrap_or_default(), batch);
                    Ok(true)
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(true),
                Err(error) => {
                    decoder.finish(batch);
                    Err(error.into())
                }
            },
            Self::Columns(columns) => columns.read(batch),
        }
    }

    fn faults(&self) -> &Faults {
        match self {
            Self::Bytes { decoder, .. } => decoder.faults(),
            Self::Columns(columns) => columns.faults(),
        }
    }
}

/// One log.
struct Stream {
    name: String,
    source: Source,
    batch: Vec<Request>,
    /// Requests of the batch that are taken.
    taken: usize,
    is_ended: bool,
    damage: Option<String>,
}

impl Stream {
    fn open(log: Opened, form: Form) -> anyhow::Result<Self> {
        Ok(Self {
            name: log.name.clone(),
            source: Source::open(log, form)?,
            batch: Vec::new(),
            taken: 0,
            is_ended: false,
            damage: None,
        })
    }

    fn next(&mut self) -> Option<Request> {
        loop {
            if let Some(request) = self.batch.get(self.taken) {
                self.taken += 1;
                return Some(*request);
            }
            if self.is_ended {
                return None;
            }
            self.batch.clear();
            self.taken = 0;
            match self.source.read(&mut self.batch) {
                Ok(may_have_more) => self.is_ended = !may_have_more,
                Err(error) => {
                    self.damage = Some(error.to_string());
                    self.is_ended = true;
                }
            }
        }
    }
}

/// Several logs, the earliest request first.
pub(super) struct Merged {
    streams: Vec<Stream>,
    /// The next request of each log: time, log, request.
    next: BinaryHeap<Reverse<(u64, usize)>>,
    waiting: Vec<Option<Request>>,
}

impl Merged {
    /// Begins to read each of them.
    pub(super) fn new(logs: Vec<(Opened, Form)>) -> anyhow::Result<Self> {
        let mut streams = logs
            .into_iter()
            .map(|(log, form)| Stream::open(log, form))
            .collect::<anyhow::Result<Vec<Stream>>>()?;
        let waiting: Vec<Option<Request>> = streams.iter_mut().map(Stream::next).collect();
        let next = waiting
            .iter()
            .enumerate()
            .filter_map(|(log, request)| Some(Reverse((request.as_ref()?.time_ns, log))))
            .collect();
        Ok(Self {
            streams,
            next,
            waiting,
        })
    }

    /// A line as messages name it.
    fn shown(&self, (log, line): (usize, u64)) -> String {
        let name = self.streams.get(log).map_or("", |stream| &stream.name);
        format!("{name}:{line}")
    }

    /// The next request, with the number of its log.
    fn next(&mut self) -> Option<(usize, Request)> {
        let Reverse((_, log)) = self.next.pop()?;
        let place = self.waiting.get_mut(log)?;
        let request = place.take();
        *place = self.streams.get_mut(log).and_then(Stream::next);
        if let Some(following) = place {
            self.next.push(Reverse((following.time_ns, log)));
        }
        Some((log, request?))
    }
}

/// Opens logs and tells their forms.
pub(super) fn open(paths: &[std::path::PathBuf], asked: LogForm) -> anyhow::Result<Merged> {
    let mut logs = Vec::new();
    for path in paths {
        let opened = Opened::open(path)?;
        if opened.beginning.is_empty() {
            return Err(anyhow!("{}: it is empty", opened.name));
        }
        let format = form(&opened, asked).ok_or_else(|| {
            anyhow!(
                "{}: no log in a known form (Common Log Format, WorldCup98, http records)",
                opened.name
            )
        })?;
        logs.push((opened, format));
    }
    Merged::new(logs)
}
