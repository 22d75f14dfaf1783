//! Several shards give what one gives, on every capture there is.
//!
//! The captures are not part of the repository: without them the comparison says so and passes.

use std::path::Path;

use crate::http_runs::{Run, finish, give, settings_of};
use linkweir_capture::{CaptureFiles, Input, ReadOptions};
use linkweir_engine::split::shard_of;
use linkweir_engine::{Source, SourceEvent, Splitter, Stage, TransactionSplitter};
use linkweir_http::{HttpConfig, HttpStage, Shard, TransactionGroups};
use linkweir_record::HttpBatch;
use linkweir_testkit::real_captures;
use linkweir_wire::{Transport, decode};

const SHARDS: [u32; 4] = [2, 3, 4, 7];

struct Crew {
    stages: Vec<HttpStage>,
    splitter: TransactionGroups,
    out: HttpBatch,
    frames: Vec<u64>,
}

impl Crew {
    fn new(config: &HttpConfig, shards: u32) -> Self {
        let config = HttpConfig {
            is_one_of_several: shards > 1,
            ..config.clone()
        };
        Self {
            stages: (0..shards).map(|_| HttpStage::new(&config)).collect(),
            splitter: TransactionGroups::default(),
            out: HttpBatch::default(),
            frames: vec![0; shards as usize],
        }
    }

    fn end(mut self) -> Run {
        finish(&mut self.stages, &mut self.out);
        Run::new(&self.stages, &self.out, &self.frames)
    }
}

fn compare(path: &Path, config: &HttpConfig) -> (usize, Vec<String>) {
    let mut one = Crew::new(config, 1);
    let mut crews = SHARDS.map(|shards| Crew::new(config, shards));
    let Ok(mut files) = CaptureFiles::open(&[Input::from(path)], ReadOptions::default()) else {
        return (0, Vec::new());
    };
    loop {
        match files.next_event() {
            Ok(SourceEvent::Batch(batch)) => {
                one.stages[0].on_batch(&batch, &mut one.out);
                for crew in &mut crews {
                    for frame in batch.frames() {
                        let shards = crew.frames.len() as u32;
                        let to = match crew.splitter.route(&frame) {
                            Some(hash) => {
                                let shard = shard_of(hash, shards);
                                crew.frames[shard as usize] += 1;
                                shard..shard + 1
                            }
                            None => 0..shards,
                        };
                        for shard in to {
                            give(&mut crew.stages[shard as usize], &frame, &mut crew.out);
                        }
                    }
                }
            }
            Ok(SourceEvent::End) | Err(_) => break,
            Ok(_) => {}
        }
    }
    let one = one.end();
    let differing = crews
        .into_iter()
        .map(Crew::end)
        .filter_map(|many| {
            let why = one.same_as(&many).err()?;
            Some(format!(
                "{} with {} shards:\n{why}",
                path.display(),
                many.shares.len()
            ))
        })
        .collect();
    (one.records.len(), differing)
}

#[test]
fn every_capture_gives_the_same_with_several_shards() {
    let files = real_captures::all();
    if files.is_empty() {
        println!(
            "** SKIPPED: no captures in {}",
            real_captures::folder().display()
        );
        return;
    }
    let (mut records, mut tiny, mut differing) = (0, 0, Vec::new());
    for path in &files {
        if has_tiny_fragments(path) {
            tiny += 1;
            continue;
        }
        for (ttlb, keep_duplicates) in [(false, false), (true, false), (false, true)] {
            let config = HttpConfig {
                ttlb,
                keep_duplicates,
                ..settings_of(path)
            };
            let (count, faults) = compare(path, &config);
            records += count;
            differing.extend(faults);
        }
    }
    println!(
        "{} captures, {records} records, {} differences; left out for fragments without ports: {tiny}",
        files.len(),
        differing.len()
    );
    assert!(differing.is_empty(), "{}", differing.join("\n\n"));
    assert!(tiny < 10, "{tiny} captures left out");
}

/// Whether packets in parts cannot be dealt by their first part, which ends in the transport header: several
/// workers do not promise to give what one gives (docs/workers.md).
fn has_tiny_fragments(path: &Path) -> bool {
    let Ok(mut files) = CaptureFiles::open(&[Input::from(path)], ReadOptions::default()) else {
        return false;
    };
    while let Ok(SourceEvent::Batch(batch)) = files.next_event() {
        for frame in batch.frames() {
            if let Ok(packet) = decode(frame.link, frame.bytes, frame.wire_len)
                && packet.is_fragment
                && !packet.is_later_fragment
                && packet.transport == Transport::Fragment
            {
                return true;
            }
        }
    }
    false
}

/// Packets dealt one by one, as the kernel does it, with parcels handed over at once.
fn by_packet(path: &Path, count: u32) -> Option<(Run, Run)> {
    let config = settings_of(path);
    let mut one = Crew::new(&config, 1);
    let mut many = Crew::new(&config, count);
    for (index, stage) in (0..count).zip(&mut many.stages) {
        *stage = HttpStage::new(&HttpConfig {
            shard: Some(Shard { index, count }),
            ..config.clone()
        });
    }
    let mut files = CaptureFiles::open(&[Input::from(path)], ReadOptions::default()).ok()?;
    loop {
        match files.next_event() {
            Ok(SourceEvent::Batch(batch)) => {
                one.stages[0].on_batch(&batch, &mut one.out);
                for frame in batch.frames() {
                    let mut shard = shard_of(TransactionSplitter.hash(&frame), count) as usize;
                    many.frames[shard] += 1;
                    give(&mut many.stages[shard], &frame, &mut many.out);
                    while let Some((to, parcel)) = many.stages[shard].take_parcel() {
                        many.stages[to].accept(parcel, &mut many.out);
                        shard = to;
                    }
                }
            }
            Ok(SourceEvent::End) | Err(_) => break,
            Ok(_) => {}
        }
    }
    Some((one.end(), many.end()))
}

/// For information: this way of dealing is not exact, see `linkweir_http::parcel`.
#[test]
fn packets_dealt_one_by_one() {
    let files = real_captures::all();
    if files.is_empty() {
        println!(
            "** SKIPPED: no captures in {}",
            real_captures::folder().display()
        );
        return;
    }
    let (mut differing, mut one_done, mut many_done) = (0, 0, 0);
    for (one, many) in files.iter().filter_map(|path| by_packet(path, 4)) {
        differing += usize::from(one.same_as(&many).is_err());
        one_done += one.stats.transactions;
        many_done += many.stats.transactions;
    }
    println!(
        "by packet: {differing} of {} captures differ; {one_done} transactions, {many_done} with 4 shards",
        files.len()
    );
    assert!(
        many_done * 100 >= one_done * 95,
        "{many_done} of {one_done}"
    );
}
