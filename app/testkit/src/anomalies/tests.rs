use super::*;
use linkweir_wire::{LinkType, SeqNumber, Tcp, TcpOption, Transport, decode};

const SERVER: u16 = 80;

/// One frame, read back: time, whether the server sent it, number, flags, payload, timestamps, blocks.
#[derive(Debug)]
struct Read {
    at_us: u64,
    by_server: bool,
    seq: SeqNumber,
    ack: SeqNumber,
    len: u32,
    tsval: Option<(u32, u32)>,
    blocks: Vec<(u32, u32)>,
}

fn read(case: &Case) -> Vec<Read> {
    let start = case.frames.first().unwrap().timestamp_ns;
    let of = |tcp: &Tcp<'_>, at_us| {
        let mut tsval = None;
        let mut blocks = Vec::new();
        for option in tcp.options() {
            match option {
                TcpOption::Timestamps { value, echo } => tsval = Some((value, echo)),
                TcpOption::Sack(pairs) => blocks.extend(pairs.map(|(from, to)| (from.0, to.0))),
                _ => {}
            }
        }
        Read {
            at_us,
            by_server: tcp.src_port() == SERVER,
            seq: tcp.seq(),
            ack: tcp.ack(),
            len: tcp.payload_len,
            tsval,
            blocks,
        }
    };
    case.frames
        .iter()
        .map(|frame| {
            let packet = decode(LinkType::ETHERNET, &frame.bytes, frame.wire_len).unwrap();
            let Transport::Tcp(tcp) = packet.transport else {
                panic!("no TCP")
            };
            of(&tcp, (frame.timestamp_ns - start) / 1000)
        })
        .collect()
}

fn case(options: Options, name: &str) -> Case {
    let cases = all(options, 20_000, 0);
    cases.into_iter().find(|case| case.name == name).unwrap()
}

const FULL: Options = Options {
    timestamps: true,
    sack: true,
    ..Options::PLAIN
};

#[test]
fn every_case_of_all_options_is_told() {
    for options in Options::all() {
        let cases = all(options, 20_000, 1_000_000_000);
        assert_eq!(cases.len(), 34 + usize::from(options.sack), "{options:?}");
        for case in &cases {
            let times: Vec<u64> = case.frames.iter().map(|f| f.timestamp_ns).collect();
            assert!(times.is_sorted(), "{}", case.name);
            assert!(times.last().unwrap() - times[0] < 15_000_000_000);
            assert_eq!(read(case).len(), case.frames.len());
        }
    }
}

#[test]
fn duplicate_acks_come_with_blocks_where_agreed() {
    let frames = read(&case(FULL, "fast retransmit, original seen"));
    let hole = frames.iter().filter(|f| f.len == 1000).nth(5).unwrap();
    let repeated: Vec<&Read> = frames
        .iter()
        .filter(|f| !f.by_server && f.ack == hole.seq && !f.blocks.is_empty())
        .collect();
    assert_eq!(repeated.len(), 4);
    let last = repeated.last().unwrap();
    let begin = hole.seq.0 + 1000;
    assert_eq!(last.blocks, [(begin, begin + 4000)]);
    // The echo is of the last segment in order.
    let before = frames.iter().filter(|f| f.len == 1000).nth(4).unwrap();
    assert_eq!(last.tsval.unwrap().1, before.tsval.unwrap().0);
    let plain = read(&case(Options::PLAIN, "fast retransmit, original seen"));
    assert!(
        plain
            .iter()
            .all(|f| f.blocks.is_empty() && f.tsval.is_none())
    );
    let acks = plain.iter().filter(|f| !f.by_server && f.ack == hole.seq);
    assert_eq!(acks.count(), 5);
}

#[test]
fn what_was_not_needed_is_acknowledged_twice() {
    let frames = read(&case(FULL, "unnecessary rto, ack late"));
    let copies: Vec<&Read> = frames.iter().filter(|f| f.len == 1000).skip(5).collect();
    assert_eq!(copies.len(), 2);
    assert_eq!(copies[1].at_us - copies[0].at_us, 400_000);
    let begin = copies[0].seq.0;
    let acks: Vec<&Read> = frames
        .iter()
        .filter(|f| !f.by_server && f.at_us > copies[1].at_us && f.ack.0 == begin + 1000)
        .collect();
    // Eifel: the first echoes the original; the second has the duplicate in its block.
    assert_eq!(acks[0].tsval.unwrap().1, copies[0].tsval.unwrap().0);
    assert!(acks[0].blocks.is_empty());
    assert_eq!(acks[1].blocks, [(begin, begin + 1000)]);
}

#[test]
fn copies_are_copies() {
    let case = case(FULL, "doubled");
    let same = |a: &CapturedFrame, b: &CapturedFrame| a.bytes == b.bytes;
    let pairs = case.frames.windows(2).filter(|w| same(&w[0], &w[1]));
    assert_eq!(pairs.count(), 1);
    assert_eq!(case.server.pkts_retx, 1);
    assert_eq!(case.server.bytes_retx, 1000);
}

#[test]
fn numbers_wrap_inside_the_first_segment() {
    let options = Options {
        wraps: true,
        ..Options::PLAIN
    };
    let frames = read(&case(options, "rto, original seen"));
    let hit = frames.iter().filter(|f| f.len == 1000).nth(5).unwrap();
    assert!(hit.seq.0 > u32::MAX - 1000 && hit.seq.0.wrapping_add(1000) < 1000);
}

#[test]
fn labels_judge_counts() {
    let case = case(Options::PLAIN, "unnecessary rto, ack late");
    let mut counts = [0; Anomaly::COUNT];
    assert_eq!(case.judge(&counts), Verdict::Wrong);
    counts[Anomaly::Rto as usize] = 1;
    assert_eq!(case.judge(&counts), Verdict::Tolerated);
    assert!(case.is_as_published(&counts));
    counts[Anomaly::Rto as usize] = 0;
    counts[Anomaly::UnnecessaryRto as usize] = 1;
    assert_eq!(case.judge(&counts), Verdict::Right);
    counts[Anomaly::Unknown as usize] = 1;
    assert_eq!(case.judge(&counts), Verdict::Wrong);
}
