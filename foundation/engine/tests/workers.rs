//! Several workers against one: the same records and totals, order, limits, handoffs, failures.
#![allow(clippy::unwrap_used, reason = "a helper that fails is a failed test")]

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use linkweir_engine::{
    Batch, Directive, DispatchState, Frame, FrameRef, Limit, NoOutput, Outputs, Port, ReadAhead,
    Route, Run, RunError, Sink, SinkError, Source, SourceError, SourceEvent, Splitter, Stage,
    TableFill, Turns, Workers, WorkersReport, distribute, run_in_turns, run_workers,
};
use linkweir_record::{HttpBatch, HttpKind, HttpRow, RecordBatch, RecordKind, Text};
use linkweir_testkit::capture_writer::CapturedFrame;
use linkweir_testkit::memory::MemorySource;
use linkweir_wire::{LinkType, Packet, Timestamp};

const FRAMES: u64 = 5_000;

/// One record a frame; those of odd frames are made by the next shard.
#[derive(Debug, Default)]
struct Mirror {
    shards: usize,
    shard: usize,
    held: Vec<u64>,
    accepted: u64,
    now: u64,
}

fn push(time_ns: u64, out: &mut HttpBatch) {
    let row = HttpRow {
        request_ts_ns: Some(time_ns),
        ..HttpRow::default()
    };
    out.push(row, &Text::default());
}

impl Stage for Mirror {
    type Record = HttpKind;
    type Handoff = u64;

    fn take_handoff(&mut self) -> Option<(usize, u64)> {
        Some(((self.shard + 1) % self.shards, self.held.pop()?))
    }

    fn accept(&mut self, handoff: u64, out: &mut HttpBatch) {
        self.accepted += 1;
        push(handoff, out);
    }

    fn fill(&self) -> TableFill {
        TableFill {
            entries: self.accepted,
            ..TableFill::default()
        }
    }

    fn on_batch(&mut self, batch: &Batch<'_>, out: &mut HttpBatch) {
        for frame in batch.frames() {
            self.now = frame.timestamp.as_nanos();
            if self.now % 2 == 1 && self.shards > 1 {
                self.held.push(self.now);
            } else {
                push(self.now, out);
            }
        }
    }

    fn on_tick(&mut self, _: Timestamp, _: &mut HttpBatch) {}

    fn next_deadline(&self) -> Option<Timestamp> {
        None
    }

    fn finish(&mut self, _: &mut HttpBatch) -> bool {
        true
    }
}

/// A frame's shard is its time.
struct ByTime;

impl Splitter for ByTime {
    fn packet(&mut self, _: &Packet<'_>) -> Option<u32> {
        None
    }

    fn route(&mut self, frame: &Frame<'_>) -> Route {
        Route::To(u32::try_from(frame.timestamp.as_nanos() / 3).unwrap())
    }
}

/// A port that is a channel of time stamps, and a source that makes frames of them again.
struct Channel(SyncSender<u64>);

impl Port for Channel {
    fn push(&mut self, frame: &Frame<'_>) -> bool {
        self.0.send(frame.timestamp.as_nanos()).is_ok()
    }

    fn flush(&mut self) {}
}

/// An empty frame of a time.
fn frame_at(time: u64) -> FrameRef {
    FrameRef {
        timestamp: Timestamp::from_nanos(time),
        offset: 0,
        captured_len: 0,
        wire_len: 100,
        link: LinkType::ETHERNET,
        interface: 0,
    }
}

struct Stamps {
    inbox: Receiver<u64>,
    index: Vec<FrameRef>,
}

impl Source for Stamps {
    fn next_event(&mut self) -> Result<SourceEvent<'_>, SourceError> {
        let Ok(time) = self.inbox.recv() else {
            return Ok(SourceEvent::End);
        };
        self.index.clear();
        self.index.extend(
            std::iter::once(time)
                .chain(self.inbox.try_iter())
                .map(frame_at),
        );
        Ok(SourceEvent::Batch(Batch::new(&[], &self.index)))
    }
}

#[derive(Clone, Default)]
struct Collect {
    times: Rc<RefCell<Vec<u64>>>,
    refuse_after: Option<usize>,
}

impl Sink<HttpKind> for Collect {
    fn write(&mut self, batch: &HttpBatch) -> Result<(), SinkError> {
        let mut times = self.times.borrow_mut();
        if self.refuse_after.is_some_and(|most| times.len() >= most) {
            return Err(SinkError::ClosedPipe);
        }
        times.extend(batch.views().map(|view| HttpKind::time_ns(&view)));
        Ok(())
    }

    fn flush(&mut self) -> Result<(), SinkError> {
        Ok(())
    }

    fn finish(&mut self) -> Result<(), SinkError> {
        Ok(())
    }
}

fn frames() -> Vec<CapturedFrame> {
    (0..FRAMES)
        .map(|time| CapturedFrame {
            timestamp_ns: time,
            wire_len: 100,
            bytes: Vec::new(),
            interface: 0,
        })
        .collect()
}

type Ran = (WorkersReport<Mirror>, Result<(), RunError>, Vec<u64>);

fn run(
    workers: usize,
    is_sorted: bool,
    limit: Option<u64>,
    sink: Collect,
    direct: impl FnMut(u64) -> Directive,
) -> Ran {
    let source = MemorySource::new(&frames(), LinkType::ETHERNET, 100);
    let limit = Limit::new(limit);
    let dispatcher = move |ports: &mut [Channel], state: &DispatchState| {
        distribute(source, &mut ByTime, ports, &limit, state);
    };
    run_with(dispatcher, workers, is_sorted, sink, direct)
}

fn run_with(
    dispatcher: impl FnOnce(&mut [Channel], &DispatchState) + Send,
    workers: usize,
    is_sorted: bool,
    sink: Collect,
    mut direct: impl FnMut(u64) -> Directive,
) -> Ran {
    let (mut ports, mut shards) = (Vec::new(), Vec::new());
    for shard in 0..workers {
        let (outbox, inbox) = sync_channel(64);
        ports.push(Channel(outbox));
        let source = Stamps {
            inbox,
            index: Vec::new(),
        };
        let stage = Mirror {
            shards: workers,
            shard,
            ..Mirror::default()
        };
        shards.push((source, stage));
    }
    let workers = Workers {
        shards,
        dispatcher: Some(Box::new(move |state| dispatcher(&mut ports, state))),
        limit: Limit::default(),
        is_sorted,
    };
    let times = Rc::clone(&sink.times);
    let mut outputs = Outputs::default();
    outputs.add("it", Box::new(sink));
    let (report, outcome) = run_workers(workers, &mut outputs, |report, _| direct(report.packets));
    let times = times.borrow().clone();
    (report, outcome, times)
}

#[test]
fn n_workers_give_what_one_gives() {
    for workers in [1, 2, 4, 7] {
        let (report, outcome, mut times) = run(workers, false, None, Collect::default(), |_| {
            Directive::Continue
        });
        outcome.unwrap();
        times.sort_unstable();
        assert_eq!(times, (0..FRAMES).collect::<Vec<_>>(), "{workers} workers");
        assert_eq!(report.total.packets, FRAMES);
        assert_eq!(report.total.bytes, FRAMES * 100);
        assert_eq!(report.total.records, FRAMES);
        assert_eq!(report.total.first, Some(Timestamp::from_nanos(0)));
        assert_eq!(report.total.last, Some(Timestamp::from_nanos(FRAMES - 1)));
        assert_eq!(
            report.each.iter().map(|one| one.packets).sum::<u64>(),
            FRAMES
        );
        let handoffs: u64 = report.stages.iter().map(|stage| stage.accepted).sum();
        assert_eq!(handoffs, if workers > 1 { FRAMES / 2 } else { 0 });
    }
}

#[test]
fn sorted_records_of_several_workers_are_in_order() {
    let (report, outcome, times) = run(3, true, None, Collect::default(), |_| Directive::Flush);
    outcome.unwrap();
    assert_eq!(times, (0..FRAMES).collect::<Vec<_>>());
    assert_eq!(report.total.unsorted, 0);
}

#[test]
fn a_limit_is_for_all_together() {
    let (report, outcome, times) = run(4, true, Some(1_234), Collect::default(), |_| {
        Directive::Continue
    });
    outcome.unwrap();
    assert_eq!(report.total.packets, 1_234);
    assert_eq!(times.len(), 1_234);
}

#[test]
fn a_stop_ends_all_and_what_was_read_is_written() {
    let (report, outcome, times) = run(2, false, None, Collect::default(), |_| Directive::Stop);
    outcome.unwrap();
    assert_eq!(report.total.packets, times.len() as u64);
    assert_eq!(report.total.records, times.len() as u64);
}

#[test]
fn a_sink_that_refuses_ends_the_run() {
    let sink = Collect {
        refuse_after: Some(0),
        ..Collect::default()
    };
    let (_, outcome, times) = run(4, false, None, sink, |_| Directive::Continue);
    assert!(matches!(
        outcome,
        Err(RunError::Output(NoOutput::ClosedPipe))
    ));
    assert!(times.is_empty());
}

/// Each of the others waits for what comes behind that for one that has stopped.
#[test]
fn a_worker_that_has_stopped_holds_nobody_up() {
    let sink = Collect {
        refuse_after: Some(0),
        ..Collect::default()
    };
    let dispatcher = |ports: &mut [Channel], _: &DispatchState| {
        let frames = frames();
        let frame = Frame {
            timestamp: Timestamp::ZERO,
            bytes: &frames[0].bytes,
            wire_len: 100,
            link: LinkType::ETHERNET,
            interface: 0,
        };
        // More than the other end takes before it is asked to stop.
        while ports[0].push(&frame) {}
    };
    let (_, outcome, _) = run_with(dispatcher, 2, false, sink, |_| Directive::Continue);
    assert!(matches!(
        outcome,
        Err(RunError::Output(NoOutput::ClosedPipe))
    ));
}

#[test]
fn the_first_records_do_not_wait_for_others() {
    let sink = Collect::default();
    let times = Rc::clone(&sink.times);
    let mut outputs = Outputs::default();
    outputs.add("it", Box::new(sink));
    let mut stage = Mirror::default();
    let source = MemorySource::new(&frames(), LinkType::ETHERNET, 10);
    let mut written = Vec::new();
    let run = Run::new(&mut stage, &mut outputs, Limit::default());
    let (_, outcome) = run.drive(source, |_, _| {
        written.push(times.borrow().len());
        Directive::Continue
    });
    outcome.unwrap();
    // Asked before each batch is handed over.
    assert_eq!(written.first_chunk(), Some(&[0, 10, 10]));
}

/// Frames of which ten are claimed at a time; every seventh piece comes short, so that what was claimed behind it is wrong.
#[derive(Debug, Default)]
struct Tens {
    frames: Vec<FrameRef>,
    given: usize,
    claimed: usize,
    waiting: usize,
    generation: u64,
    supplied: Option<usize>,
    pieces: u64,
    /// Packets at which it fails.
    fails_at: Option<usize>,
}

#[derive(Debug, Default)]
struct Ten {
    from: usize,
    generation: u64,
    is_read: bool,
}

impl Tens {
    fn new() -> Self {
        Self {
            frames: (0..FRAMES).map(frame_at).collect(),
            ..Self::default()
        }
    }
}

impl Source for Tens {
    fn next_event(&mut self) -> Result<SourceEvent<'_>, SourceError> {
        if self.fails_at.is_some_and(|at| self.given >= at) {
            return Err(SourceError {
                input: "tens".to_owned(),
                message: "has gone".to_owned(),
            });
        }
        let count = self.supplied.take().unwrap_or(1);
        let frames = self.frames.get(self.given..self.given + count);
        self.given += count;
        Ok(frames.map_or(SourceEvent::End, |frames| {
            SourceEvent::Batch(Batch::new(&[], frames))
        }))
    }
}

impl ReadAhead for Tens {
    type Piece = Ten;

    fn claim(&mut self, piece: &mut Ten) -> bool {
        if self.waiting == 0 {
            self.claimed = self.given;
        }
        if self.claimed + 10 > self.frames.len() {
            return false;
        }
        *piece = Ten {
            from: self.claimed,
            generation: self.generation,
            is_read: false,
        };
        self.claimed += 10;
        self.waiting += 1;
        true
    }

    fn read(piece: &mut Ten) {
        piece.is_read = true;
    }

    fn supply(&mut self, piece: &mut Ten) -> bool {
        if piece.generation != self.generation {
            return false;
        }
        assert!(piece.is_read && piece.from == self.given, "in order");
        self.waiting -= 1;
        self.pieces += 1;
        self.supplied = Some(10);
        if self.pieces.is_multiple_of(7) {
            self.supplied = Some(3);
            self.generation += 1;
            self.waiting = 0;
        }
        true
    }

    fn is_supplied(&self) -> bool {
        self.supplied.is_some()
    }

    fn is_ahead(&self) -> bool {
        self.waiting > 0
    }
}

fn in_turns<T: Stage<Record = HttpKind> + Send>(
    source: Tens,
    stage: T,
    (threads, limit): (usize, Option<u64>),
    sink: Collect,
    mut direct: impl FnMut(u64) -> Directive,
) -> (WorkersReport<T>, Result<(), RunError>, Vec<u64>) {
    let turns = Turns {
        source,
        stage,
        threads,
        limit: Limit::new(limit),
        is_sorted: false,
    };
    let times = Rc::clone(&sink.times);
    let mut outputs = Outputs::default();
    outputs.add("it", Box::new(sink));
    let (report, outcome) = run_in_turns(turns, &mut outputs, |report, _| direct(report.packets));
    let times = times.borrow().clone();
    (report, outcome, times)
}

fn alone() -> Mirror {
    Mirror {
        shards: 1,
        ..Mirror::default()
    }
}

#[test]
fn threads_that_take_turns_give_what_one_gives_in_its_order() {
    for threads in [1, 2, 3, 8] {
        let (report, outcome, times) = in_turns(
            Tens::new(),
            alone(),
            (threads, None),
            Collect::default(),
            |_| Directive::Flush,
        );
        outcome.unwrap();
        assert_eq!(times, (0..FRAMES).collect::<Vec<_>>(), "{threads} threads");
        let total = &report.total;
        assert_eq!(
            (total.packets, total.bytes, total.records),
            (FRAMES, FRAMES * 100, FRAMES)
        );
        assert_eq!(total.last, Some(Timestamp::from_nanos(FRAMES - 1)));
        assert_eq!((report.each.len(), report.stages.len()), (threads, 1));
        let shares = report.each.iter().map(|one| one.packets);
        assert_eq!(shares.clone().sum::<u64>(), FRAMES);
        assert!(shares.min() > Some(FRAMES / 20), "{threads} threads");
    }
}

#[test]
fn turns_end_at_a_limit_a_stop_an_error_and_without_outputs() {
    let go_on = |_| Directive::Continue;
    let (report, outcome, times) = in_turns(
        Tens::new(),
        alone(),
        (3, Some(1_234)),
        Collect::default(),
        go_on,
    );
    outcome.unwrap();
    assert_eq!((report.total.packets, times.len()), (1_234, 1_234));

    let (report, outcome, times) =
        in_turns(Tens::new(), alone(), (2, None), Collect::default(), |_| {
            Directive::Stop
        });
    outcome.unwrap();
    assert_eq!(report.total.packets, times.len() as u64);

    let gone = Tens {
        fails_at: Some(2_000),
        ..Tens::new()
    };
    let (report, outcome, times) = in_turns(gone, alone(), (4, None), Collect::default(), go_on);
    assert!(matches!(outcome, Err(RunError::Source(_))));
    assert_eq!(report.total.packets, times.len() as u64);
    assert!(
        (2_000..2_010).contains(&times.len()),
        "all that came before"
    );

    let full = Collect {
        refuse_after: Some(0),
        ..Collect::default()
    };
    let (_, outcome, _) = in_turns(Tens::new(), alone(), (4, None), full, go_on);
    assert!(matches!(
        outcome,
        Err(RunError::Output(NoOutput::ClosedPipe))
    ));
}

/// Fails in the middle.
struct Failing(u64);

impl Stage for Failing {
    type Record = HttpKind;
    type Handoff = u64;

    fn accept(&mut self, _: u64, _: &mut HttpBatch) {}

    fn on_batch(&mut self, batch: &Batch<'_>, _: &mut HttpBatch) {
        self.0 += batch.len() as u64;
        assert!(self.0 < 1_000, "on purpose");
    }

    fn on_tick(&mut self, _: Timestamp, _: &mut HttpBatch) {}

    fn next_deadline(&self) -> Option<Timestamp> {
        None
    }

    fn finish(&mut self, _: &mut HttpBatch) -> bool {
        true
    }
}

#[test]
fn a_thread_that_fails_ends_the_others() {
    let sink = Collect::default();
    let (_, outcome, _) = in_turns(Tens::new(), Failing(0), (3, None), sink, |_| {
        Directive::Continue
    });
    let error = outcome.unwrap_err().to_string();
    assert!(error.starts_with("a worker: stopped by a fault"), "{error}");
}
