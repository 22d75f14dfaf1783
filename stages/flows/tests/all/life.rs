//! The life of flows: who is who, when they end, what they are called, and that nothing is counted
//! twice.

use std::time::Duration;

use linkweir_engine::Stage;
use linkweir_flows::{FlowsConfig, FlowsStage, FlowsStats, Subnets};
use linkweir_record::RecordBatch;
use linkweir_record::flow::{Extent, FlowBatch, FlowRow, FlowState};
use linkweir_testkit::capture_writer::CapturedFrame;
use linkweir_testkit::conversation::{Conversation, Side};
use linkweir_testkit::memory::drive;
use linkweir_testkit::parts::in_parts;
use linkweir_wire::{LinkType, Timestamp};

const SECOND: u64 = 1_000_000_000;

fn run(config: &FlowsConfig, frames: &[CapturedFrame]) -> (Vec<FlowRow>, FlowsStats) {
    let mut stage = FlowsStage::new(config);
    let batch = drive(&mut stage, frames, LinkType::ETHERNET, &[7, 1, 40]);
    (rows(&batch), stage.stats())
}

fn rows(batch: &FlowBatch) -> Vec<FlowRow> {
    batch.views().map(|view| *view.row).collect()
}

fn defaults() -> FlowsConfig {
    FlowsConfig::default()
}

/// A whole connection of a request and a response, closed by both.
fn whole(port: u16) -> Conversation {
    let mut talk = Conversation::v4(port);
    talk.handshake()
        .client_sends("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n")
        .server_sends("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        .acknowledges(Side::Client)
        .fin(Side::Client)
        .fin(Side::Server)
        .acknowledges(Side::Client);
    talk
}

#[test]
fn packets_in_parts_belong_to_their_flow_in_their_order() {
    let mut talk = Conversation::v4(4000);
    talk.handshake();
    for _ in 0..40 {
        talk.client_sends("x".repeat(900))
            .server_sends("y".repeat(1400));
    }
    talk.fin(Side::Client)
        .fin(Side::Server)
        .acknowledges(Side::Client);
    let frames = talk.frames();
    let mut parts = in_parts(&frames, 480);
    let (expected, _) = run(&defaults(), &frames);
    let (found, stats) = run(&defaults(), &parts);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].client.anomalies, [0; 9]);
    assert_eq!(found[0].client.bytes_uniq, 40 * 900);
    assert_eq!(found, expected);
    assert_eq!((stats.packets, stats.fragments), (frames.len() as u64, 0));
    // Without the first part of the first data segment: two others that belong nowhere.
    parts.remove(3);
    let (_, stats) = run(&defaults(), &parts);
    assert_eq!(
        (stats.packets, stats.fragments),
        (frames.len() as u64 - 1, 1)
    );
}

#[test]
fn a_whole_connection() {
    for talk in [whole(4000), {
        let mut talk = Conversation::v6(4000);
        talk.handshake()
            .client_sends("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n")
            .server_sends("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            .acknowledges(Side::Client)
            .fin(Side::Client)
            .fin(Side::Server)
            .acknowledges(Side::Client);
        talk
    }] {
        let (rows, stats) = run(&defaults(), &talk.frames());
        assert_eq!(rows.len(), 1);
        let row = rows[0];
        assert_eq!(row.state, FlowState::Closed);
        assert!(row.is_complete() && row.has_syn);
        assert_eq!((row.client.port, row.server.port), (4000, 80));
        assert_eq!((row.client.pkts_all, row.server.pkts_all), (6, 3));
        assert_eq!((row.client.syn_cnt, row.server.syn_cnt), (1, 1));
        assert_eq!((row.client.fin_cnt, row.server.fin_cnt), (1, 1));
        assert_eq!((row.client.pkts_data, row.server.pkts_data), (1, 1));
        assert_eq!(row.client.bytes_uniq, 35);
        assert_eq!(row.client.ack_cnt, 5);
        assert_eq!(row.client.ack_cnt_p, 3);
        assert_eq!(row.duration_ns(), 8_000_000);
        assert_eq!(row.syn_ack_ns, Some(1_000_000));
        assert_eq!(row.ack_dat_ns, Some(1_000_000));
        assert_eq!(row.client.first_ns, Some(3_000_000));
        assert_eq!(row.server.first_ns, Some(4_000_000));
        // SYN, request and FIN were each acknowledged by the next segment.
        assert_eq!(row.client.rtt.count, 3);
        assert_eq!(row.client.rtt.avg_ns, 1_000_000);
        assert_eq!(row.client.rtt.std_ns, 0);
        assert_eq!(row.client.anomalies, [0; 9]);
        assert_eq!(row.application, "http");
        assert_eq!(
            (row.http_requests, row.http_responses, row.http_status),
            (1, 1, 200)
        );
        assert_eq!((stats.tcp_complete, stats.tcp_incomplete), (1, 0));
        assert_eq!(stats.packets, 9);
    }
}

#[test]
fn where_batches_are_cut_does_not_matter() {
    let mut frames: Vec<CapturedFrame> = (0..40).flat_map(|n| whole(4000 + n).frames()).collect();
    frames.sort_by_key(|frame| frame.timestamp_ns);
    let mut one = FlowsStage::new(&defaults());
    let mut other = FlowsStage::new(&defaults());
    let a = rows(&drive(&mut one, &frames, LinkType::ETHERNET, &[1]));
    let mut b = rows(&drive(&mut other, &frames, LinkType::ETHERNET, &[1000]));
    assert_eq!(a.len(), 40);
    let mut a = a;
    a.sort_by_key(|row| row.client.port);
    b.sort_by_key(|row| row.client.port);
    assert_eq!(a, b);
}

#[test]
fn what_comes_after_the_end_counts_with_the_flow_for_a_while() {
    let mut talk = whole(4000);
    talk.rst(Side::Client);
    let (rows, _) = run(&defaults(), &talk.frames());
    assert_eq!(rows.len(), 1);
    assert_eq!(
        (rows[0].state, rows[0].client.rst_cnt),
        (FlowState::Closed, 1)
    );
    // Long after it is a flow of its own, met in the middle.
    let mut talk = whole(4000);
    talk.wait(Duration::from_secs(20)).rst(Side::Client);
    let (rows, stats) = run(&defaults(), &talk.frames());
    assert_eq!(rows.len(), 2);
    assert_eq!(rows[0].state, FlowState::Closed);
    assert_eq!(stats.tcp_midstream, 1);
}

/// Zeek's words for how a connection ended (its `TCPSessionAdapter.cc`), where the order of FIN and RST
/// or what was missed decides.
#[test]
fn the_state_in_zeek_s_words_follows_the_order_of_fin_and_rst() {
    type Script = fn(&mut Conversation);
    let state = |script: Script, missed: usize| {
        let mut talk = Conversation::v4(40_000);
        talk.handshake()
            .client_sends("question")
            .server_sends("answer");
        script(&mut talk);
        talk.segments_mut().drain(..missed);
        let (rows, _) = run(&defaults(), &talk.frames());
        assert_eq!(rows.len(), 1);
        assert_eq!(rows[0].server.port, 80);
        rows[0].conn_state()
    };
    let reset_behind_both: Script = |talk| {
        talk.fin(Side::Client).fin(Side::Server).rst(Side::Client);
    };
    let reset_between: Script = |talk| {
        talk.fin(Side::Client).rst(Side::Client).fin(Side::Server);
    };
    let reset_first: Script = |talk| {
        talk.rst(Side::Server).fin(Side::Client).fin(Side::Server);
    };
    let reset: Script = |talk| {
        talk.rst(Side::Server);
    };
    // The whole, without the SYN, without the handshake.
    for (script, states) in [
        (reset_behind_both, ["SF"; 3]),
        (reset_between, ["SF"; 3]),
        (reset_first, ["RSTR"; 3]),
        (reset, ["RSTR", "RSTR", "RSTRH"]),
    ] {
        assert_eq!([0, 1, 3].map(|missed| state(script, missed)), states);
    }
}

/// What a connection went through, in the letters of Zeek's `conn.log`, and what the capture missed of it.
#[test]
fn histories_and_missed_bytes() {
    type Change = fn(&mut Vec<CapturedFrame>);
    let response = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".len() as u64;
    let as_is: Change = |_| {};
    let without_syn: Change = |frames| {
        frames.remove(0);
    };
    let without_handshake: Change = |frames| {
        frames.drain(..3);
    };
    let without_response: Change = |frames| {
        frames.remove(4);
    };
    let without_request: Change = |frames| {
        frames.remove(3);
    };
    let request_late: Change = |frames| {
        let mut late = frames.remove(3);
        late.timestamp_ns = frames[4].timestamp_ns;
        frames.insert(5, late);
    };
    let request_again: Change = |frames| {
        let mut again = frames[3].clone();
        again.timestamp_ns = frames[5].timestamp_ns;
        frames.insert(6, again);
    };
    let only_the_server: Change = |frames| *frames = [1, 4, 7].map(|at| frames[at].clone()).into();
    for (change, history, missed) in [
        (as_is, "ShADdFf", 0),
        (without_syn, "^hADdFf", 0),
        (without_handshake, "DdAFf", 0),
        (without_response, "ShADgFf", response),
        (without_request, "ShAdGFf", 35),
        (request_late, "ShAdGDFf", 0),
        (request_again, "ShADdTFf", 0),
        (only_the_server, "^hdf", 0),
    ] {
        let mut frames = whole(40_000).frames();
        change(&mut frames);
        let (rows, _) = run(&defaults(), &frames);
        assert_eq!(rows.len(), 1, "{history}");
        let found = rows[0].history.text();
        let bytes = rows[0].client.missed_bytes + rows[0].server.missed_bytes;
        assert_eq!(
            (found.as_bytes().escape_ascii().to_string(), bytes),
            (history.to_owned(), missed)
        );
    }
    let mut talk = Conversation::v4(40_000);
    talk.handshake()
        .client_sends("question")
        .rst(Side::Server)
        .rst(Side::Client);
    let (rows, _) = run(&defaults(), &talk.frames());
    assert_eq!(rows[0].history.text().as_bytes(), b"ShADrR");
}

#[test]
fn the_same_ports_begin_a_new_connection() {
    let mut frames = whole(4000).frames();
    let mut second = Conversation::v4(4000)
        .numbered(77_001, 99_001)
        .starting_at(Conversation::START_NS + 20_000_000);
    second.handshake().client_sends("hello");
    frames.extend(second.frames());
    let (rows, _) = run(&defaults(), &frames);
    assert_eq!(rows.len(), 2);
    assert_eq!(rows[0].client.pkts_all, 6);
    assert_eq!(rows[0].state, FlowState::Reused);
    assert_eq!(rows[1].client.pkts_all, 3);
    assert_ne!(rows[0].flow_id, rows[1].flow_id);
    // A SYN that is sent again opens nothing.
    let mut talk = Conversation::v4(4000);
    talk.handshake().repeat(0, 300_000_000);
    let (rows, _) = run(&defaults(), &talk.frames());
    assert_eq!(rows.len(), 1);
    assert_eq!((rows[0].client.syn_cnt, rows[0].client.syn_retx), (2, 1));
}

#[test]
fn idle_flows_end_and_go_on_as_others() {
    let mut talk = Conversation::v4(4000);
    talk.handshake()
        .client_sends("a")
        .wait(Duration::from_secs(299))
        .client_sends("b")
        .wait(Duration::from_secs(301))
        .client_sends("c");
    let (rows, stats) = run(&defaults(), &talk.frames());
    assert_eq!(rows.len(), 2);
    assert_eq!(
        (rows[0].state, rows[0].client.pkts_data),
        (FlowState::Idle, 2)
    );
    assert_eq!(
        (rows[1].state, rows[1].client.pkts_data),
        (FlowState::Open, 1)
    );
    assert!(!rows[1].has_syn);
    assert_eq!((stats.tcp_complete, stats.tcp_incomplete), (1, 1));
}

#[test]
fn a_syn_without_answer_is_one() {
    let mut talk = Conversation::v4(4000);
    talk.handshake();
    let mut frames = vec![talk.frames()[0].clone()];
    let later = Conversation::v4(5000).starting_at(Conversation::START_NS + 30 * SECOND);
    frames.extend({
        let mut later = later;
        later.handshake();
        later.frames()
    });
    let (rows, _) = run(&defaults(), &frames);
    assert_eq!(rows.len(), 2);
    assert_eq!(rows[0].state, FlowState::Unanswered);
    assert_eq!((rows[0].client.pkts_all, rows[0].server.pkts_all), (1, 0));
}

#[test]
fn a_flow_met_in_the_middle_knows_its_client_by_the_ports() {
    let mut talk = whole(40_000);
    // The first packets are not in the capture; the first that is comes from the server.
    talk.segments_mut().drain(..4);
    let (rows, _) = run(&defaults(), &talk.frames());
    assert_eq!(rows.len(), 1);
    assert!(!rows[0].has_syn);
    assert_eq!((rows[0].client.port, rows[0].server.port), (40_000, 80));
    // Acknowledgments of what was never seen make no samples.
    assert_eq!(rows[0].client.rtt.count, 1);
}

#[test]
fn one_direction_alone_has_no_absurd_numbers() {
    for side in [Side::Client, Side::Server] {
        let mut talk = Conversation::v4(4000);
        talk.handshake();
        for _ in 0..50 {
            talk.client_sends(vec![b'x'; 3000])
                .server_sends(vec![b'y'; 5000]);
        }
        talk.segments_mut().retain(|segment| segment.from == side);
        let (rows, _) = run(&defaults(), &talk.frames());
        assert_eq!(rows.len(), 1);
        for one in [&rows[0].client, &rows[0].server] {
            assert_eq!(one.rtt.count, 0);
            assert_eq!((one.pkts_retx, one.pkts_ooo), (0, 0));
            assert!(one.cwin_max < 1 << 20);
        }
    }
}

#[test]
fn a_full_table_evicts_and_counts() {
    let config = FlowsConfig {
        max_flows: 100,
        ..defaults()
    };
    let mut frames = Vec::new();
    let mut kept = Conversation::v4(1999);
    kept.handshake().client_sends("established");
    frames.extend(kept.frames());
    for port in 2000..4000 {
        let start = Conversation::START_NS + u64::from(port) * 1_000_000;
        let mut talk = Conversation::v4(port).starting_at(start);
        talk.handshake();
        frames.push(talk.frames()[0].clone());
    }
    let (rows, stats) = run(&config, &frames);
    assert_eq!(rows.len(), 2001);
    assert_eq!(stats.evicted, 1901);
    assert_eq!(stats.peak_flows, 100);
    let evicted = rows.iter().filter(|row| row.state == FlowState::Evicted);
    assert_eq!(evicted.count(), 1901);
    // A flood does not push out what is established.
    let established = rows.iter().find(|row| row.client.port == 1999).unwrap();
    assert_eq!(established.state, FlowState::Open);
}

#[test]
fn partial_records_add_up_to_the_final_one() {
    let config = FlowsConfig {
        periodic: Some(Duration::from_secs(10)),
        ..defaults()
    };
    let mut talk = Conversation::v4(4000);
    talk.handshake();
    for _ in 0..60 {
        talk.wait(Duration::from_secs(1))
            .client_sends("0123456789")
            .acknowledges(Side::Server);
    }
    talk.fin(Side::Client)
        .fin(Side::Server)
        .acknowledges(Side::Client);
    let (rows, stats) = run(&config, &talk.frames());
    let (parts, finals): (Vec<_>, Vec<_>) =
        rows.iter().partition(|row| row.extent == Extent::Partial);
    assert_eq!((parts.len(), finals.len()), (7, 1));
    assert_eq!(stats.partial, 7);
    let whole = finals[0];
    let sum = |value: fn(&FlowRow) -> u64| parts.iter().copied().map(value).sum::<u64>();
    assert_eq!(sum(|row| row.client.pkts_all), whole.client.pkts_all);
    assert_eq!(sum(|row| row.client.bytes_all), whole.client.bytes_all);
    assert_eq!(sum(|row| row.server.ip_bytes), whole.server.ip_bytes);
    assert_eq!(
        sum(|row| u64::from(row.client.rtt.count)),
        u64::from(whole.client.rtt.count)
    );
    for (part, next) in parts.iter().zip(&parts[1..]) {
        assert_eq!(part.flow_id, whole.flow_id);
        assert!(next.first_ns >= part.last_ns);
        assert_eq!((next.first_ns - whole.first_ns) % (10 * SECOND), 0);
    }
    // The totals count the final one only.
    assert_eq!(stats.packets, whole.client.pkts_all + whole.server.pkts_all);
}

#[test]
fn lengths_are_those_of_the_ip_headers_whatever_was_cut() {
    for talk in [Conversation::v4(4000), Conversation::v6(4000)] {
        let mut talk = talk.snaplen(96);
        talk.handshake()
            .client_sends("GET / HTTP/1.1\r\n\r\n")
            .server_sends(vec![b'x'; 24_000])
            .acknowledges(Side::Client)
            .fin(Side::Server)
            .fin(Side::Client)
            .acknowledges(Side::Server);
        let mut frames = talk.frames();
        let honest = run(&defaults(), &frames);
        assert_eq!(honest.0[0].server.bytes_uniq, 24_000);
        for frame in &mut frames {
            frame.wire_len = u32::try_from(frame.bytes.len()).unwrap();
        }
        assert_eq!(run(&defaults(), &frames), honest);
    }
}

#[test]
fn time_that_goes_back_is_no_negative_time() {
    let mut talk = whole(4000);
    for segment in talk.segments_mut().iter_mut().skip(3) {
        segment.at_ns -= 5 * SECOND;
    }
    let (rows, _) = run(&defaults(), &talk.frames_as_listed());
    assert_eq!(rows.len(), 1);
    let row = rows[0];
    assert!(row.duration_ns() < SECOND);
    for side in [&row.client, &row.server] {
        for time in [side.first_ns, side.last_ns, side.first_ack_ns] {
            assert!(time.unwrap_or(0) < SECOND);
        }
        assert!(side.rtt.max_ns < SECOND);
    }
}

#[test]
fn internal_and_external() {
    let config = FlowsConfig {
        internal: Subnets::parse("192.0.2.0/24").unwrap(),
        ..defaults()
    };
    let (rows, _) = run(&config, &whole(4000).frames());
    assert!(rows[0].client.is_internal && !rows[0].server.is_internal);
}

#[test]
fn ticks_end_flows_of_a_silent_interface() {
    let mut stage = FlowsStage::new(&defaults());
    let frames = whole(4000).frames();
    let mut out = FlowBatch::default();
    let mut source = linkweir_testkit::memory::MemorySource::new(&frames, LinkType::ETHERNET, 64);
    if let Ok(linkweir_engine::SourceEvent::Batch(batch)) =
        linkweir_engine::Source::next_event(&mut source)
    {
        stage.on_batch(&batch, &mut out);
    }
    assert_eq!(stage.active(), 1);
    stage.on_tick(
        Timestamp::from_nanos(Conversation::START_NS + SECOND),
        &mut out,
    );
    assert_eq!((stage.active(), out.len()), (0, 1));
}

#[test]
fn a_capture_whose_times_jump_ends_no_flow() {
    // Another flow is a minute ahead, then the handshake of this one goes on.
    let mut talk = Conversation::v4(4000);
    talk.handshake().client_sends("a");
    let mut frames = talk.frames();
    let mut ahead = Conversation::v4(5000).starting_at(Conversation::START_NS + 60 * SECOND);
    ahead.handshake();
    let ahead = ahead.frames();
    let mut mixed = vec![ahead[0].clone(), frames.remove(0)];
    for (one, other) in frames.into_iter().zip(ahead.into_iter().skip(1).cycle()) {
        mixed.extend([other, one]);
    }
    for sizes in [1, 100] {
        let mut stage = FlowsStage::new(&defaults());
        let batch = drive(&mut stage, &mixed, LinkType::ETHERNET, &[sizes]);
        assert_eq!(batch.len(), 2);
    }
}
