//! Half-transactions give what packets give: on every capture there is, whole and cut into files, and
//! through the commands.
//!
//! The captures are not part of the repository: without them that comparison says so and passes.

use std::path::Path;

use crate::http_runs::halves::{Pieces, compare_pieces};
use crate::http_runs::{Run, finish, settings_of};
use linkweir_capture::{CaptureFiles, Input, ReadOptions};
use linkweir_engine::{Batch, Source, SourceEvent, Stage};
use linkweir_http::{HalfStage, HalvesConfig, HttpConfig, HttpStage};
use linkweir_record::{HalfBatch, HttpBatch, RecordBatch};
use linkweir_testkit::real_captures;
use linkweir_wire::FragmentStats;

/// Gives every batch of a capture to `each`; the packets there were.
fn read(path: &Path, mut each: impl FnMut(&Batch<'_>)) -> Option<u64> {
    let mut files = CaptureFiles::open(&[Input::from(path)], ReadOptions::default()).ok()?;
    let mut packets = 0;
    loop {
        match files.next_event() {
            Ok(SourceEvent::Batch(batch)) => {
                packets += batch.len() as u64;
                each(&batch);
            }
            Ok(SourceEvent::End) | Err(_) => return Some(packets),
            Ok(_) => {}
        }
    }
}

/// What packets give, whether there were IP fragments, and how many packets there were.
fn run_packets(path: &Path, config: &HttpConfig) -> Option<(Run, bool, u64)> {
    let mut stages = [HttpStage::new(config)];
    let mut out = HttpBatch::default();
    let packets = read(path, |batch| stages[0].on_batch(batch, &mut out))?;
    finish(&mut stages, &mut out);
    let has_fragments = stages[0].fragments() != FragmentStats::default();
    Some((Run::new(&stages, &out, &[packets]), has_fragments, packets))
}

/// The rows of a capture as if packets from each of `cuts` on were in another file.
fn run_extraction(path: &Path, remembered: usize, cuts: &[u64]) -> Pieces {
    let mut pieces = Pieces::default();
    let mut next = cuts.iter().copied().peekable();
    let new = |file| {
        HalfStage::new(&HalvesConfig {
            file,
            remembered,
            ..HalvesConfig::default()
        })
    };
    let mut stage = new(0);
    let mut out = HalfBatch::default();
    let mut seen = 0;
    read(path, |batch| {
        for (frame, index) in batch.frames().zip(batch.index()) {
            while next.next_if_eq(&seen).is_some() {
                assert!(stage.finish(&mut out));
                let file = pieces.stages.len() as u32 + 1;
                pieces.stages.push(std::mem::replace(&mut stage, new(file)));
            }
            seen += 1;
            let index = [linkweir_engine::FrameRef {
                offset: 0,
                ..*index
            }];
            stage.on_batch(&Batch::new(frame.bytes, &index), &mut out);
        }
    });
    assert!(stage.finish(&mut out));
    pieces.stages.push(stage);
    out.views().for_each(|view| pieces.rows.push_view(&view));
    pieces.packets = seen;
    pieces
}

/// A few places to cut at, the same in every run.
fn cuts(packets: u64, salt: u64) -> Vec<u64> {
    let mut state = salt.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let count = 1 + next() % 3;
    let mut cuts: Vec<u64> = (0..count).map(|_| next() % (packets + 1)).collect();
    cuts.sort_unstable();
    cuts
}

#[test]
fn every_capture_gives_the_same_through_rows() {
    let Some(files) = real_captures::for_test() else {
        return;
    };
    let (mut records, mut rows, mut total, mut differing) = (0, 0, 0, Vec::new());
    for (path, salt) in files.iter().zip(1..) {
        for keep_duplicates in [false, true] {
            let config = HttpConfig {
                keep_duplicates,
                // Rows are of HTTP/1.x.
                may_join: false,
                has_round_trips: false,
                ..settings_of(path)
            };
            let Some((one, has_fragments, packets)) = run_packets(path, &config) else {
                continue;
            };
            let places = [Vec::new(), cuts(packets, salt), cuts(packets, salt + 7777)];
            // A packet whose parts are in two files is put together in neither.
            let tried = match (has_fragments, keep_duplicates) {
                (true, _) => 1,
                (false, true) => 2,
                (false, false) => 3,
            };
            for cuts in &places[..tried] {
                let pieces = run_extraction(path, config.remembered, cuts);
                if cuts.is_empty() && !keep_duplicates {
                    records += one.records.len();
                    rows += pieces.rows.len() as u64;
                    total += packets;
                }
                if let Err(why) = compare_pieces(&config, &one, &pieces) {
                    differing.push(format!("{} cut at {cuts:?}: {why}", path.display()));
                }
            }
        }
    }
    println!(
        "{} captures, {total} packets, {rows} rows, {records} records, {} differences",
        files.len(),
        differing.len()
    );
    assert!(differing.is_empty(), "{}", differing.join("\n\n"));
}
