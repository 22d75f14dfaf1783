//! Records of sessions, written on a thread of their own: the schedule never waits for an output.

use std::sync::mpsc::{
    Receiver, RecvTimeoutError, SyncSender, TrySendError, channel, sync_channel,
};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::anyhow;
use linkweir_engine::{Sink, SinkError};
use linkweir_record::{LoadBatch, LoadKind, RecordBatch as _};
use linkweir_sink::{OutputOptions, open_sink};

use super::args::LoadOutputArgs;
use crate::outputs::{self, Losses};

/// Batches that wait for the outputs at most.
const WAITING: usize = 1024;
/// How often what is buffered is let out.
const FLUSH: Duration = Duration::from_millis(200);

/// What became of the records: how many did not arrive, and why an output failed.
type Written = (u64, anyhow::Result<()>);

type Sinks = Vec<Box<dyn Sink<LoadKind>>>;

/// The outputs of a run.
#[derive(Debug)]
pub(super) struct Records {
    writer: Option<(SyncSender<LoadBatch>, JoinHandle<Written>)>,
    lost: u64,
}

impl Records {
    /// Opens the outputs that `-w` names; none is open where it names none.
    pub(super) fn start(args: &LoadOutputArgs) -> anyhow::Result<Self> {
        if args.write.is_empty() {
            return Ok(Self {
                writer: None,
                lost: 0,
            });
        }
        let (destinations, format) = (args.write.clone(), args.format);
        let options = OutputOptions {
            rotation: args.rotate,
            ..args.store.options(true)
        };
        let (sender, batches) = sync_channel(WAITING);
        // Outputs belong to the thread that opens them.
        let (opened, is_open) = channel();
        let thread = std::thread::Builder::new().name("records".to_owned());
        let writer = thread.spawn(move || {
            let sinks = destinations
                .iter()
                .map(|to| open_sink(to, format, options.clone()).map_err(outputs::refused));
            match sinks.collect::<Result<Sinks, _>>() {
                Ok(sinks) => {
                    opened.send(Ok(())).ok();
                    write(sinks, &batches)
                }
                Err(error) => {
                    opened.send(Err(error)).ok();
                    (0, Ok(()))
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

    /// Completes the outputs; how many records are missing, and why an output failed.
    pub(super) fn finish(&mut self) -> (u64, Option<anyhow::Error>) {
        let Some((sender, writer)) = self.writer.take() else {
            return (self.lost, None);
        };
        drop(sender);
        match writer.join() {
            Ok((undelivered, done)) => (self.lost + undelivered, done.err()),
            Err(_) => (
                self.lost,
                Some(anyhow!("the writer of records has panicked")),
            ),
        }
    }
}

fn write(mut sinks: Sinks, batches: &Receiver<LoadBatch>) -> Written {
    let mut losses = Losses::default();
    let done = write_all(&mut sinks, batches, &mut losses);
    (losses.look(&sinks).count, done)
}

fn write_all(
    sinks: &mut Sinks,
    batches: &Receiver<LoadBatch>,
    losses: &mut Losses,
) -> anyhow::Result<()> {
    loop {
        match batches.recv_timeout(FLUSH) {
            Ok(batch) => each(sinks, |sink| sink.write(&batch))?,
            Err(RecvTimeoutError::Timeout) => {
                each(sinks, |sink| sink.flush())?;
                losses.look(sinks);
            }
            Err(RecvTimeoutError::Disconnected) => return each(sinks, |sink| sink.finish()),
        }
    }
}

/// Does the same with all outputs; one whose reader has gone is given up quietly.
fn each(
    sinks: &mut Sinks,
    mut act: impl FnMut(&mut dyn Sink<LoadKind>) -> Result<(), SinkError>,
) -> anyhow::Result<()> {
    let mut failed = None;
    sinks.retain_mut(|sink| match act(sink.as_mut()) {
        Ok(()) => true,
        Err(SinkError::ClosedPipe) => false,
        Err(error) => {
            failed.get_or_insert(error);
            false
        }
    });
    failed.map_or(Ok(()), |error| Err(error.into()))
}
