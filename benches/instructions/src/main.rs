//! The hot paths of the project as work that is the same in every run: `cargo xtask instructions` counts the
//! instructions of each under valgrind.
//!
//! `linkweir-instructions list` prints the names, `linkweir-instructions NAME` prepares the work of one and does
//! it, inside of [`measured`] and nowhere else: the one function whose instructions valgrind counts.
#![forbid(unsafe_code)]
#![allow(
    clippy::print_stdout,
    reason = "it prints what there is to run, and how much was done"
)]

use std::hint::black_box;
use std::net::{Ipv4Addr, UdpSocket};
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use linkweir_capture::{CaptureFiles, Input, ReadOptions};
use linkweir_engine::{Batch, FrameRef, Sink, Source as _, SourceEvent, Stage};
use linkweir_flows::{FlowsConfig, FlowsStage};
use linkweir_gateway::policy::Keywords;
use linkweir_http::{HttpConfig, HttpStage};
use linkweir_record::{FlowBatch, FlowKind, HttpBatch, HttpKind, RecordBatch, RecordKind};
use linkweir_sink::{Format, OutputOptions, open_ipfix, open_sink};
use linkweir_wire::decode;

/// Bytes of the ring: all frames of the capture, and the headers of the ring, fit into it.
const RING: usize = 8 << 20;

/// What is counted, and how many units it is for: packets, records, bytes.
type Work = fn() -> Result<u64>;

/// Every piece of work: its name, what it does.
const ALL: &[(&str, Work)] = &[
    ("decode, packets", packets_decoded),
    ("http stage, packets", packets_to_transactions),
    ("flows stage, packets", packets_to_flows),
    ("keywords, bytes", bytes_searched),
    ("ring, packets", packets_through_a_ring),
    ("http as text, records", || http_as(Format::Text)),
    ("http as jsonl, records", || http_as(Format::Jsonl)),
    ("http as csv, records", || http_as(Format::Csv)),
    ("http as zeek, records", || http_as(Format::Zeek)),
    ("flows as text, records", || flows_as(Format::Text)),
    ("flows as jsonl, records", || flows_as(Format::Jsonl)),
    ("flows as csv, records", || flows_as(Format::Csv)),
    ("flows as zeek, records", || flows_as(Format::Zeek)),
    ("http as parquet, records", || http_as(Format::Parquet)),
    ("http as arrow, records", || http_as(Format::Arrow)),
    ("flows as ipfix, records", flows_to_a_collector),
];

fn main() -> Result<()> {
    let name = std::env::args().nth(1).unwrap_or_default();
    if name == "list" {
        for (name, _) in ALL {
            println!("{name}");
        }
        return Ok(());
    }
    let Some((_, work)) = ALL.iter().find(|(known, _)| *known == name) else {
        bail!("`{name}`: not one of those that `list` prints");
    };
    println!("{}", work()?);
    Ok(())
}

/// All that is counted happens in here; its name is what valgrind looks for.
#[inline(never)]
fn measured(work: &mut dyn FnMut() -> Result<u64>) -> Result<u64> {
    black_box(work())
}

/// The bundled capture in memory: 800 transactions that nginx answered.
struct Frames {
    buffer: Vec<u8>,
    index: Vec<FrameRef>,
}

impl Frames {
    fn read() -> Result<Self> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../app/testkit/captures/nginx-demo.pcap.gz");
        let mut files = CaptureFiles::open(&[Input::from(path)], ReadOptions::default())?;
        let (mut buffer, mut index) = (Vec::new(), Vec::new());
        loop {
            match files.next_event()? {
                SourceEvent::Batch(batch) => {
                    for (frame, at) in batch.frames().zip(batch.index()) {
                        let offset = u32::try_from(buffer.len())?;
                        index.push(FrameRef { offset, ..*at });
                        buffer.extend_from_slice(frame.bytes);
                    }
                }
                SourceEvent::Idle => {}
                SourceEvent::Fault(fault) => bail!("the bundled capture: {fault:?}"),
                SourceEvent::End => return Ok(Self { buffer, index }),
            }
        }
    }

    /// Batches as sources give them.
    fn batches(&self) -> impl Iterator<Item = Batch<'_>> {
        self.index
            .chunks(256)
            .map(|index| Batch::new(&self.buffer, index))
    }

    fn count(&self) -> u64 {
        self.index.len() as u64
    }
}

fn packets_decoded() -> Result<u64> {
    let frames = Frames::read()?;
    measured(&mut || {
        for batch in frames.batches() {
            for (frame, at) in batch.frames().zip(batch.index()) {
                let _packet = black_box(decode(at.link, frame.bytes, frame.wire_len));
            }
        }
        Ok(frames.count())
    })
}

type Records<S> = <<S as Stage>::Record as RecordKind>::Batch;

fn through<S: Stage>(mut stage: S, mut out: Records<S>, frames: &Frames) -> Result<Records<S>> {
    for batch in frames.batches() {
        stage.on_batch(&batch, &mut out);
    }
    while !stage.finish(&mut out) {}
    Ok(out)
}

fn packets_to_transactions() -> Result<u64> {
    let frames = Frames::read()?;
    let mut stage = Some(HttpStage::new(&HttpConfig::default()));
    measured(&mut || {
        let stage = stage.take().context("once")?;
        black_box(through(stage, HttpBatch::default(), &frames)?);
        Ok(frames.count())
    })
}

fn packets_to_flows() -> Result<u64> {
    let frames = Frames::read()?;
    let mut stage = Some(FlowsStage::new(&FlowsConfig::default()));
    measured(&mut || {
        let stage = stage.take().context("once")?;
        black_box(through(stage, FlowBatch::default(), &frames)?);
        Ok(frames.count())
    })
}

fn bytes_searched() -> Result<u64> {
    let frames = Frames::read()?;
    // A thousand words of which none occurs.
    let words = (0..1000).map(|number| format!("zzq{number:05}")).collect();
    let keywords = Keywords::new(words)?;
    let mut state = keywords.start();
    measured(&mut || {
        for piece in frames.buffer.chunks(32 << 10) {
            if let Some(word) = keywords.find(&mut state, piece) {
                bail!("`{word}` occurs");
            }
        }
        Ok(frames.buffer.len() as u64)
    })
}

fn packets_through_a_ring() -> Result<u64> {
    let frames = Frames::read()?;
    let (mut producer, mut consumer) = linkweir_feed::ring(RING, "instructions")?;
    measured(&mut || {
        let mut seen = 0_u64;
        for batch in frames.batches() {
            for frame in batch.frames() {
                if let Err(refused) = producer.push(&frame) {
                    bail!("the ring: {refused:?}");
                }
            }
            if let SourceEvent::Batch(taken) = consumer.next_event()? {
                for frame in taken.frames() {
                    black_box(frame.bytes.len());
                    seen += 1;
                }
            }
        }
        producer.finish();
        while let SourceEvent::Batch(taken) = consumer.next_event()? {
            seen += taken.len() as u64;
        }
        Ok(seen)
    })
}

fn http_as(format: Format) -> Result<u64> {
    let stage = HttpStage::new(&HttpConfig::default());
    let records = through(stage, HttpBatch::default(), &Frames::read()?)?;
    let sink = open_sink::<HttpKind>("/dev/null", Some(format), OutputOptions::default())?;
    written(&records, sink)
}

fn flows_as(format: Format) -> Result<u64> {
    let sink = open_sink::<FlowKind>("/dev/null", Some(format), OutputOptions::default())?;
    written(&flows()?, sink)
}

/// To a socket that nobody reads: the kernel drops what does not fit.
fn flows_to_a_collector() -> Result<u64> {
    let collector = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    let destination = format!("ipfix://{}", collector.local_addr()?);
    let sink = open_ipfix(&destination, OutputOptions::default())?;
    written(&flows()?, sink)
}

fn flows() -> Result<FlowBatch> {
    let stage = FlowsStage::new(&FlowsConfig::default());
    through(stage, FlowBatch::default(), &Frames::read()?)
}

fn written<K: RecordKind>(records: &K::Batch, sink: Box<dyn Sink<K>>) -> Result<u64> {
    let mut sink = Some(sink);
    measured(&mut || {
        let mut sink = sink.take().context("once")?;
        sink.write(records)?;
        sink.finish()?;
        Ok(records.len() as u64)
    })
}
