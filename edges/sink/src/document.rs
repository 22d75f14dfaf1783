//! Files that hold no series of records: summaries, reports, tables, pictures, captures of a run.

use std::io;
use std::path::PathBuf;

use linkweir_engine::SinkError;

use crate::options::{Existing, OutputOptions};
use crate::output::{Place, place};
use crate::series::{Part, Series};

/// Bytes collected before a write.
const WRITE_BYTES: usize = 64 << 10;

/// One file that a command writes beside its records, or in place of any.
///
/// It is opened by the rules of records: a file gets its name when it is complete, and [`Existing`] says
/// what becomes of one that has that name already. What cannot be written is therefore known before the
/// work. Standard output, devices and FIFOs are opened with the first bytes, for the reader of a FIFO may
/// come late. A reader that goes is no failure: what it would have got is dropped.
#[derive(Debug)]
pub struct Document {
    destination: String,
    options: OutputOptions,
    /// What is opened with the first bytes.
    later: Option<Place>,
    /// `None` before that.
    series: Option<Series>,
    buffer: Vec<u8>,
    part: Part,
}

impl Document {
    /// Opens a destination, a path or `-`, for a document of which a part is of no use to anybody: where
    /// it is not completed, nothing of it stays.
    ///
    /// # Errors
    /// [`SinkError::Refused`] for what cannot be a destination, [`SinkError::Io`] where the system refuses
    /// to open it, or where it exists and has to stay.
    pub fn open(
        destination: &str,
        existing: Existing,
        announce: fn(&str),
    ) -> Result<Self, SinkError> {
        Self::open_as(destination, existing, announce, Part::Useless)
    }

    /// The same for what is read from front to back: a run that fails or is killed leaves what it has
    /// written, and the next one gives that its name. Pieces given to [`io::Write::write`] stay whole.
    ///
    /// # Errors
    /// As [`Document::open`].
    pub fn open_in_pieces(
        destination: &str,
        existing: Existing,
        announce: fn(&str),
    ) -> Result<Self, SinkError> {
        Self::open_as(destination, existing, announce, Part::Kept)
    }

    fn open_as(
        destination: &str,
        existing: Existing,
        announce: fn(&str),
        part: Part,
    ) -> Result<Self, SinkError> {
        let mut document = Self {
            destination: destination.to_owned(),
            options: OutputOptions {
                existing,
                announce,
                ..OutputOptions::default()
            },
            later: None,
            series: None,
            buffer: Vec::new(),
            part,
        };
        match place(destination)? {
            place @ Place::File(_) => document.open_place(place)?,
            other => document.later = Some(other),
        }
        Ok(document)
    }

    fn open_place(&mut self, place: Place) -> Result<(), SinkError> {
        let series = Series::open_for(&self.destination, place, false, &self.options, self.part)?;
        self.series = Some(series);
        Ok(())
    }

    /// The destination as it was named.
    #[must_use]
    pub fn destination(&self) -> &str {
        &self.destination
    }

    /// Writes the whole of it.
    ///
    /// # Errors
    /// Where the system refuses.
    pub fn write_whole(mut self, bytes: &[u8]) -> Result<(), SinkError> {
        self.buffer.extend_from_slice(bytes);
        self.finish()
    }

    /// Writes the whole of it as it is now, and opens it again: what is written next takes its place.
    ///
    /// # Errors
    /// As [`Document::write_whole`] and [`Document::open`].
    pub fn write_and_reopen(mut self, bytes: &[u8]) -> Result<Self, SinkError> {
        self.buffer.extend_from_slice(bytes);
        let written = self.let_out().and_then(|()| self.complete())?;
        let destination = self.destination.clone();
        // The file that this run has written, which may stand beside that of another one.
        let place = written.map_or_else(|| place(&destination), |name| Ok(Place::File(name)));
        let mut again = Self {
            destination,
            options: OutputOptions {
                existing: Existing::Replace,
                ..self.options.clone()
            },
            later: None,
            series: None,
            buffer: Vec::new(),
            part: self.part,
        };
        match place? {
            place @ Place::File(_) => again.open_place(place)?,
            other => again.later = Some(other),
        }
        Ok(again)
    }

    /// Writes one JSON object, indented, with a line feed at its end.
    ///
    /// # Errors
    /// As [`Document::write_whole`].
    pub fn write_json(self, object: &serde_json::Value) -> Result<(), SinkError> {
        self.write_whole(format!("{object:#}\n").as_bytes())
    }

    /// Leaves nothing of what was written in pieces.
    pub fn discard(mut self) {
        self.part = Part::Useless;
    }

    /// Completes it: a file gets its name.
    ///
    /// # Errors
    /// As [`Document::write_whole`].
    pub fn finish(mut self) -> Result<(), SinkError> {
        self.let_out()?;
        self.complete().map(drop)
    }

    fn complete(&mut self) -> Result<Option<PathBuf>, SinkError> {
        let Some(series) = &mut self.series else {
            return Ok(None);
        };
        let name = series.complete()?;
        series.finish();
        Ok(name)
    }

    /// Writes what is collected.
    fn let_out(&mut self) -> Result<(), SinkError> {
        if let Some(place) = self.later.take() {
            self.open_place(place)?;
        }
        let Some(series) = &mut self.series else {
            return Err(SinkError::Refused {
                destination: self.destination.clone(),
                message: "could not be opened".to_owned(),
            });
        };
        let buffer = &self.buffer;
        let written = series
            .check()
            .and_then(|()| series.write(|output| output.write(buffer, |_| 0)));
        self.buffer.clear();
        match written {
            Err(SinkError::ClosedPipe) => Ok(()),
            other => other,
        }
    }
}

/// Errors name the destination.
impl io::Write for Document {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(piece);
        if self.buffer.len() >= WRITE_BYTES {
            self.flush()?;
        }
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.let_out().map_err(io::Error::other)
    }
}

impl Drop for Document {
    fn drop(&mut self) {
        if let Some(series) = &mut self.series
            && self.part == Part::Useless
            && !series.is_finished()
        {
            // The error to report came before.
            let _best_effort = series.discard();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write as _;
    use std::path::Path;

    use super::*;

    fn open(path: &Path, existing: Existing) -> Result<Document, SinkError> {
        Document::open(path.to_str().unwrap(), existing, |_| {})
    }

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn summaries_are_whole_json() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("s.json");
        let value = serde_json::json!({"packets": u64::MAX, "dropped": {"kernel": 0}});
        open(&path, Existing::Refuse)
            .unwrap()
            .write_json(&value)
            .unwrap();
        let back: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        assert_eq!(back, value);
        assert_eq!(names(directory.path()), ["s.json"]);
    }

    #[test]
    fn a_finished_one_is_replaced_only_where_that_is_said() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("r.html");
        let write = |existing, text: &str| {
            let document = open(&path, existing).unwrap();
            document.write_whole(text.as_bytes()).unwrap();
        };
        write(Existing::Refuse, "a");
        let error = open(&path, Existing::Refuse).unwrap_err().to_string();
        assert!(
            error.contains("r.html: exists; --overwrite replaces it"),
            "{error}"
        );
        write(Existing::Keep, "b");
        let text = |name: &str| fs::read_to_string(directory.path().join(name)).unwrap();
        assert_eq!([text("r.html"), text("r.html.1")], ["a", "b"]);
        write(Existing::Replace, "c");
        assert_eq!([text("r.html"), text("r.html.1")], ["c", "b"]);
        assert_eq!(names(directory.path()), ["r.html", "r.html.1"]);
    }

    #[test]
    fn what_is_written_again_replaces_only_what_this_run_wrote() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("r.json");
        fs::write(&path, "of a run before").unwrap();
        let text = |name: &str| fs::read_to_string(directory.path().join(name)).unwrap();
        let mut document = open(&path, Existing::Keep).unwrap();
        for now in ["one", "two"] {
            document = document.write_and_reopen(now.as_bytes()).unwrap();
            assert_eq!([text("r.json"), text("r.json.1")], ["of a run before", now]);
        }
        // A run that is killed now leaves the last one.
        drop(document);
        assert_eq!(names(directory.path()), ["r.json", "r.json.1"]);
        assert_eq!(text("r.json.1"), "two");
    }

    #[test]
    fn half_of_one_is_nothing_and_half_a_capture_stays() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x");
        let half = vec![b'x'; WRITE_BYTES + 1];
        let mut table = open(&path, Existing::Refuse).unwrap();
        table.write_all(&half).unwrap();
        assert_eq!(names(directory.path()), [".x.partial"]);
        drop(table);
        assert!(names(directory.path()).is_empty());
        // What a killed run left of a table is no table.
        fs::write(directory.path().join(".x.partial"), "half").unwrap();
        drop(open(&path, Existing::Refuse).unwrap());
        assert!(names(directory.path()).is_empty());

        let in_pieces = || {
            let name = path.to_str().unwrap();
            Document::open_in_pieces(name, Existing::Keep, |_| {}).unwrap()
        };
        drop(in_pieces());
        assert!(names(directory.path()).is_empty(), "nothing was written");
        let mut capture = in_pieces();
        capture.write_all(&half).unwrap();
        drop(capture);
        in_pieces().write_whole(b"next").unwrap();
        assert_eq!(names(directory.path()), ["x", "x.1"]);
        assert_eq!(fs::read(&path).unwrap(), half);
    }

    #[test]
    fn what_cannot_be_written_is_known_before_the_work() {
        let directory = tempfile::tempdir().unwrap();
        let error = open(&directory.path().join("no/s.json"), Existing::Refuse).unwrap_err();
        assert!(error.to_string().contains("does not exist"), "{error}");
        assert!(open(directory.path(), Existing::Replace).is_err());
        // A device can be opened, but not always written; nothing follows what it has not taken.
        let mut full = open(Path::new("/dev/full"), Existing::Refuse).unwrap();
        full.write_all(b"a").unwrap();
        let error = full.flush().unwrap_err().to_string();
        assert!(error.starts_with("/dev/full: No space left"), "{error}");
        assert!(full.finish().is_err());
    }
}
