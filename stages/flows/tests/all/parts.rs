//! Packets in IP fragments: several shards give what one gives, whatever becomes of the parts, and count
//! them once.

use linkweir_engine::split::shard_of;
use linkweir_engine::{Batch, Frame, FrameRef, NamedFlowSplitter, Router, Stage};
use linkweir_flows::{FlowsConfig, FlowsStage};
use linkweir_record::RecordBatch;
use linkweir_record::flow::FlowBatch;
use linkweir_testkit::capture_writer::CapturedFrame;
use linkweir_testkit::conversation::Conversation;
use linkweir_testkit::parts::{Trouble, in_parts, suffer};
use linkweir_wire::emit::UdpFrame;
use linkweir_wire::{DecodeFaults, FragmentStats, LinkType, Timestamp};
use proptest::collection::vec;
use proptest::prelude::*;

/// Records as sorted lines, and what was counted.
type Outcome = (Vec<String>, FragmentStats, DecodeFaults, [u64; 5]);

fn give(stage: &mut FlowsStage, frame: &Frame<'_>, out: &mut FlowBatch) {
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

/// The frames through one stage, or distributed to several.
fn run(frames: &[CapturedFrame], shards: Option<u32>) -> Outcome {
    let count = shards.unwrap_or(1);
    let mut stages: Vec<_> = (0..count)
        .map(|shard| {
            FlowsStage::new(&FlowsConfig {
                shard: (shard, count),
                is_reassembled: shards.is_some(),
                ..FlowsConfig::default()
            })
        })
        .collect();
    let mut out = FlowBatch::default();
    let mut splitter = NamedFlowSplitter;
    let mut router = Router::new(&mut splitter, false);
    let mut distribute = |frame: &Frame<'_>, hash: Option<u32>| match hash {
        Some(hash) => give(&mut stages[shard_of(hash, count) as usize], frame, &mut out),
        None => stages
            .iter_mut()
            .for_each(|stage| give(stage, frame, &mut out)),
    };
    let mut latest = Timestamp::ZERO;
    for frame in frames {
        let frame = Frame {
            timestamp: Timestamp::from_nanos(frame.timestamp_ns),
            bytes: &frame.bytes,
            wire_len: frame.wire_len,
            link: LinkType::ETHERNET,
            interface: 0,
        };
        latest = latest.max(frame.timestamp);
        if shards.is_some() {
            router.take(&frame, &mut distribute);
        } else {
            distribute(&frame, Some(0));
        }
    }
    router.give_up(None, &mut distribute);
    let mut fragments = router.parts().stats;
    let mut faults = DecodeFaults::default();
    let mut counts = [0; 5];
    for stage in &mut stages {
        if shards.is_some() {
            stage.on_tick(latest, &mut out);
        }
        while !stage.finish(&mut out) {}
        fragments += stage.fragments();
        faults.merge(stage.faults());
        let stats = stage.stats();
        let more = [
            stats.packets,
            stats.other,
            stats.udp,
            stats.tcp_complete,
            stats.tcp_incomplete,
        ];
        counts.iter_mut().zip(more).for_each(|(sum, n)| *sum += n);
    }
    let rows = out.views().map(|view| format!("{:?}", view.row));
    let mut rows: Vec<_> = rows.collect();
    rows.sort_unstable();
    (rows, fragments, faults, counts)
}

fn query(port: u16, len: usize) -> CapturedFrame {
    let payload = vec![7; len];
    let query = UdpFrame {
        payload: &payload,
        ..UdpFrame::new(
            ([192, 0, 2, 1], port).into(),
            ([198, 51, 100, 53], 53).into(),
        )
    };
    let bytes = query.to_vec();
    CapturedFrame {
        timestamp_ns: Conversation::START_NS,
        interface: 0,
        wire_len: u32::try_from(bytes.len()).unwrap(),
        bytes,
    }
}

#[test]
fn the_faults_of_what_goes_to_all_workers_are_counted_once() {
    let mut frame = query(50_000, 30);
    // The UDP header promises nine bytes that are not there.
    frame.bytes[39] += 9;
    let one = run(&[frame.clone()], None);
    assert_eq!(one.2.total(), 1);
    for shards in 1..5 {
        assert_eq!(run(&[frame.clone()], Some(shards)), one, "{shards} shards");
    }
}

fn trouble() -> impl Strategy<Value = (usize, Trouble)> {
    let trouble = prop_oneof![
        Just(Trouble::Lost),
        (0..60_usize).prop_map(Trouble::Again),
        (1..60_usize).prop_map(Trouble::Late),
        Just(Trouble::Forged),
        Just(Trouble::Early),
        Just(Trouble::Odd),
    ];
    (any::<usize>(), trouble)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn whatever_becomes_of_parts_shards_give_what_one_stage_gives(
        talks in vec(vec((any::<bool>(), 1..900_usize), 1..12), 1..4),
        queries in vec(0..600_usize, 0..3),
        is_v6: bool,
        piece in prop_oneof![Just(8_usize), Just(16), Just(40), Just(256), Just(1480)],
        troubles in vec(trouble(), 0..40),
    ) {
        let mut frames = Vec::new();
        for (talk, port) in talks.iter().zip(40_000..) {
            let mut conversation = if is_v6 {
                Conversation::v6(port)
            } else {
                Conversation::v4(port)
            };
            conversation.handshake();
            for &(is_server, len) in talk {
                let payload = vec![b'y'; len];
                if is_server {
                    conversation.server_sends(payload);
                } else {
                    conversation.client_sends(payload);
                }
            }
            frames.extend(conversation.frames());
        }
        // What names servers goes to all workers, whole.
        frames.extend(queries.iter().zip(50_000..).map(|(&len, port)| query(port, len)));
        frames.sort_by_key(|frame| frame.timestamp_ns);
        let mut frames = in_parts(&frames, piece);
        suffer(&mut frames, &troubles);
        let expected = run(&frames, None);
        for shards in 1..5 {
            prop_assert_eq!(&run(&frames, Some(shards)), &expected, "{} shards", shards);
        }
    }
}
