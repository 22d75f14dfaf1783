//! Pipelines on a path that loses, reorders and repeats: what a real sender then puts on the wire.
//!
//! Client and server send their streams in segments of any size, each as soon as it may; the client
//! acknowledges what it has so far, in the middle of a response too. The capture holds every byte, some
//! later than they were first sent and some more than once, cut differently.

use linkweir_testkit::conversation::{Conversation, Segment, Side};
use linkweir_testkit::script::{Exchange, Framing};
use linkweir_wire::SeqNumber;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use super::random::{Mishap, suffer_where};
use super::support::observe_in;
use crate::HttpConfig;

/// Body, whether `HEAD`, whether `100 Continue` comes before the answer, whether chunked.
type Shape = (usize, bool, bool, bool);

fn shape() -> impl Strategy<Value = Shape> {
    let bool_of = proptest::bool::weighted;
    (0_usize..2500, bool_of(0.1), bool_of(0.1), bool_of(0.25))
}

/// Exchanges that are distinguished by target and code: `/0007` is answered with 407.
fn numbered(shapes: &[Shape]) -> Vec<Exchange> {
    (0..)
        .zip(shapes)
        .map(|(n, (body, is_head, interim, chunked))| Exchange {
            method: if *is_head { "HEAD" } else { "GET" },
            status: 400 + n,
            interim: *interim,
            framing: if *chunked {
                Framing::Chunked
            } else {
                Framing::Length
            },
            ..Exchange::get(format!("/{n:04}"), *body)
        })
        .collect()
}

/// One step of the two senders.
#[derive(Debug, Clone)]
struct Step {
    is_client: bool,
    /// Bytes at most.
    len: usize,
    /// How much of what is there to acknowledge is acknowledged.
    ack: usize,
}

fn step() -> impl Strategy<Value = Step> {
    let len = prop_oneof![2 => Just(usize::MAX), 1 => 1_usize..1500];
    (any::<bool>(), len, any::<usize>()).prop_map(|(is_client, len, ack)| Step {
        is_client,
        len,
        ack,
    })
}

/// The streams in segments of at most `mss` bytes. The server answers what it has, and the client sends
/// when it likes; where the steps end, the rest follows.
fn tell(talk: &mut Conversation, exchanges: &[Exchange], steps: &[Step], mss: usize) {
    let (mut asked, mut answered) = (Vec::new(), Vec::new());
    // The server's bytes up to the second number may be sent when it has those up to the first.
    let mut allowed = vec![(0, 0)];
    for exchange in exchanges {
        asked.extend(exchange.request());
        if exchange.interim {
            answered.extend(b"HTTP/1.1 100 Continue\r\n\r\n");
        }
        answered.extend(exchange.response());
        allowed.push((asked.len(), answered.len()));
    }
    let (first, second) = FIRST;
    let at = |base: SeqNumber, offset: usize| {
        SeqNumber(base.0.wrapping_add(u32::try_from(offset).unwrap()))
    };
    let (mut sent, mut replied, mut known) = (0, 0, 0);
    let rest = (0..)
        .map(|n| Step {
            is_client: n % 2 == 0,
            len: usize::MAX,
            ack: 0,
        })
        .take(20_000);
    // By the second request a pipeline is known as one.
    let second_request = allowed.get(2).map_or(asked.len(), |(needs, _)| *needs);
    let opening = std::iter::repeat_n(
        Step {
            is_client: true,
            len: usize::MAX,
            ack: 0,
        },
        second_request.div_ceil(mss),
    );
    let talk_steps = opening.chain(steps.iter().cloned()).chain(rest);
    for step in talk_steps {
        if step.is_client {
            let end = asked.len().min(sent + step.len.min(mss));
            if end == sent {
                continue;
            }
            known += step.ack % (replied - known + 1);
            talk.client_sends(&asked[sent..end]);
            sent = end;
            if let Some(segment) = talk.segments_mut().last_mut() {
                segment.ack = at(second, known);
            }
        } else {
            let may = allowed.iter().filter(|(needs, _)| *needs <= sent);
            let most = may.map(|(_, gives)| *gives).max().unwrap_or(0);
            let end = most.min(replied + step.len.min(mss));
            if end == replied {
                continue;
            }
            talk.server_sends(&answered[replied..end]);
            replied = end;
            if let Some(segment) = talk.segments_mut().last_mut() {
                segment.ack = at(first, sent);
            }
        }
    }
    assert_eq!((sent, replied), (asked.len(), answered.len()));
}

/// The numbers with which the two streams begin.
const FIRST: (SeqNumber, SeqNumber) = (SeqNumber(1001), SeqNumber(500_001));

/// What a side has of the other's stream.
struct Received {
    first: SeqNumber,
    bytes: Vec<bool>,
    /// The next byte that is missing.
    next: usize,
}

impl Received {
    fn new(first: SeqNumber) -> Self {
        Self {
            first,
            bytes: Vec::new(),
            next: 0,
        }
    }

    fn offset(&self, number: SeqNumber) -> usize {
        usize::try_from(number - self.first).unwrap()
    }

    /// Whether any of it is new.
    fn takes(&mut self, segment: &Segment) -> bool {
        let start = self.offset(segment.seq);
        let end = start + segment.payload.len();
        if self.bytes.len() < end {
            self.bytes.resize(end, false);
        }
        let is_new = self.bytes[start..end].contains(&false);
        self.bytes[start..end].fill(true);
        while self.bytes.get(self.next) == Some(&true) {
            self.next += 1;
        }
        is_new
    }
}

/// After what happened on the path: nobody acknowledges what did not come, no server answers what it does
/// not have, and what a client sends again acknowledges what it has by then. So the capture is one from
/// between the two, where everything passes that either has.
fn keep_to_cause_and_effect(talk: &mut Conversation) {
    let mut segments = std::mem::take(talk.segments_mut());
    segments.sort_by_key(|segment| segment.at_ns);
    let mut asked = Received::new(FIRST.0);
    let mut answered = Received::new(FIRST.1);
    let mut early: Vec<Segment> = Vec::new();
    let mut in_order = Vec::new();
    for mut segment in segments {
        if segment.from == Side::Server {
            early.push(segment);
        } else {
            let may = SeqNumber(FIRST.1.0 + u32::try_from(answered.next).unwrap());
            if !asked.takes(&segment) || may.before(segment.ack) {
                segment.ack = may;
            }
            let now_ns = segment.at_ns;
            in_order.push(segment);
            early
                .iter_mut()
                .for_each(|later| later.at_ns = later.at_ns.max(now_ns));
        }
        for later in std::mem::take(&mut early) {
            if asked.offset(later.ack) <= asked.next {
                answered.takes(&later);
                in_order.push(later);
            } else {
                early.push(later);
            }
        }
    }
    assert!(early.is_empty(), "what is asked in the end is answered");
    in_order.sort_by_key(|segment| segment.at_ns);
    *talk.segments_mut() = in_order;
}

/// What a path does that loses nothing for ever.
fn harm() -> impl Strategy<Value = Mishap> {
    let segment = any::<Index>;
    let span = || prop_oneof![0_u64..5_000_000, 0_u64..60_000_000];
    prop_oneof![
        (segment(), span()).prop_map(|(at, ns)| Mishap::Repetition(at, ns)),
        (segment(), span()).prop_map(|(at, ns)| Mishap::Delay(at, ns)),
        segment().prop_map(Mishap::Repacketized),
    ]
}

/// The segments in the order of their times, one a line, with numbers from those of the first on.
pub(super) fn told(talk: &Conversation) -> String {
    let all = talk.segments();
    let first = |side| {
        let of_side = all.iter().filter(|segment| segment.from == side);
        of_side
            .map(|segment| segment.seq)
            .min_by_key(|seq| seq.0)
            .unwrap_or_default()
    };
    let (asked, answered) = (first(Side::Client), first(Side::Server));
    let line = |segment: &Segment| {
        let (from, to) = match segment.from {
            Side::Client => (asked, answered),
            Side::Server => (answered, asked),
        };
        let text = String::from_utf8_lossy(&segment.payload);
        let (seq, ack) = (segment.seq - from, segment.ack - to);
        let end = seq + i32::try_from(segment.payload.len()).unwrap();
        let from = segment.from;
        format!(
            "{:?} {seq}..{end} ack {ack} {:?}",
            from,
            text.get(..24).unwrap_or(&text)
        )
    };
    let mut segments: Vec<&Segment> = all.iter().collect();
    segments.sort_by_key(|segment| segment.at_ns);
    let lines: Vec<_> = segments.into_iter().map(line).collect();
    lines.join("\n")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// All bytes are there: every exchange is found once, with its own answer.
    #[test]
    fn every_exchange_is_found_once(
        shapes in vec(shape(), 1..16),
        steps in vec(step(), 0..60),
        mss in prop_oneof![Just(100_usize), Just(536), Just(1460)],
        harms in vec(harm(), 0..8),
    ) {
        let exchanges = numbered(&shapes);
        let mut talk = Conversation::v4(40_000).mss(mss);
        tell(&mut talk, &exchanges, &steps, mss);
        suffer_where(&mut talk, &harms, |harm, segment| {
            // What overtakes the first segment of all is one of few that are kept in case a head comes.
            let is_first = segment.from == Side::Client && segment.seq == FIRST.0;
            !(matches!(harm, Mishap::Delay(..)) && is_first)
        });
        keep_to_cause_and_effect(&mut talk);
        let outcome = observe_in(&HttpConfig::default(), &talk.frames(), talk.link(), &[]);
        let mut short = outcome.short();
        short.sort();
        let expected: Vec<_> = (0..shapes.len()).map(|n| format!("complete /{n:04} {}", 400 + n)).collect();
        prop_assert_eq!(short, expected, "{}", told(&talk));
    }
}

/// Those behind it that have seen the lost one are found by their numbers.
#[test]
fn a_head_that_the_capture_lost_costs_itself() {
    use super::support::{answer, get, look};
    let mut talk = Conversation::v4(40_000).mss(100);
    let ask = |talk: &mut Conversation, names: &[&str]| {
        names
            .iter()
            .for_each(|name| _ = talk.client_sends(get(name)));
    };
    ask(&mut talk, &["/a", "/b"]);
    talk.server_sends(answer(200, 10))
        .server_sends(answer(201, 10));
    ask(&mut talk, &["/c"]);
    let lost = talk.segments().len();
    talk.server_sends(answer(202, 300));
    ask(&mut talk, &["/d", "/e"]);
    talk.server_sends(answer(203, 10))
        .server_sends(answer(204, 10));
    ask(&mut talk, &["/f"]);
    talk.server_sends(answer(205, 10));
    talk.lose(lost);
    let mut short = look(&talk).short();
    short.sort();
    let expected = [
        "complete /a 200",
        "complete /b 201",
        "complete /d 203",
        "complete /e 204",
        "complete /f 205",
        "unanswered /c",
    ];
    assert_eq!(short, expected, "{}", told(&talk));
}

/// Nothing of what is remembered of one connection is of another, whatever their ports and numbers.
#[test]
fn connections_of_one_exchange_stay_apart() {
    use super::support::{answer, get, look_all};
    let talks: Vec<_> = (0..3000_u32)
        .map(|n| {
            let client = format!("10.{}.0.1:{}", n / 401, 1024 + n).parse().unwrap();
            let mut talk = Conversation::between(client, "10.99.0.1:80".parse().unwrap())
                .numbered(n * 1000, n * 7)
                .starting_at(Conversation::START_NS + u64::from(n) * 10_000);
            talk.client_sends(get("/")).server_sends(answer(200, 100));
            talk
        })
        .collect();
    let outcome = look_all(&talks);
    assert_eq!(outcome.stats.transactions, 3000);
    assert!(
        outcome
            .short()
            .iter()
            .all(|short| short == "complete / 200")
    );
}

/// Whatever its numbers, the next connection with the same ports is not that of the pipeline.
#[test]
fn a_connection_with_the_ports_of_a_pipeline_is_another_one() {
    use super::support::{answer, get, look_all};
    let later = (1..16_u32).map(|n| (n << 28, n.wrapping_mul(0x1357_9bdf)));
    for (first, second) in later {
        let mut talk = Conversation::v4(40_000).numbered(1000, 5000);
        talk.client_sends(get("/a") + &get("/b"))
            .server_sends(answer(200, 10))
            .server_sends(
                "HTTP/1.1 201 Fine\r\nContent-Length: 50000000\r\n\r\n".to_owned()
                    + &"x".repeat(5000),
            );
        let mut next = Conversation::v4(40_000)
            .numbered(first, second)
            .starting_at(talk.now_ns() + 1_000_000_000);
        next.handshake()
            .client_sends(get("/c"))
            .server_sends(answer(202, 10));
        let mut short = look_all(&[talk, next]).short();
        short.sort();
        let expected = ["complete /a 200", "complete /b 201", "complete /c 202"];
        assert_eq!(short, expected, "{first} {second}");
    }
}

/// The client goes on long after, so what it has acknowledged will not come: the next answer is not that of
/// the request whose answer is missing.
#[test]
fn an_answer_that_is_missing_is_not_replaced_by_the_next() {
    use super::support::{answer, get, look};
    let mut talk = Conversation::v4(40_000);
    for name in ["/a", "/b", "/c"] {
        talk.client_sends(get(name));
    }
    let lost = talk.segments().len();
    for code in [200, 201, 202] {
        talk.server_sends(answer(code, 10));
    }
    talk.wait(std::time::Duration::from_millis(300));
    talk.client_sends(get("/d")).server_sends(answer(203, 10));
    talk.lose(lost);
    let mut short = look(&talk).short();
    short.sort();
    let expected = [
        "complete /d 203",
        "orphan 201",
        "orphan 202",
        "unanswered /a",
        "unanswered /b",
        "unanswered /c",
    ];
    assert_eq!(short, expected, "{}", told(&talk));
}

/// Three requests, the second with HEAD, and their answers, which come in another order.
fn three_in_order(
    has_handshake: bool,
    method: &str,
    answered: &str,
    order: &[usize],
) -> Conversation {
    use super::support::{answer, get};
    let mut talk = Conversation::v4(40_000);
    if has_handshake {
        talk.handshake();
    } else {
        talk.client_sends(get("/0")).server_sends(answer(299, 10));
    }
    let begin = talk.segments().len();
    talk.client_sends(get("/a").replace("GET", method))
        .client_sends(get("/b").replace("GET", "HEAD"))
        .client_sends(get("/c"))
        .server_sends(answered)
        .server_sends("HTTP/1.1 201 Fine\r\nContent-Length: 700\r\n\r\n")
        .server_sends(answer(202, 300));
    let segments = talk.segments_mut();
    let times: Vec<u64> = segments.iter().skip(begin).map(|one| one.at_ns).collect();
    for (to, from) in order.iter().enumerate() {
        segments[begin + from].at_ns = times[to];
    }
    talk
}

fn look_small(talk: &Conversation) -> Vec<String> {
    let config = HttpConfig {
        max_pending: 64,
        remembered: 64,
        ..HttpConfig::default()
    };
    let mut short = super::support::look_with(&config, talk).short();
    short.retain(|record| record != "complete /0 299");
    short.sort();
    short
}

/// What follows a handshake or an exchange can be in any order: the numbers that are due tell what is missing.
#[test]
fn behind_known_numbers_any_order_will_do() {
    use super::support::{answer, chunked_answer, orders};
    let bare = "HTTP/1.1 200 OK\r\nContent-Length: 700\r\n\r\n".to_owned();
    let interim = "HTTP/1.1 100 Continue\r\n\r\n".to_owned() + &answer(200, 5);
    let kinds = [
        ("GET", answer(200, 90)),
        ("HEAD", bare),
        ("GET", chunked_answer(&[10, 90])),
        ("GET", interim),
    ];
    let expected = ["complete /a 200", "complete /b 201", "complete /c 202"];
    for case in 0..8 {
        let (method, first) = &kinds[case / 2];
        for order in orders(6) {
            let talk = three_in_order(case % 2 == 0, method, first, &order);
            assert_eq!(look_small(&talk), expected, "{order:?}\n{}", told(&talk));
        }
    }
}

/// Where the capture has lost one of them, no answer goes to another's request.
#[test]
fn behind_known_numbers_a_loss_costs_itself_or_its_neighbours() {
    use super::support::{answer, orders};
    let right = ["complete /a 200", "complete /b 201", "complete /c 202"];
    let (mut complete, mut cases) = (0, 0);
    for lost in 0..12 {
        for order in orders(6) {
            let mut talk = three_in_order(lost < 6, "GET", &answer(200, 90), &order);
            let begin = talk.segments().len() - 6;
            talk.lose(begin + lost % 6);
            for record in look_small(&talk) {
                if record.starts_with("complete") {
                    assert!(
                        right.contains(&record.as_str()),
                        "{record}\n{}",
                        told(&talk)
                    );
                    complete += 1;
                }
            }
            cases += 1;
        }
    }
    assert!(complete >= cases, "{complete} of {cases}");
}

/// Who waits for nothing any more is known when it comes again.
#[test]
fn a_request_behind_a_gap_counts_once() {
    use super::support::answer;
    let mut talk = three_in_order(true, "GET", &answer(200, 90), &[0, 1, 2, 3, 4, 5]);
    let begin = talk.segments().len() - 6;
    for wait_ms in [300, 600, 900] {
        talk.repeat(begin + 1, wait_ms * 1_000_000);
        talk.repeat(begin + 5, wait_ms * 1_000_000 + 1);
    }
    talk.lose(begin);
    let expected = [
        "orphan 200",
        "orphan 201",
        "orphan 202",
        "unanswered /b",
        "unanswered /c",
    ];
    assert_eq!(look_small(&talk), expected, "{}", told(&talk));
}

/// A request that comes before those in front of it, and again behind them, is one.
#[test]
fn a_request_that_comes_first_and_again_counts_once() {
    use super::support::{answer, get, look};
    for is_answered_between in [false, true] {
        let mut talk = Conversation::v4(40_000);
        talk.client_sends(get("/a"))
            .client_sends(get("/b"))
            .server_sends(answer(200, 10))
            .server_sends(answer(201, 10))
            .client_sends(get("/c"))
            .server_sends(answer(202, 10));
        // /c comes first, and again before or behind its answer.
        let segments = talk.segments_mut();
        let again = segments[4].clone();
        segments[4].at_ns = segments[0].at_ns - 1;
        segments.push(again);
        if is_answered_between {
            segments[6].at_ns = segments[5].at_ns + 1;
        }
        let mut short = look(&talk).short();
        short.sort();
        let expected = ["complete /a 200", "complete /b 201", "complete /c 202"];
        assert_eq!(short, expected, "{}", told(&talk));
    }
}
