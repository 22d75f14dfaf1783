//! Several workers against one: the same records and totals, order, limits, handoffs, failures.
#![allow(clippy::unwrap_used, reason = "a helper that fails is a failed test")]

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use linkweir_engine::{
    Batch, Directive, DispatchState, Frame, FrameRef, Limit, NoOutput, Outputs, Port, Route, Run,
    RunError, Sink, SinkError, Source, SourceError, SourceEvent, Splitter, Stage, TableFill,
    Workers, WorkersReport, distribute, run_workers,
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
                .map(|time| FrameRef {
                    timestamp: Timestamp::from_nanos(time),
                    offset: 0,
                    captured_len: 0,
                    wire_len: 100,
                    link: LinkType::ETHERNET,
                    interface: 0,
                }),
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
