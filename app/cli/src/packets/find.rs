//! `--packets-of`: the packets of given records in captures.

use std::net::SocketAddr;
use std::path::Path;

use anyhow::anyhow;
use linkweir_capture::chosen::{Choice, Keeper};
use linkweir_engine::{FaultKind, Limit, Source, SourceEvent};
use linkweir_record::human::{counted, moment, thousands};

use super::choice::{OfPackets, of_json};
use super::out::Out;
use super::{PacketArgs, secrets};
use crate::conflicts;
use crate::exit::{Exit, Wrong, say, warn};
use crate::passive::command::Flags;
use crate::passive::input::{open_files, unopened};
use crate::passive::watch::describe;
use crate::signals::Signals;
use crate::{files, outputs};

/// Bytes of records that are read at most.
const MAX_BYTES: u64 = 64 << 20;

/// Runs a command with `--packets-of`, which writes packets and no records.
pub(crate) fn find<K: OfPackets>(
    records: &str,
    args: &PacketArgs,
    flags: &Flags<'_>,
) -> anyhow::Result<Exit> {
    let reads_stdin =
        |paths: &[std::path::PathBuf]| paths.iter().any(|path| path.as_os_str() == "-");
    if records == "-" && reads_stdin(&flags.input.read) {
        let message =
            "--packets-of - and -r - both read standard input; write the record to a file: @FILE";
        return Err(anyhow!(Wrong(message.to_owned())));
    }
    let choices = read::<K>(records)?;
    let signals = Signals::install()?;
    let written: Vec<_> = flags.writes.clone();
    conflicts::check(&written, &flags.read()).map_err(|message| anyhow!(Wrong(message)))?;
    let mut source = open_files(flags.input, signals.stop_flag()).map_err(unopened)?;
    let written = written.into_iter().map(|(_, path)| path);
    outputs::restrict_run(false, &[], outputs::written_directories(written))?;
    let existing = flags.output.store.files.existing(false);
    let destination = args.pcap_out.as_deref().unwrap_or_default();
    let mut keeper = Keeper::new(
        None,
        secrets::of(args, flags.input),
        Out::open(destination, existing, true)?,
    );
    choices.iter().for_each(|choice| keeper.choose(*choice));
    let limit = Limit::new(flags.input.count);
    let mut exit = Exit::Done;
    while !limit.is_used_up() {
        match source.next_event() {
            Ok(SourceEvent::Batch(batch)) => keeper.batch(&limit.apply(batch)),
            Ok(SourceEvent::Idle) => {}
            Ok(SourceEvent::End) => break,
            Ok(SourceEvent::Fault(fault)) => {
                warn(&describe(&fault));
                exit = exit.max(match fault.kind {
                    FaultKind::Unusable => Exit::Failed,
                    FaultKind::Damaged => Exit::DataLost,
                    _ => Exit::Done,
                });
            }
            Err(error) => return Err(error.into()),
        }
    }
    let (absent, some) = keeper.absent();
    let (mut out, counts) = keeper.finish();
    out.complete();
    if let Some(cause) = out.failed {
        return Err(anyhow!("--pcap-out: {cause}"));
    }
    if absent > 0 {
        let some = some.iter().map(|choice| {
            let [client, server] = [choice.client, choice.server].map(SocketAddr::from);
            format!("{client} to {server} at {}", moment(choice.moment_ns()))
        });
        let some: Vec<String> = some.collect();
        let rest = if some.len() as u64 == absent {
            ""
        } else {
            ", ..."
        };
        warn(&format!(
            "no packet of {} is in the captures: {}{rest}",
            match counts.chosen {
                1 => "the record".to_owned(),
                chosen => format!("{} of {} records", thousands(absent), thousands(chosen)),
            },
            some.join(", ")
        ));
        exit = exit.max(Exit::DataLost);
    }
    if !flags.output.quiet {
        say(&format!(
            "{} of {} ({} bytes) written to {destination}",
            counted(counts.packets, "packet"),
            counted(counts.chosen, "record"),
            thousands(counts.bytes)
        ));
    }
    Ok(exit)
}

/// The records of the flag: JSON itself, `@FILE` or `-`.
fn read<K: OfPackets>(records: &str) -> anyhow::Result<Vec<Choice>> {
    let wrong = |message: String| anyhow!(Wrong(format!("--packets-of: {message}")));
    let (name, text) = match records.strip_prefix('@') {
        None if records != "-" => ("the record", records.to_owned()),
        file => {
            let path = file.unwrap_or("-");
            let name = if path == "-" { "standard input" } else { path };
            let text = files::read_text(Path::new(path), MAX_BYTES);
            (
                name,
                text.map_err(|error| wrong(format!("{name}: {error}")))?,
            )
        }
    };
    let mut choices = Vec::new();
    for (line, record) in (1..).zip(text.lines()) {
        if record.trim().is_empty() {
            continue;
        }
        let object: serde_json::Map<String, serde_json::Value> = serde_json::from_str(record)
            .map_err(|error| {
                wrong(format!(
                    "{name}, line {line}, column {}: not a record: give a line of `--format jsonl`, or @FILE for a file of them: {}",
                    error.column(),
                    reason(&error)
                ))
            })?;
        choices.push(of_json::<K>(&object).map_err(|column| {
            wrong(format!(
                "{name}, line {line}: no valid `{column}`; give a line of `--format jsonl`"
            ))
        })?);
    }
    if choices.is_empty() {
        return Err(wrong(format!("{name} holds no record")));
    }
    Ok(choices)
}

/// What is wrong with a text, without the place, which counts from the beginning of the line.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let end = text.rfind(" at line ").unwrap_or(text.len());
    text.get(..end).unwrap_or_default().to_owned()
}
