use linkweir_record::flow::{FlowRow, MediaPart, ReportPart, StreamPart, StreamRow};
use linkweir_wire::Side;
use proptest::prelude::*;

use super::*;
use crate::config::FlowsConfig;
use crate::layer7::Ends;
use crate::step::{MediaMeasure, MediaSample};

fn ends() -> Ends {
    Ends {
        client: ([10, 0, 0, 1].into(), 40_000),
        server: ([192, 0, 2, 1].into(), 50_000),
        start_ns: 0,
    }
}

/// A flow, and what its datagrams gave for the histograms.
struct Call {
    layer7: Layer7,
    handle: Handle,
    samples: Vec<MediaSample>,
    ms: u64,
}

impl Call {
    fn new() -> Self {
        let config = FlowsConfig {
            step: Some(std::time::Duration::from_secs(300)),
            ..FlowsConfig::default()
        };
        Self {
            layer7: Layer7::new(&config),
            handle: Handle::default(),
            samples: Vec::new(),
            ms: 1_000,
        }
    }

    fn send(&mut self, side: Side, payload: &[u8]) -> &mut Self {
        let datagram = Datagram {
            payload,
            len: u32::try_from(payload.len()).unwrap(),
            ttl: 60,
            ts_ns: self.ms * 1_000_000,
        };
        let mut out = linkweir_record::flow::FlowBatch::default();
        self.layer7
            .on_udp(&mut self.handle, &ends(), side, &datagram, &mut out);
        self.drain();
        self
    }

    fn drain(&mut self) {
        let samples = &mut self.samples;
        self.layer7.take_samples(|sample| samples.push(sample));
    }

    /// Packets of these numbers, 20 ms apart as their timestamps are.
    fn stream(&mut self, source: u32, numbers: impl IntoIterator<Item = u16>) -> &mut Self {
        for number in numbers {
            self.send(Side::Client, &media(source, number));
            self.ms += 20;
        }
        self
    }

    fn rows(&mut self) -> Vec<StreamRow> {
        let mut rows = Vec::new();
        if self.layer7.has_streams(self.handle) {
            self.layer7
                .streams(self.handle, &FlowRow::default(), |row| rows.push(row));
        }
        self.drain();
        rows
    }

    fn media(&mut self) -> (StreamRow, MediaPart) {
        let rows = self.rows();
        let [row] = rows[..] else { panic!("{rows:?}") };
        let StreamPart::Media(part) = row.part else {
            panic!("{row:?}")
        };
        (row, part)
    }

    fn count(&self, measure: MediaMeasure) -> Vec<u64> {
        let of = self.samples.iter().filter(|one| one.measure == measure);
        of.map(|one| one.value).collect()
    }
}

fn media(source: u32, number: u16) -> Vec<u8> {
    let mut bytes = vec![0x80, 0];
    bytes.extend(number.to_be_bytes());
    bytes.extend((u32::from(number) * 160).to_be_bytes());
    bytes.extend(source.to_be_bytes());
    bytes.extend([0xD5; 160]);
    bytes
}

#[test]
fn a_stream_without_faults_has_none() {
    let mut call = Call::new();
    // Over the end of the sequence numbers.
    let numbers = (0..200_u16).map(|at| 65_450_u16.wrapping_add(at));
    for number in numbers {
        let mut bytes = media(7, number);
        let timestamp = u32::from(number.wrapping_sub(65_450)) * 160;
        bytes[4..8].copy_from_slice(&timestamp.to_be_bytes());
        call.send(Side::Client, &bytes);
        call.ms += 20;
    }
    let (row, part) = call.media();
    assert_eq!((row.packets, row.bytes, row.source), (200, 32_000, 7));
    assert_eq!(
        (part.lost, part.duplicates, part.late, part.out_of_sequence),
        (0, 0, 0, 0)
    );
    assert_eq!((row.gaps, row.gap_sum_ns), (199, 199 * 20_000_000));
    assert!(row.jitter.max < 1e-9 && part.jitter_by_clock[1].average > 1.0);
    assert_eq!(part.unbroken, 200);
    assert!(call.samples.is_empty());
    assert_eq!(row.kinds.iter().collect::<Vec<_>>(), [(0, 200)]);
    let handle = call.handle;
    assert_eq!(call.layer7.media_in_use(), (1, 1));
    call.layer7.release(handle);
    assert_eq!(call.layer7.media_in_use(), (0, 0));
}

#[test]
fn losses_in_runs_late_ones_and_duplicates() {
    let mut call = Call::new();
    // 10 and 20 to 22 never come, 30 comes behind 32, 40 twice, 50 when it had been given up.
    let order = (0..=9).chain(11..=19).chain(23..=29).chain([31, 32, 30]);
    let order = order.chain(33..=40).chain([40]).chain(41..=49);
    let order = order.chain(51..=120).chain([50]).chain(121..=150);
    call.stream(7, order);
    let (row, part) = call.media();
    assert_eq!(row.packets, 151 - 4 + 1);
    assert_eq!(
        (part.lost, part.duplicates, part.late, part.reordered),
        (4, 1, 1, 2)
    );
    // Behind each of the four gaps, and the two that were late.
    assert_eq!(part.out_of_sequence, 6);
    assert_eq!(call.count(MediaMeasure::Burst), [1, 3, 1]);
    assert_eq!(call.count(MediaMeasure::OutOfSequence).len(), 6);
    // 40 ms behind 32, whose timestamp is 40 ms later.
    assert_eq!(call.count(MediaMeasure::ReorderDelay)[0], 60);
}

#[test]
fn a_sequence_that_begins_anew_is_no_loss() {
    let mut call = Call::new();
    call.stream(7, (100..150).chain(40_000..40_050));
    let (row, part) = call.media();
    assert_eq!((row.packets, part.lost, part.has_restarted), (100, 0, true));
    // A stray packet is none.
    let mut call = Call::new();
    call.stream(7, (100..150).chain([40_000]).chain(150..200));
    let (_, part) = call.media();
    assert_eq!(
        (part.lost, part.has_restarted, part.out_of_sequence),
        (0, false, 1)
    );
}

#[test]
fn jitter_is_that_of_the_rfc() {
    let mut call = Call::new();
    let mut expected: f64 = 0.0;
    let mut before = 0_i32;
    for number in 0..50_u16 {
        let extra = [0, 3, 1, 7, 2][usize::from(number % 5)];
        let start = call.ms;
        call.ms += u64::from(u32::try_from(extra).unwrap());
        call.send(Side::Client, &media(7, number));
        call.ms = start + 20;
        if number > 0 {
            // RFC 3550 A.8.
            let difference = f64::from((extra - before).abs());
            expected += (difference - expected) / 16.0;
        }
        before = extra;
    }
    let (row, _) = call.media();
    assert!((row.jitter.average - expected).abs() < 1e-9, "{row:?}");
    assert!(row.jitter.max >= row.jitter.average && row.jitter.min > 0.0);
}

fn report(kind: u8, count: u8, words: &[u32]) -> Vec<u8> {
    let mut bytes = vec![0x80 | count, kind];
    bytes.extend(u16::try_from(words.len()).unwrap().to_be_bytes());
    bytes.extend(words.iter().flat_map(|word| word.to_be_bytes()));
    bytes
}

#[test]
fn reports_give_round_trips_between_here_and_their_sender() {
    let mut call = Call::new();
    let mut lost = [5, 7, 6].into_iter();
    for second in 1..=3_u32 {
        let info = [1, second, 0x8000_0000, 0, 50 * second, 8_000 * second];
        call.send(Side::Client, &report(200, 0, &info));
        call.ms += 90;
        let clock = second << 16 | 0x8000;
        // Held for 50 ms; of 90 ms, 40 are the way there and back.
        let block = [1, 0x4000_0000 | lost.next().unwrap(), 0, 30, clock, 3_277];
        call.send(Side::Server, &report(201, 1, &[&[2], &block[..]].concat()));
        call.ms += 910;
    }
    // One on a report that never passed here.
    let block = [2, 1, 0x4000_0006, 0, 30, 99, 0];
    call.send(Side::Server, &report(201, 1, &block));
    // Encrypted.
    let mut srtcp = report(201, 1, &block);
    srtcp.extend([1; 14]);
    call.send(Side::Server, &srtcp);
    let rows = call.rows();
    assert_eq!(
        rows.iter().map(|row| row.source).collect::<Vec<_>>(),
        [1, 2]
    );
    let part = |row: &StreamRow| match row.part {
        StreamPart::Reports(part) => part,
        StreamPart::Media(_) => panic!("{row:?}"),
    };
    let ReportPart { packets, bytes, .. } = part(&rows[0]);
    assert_eq!((packets, bytes), (150, 24_000));
    let receiver = part(&rows[1]);
    assert_eq!((receiver.blocks, receiver.lost, receiver.unread), (4, 6, 1));
    assert_eq!(receiver.rtt_count, 3);
    let near = |ns: u64| ns.abs_diff(40_000_000) < 20_000;
    assert!(
        near(receiver.rtt_min_ns) && near(receiver.rtt_max_ns),
        "{receiver:?}"
    );
    assert_eq!(rows[1].jitter.average, 30.0);
    assert_eq!(call.count(MediaMeasure::ReportLost), [2, 0, 0]);
    assert_eq!(call.count(MediaMeasure::ReportDuplicates), [0, 1, 0]);
    assert_eq!(call.count(MediaMeasure::ReportFraction), [250; 4]);
    assert_eq!(call.count(MediaMeasure::MediaRate), [64, 64]);
}

#[test]
fn what_only_looks_like_media_leaves_nothing_behind() {
    let mut call = Call::new();
    // Each of another source: no two agree.
    for at in 0..40_u32 {
        let number = u16::try_from(at * 997 % 60_000).unwrap();
        call.stream(0x1000 + at * 77, [number]);
    }
    assert!(!call.layer7.wants(call.handle, Side::Client));
    assert!(call.rows().is_empty());
    assert_eq!(call.layer7.media_in_use(), (0, 0));
}

#[test]
fn the_streams_of_a_flow_are_bounded() {
    let mut call = Call::new();
    call.stream(1, 0..5);
    for source in 2..40 {
        call.stream(source, [1, 2]);
    }
    assert_eq!(call.layer7.media_in_use(), (1, 16));
    assert_eq!(call.layer7.counters().streams_refused, 2 * (39 - 16));
    assert_eq!(call.rows().len(), 16);
    // Sources of one packet each make room for one another.
    let mut call = Call::new();
    call.stream(1, 0..5);
    for source in 2..400 {
        call.stream(source, [9]);
    }
    call.stream(1, 5..9);
    assert_eq!(call.layer7.counters().streams_refused, 0);
    assert_eq!(call.media().0.packets, 9);
}

proptest! {
    /// Whatever order numbers come in, packets and losses add up.
    #[test]
    fn numbers_in_any_order_add_up(numbers in prop::collection::vec(any::<u16>(), 0..400)) {
        let mut call = Call::new();
        call.stream(7, 0..4);
        call.stream(7, numbers.iter().map(|number| number % 3000));
        call.stream(7, numbers.iter().copied());
        let (row, part) = call.media();
        prop_assert_eq!(row.packets, 4 + 2 * numbers.len() as u64);
        prop_assert!(part.duplicates + part.out_of_sequence + row.gaps < row.packets);
        prop_assert!(part.late <= part.reordered && part.reordered <= part.out_of_sequence);
    }
}
