//! Runs over half-transactions.

use linkweir_engine::{Batch, Frame, FrameRef, Stage};
use linkweir_http::extract::shard;
use linkweir_http::{HalfFrames, HalfStage, HalvesConfig, HttpConfig, HttpStage};
use linkweir_record::{HalfBatch, HalfRow, HttpBatch, HttpHalf, RecordBatch};
use linkweir_testkit::capture_writer::CapturedFrame;
use linkweir_wire::LinkType;

use super::{Run, finish, frame_of, settings_by_packet};

const SHARDS: [u32; 4] = [1, 2, 4, 7];

/// Gives one frame to an extraction.
pub(crate) fn give_half(stage: &mut HalfStage, frame: &Frame<'_>, out: &mut HalfBatch) {
    let index = [FrameRef {
        timestamp: frame.timestamp,
        offset: 0,
        captured_len: u32::try_from(frame.bytes.len()).unwrap(),
        wire_len: frame.wire_len,
        link: frame.link,
        interface: frame.interface,
    }];
    stage.on_batch(&Batch::new(frame.bytes, &index), out);
}

/// The rows of a file.
pub(crate) fn extract(
    frames: &[CapturedFrame],
    link: LinkType,
    file: u32,
) -> (HalfBatch, HalfStage) {
    let mut stage = HalfStage::new(&HalvesConfig {
        file,
        remembered: settings_by_packet().remembered,
        ..HalvesConfig::default()
    });
    let mut out = HalfBatch::default();
    for frame in frames {
        give_half(&mut stage, &frame_of(frame, link), &mut out);
    }
    assert!(stage.finish(&mut out));
    (out, stage)
}

/// The rows of all files of a trace, and the stages that made them.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    pub(crate) rows: HalfBatch,
    pub(crate) stages: Vec<HalfStage>,
    pub(crate) packets: u64,
}

impl Pieces {
    /// Of frames that are cut into files before those at `cuts` (rising).
    pub(crate) fn cut(frames: &[CapturedFrame], link: LinkType, cuts: &[usize]) -> Self {
        let mut pieces = Self::default();
        let mut done = 0;
        for (cut, file) in cuts.iter().copied().chain([frames.len()]).zip(0..) {
            let (rows, stage) = extract(&frames[done..cut], link, file);
            rows.views().for_each(|view| pieces.rows.push_view(&view));
            pieces.stages.push(stage);
            done = cut;
        }
        pieces.packets = frames.len() as u64;
        pieces
    }

    /// The rows in the order of engines.
    fn sorted(&self, key: impl Fn(&HalfRow) -> (u64, u32, u64)) -> Vec<HttpHalf<'_>> {
        let mut views: Vec<_> = self.rows.views().collect();
        views.sort_by_key(|view| key(view.row));
        views
    }
}

/// Distributes rows to stages of their own, as packets.
fn run_halves(config: &HttpConfig, views: &[HttpHalf<'_>], pieces: &Pieces, shards: u32) -> Run {
    let rows: Vec<HalfRow> = views.iter().map(|view| *view.row).collect();
    let distributed = shard::distribute(&rows, shards);
    let mut stages: Vec<_> = (0..shards).map(|_| HttpStage::new(config)).collect();
    let mut frames: Vec<_> = (0..shards).map(|_| HalfFrames::default()).collect();
    let mut shares = vec![0; stages.len()];
    for (view, shard) in views.iter().zip(distributed) {
        if let Some(shard) = shard {
            frames[shard as usize].push(view);
            shares[shard as usize] += 1;
        }
    }
    let mut out = HttpBatch::default();
    for (stage, frames) in stages.iter_mut().zip(&frames) {
        stage.on_batch(&frames.batch(), &mut out);
    }
    finish(&mut stages, &mut out);
    let faults = pieces.stages.iter().map(HalfStage::faults);
    Run::with_faults(&stages, faults, &out, &shares)
}

/// The rows of `pieces` in both orders and all numbers of shards against `one`.
pub(crate) fn compare_pieces(
    config: &HttpConfig,
    one: &Run,
    pieces: &Pieces,
) -> Result<(), String> {
    let by_time = pieces.sorted(|row| (row.order_ns, row.file, row.packet));
    for shards in SHARDS {
        let many = run_halves(config, &by_time, pieces, shards);
        one.same_as(&many).map_err(|why| {
            let mut text = format!("{shards} shards of {} rows: {why}", by_time.len());
            let rows: Vec<HalfRow> = by_time.iter().map(|view| *view.row).collect();
            for (view, shard) in by_time.iter().zip(shard::distribute(&rows, shards)).take(200) {
                let row = view.row;
                text.push_str(&format!(
                    "\nfile {} packet {} {}>{} {} +{} ack {} {:?} plain {} end {:?} to {shard:?}: {}",
                    row.file,
                    row.packet,
                    row.src_port,
                    row.dst_port,
                    row.seq,
                    row.payload_len,
                    row.ack,
                    row.is_request,
                    row.is_plain,
                    row.end_seq,
                    view.payload[..view.payload.len().min(16)].escape_ascii()
                ));
            }
            text
        })?;
    }
    Ok(())
}
