//! `--pcap-out`: the packets of chosen records and around alerts.

mod args;
mod choice;
mod find;
mod out;
mod secrets;
mod start;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use linkweir_capture::chosen::{Keeper, KeeperCounts};
use linkweir_engine::{
    Batch, Detach, Drops, InputCounts, Limit, Loss, Progress, ReadAhead, Source, SourceError,
    SourceEvent,
};
use linkweir_live::alert::AlertEvent;
use linkweir_live::api::AlertState;
use linkweir_record::human::{counted, thousands};
use linkweir_wire::Timestamp;
use serde_json::{Value, json};

use self::args::Around;
use self::out::Out;
use crate::exit::warn;
use crate::passive::args::InputArgs;
use crate::passive::input::open_files;
use crate::signals::Signals;

pub(crate) use self::args::PacketArgs;
pub(crate) use self::find::find;
pub(crate) use self::start::start;

/// Writes the packets of a run that are chosen; nothing where none are wanted.
#[derive(Debug, Clone, Default)]
pub(crate) struct Packets(Option<Arc<Shared>>);

#[derive(Debug)]
struct Shared {
    destination: String,
    around: Around,
    /// Whether the packets are read again when everything is chosen; else they wait in the ring.
    reads_twice: bool,
    /// Packets that are read at most.
    count: Option<u64>,
    state: Mutex<Option<State>>,
}

#[derive(Debug)]
struct State {
    keeper: Keeper<Out>,
    /// The last alert that was looked at.
    event: u64,
    /// Rules that fire, and from when on their packets are chosen.
    firing: Vec<(String, u64)>,
}

/// What has become of the packets.
#[derive(Debug)]
pub(crate) struct PacketTotals {
    counts: KeeperCounts,
    /// Packets that the disk did not take.
    lost: u64,
    destination: String,
    cause: Option<String>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, Option<State>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Packets {
    /// A source whose packets are kept until they are chosen.
    pub(crate) fn keep<S: Source>(&self, source: S) -> Kept<S> {
        let shared = self.0.as_ref().filter(|shared| !shared.reads_twice);
        Kept {
            source,
            limit: Limit::new(shared.and_then(|shared| shared.count)),
            shared: shared.map(Arc::clone),
        }
    }

    /// Looks at the alerts that are new: `after` gives those behind a number.
    pub(crate) fn alerts(&self, after: impl FnOnce(u64) -> Vec<(u64, AlertEvent)>) {
        let Some(shared) = self.0.as_ref().filter(|shared| !shared.around.is_empty()) else {
            return;
        };
        if let Some(state) = shared.state().as_mut() {
            for (number, event) in after(state.event) {
                state.event = number;
                state.alert(&event, &shared.around);
            }
        }
    }

    /// Lets be seen what is written so far.
    pub(crate) fn flush(&self) {
        let Some(shared) = &self.0 else { return };
        if let Some(state) = shared.state().as_mut() {
            state.keeper.flush();
        }
    }

    /// Completes the file and begins the next; where the packets are read twice, nothing is written yet.
    pub(crate) fn rotate(&self) {
        let Some(shared) = self.0.as_ref().filter(|shared| !shared.reads_twice) else {
            return;
        };
        if let Some(state) = shared.state().as_mut() {
            state.keeper.begin_file(Out::rotate);
        }
    }

    /// The run came to nothing: what stands at the destination stays.
    pub(crate) fn abandon(&self) {
        if let Some(shared) = &self.0 {
            let state = shared.state().take();
            // Its header may be written by now.
            if let Some(state) = state {
                state.keeper.finish().0.abandon();
            }
        }
    }

    /// No packet comes any more: writes what is chosen and completes the file. `read` packets of the input
    /// were read.
    pub(crate) fn finish(
        &self,
        input: &InputArgs,
        signals: &Signals,
        read: u64,
    ) -> Option<PacketTotals> {
        let shared = self.0.as_ref()?;
        let mut state = shared.state().take()?;
        let again = if shared.reads_twice {
            read_again(&mut state.keeper, input, signals, read)
        } else {
            Ok(())
        };
        let (mut out, counts) = state.keeper.finish();
        out.complete();
        Some(PacketTotals {
            counts,
            lost: out.lost,
            destination: shared.destination.clone(),
            cause: out.failed.or_else(|| again.err()),
        })
    }
}

/// Reads the packets again that were read before, now that all choices are known.
fn read_again(
    keeper: &mut Keeper<Out>,
    input: &InputArgs,
    signals: &Signals,
    packets: u64,
) -> Result<(), String> {
    // A run that was stopped writes what it has; who wants that stopped too, stops it again.
    let stop = if signals.stop() {
        Arc::default()
    } else {
        signals.stop_flag()
    };
    let failed = |error: SourceError| format!("the second reading: {error}");
    let mut source = open_files(input, Arc::clone(&stop)).map_err(failed)?;
    let limit = Limit::new(Some(packets));
    while !limit.is_used_up() {
        match source.next_event().map_err(failed)? {
            SourceEvent::Batch(batch) => keeper.batch(&limit.apply(batch)),
            SourceEvent::End => break,
            // What the first reading has reported.
            SourceEvent::Idle | SourceEvent::Fault(_) => {}
        }
    }
    if limit.is_used_up() || packets == 0 {
        return Ok(());
    }
    Err("the second reading ended before the first".to_owned())
}

impl State {
    fn alert(&mut self, event: &AlertEvent, around: &Around) {
        let rule = &event.status.rule;
        let Some(before) = around.of(rule) else {
            return;
        };
        let time_ns = event.t_ms.saturating_mul(1_000_000);
        let place = self.firing.iter().position(|(one, _)| one == rule);
        match (event.status.state, place) {
            (AlertState::Firing, None) => {
                let from = time_ns.saturating_sub(linkweir_wire::nanos(before));
                self.keeper.choose_time(from, None);
                self.firing.push((rule.clone(), from));
            }
            (AlertState::Resolved | AlertState::NoData, Some(place)) => {
                let (_, from) = self.firing.swap_remove(place);
                self.keeper.end_time(from, time_ns);
            }
            _ => {}
        }
    }
}

/// A source whose packets are kept, where they are to be.
#[derive(Debug)]
pub(crate) struct Kept<S> {
    source: S,
    /// That of the run, which takes no packets behind it.
    limit: Limit,
    shared: Option<Arc<Shared>>,
}

impl<S: Source> Source for Kept<S> {
    fn next_event(&mut self) -> Result<SourceEvent<'_>, SourceError> {
        let event = self.source.next_event()?;
        if let (Some(shared), SourceEvent::Batch(batch)) = (&self.shared, &event) {
            let batch: Batch<'_> = self.limit.apply(*batch);
            if let Some(state) = shared.state().as_mut() {
                state.keeper.batch(&batch);
            }
        }
        Ok(event)
    }

    fn progress(&self) -> Progress {
        self.source.progress()
    }

    fn drops(&self) -> Drops {
        self.source.drops()
    }

    fn is_distributed(&self) -> bool {
        self.source.is_distributed()
    }

    fn now(&self) -> Option<Timestamp> {
        self.source.now()
    }

    fn on_written(&mut self) {
        self.source.on_written();
    }

    fn inputs(&self) -> Vec<InputCounts> {
        self.source.inputs()
    }
}

impl<S: Detach> Detach for Kept<S> {
    fn detach(&mut self, spare: Vec<u8>) -> Vec<u8> {
        self.source.detach(spare)
    }
}

impl<S: ReadAhead> ReadAhead for Kept<S> {
    type Piece = S::Piece;

    fn claim(&mut self, piece: &mut S::Piece) -> bool {
        self.source.claim(piece)
    }

    fn read(piece: &mut S::Piece) {
        S::read(piece);
    }

    fn supply(&mut self, piece: &mut S::Piece) -> bool {
        self.source.supply(piece)
    }

    fn is_supplied(&self) -> bool {
        self.source.is_supplied()
    }

    fn is_ahead(&self) -> bool {
        self.source.is_ahead()
    }
}

impl PacketTotals {
    /// What did not reach the file: packets that were not written, records and alerts without all packets.
    pub(crate) fn loss(&self) -> Loss {
        Loss {
            destination: self.destination.clone(),
            count: self.lost + self.counts.incomplete,
            cause: self.cause.clone(),
            has_failed: self.cause.is_some(),
        }
    }

    /// Says what is missing and what to do.
    pub(crate) fn warn(&self) {
        if let Some(cause) = &self.cause {
            warn(&format!("--pcap-out: {cause}"));
        }
        if self.counts.incomplete > 0 {
            warn(&format!(
                "{}: {} of {} lack packets that had left the ring, or were too many at once; raise --pcap-ring or --pcap-ring-time",
                self.destination,
                thousands(self.counts.incomplete),
                counted(self.counts.chosen, "record or alert")
            ));
        }
    }

    /// The object of the summary.
    pub(crate) fn to_json(&self) -> Value {
        json!({
            "chosen": self.counts.chosen,
            "incomplete": self.counts.incomplete,
            "packets": self.counts.packets.saturating_sub(self.lost),
            "bytes": self.counts.bytes,
        })
    }

    /// The row of the screen.
    pub(crate) fn row(&self) -> (&'static str, String) {
        if self.counts.chosen == 0 {
            let text = format!(
                "none written to {}: no record or alert chose any",
                self.destination
            );
            return ("packets", text);
        }
        let text = format!(
            "{} written to {}, chosen by {}",
            counted(self.counts.packets.saturating_sub(self.lost), "packet"),
            self.destination,
            match self.counts.chosen {
                1 => "1 record or alert".to_owned(),
                chosen => format!("{} records and alerts", thousands(chosen)),
            }
        );
        ("packets", text)
    }
}
