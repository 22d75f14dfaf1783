//! `linkweir archive`: reads the archives that `linkweir flows --archive` writes.

mod args;
mod browse;
mod dump;
mod plot;
mod select;
mod spread;

use anyhow::anyhow;
use linkweir_engine::SinkError;
use linkweir_record::human::counted;
use linkweir_sketch::archive::{ReadFault, Reader};
use linkweir_tstat::archive::{ArchiveFile, read_archive};

pub(crate) use args::ArchiveArgs;
use args::ArchiveCommand;
pub(crate) use browse::Browser;

use crate::exit::{Exit, Wrong};
use crate::outputs::restrict_reader;
use crate::units::Moment;

/// Runs the command.
pub(crate) fn run(args: &ArchiveArgs) -> anyhow::Result<Exit> {
    match &args.command {
        ArchiveCommand::Plot(args) => {
            restrict_reader([&args.output])?;
            plot::run(args)
        }
        ArchiveCommand::Dump(args) => {
            restrict_reader([&args.output])?;
            dump::run(args)
        }
    }
}

fn open(path: &std::path::Path) -> anyhow::Result<Reader<ArchiveFile>> {
    read_archive(path).map_err(refused)
}

/// Refuses an output that would replace the archive that is read.
fn keeps(archive: &std::path::Path, output: &std::path::Path) -> anyhow::Result<()> {
    crate::conflicts::check(&[("-o", output)], &[("the archive", archive)]).map_err(wrong)
}

/// Refuses a time that ends before it begins.
fn in_order(from: Option<Moment>, to: Option<Moment>) -> anyhow::Result<()> {
    match from.zip(to) {
        Some((from, to)) if from >= to => Err(wrong("--from must be before --to".to_owned())),
        _ => Ok(()),
    }
}

fn refused(error: SinkError) -> anyhow::Error {
    error.into()
}

/// Something about the command line that only the archive can tell.
fn wrong(message: String) -> anyhow::Error {
    anyhow!(Wrong(message))
}

fn unreadable(path: &std::path::Path, fault: &ReadFault) -> anyhow::Error {
    anyhow!("{}: {}", path.display(), fault.0)
}

/// Rows that were damaged are data lost, and said.
fn conclude(path: &std::path::Path, missed: u64) -> Exit {
    if missed == 0 {
        return Exit::Done;
    }
    crate::exit::warn(&format!(
        "{}: {} damaged and omitted; the next run that writes the archive repairs what can be",
        path.display(),
        counted(missed, "row")
    ));
    Exit::DataLost
}
