//! Records of sessions, written on a thread of their own: the schedule never waits for an output.

use std::sync::mpsc::{
    Receiver, RecvTimeoutError, SyncSender, TrySendError, channel, sync_channel,
};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::anyhow;
use linkweir_engine::{Loss, NoOutput, Outputs};
use linkweir_record::{LoadBatch, LoadKind, RecordBatch as _};
use linkweir_sink::OutputOptions;

use super::args::LoadOutputArgs;
use crate::exit::Exit;
use crate::outputs::{self, ReportedLosses};

/// Batches that wait for the outputs at most.
const WAITING: usize = 1024;
/// How often what is buffered is let out.
const FLUSH: Duration = Duration::from_millis(200);

/// What became of the records that the writer got.
type Written = (Vec<Loss>, Result<(), NoOutput>);

/// Records that are missing.
#[derive(Debug, Default)]
pub(super) struct Missing {
    /// Those for which the writer had no room.
    pub(super) queue: u64,
    /// Those that did not reach an output.
    pub(super) outputs: Vec<Loss>,
}

/// The outputs of a run.
#[derive(Debug)]
pub(super) struct Records {
    writer: Option<(SyncSender<LoadBatch>, JoinHandle<Written>)>,
    lost: u64,
}

impl Records {
    /// Opens the outputs that `-w` names; none is open where it names none.
    pub(super) fn start(args: &LoadOutputArgs) -> anyhow::Result<Self> {
        let options = OutputOptions {
            rotation: args.rotate,
            ..args.store.options(true)
        };
        if args.write.is_empty() {
            outputs::check_time(&options, || false)?;
            return Ok(Self {
                writer: None,
                lost: 0,
            });
        }
        let (destinations, format) = (args.write.clone(), args.format);
        let (sender, batches) = sync_channel(WAITING);
        // Outputs belong to the thread that opens them.
        let (opened, is_open) = channel();
        let thread = std::thread::Builder::new().name("records".to_owned());
        let writer = thread.spawn(move || {
            match outputs::open(
                &outputs::destinations(&destinations, true),
                format,
                &options,
            ) {
                Ok(outputs) => {
                    opened.send(Ok(())).ok();
                    write(outputs, &batches)
                }
                Err(error) => {
                    opened.send(Err(error)).ok();
                    (Vec::new(), Ok(()))
                }
            }
        })?;
        is_open
            .recv()
            .map_err(|_| anyhow!("the writer of records has panicked"))??;
        Ok(Self {
            writer: Some((sender, writer)),
            lost: 0,
        })
    }

    /// Whether records are wanted.
    pub(super) const fn are_wanted(&self) -> bool {
        self.writer.is_some()
    }

    /// Records for which there was no room so far.
    pub(super) const fn lost(&self) -> u64 {
        self.lost
    }

    /// Takes records; those for which there is no room are counted.
    pub(super) fn take(&mut self, batch: LoadBatch) {
        let Some((sender, _)) = &self.writer else {
            return;
        };
        match sender.try_send(batch) {
            Ok(()) => {}
            Err(TrySendError::Full(batch) | TrySendError::Disconnected(batch)) => {
                self.lost += batch.len() as u64;
            }
        }
    }

    /// Completes the outputs; what is missing, and how it went with them.
    pub(super) fn finish(&mut self) -> anyhow::Result<(Missing, Exit)> {
        let mut missing = Missing {
            queue: self.lost,
            ..Missing::default()
        };
        let Some((sender, writer)) = self.writer.take() else {
            return Ok((missing, Exit::Done));
        };
        drop(sender);
        let written = writer.join();
        let (losses, ended) = written.map_err(|_| anyhow!("the writer of records has panicked"))?;
        let exit = outputs::exit(ended, &losses);
        missing.outputs = losses;
        Ok((missing, exit))
    }
}

fn write(mut outputs: Outputs<LoadKind>, batches: &Receiver<LoadBatch>) -> Written {
    let mut told = ReportedLosses::default();
    loop {
        // The run goes on where no output is left: they count what is missing.
        match batches.recv_timeout(FLUSH) {
            Ok(batch) => {
                let _goes_on = outputs.write(&batch);
            }
            Err(RecvTimeoutError::Timeout) => {
                let _goes_on = outputs.flush();
                told.tell(&outputs.losses());
            }
            Err(RecvTimeoutError::Disconnected) => {
                let ended = outputs.finish();
                let losses = outputs.losses();
                told.tell(&losses);
                return (losses, ended);
            }
        }
    }
}
