//! Several workers, and several shards, give the records and totals of one.

use std::path::Path;

use linkweir_capture::{CaptureFiles, Input, ReadOptions};
use linkweir_engine::split::shard_of;
use linkweir_engine::{Frame, Router, Source, SourceEvent, Splitter, Stage, TransactionSplitter};
use linkweir_http::{
    EvenConnections, GroupsConfig, HttpConfig, HttpStage, Shard, TransactionGroups,
};
use linkweir_record::HttpBatch;
use linkweir_testkit::real_captures;
use serde_json::Value;
use tempfile::tempdir;

use crate::common::{demo, http, run};
use crate::http_runs::{Run, finish, give, settings_of};

/// Records, sorted as lines, and the summary.
fn measured(words: &[&str]) -> (Vec<String>, Value) {
    let directory = tempdir().unwrap();
    let summary = directory.path().join("summary.json");
    let words: Vec<&str> = ["--format", "jsonl", "--summary", summary.to_str().unwrap()]
        .iter()
        .chain(words)
        .copied()
        .collect();
    let ran = http(&demo(), &words).exits(0);
    let mut records: Vec<String> = ran.lines().iter().map(|&line| line.to_owned()).collect();
    records.sort_unstable();
    let summary = std::fs::read_to_string(summary).unwrap();
    (records, serde_json::from_str(&summary).unwrap())
}

#[test]
fn records_and_totals_of_several_workers() {
    for more in [
        &[][..],
        &["--ttlb"],
        &["--keep-duplicates", "--host", "www"],
    ] {
        let (records, totals) = measured(more);
        for workers in ["2", "3", "8", "auto"] {
            let words: Vec<&str> = ["--workers", workers].iter().chain(more).copied().collect();
            let (shared, sum) = measured(&words);
            assert_eq!(records, shared, "{workers} workers {more:?}");
            for key in [
                "http",
                "packets",
                "bytes",
                "decode_errors",
                "dropped",
                "first_ts_ns",
            ] {
                assert_eq!(totals[key], sum[key], "{key}, {workers} workers {more:?}");
            }
            let shares = sum["workers"].as_array().unwrap();
            let packets = shares.iter().map(|one| one["packets"].as_u64().unwrap());
            if workers != "auto" {
                assert_eq!(shares.len(), workers.parse::<usize>().unwrap());
                // The handshake of a connection whose transactions are divided goes to all.
                let copies = packets.sum::<u64>() - totals["packets"].as_u64().unwrap();
                assert!(
                    copies <= 16 * shares.len() as u64 * shares.len() as u64,
                    "{copies}"
                );
            }
        }
    }
}

#[test]
fn sorted_output_is_the_same_text() {
    let one = http(&demo(), &["--sort"]).exits(0);
    let four = http(&demo(), &["--sort", "--workers", "4"]).exits(0);
    assert_eq!(one.stdout, four.stdout);
}

#[test]
fn a_limit_counts_the_packets_of_all() {
    let (records, one) = measured(&["-c", "1500"]);
    let (shared, four) = measured(&["-c", "1500", "--workers", "4"]);
    assert_eq!(four["packets"], 1500);
    assert_eq!(one["http"], four["http"]);
    assert_eq!(records, shared);
}

#[test]
fn a_reader_that_goes_away_ends_all_quietly() {
    use std::io::Read;
    let mut child = crate::common::linkweir()
        .args(["http", "-q", "--workers", "4", "--format", "jsonl", "-r"])
        .arg(demo())
        .spawn()
        .unwrap();
    let mut first = [0; 10];
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_exact(&mut first).unwrap();
    drop(stdout);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn an_interface_is_named_once() {
    let named = |words: &[&str]| run(&[&["http", "-q"], words].concat()).exits(2);
    named(&["-i", "lo", "-i", "eth0", "-i", "xdp:lo"]).says("named twice");
    named(&["-i", "any", "-i", "lo"]).says("name no other");
}

#[test]
fn numbers_of_workers() {
    for bad in ["0", "-1", "many", "100000"] {
        http(&demo(), &[&format!("--workers={bad}")])
            .exits(2)
            .says("--workers");
    }
}

const SHARDS: [u32; 4] = [2, 3, 4, 7];

struct ShardedRun {
    stages: Vec<HttpStage>,
    out: HttpBatch,
    frames: Vec<u64>,
}

impl ShardedRun {
    fn new(config: &HttpConfig, shards: u32) -> Self {
        let config = HttpConfig {
            is_reassembled: shards > 1,
            ..config.clone()
        };
        Self {
            stages: (0..shards).map(|_| HttpStage::new(&config)).collect(),
            out: HttpBatch::default(),
            frames: vec![0; shards as usize],
        }
    }

    /// Takes what a dispatcher gives.
    fn take(&mut self, frame: &Frame<'_>, hash: Option<u32>) {
        let shard = hash.map(|hash| shard_of(hash, self.frames.len() as u32) as usize);
        self.frames[shard.unwrap_or(0)] += 1;
        for (stage, at) in self.stages.iter_mut().zip(0..) {
            if shard.is_none_or(|shard| shard == at) {
                give(stage, frame, &mut self.out);
            }
        }
    }

    fn end(mut self) -> Run {
        finish(&mut self.stages, &mut self.out);
        Run::new(&self.stages, &self.out, &self.frames)
    }
}

fn compare<S: Splitter>(
    path: &Path,
    config: &HttpConfig,
    splitter: fn(u32) -> S,
) -> (usize, Vec<String>) {
    let mut one = ShardedRun::new(config, 1);
    let mut crews = SHARDS.map(|shards| ShardedRun::new(config, shards));
    let mut splitters = SHARDS.map(splitter);
    let mut dispatchers: Vec<_> = crews
        .iter_mut()
        .zip(&mut splitters)
        .map(|(workers, splitter)| (workers, Router::new(splitter, false)))
        .collect();
    let Ok(mut files) = CaptureFiles::open(&[Input::from(path)], ReadOptions::default()) else {
        return (0, Vec::new());
    };
    loop {
        match files.next_event() {
            Ok(SourceEvent::Batch(batch)) => {
                one.stages[0].on_batch(&batch, &mut one.out);
                for (workers, router) in &mut dispatchers {
                    for frame in batch.frames() {
                        router.take(&frame, |frame, hash| workers.take(frame, hash));
                    }
                }
            }
            Ok(SourceEvent::End) | Err(_) => break,
            Ok(_) => {}
        }
    }
    let parts = dispatchers.into_iter().map(|(workers, mut router)| {
        router.give_up(None, |frame, hash| workers.take(frame, hash));
        router.parts().stats
    });
    let parts: Vec<_> = parts.collect();
    let one = one.end();
    let differing = crews
        .into_iter()
        .zip(parts)
        .map(|(workers, parts)| workers.end().distributed(parts))
        .filter_map(|many| {
            let why = match one.same_as(&many) {
                Ok(()) if one.fragments == many.fragments => return None,
                Ok(()) => format!("{:?} and {:?}", one.fragments, many.fragments),
                Err(why) => why,
            };
            Some(format!(
                "{} with {} shards:\n{why}",
                path.display(),
                many.shares.len()
            ))
        })
        .collect();
    (one.records.len(), differing)
}

/// What estimates learn of a server depends on the connections that a stage sees.
fn without_estimates(path: &Path) -> HttpConfig {
    HttpConfig {
        estimates: false,
        ..settings_of(path)
    }
}

#[test]
fn every_capture_gives_the_same_with_several_shards() {
    let Some(files) = real_captures::for_test() else {
        return;
    };
    let (mut records, mut differing) = (0, Vec::new());
    for path in &files {
        for (ttlb, keep_duplicates) in [(false, false), (true, true)] {
            let config = HttpConfig {
                ttlb,
                keep_duplicates,
                ..without_estimates(path)
            };
            let (count, faults) = compare(path, &config, |_| TransactionGroups::default());
            records += count;
            differing.extend(faults);
        }
        // As `--workers` distributes files: few connections by transaction, the others whole.
        let (_, faults) = compare(path, &without_estimates(path), |shards| {
            EvenConnections::new(&GroupsConfig::default(), shards as usize)
        });
        differing.extend(faults);
    }
    println!(
        "{} captures, {records} records, {} differences",
        files.len(),
        differing.len()
    );
    assert!(differing.is_empty(), "{}", differing.join("\n\n"));
}

/// The transactions of one stage, and those of them that `count` consumers of `linkweir feed --by paper` have.
fn by_eq_3(path: &Path, count: u32) -> Option<(u64, u64)> {
    // Of HTTP/1.x: nobody else can be read from single packets.
    let config = HttpConfig {
        may_join: false,
        has_round_trips: false,
        ..settings_of(path)
    };
    let mut one = ShardedRun::new(&config, 1);
    let mut many = ShardedRun::new(&config, count);
    let mut splitter = TransactionSplitter;
    let mut router = Router::new(&mut splitter, false);
    let mut files = CaptureFiles::open(&[Input::from(path)], ReadOptions::default()).ok()?;
    loop {
        match files.next_event() {
            Ok(SourceEvent::Batch(batch)) => {
                one.stages[0].on_batch(&batch, &mut one.out);
                for frame in batch.frames() {
                    router.take(&frame, |frame, hash| many.take(frame, hash));
                }
            }
            Ok(SourceEvent::End) | Err(_) => break,
            Ok(_) => {}
        }
    }
    router.give_up(None, |frame, hash| many.take(frame, hash));
    let (one, many) = (one.end(), many.end());
    let is_kept = |record: &&String| {
        record.contains("state: Complete") && many.records.binary_search(record).is_ok()
    };
    let kept = one.records.iter().filter(is_kept);
    Some((one.stats.transactions, kept.count() as u64))
}

/// The price of Eq. (3) without memory ("very few transactions" in the words of the paper) on the captures of others,
/// whose heads span segments and whose requests are pipelined more often than a web server's day has it.
#[test]
fn eq_3_of_each_packet_loses_few_transactions_of_real_captures() {
    let Some(files) = real_captures::for_test() else {
        return;
    };
    for (count, most) in [(2, 0.03), (4, 0.03)] {
        let (mut whole, mut kept, mut touched) = (0, 0, 0);
        for (one, many) in files.iter().filter_map(|path| by_eq_3(path, count)) {
            (whole, kept) = (whole + one, kept + many);
            touched += usize::from(many < one);
        }
        let part = (whole - kept) as f64 / whole as f64;
        println!(
            "Eq. (3) of each packet, {count} consumers: {} of {whole} transactions lost ({:.2} %), in {touched} of {} captures",
            whole - kept,
            part * 100.0,
            files.len()
        );
        assert!(kept <= whole && part <= most, "{kept} of {whole}");
    }
}

/// The same of the bundled capture, as the documents give it.
#[test]
fn eq_3_of_each_packet_on_the_bundled_capture() {
    let lost = [2, 4, 8].map(|count| {
        let (whole, kept) = by_eq_3(&demo(), count).unwrap();
        assert_eq!(whole, 800);
        whole - kept
    });
    assert_eq!(lost, [7, 7, 7]);
}

/// Packets distributed one by one, as the kernel does it, with handoffs handed over at once.
fn by_packet(path: &Path, count: u32) -> Option<(Run, Run)> {
    let config = HttpConfig {
        has_round_trips: false,
        ..settings_of(path)
    };
    let mut one = ShardedRun::new(&config, 1);
    let mut many = ShardedRun::new(&config, count);
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
                    while let Some((to, handoff)) = many.stages[shard].take_handoff() {
                        many.stages[to].accept(handoff, &mut many.out);
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

/// For information: this way of dealing is not exact, see `linkweir_http::handoff`.
#[test]
fn packets_distributed_one_by_one() {
    let Some(files) = real_captures::for_test() else {
        return;
    };
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
