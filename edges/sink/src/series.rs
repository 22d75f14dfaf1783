//! The files of one destination, one after the other, and why nothing more may be written.

use std::io;
use std::path::{Path, PathBuf};

use linkweir_engine::{SinkError, SinkLosses};

use crate::names::{Names, partial_name};
use crate::options::{Existing, OutputOptions};
use crate::output::{Output, Place, adopt, io_error};

/// Why nothing more is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    Finished,
    Failed,
    ClosedPipe,
}

/// What a part of a file is worth that was not completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// It stays, and the next run gives it its name: records, frames.
    Kept,
    /// Nobody can use it.
    Useless,
}

/// The output of a destination: one file, numbered files one after the other, or what is not a file.
///
/// A failure is remembered, so that no file that lacks something ever gets its own name.
#[derive(Debug)]
pub(crate) struct Series {
    destination: String,
    /// `None` after the end, and while one file is complete and the next not yet open.
    output: Option<Output>,
    /// `None` where the destination is no file.
    names: Option<Names>,
    existing: Existing,
    announce: fn(&str),
    state: State,
}

impl Series {
    /// Opens the first output. `is_rotated`: files have numbers from the first one on. What killed runs
    /// left of its files gets its names before.
    pub(crate) fn open(
        destination: &str,
        place: Place,
        is_rotated: bool,
        options: &OutputOptions,
    ) -> Result<Self, SinkError> {
        Self::open_for(destination, place, is_rotated, options, Part::Kept)
    }

    /// The same; what killed runs left gets its name where `part` says that it is worth it.
    pub(crate) fn open_for(
        destination: &str,
        place: Place,
        is_rotated: bool,
        options: &OutputOptions,
        part: Part,
    ) -> Result<Self, SinkError> {
        let (output, names) = match place {
            Place::File(base) => {
                let mut names = Names {
                    base,
                    number: None,
                    again: 0,
                };
                let is_left = match part {
                    Part::Kept => adopt_all(destination, &names, options)?,
                    Part::Useless => false,
                };
                let output = if is_rotated {
                    open_numbered(destination, &mut names)?
                } else {
                    open_named(destination, &mut names, options, is_left)?
                };
                (output, Some(names))
            }
            _ if is_rotated => {
                return Err(SinkError::Refused {
                    destination: destination.to_owned(),
                    message: "only a file can be rotated".to_owned(),
                });
            }
            Place::Stdout => (Output::stdout()?, None),
            Place::Special(path) => (Output::special(destination, &path)?, None),
        };
        Ok(Self {
            destination: destination.to_owned(),
            output: Some(output),
            names,
            existing: options.existing,
            announce: options.announce,
            state: State::Open,
        })
    }

    /// Fails where an earlier call has.
    pub(crate) fn check(&self) -> Result<(), SinkError> {
        match self.state {
            State::Open => Ok(()),
            State::ClosedPipe => Err(SinkError::ClosedPipe),
            State::Failed => Err(self.refused(
                self.output
                    .as_ref()
                    .filter(|output| output.written() > 0)
                    .and_then(Output::partial_path)
                    .map_or_else(
                        || "an earlier write failed".to_owned(),
                        |path| {
                            format!(
                                "an earlier write failed; what was written is in `{}`",
                                path.display()
                            )
                        },
                    ),
            )),
            State::Finished => Err(self.refused("the output is complete already".to_owned())),
        }
    }

    /// A refusal that names the destination.
    pub(crate) fn refused(&self, message: String) -> SinkError {
        SinkError::Refused {
            destination: self.destination.clone(),
            message,
        }
    }

    /// Remembers a failure.
    pub(crate) fn keep<T>(&mut self, result: Result<T, SinkError>) -> Result<T, SinkError> {
        if let Err(error) = &result {
            self.state = match error {
                SinkError::ClosedPipe => State::ClosedPipe,
                _ => State::Failed,
            };
        }
        result
    }

    /// Writes to the current output, and remembers a failure. Nothing is written between two files.
    pub(crate) fn write(
        &mut self,
        write: impl FnOnce(&mut Output) -> Result<(), SinkError>,
    ) -> Result<(), SinkError> {
        let Some(output) = &mut self.output else {
            return self.check();
        };
        let result = write(output);
        self.keep(result)
    }

    /// Bytes written to the current output.
    pub(crate) fn written(&self) -> u64 {
        self.output.as_ref().map_or(0, Output::written)
    }

    /// Whether there can be another file after this one.
    pub(crate) const fn is_file(&self) -> bool {
        self.names.is_some()
    }

    /// Whether the current file has another one before it.
    pub(crate) fn follows_another(&self) -> bool {
        self.names
            .as_ref()
            .is_some_and(|names| names.number > Some(1))
    }

    /// From here on files have numbers, the current one too.
    pub(crate) fn number_files(&mut self) -> Result<(), SinkError> {
        let Some(names) = self.names.as_mut().filter(|names| names.number.is_none()) else {
            return Ok(());
        };
        match names.next_free() {
            Ok(next) => names.number = Some(next),
            Err(source) => {
                let error = io_error(&self.destination, source);
                return self.keep(Err(error));
            }
        }
        Ok(())
    }

    /// Gives the current file its name, which comes back where it is a file.
    pub(crate) fn complete(&mut self) -> Result<Option<PathBuf>, SinkError> {
        let (Some(output), Some(names)) = (self.output.take(), &self.names) else {
            return Ok(None);
        };
        let target = names.current();
        let replaces = self.existing == Existing::Replace && names.number.is_none();
        let completed = output.complete(&target, replaces);
        let name = self.keep(completed)?;
        if name != target {
            // Somebody else has made a file of that name meanwhile.
            announce_name(self.announce, &self.destination, &name);
        }
        Ok(Some(name))
    }

    /// Opens the file after one that is complete.
    pub(crate) fn open_next(&mut self) -> Result<(), SinkError> {
        let Some(names) = &mut self.names else {
            return Ok(());
        };
        let opened = open_numbered(&self.destination, names);
        self.output = Some(self.keep(opened)?);
        Ok(())
    }

    /// Gives the current file up: nothing stays under any name.
    pub(crate) fn discard(&mut self) -> Result<(), SinkError> {
        match self.output.take() {
            Some(output) => {
                let result = output.discard();
                self.keep(result)
            }
            None => Ok(()),
        }
    }

    /// What is lost where `missing` records are not in any output: nothing as long as they may still be
    /// written, or where nobody wants them.
    pub(crate) fn losses(&self, missing: u64) -> SinkLosses {
        let has_failed = self.state == State::Failed;
        SinkLosses {
            count: if has_failed { missing } else { 0 },
            first: None,
        }
    }

    /// Nothing more may be written.
    pub(crate) const fn finish(&mut self) {
        self.state = State::Finished;
    }

    /// Whether [`Series::finish`] was called.
    pub(crate) fn is_finished(&self) -> bool {
        self.state == State::Finished
    }
}

/// A series that is not finished leaves no empty file: it says nothing, and the next run would wonder.
impl Drop for Series {
    fn drop(&mut self) {
        if !self.is_finished() && self.written() == 0 {
            // That it stays harms nobody.
            let _best_effort = self.discard();
        }
    }
}

/// The error of a destination that exists and has to stay.
#[must_use]
pub fn exists(destination: &str) -> SinkError {
    stays(destination, "exists; --overwrite replaces it")
}

fn stays(destination: &str, why: &str) -> SinkError {
    io_error(
        destination,
        io::Error::new(io::ErrorKind::AlreadyExists, why),
    )
}

/// Says that what is written is not where it was asked for.
pub fn announce_name(announce: fn(&str), destination: &str, name: &Path) {
    announce(&format!(
        "{destination} exists: writing to {}",
        name.display()
    ));
}

/// Gives what killed runs left of a destination's files their names. Where the file itself is going to be
/// replaced, what is left gets another name. Returns whether one has the name of the destination now.
fn adopt_all(destination: &str, names: &Names, options: &OutputOptions) -> Result<bool, SinkError> {
    let mut is_left = false;
    for target in names.left().map_err(|e| io_error(destination, e))? {
        let is_replaced = options.existing == Existing::Replace && target == names.base;
        let partial = partial_name(&target).display().to_string();
        let adopted = adopt(&target, is_replaced.into()).map_err(|e| io_error(&partial, e))?;
        if let Some(name) = adopted {
            is_left |= name == names.base;
            (options.announce)(&format!(
                "renamed {partial}, which a killed run left, to {}",
                name.display()
            ));
        }
    }
    Ok(is_left)
}

/// Opens the file of a destination under its name, or a free one, as [`Existing`] says. `is_left`: what is
/// there under its name is what a killed run left, as was just told.
fn open_named(
    destination: &str,
    names: &mut Names,
    options: &OutputOptions,
    is_left: bool,
) -> Result<Output, SinkError> {
    let is_taken = |names: &Names| names.current().symlink_metadata().is_ok();
    loop {
        if options.existing != Existing::Replace && is_taken(names) {
            if options.existing == Existing::Refuse {
                return Err(match is_left {
                    true => stays(destination, LEFT),
                    false => exists(destination),
                });
            }
            names.again += 1;
            continue;
        }
        let output = Output::partial(destination, &names.current())?;
        if options.existing != Existing::Replace && is_taken(names) {
            // Another run has completed it just now.
            output.discard()?;
            continue;
        }
        if names.again > 0 {
            announce_name(options.announce, destination, &names.current());
        }
        return Ok(output);
    }
}

/// What is to be done where a killed run's file has the name of the new one.
const LEFT: &str = "is what a killed run left, which is not whole: name another file to keep it, or \
                    replace it with --overwrite";

/// Opens a file under the first number above all that are there. Other runs may write files of the same
/// name: a number is ours once its partial file is, and nobody else completed it before.
fn open_numbered(destination: &str, names: &mut Names) -> Result<Output, SinkError> {
    loop {
        let next = names.next_free().map_err(|e| io_error(destination, e))?;
        names.number = Some(next);
        let target = names.current();
        match Output::partial(destination, &target) {
            // Another run took the number since; its file is there now, so the next one is higher.
            Err(SinkError::Refused { .. }) => {}
            Ok(output) if target.exists() => output.discard()?,
            other => return other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_that_share_a_name_take_numbers_in_turns() {
        let directory = tempfile::tempdir().unwrap();
        let base = directory.path().join("x.jsonl");
        let open = || {
            Series::open(
                "x.jsonl",
                Place::File(base.clone()),
                true,
                &OutputOptions::default(),
            )
            .unwrap()
        };
        let (mut ours, mut theirs) = (open(), open());
        let say = |series: &mut Series, text: &'static str| {
            series
                .write(|output| output.write(text.as_bytes(), |_| 0))
                .unwrap();
            series.complete().unwrap();
        };
        say(&mut ours, "a");
        ours.open_next().unwrap();
        say(&mut theirs, "b");
        theirs.open_next().unwrap();
        say(&mut theirs, "c");
        say(&mut ours, "d");
        let text = |number| {
            let name = format!("x-{number:06}.jsonl");
            std::fs::read_to_string(directory.path().join(name)).unwrap()
        };
        assert_eq!([1, 2, 3, 4].map(text), ["a", "b", "d", "c"]);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 4);
    }

    #[test]
    fn no_two_runs_take_one_number() {
        let directory = tempfile::tempdir().unwrap();
        let base = directory.path().join("x.jsonl");
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mut series = Series::open(
                        "x.jsonl",
                        Place::File(base.clone()),
                        true,
                        &OutputOptions::default(),
                    )
                    .unwrap();
                    for _ in 0..50 {
                        series.complete().unwrap();
                        series.open_next().unwrap();
                    }
                    series.discard().unwrap();
                });
            }
        });
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 200);
    }
}
