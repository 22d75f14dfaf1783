//! The ever-lasting archive as a sink: the steps of a run go into a mapped file of constant size.
//!
//! A step is written as soon as a shard gives it, and those of the other shards are added to it: rows
//! merge exactly, so nothing waits in memory, and a killed process loses the current step at most
//! (see [`linkweir_sketch::archive`]).
//!
//! A later run goes on in the same file: the last step of the earlier run is continued from where that
//! ended, and steps before it may fill gaps, but time that an earlier run has measured is not taken
//! again. Reading the same capture twice is refused, instead of counting everything twice.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use linkweir_engine::{Sink, SinkError};
use linkweir_record::flow::{FlowBatch, FlowKind};
use linkweir_sketch::Step;
use linkweir_sketch::archive::{
    Archive, Ladder, Memory, Opened, PutError, ReadAt, ReadFault, Reader, Refused,
};
use linkweir_sketch::cells::catalogue;
use linkweir_sys::mapped_file::{MapError, MappedFile};

use linkweir_record::human;

use crate::steps::Steps;

/// Steps of this run whose numbers are remembered: shards are not further apart.
const REMEMBERED: usize = 1024;

/// A mapped file as the memory of an archive.
#[derive(Debug)]
struct Mapped(MappedFile);

impl Memory for Mapped {
    fn bytes(&self) -> &[u8] {
        self.0.bytes()
    }

    fn write(&mut self, at: usize, data: &[u8]) {
        let rest = self.0.bytes_mut().get_mut(at..).unwrap_or_default();
        if let Some(part) = rest.get_mut(..data.len()) {
            part.copy_from_slice(data);
        }
    }

    fn barrier(&mut self) {
        // A killed process leaves what its processor has stored, in program order: only the
        // compiler must not change it.
        std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
    }
}

/// Puts the steps of a run into an archive.
#[derive(Debug)]
pub struct ArchiveSink {
    path: PathBuf,
    archive: Archive<Mapped>,
    opened: Opened,
    /// Until when the earlier runs measured their last step, nanoseconds since 1970.
    measured_until: Option<u64>,
    /// Steps of this run, the latest [`REMEMBERED`].
    mine: BTreeSet<u64>,
    /// Those of several shards, on their way to be one: a shard may be years behind another.
    waiting: Steps,
}

/// Steps without a packet that are written between two with some: those that the finest level holds.
const MOST_SILENT: u64 = 600;

/// Opens the archive at `path`, makes it where there is none, for steps of length `step`.
///
/// # Errors
/// [`SinkError::Refused`] where another process writes it, it is not an archive or one of other steps or
/// series, or the disk has no room for it; [`SinkError::Io`] where the system refuses.
pub fn open_archive(path: &Path, step: Duration) -> Result<Box<dyn Sink<FlowKind>>, SinkError> {
    Ok(Box::new(ArchiveSink::open(path, step)?))
}

impl ArchiveSink {
    /// As [`open_archive`].
    ///
    /// # Errors
    /// As [`open_archive`].
    pub fn open(path: &Path, step: Duration) -> Result<Self, SinkError> {
        let step_ns = linkweir_wire::nanos(step);
        let refused = |refused: Refused| refuse(path, refused.to_string());
        let map = |error| map_error(path, error);
        if path.try_exists().map_err(|source| io_error(path, source))? {
            let memory = Mapped(MappedFile::open(path).map_err(map)?);
            let (archive, opened) = Archive::open(memory, step_ns, catalogue()).map_err(refused)?;
            return Ok(Self::with(path, archive, opened));
        }
        let ladder = Ladder::tstat(step_ns);
        let len = Archive::<Mapped>::file_bytes(&ladder, catalogue());
        let header = Archive::<Mapped>::header(&ladder, catalogue());
        let file = MappedFile::create(path, len, |bytes| {
            if let Some(part) = bytes.get_mut(..header.len()) {
                part.copy_from_slice(&header);
            }
        })
        .map_err(map)?;
        let (archive, opened) =
            Archive::open(Mapped(file), step_ns, catalogue()).map_err(refused)?;
        Ok(Self::with(path, archive, opened))
    }

    fn with(path: &Path, archive: Archive<Mapped>, opened: Opened) -> Self {
        let newest = opened.newest;
        Self {
            path: path.to_owned(),
            measured_until: newest.and_then(|newest| archive.measured_until(newest)),
            archive,
            opened,
            mine: BTreeSet::new(),
            waiting: Steps::default(),
        }
    }

    /// What was found in the file.
    #[must_use]
    pub const fn opened(&self) -> Opened {
        self.opened
    }

    /// Puts the steps between the last one of this run and `step`: nothing came in them, which is a
    /// measurement too. What no longer fits in the finest steps is left out.
    fn put_silence(&mut self, step: &Step) -> Result<(), SinkError> {
        let Some(last) = self.mine.last().copied().filter(|last| *last < step.number) else {
            return Ok(());
        };
        let first = (last + 1).max(step.number.saturating_sub(MOST_SILENT));
        for number in first..step.number {
            self.put(&Step {
                number,
                span_ns: step.span_ns,
                from_ns: number.saturating_mul(step.span_ns),
                to_ns: (number + 1).saturating_mul(step.span_ns),
                ..Step::default()
            })?;
        }
        Ok(())
    }

    /// Puts a step that comes after all before it, and the silence between them.
    fn put_in_order(&mut self, step: &Step) -> Result<(), SinkError> {
        self.put_silence(step)?;
        self.put(step)
    }

    /// Puts one step of one shard.
    ///
    /// # Errors
    /// Where an earlier run has measured it, or it is older than what is held.
    pub fn put(&mut self, step: &Step) -> Result<(), SinkError> {
        let refuse = |message: String| Err(refuse(&self.path, message));
        if !self.archive.memory().0.is_whole() {
            return refuse("the file was cut while it was in use".to_owned());
        }
        let step_ns = self.archive.ladder().step_ns();
        if step.span_ns != step_ns {
            let wanted = Refused::Step {
                found: step_ns,
                wanted: step.span_ns,
            };
            return refuse(wanted.to_string());
        }
        let at = || human::moment(step.start_ns());
        let is_mine = self.mine.contains(&step.number);
        let is_continued = self.opened.newest == Some(step.number);
        if !is_mine && !is_continued && self.archive.holds(step.number) {
            return refuse(format!(
                "the step from {} was measured by an earlier run already; use another file",
                at()
            ));
        }
        let until = self.measured_until.filter(|_| is_continued);
        if let Some(until) = until.filter(|until| step.from_ns < *until) {
            return refuse(format!(
                "the time from {} to {} was measured by an earlier run already; use another file",
                human::moment(step.from_ns),
                human::moment(until)
            ));
        }
        let put = self.archive.put_until(step.number, step.to_ns, &step.cells);
        match put {
            Ok(_) => {}
            Err(PutError::TooOld) => {
                return refuse(format!(
                    "the step from {} is older than what the archive still holds in steps of {}; use another file",
                    at(),
                    self.archive.ladder().name(0)
                ));
            }
            Err(error) => return refuse(error.to_string()),
        }
        self.mine.insert(step.number);
        if self.mine.len() > REMEMBERED {
            self.mine.pop_first();
        }
        Ok(())
    }
}

impl Sink<FlowKind> for ArchiveSink {
    fn write(&mut self, batch: &FlowBatch) -> Result<(), SinkError> {
        for step in batch.steps() {
            if step.shards <= 1 {
                self.put_in_order(step)?;
                continue;
            }
            self.waiting.add(step);
            while let Some(whole) = self.waiting.next_complete() {
                self.put_in_order(&whole)?;
            }
        }
        Ok(())
    }

    /// The file is up to date after each step, of several shards after each that all have passed; the system writes it to the disk in its time.
    fn flush(&mut self) -> Result<(), SinkError> {
        Ok(())
    }

    fn finish(&mut self) -> Result<(), SinkError> {
        let rest: Vec<_> = self.waiting.rest().collect();
        for (step, _) in rest {
            self.put_in_order(&step)?;
        }
        let written = self.archive.memory().0.write_back();
        written.map_err(|source| io_error(&self.path, source))
    }
}

/// An archive file to read from.
#[derive(Debug)]
pub struct ArchiveFile(File);

impl ReadAt for ArchiveFile {
    fn read_at(&self, at: u64, into: &mut [u8]) -> Result<(), ReadFault> {
        self.0
            .read_exact_at(into, at)
            .map_err(|error| ReadFault(error.to_string()))
    }
}

/// Opens an archive for reading, also while another process writes it, and also one of another
/// version's series.
///
/// # Errors
/// [`SinkError::Refused`] where it is not an archive or damaged, [`SinkError::Io`] where the system
/// refuses.
pub fn read_archive(path: &Path) -> Result<Reader<ArchiveFile>, SinkError> {
    let io = |source| io_error(path, source);
    // A pipe would be waited for.
    let is_file = path.metadata().map_err(io)?.is_file();
    if !is_file {
        return Err(refuse(path, Refused::NotAnArchive.to_string()));
    }
    let file = File::open(path).map_err(io)?;
    let about = file.metadata().map_err(io)?;
    Reader::open(ArchiveFile(file), about.len()).map_err(|error| refuse(path, error.to_string()))
}

fn refuse(path: &Path, message: String) -> SinkError {
    SinkError::Refused {
        destination: path.display().to_string(),
        message,
    }
}

fn io_error(path: &Path, source: std::io::Error) -> SinkError {
    SinkError::Io {
        destination: path.display().to_string(),
        source,
    }
}

fn map_error(path: &Path, error: MapError) -> SinkError {
    match error {
        MapError::Io(source) => io_error(path, source),
        other => refuse(path, other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linkweir_sketch::archive::Cell;
    use linkweir_sketch::cells::{Direction, SeriesId, Transport};

    const STEP: Duration = Duration::from_secs(300);
    const PACKETS: SeriesId = SeriesId::packets(Transport::Tcp, Direction::In);

    fn step(number: u64, packets: u64) -> Step {
        let mut step = Step {
            number,
            span_ns: 300_000_000_000,
            shards: 1,
            ..Step::default()
        };
        step.cells.add(PACKETS, packets);
        step
    }

    fn put(sink: &mut dyn Sink<FlowKind>, step: Step) -> Result<(), SinkError> {
        let mut batch = FlowBatch::default();
        batch.push_step(step);
        sink.write(&batch)
    }

    fn days(path: &Path) -> Vec<(u64, u32, u64)> {
        let mut reader = read_archive(path).unwrap();
        let mut row = reader.buffer();
        let mut out = Vec::new();
        for place in reader.rows(3).unwrap() {
            assert!(reader.row(3, place, &mut row).unwrap());
            let Some(Cell::Scalar { sum, .. }) = reader.cell(&row, usize::from(PACKETS.0)) else {
                panic!("a counter");
            };
            out.push((place.number, row.steps(), sum));
        }
        out
    }

    #[test]
    fn runs_go_on_in_one_file_and_nothing_counts_twice() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.arc");
        let mut first = open_archive(&path, STEP).unwrap();
        let locked = open_archive(&path, STEP)
            .map(|_| ())
            .unwrap_err()
            .to_string();
        assert!(
            locked.ends_with("another process is writing it"),
            "{locked}"
        );
        // Two shards, one behind the other.
        for one in [step(288, 1), step(289, 2), step(288, 4), step(291, 8)] {
            put(&mut *first, one).unwrap();
        }
        // The one in which nothing came is one of them.
        assert_eq!(days(&path), [(1, 4, 15)]);
        first.finish().unwrap();
        drop(first);
        let mut second = ArchiveSink::open(&path, STEP).unwrap();
        assert_eq!(
            second.opened(),
            Opened {
                newest: Some(291),
                ..Opened::default()
            }
        );
        let again = put(&mut second, step(289, 2)).unwrap_err().to_string();
        assert!(
            again.contains("measured by an earlier run already"),
            "{again}"
        );
        // The last step goes on.
        for one in [step(291, 16), step(292, 32), step(292, 64)] {
            put(&mut second, one).unwrap();
        }
        let old = put(&mut second, step(7, 1));
        assert!(old.is_ok(), "its place was free");
        put(&mut second, step(288 + 600 * 5, 1)).unwrap();
        let old = put(&mut second, step(288 + 600, 1))
            .unwrap_err()
            .to_string();
        assert!(
            old.contains("older than what the archive still holds"),
            "{old}"
        );
        // Before the last of them nothing came for as long as the finest level holds, and longer.
        let silent = [(9, 192, 0), (10, 288, 0)];
        let [a, b, rest @ ..] = &days(&path)[..] else {
            panic!("days")
        };
        assert_eq!((*a, *b), ((0, 1, 1), (1, 5, 127)));
        assert_eq!(rest, [silent[0], silent[1], (11, 121, 1)]);
    }

    #[test]
    fn the_last_step_goes_on_where_it_ended() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.arc");
        let part = |from_s: u64, to_s: u64| Step {
            from_ns: (300 * 288 + from_s) * 1_000_000_000,
            to_ns: (300 * 288 + to_s) * 1_000_000_000,
            ..step(288, 1)
        };
        let run = |parts: &[Step]| {
            let mut sink = ArchiveSink::open(&path, STEP).unwrap();
            let put = parts.iter().try_for_each(|part| sink.put(part));
            put.map_err(|error| error.to_string())
        };
        // Two shards, of which one saw its first packet later.
        run(&[part(10, 20), part(12, 21)]).unwrap();
        for again in [part(10, 20), part(20, 40), part(1, 2)] {
            let refused = run(&[again]).unwrap_err();
            assert!(refused.contains("measured by an earlier run"), "{refused}");
        }
        assert_eq!(days(&path), [(1, 1, 2)]);
        run(&[part(21, 40), part(30, 45)]).unwrap();
        assert!(run(&[part(44, 60)]).is_err());
        run(&[part(45, 60)]).unwrap();
        assert_eq!(days(&path), [(1, 1, 5)]);
    }

    #[test]
    fn a_shard_may_be_years_behind_another() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.arc");
        let mut sink = open_archive(&path, STEP).unwrap();
        let years = 4 * 365 * 288;
        let of = |shard: u32, number: u64, packets: u64, is_last: bool| Step {
            shard,
            shards: 2,
            is_last,
            ..step(number, packets)
        };
        for one in [
            of(0, 288, 1, false),
            of(0, 288 + years, 2, true),
            of(1, 288, 4, false),
            of(1, 288 + years, 8, true),
        ] {
            put(&mut *sink, one).unwrap();
        }
        sink.finish().unwrap();
        let days = days(&path);
        assert_eq!(days.first(), Some(&(1, 1, 5)));
        assert_eq!(days.last().map(|(.., packets)| *packets), Some(10));
    }

    #[test]
    fn what_is_no_archive_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.arc");
        std::fs::write(&path, "hello, this is text").unwrap();
        let error = open_archive(&path, STEP)
            .map(|_| ())
            .unwrap_err()
            .to_string();
        assert!(error.ends_with("not an archive"), "{error}");
        let error = read_archive(&path).map(|_| ()).unwrap_err().to_string();
        assert!(error.ends_with("not an archive"), "{error}");
        assert!(read_archive(directory.path()).is_err());
        assert!(matches!(
            read_archive(&directory.path().join("b")),
            Err(SinkError::Io { .. })
        ));
        std::fs::remove_file(&path).unwrap();
        drop(open_archive(&path, STEP).unwrap());
        let minute = open_archive(&path, Duration::from_secs(60)).map(|_| ());
        let error = minute.unwrap_err().to_string();
        assert!(error.contains("steps of 300 s, and not of 60 s"), "{error}");
        let mut sink = open_archive(&path, STEP).unwrap();
        let other = Step {
            span_ns: 7,
            ..step(1, 1)
        };
        assert!(put(&mut *sink, other).is_err());
        let file = File::options().write(true).open(&path).unwrap();
        file.set_len(10).unwrap();
        let cut = put(&mut *sink, step(1, 1)).unwrap_err().to_string();
        assert!(cut.ends_with("was cut while it was in use"), "{cut}");
    }
}
