use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use linkweir_engine::RunReport;
use linkweir_record::{FlowKind, GatewayKind, HttpKind};
use proptest::prelude::*;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::style::Color;

use super::screen::{After, Screen};
use super::{Shown, draw, line, line_loop};
use linkweir_live::api::{
    AlertState, AlertStatus, By, Dropped, FlowBy, FlowFigures, FlowTopRow, HttpFigures, Meta,
    Percentiles, Sort, TableState, Tick, TopRow, TopTable, Window,
};
use linkweir_live::load::{GeneratorStatus, LoadRun, LoadState, LoadStatus, LoadStep};
use linkweir_live::{AboutRow, Live, LiveOptions, LoadLive};

mod gateway;
mod load;

fn tick(id: u64, requests: u64) -> Tick {
    Tick {
        id,
        t_ms: 1_700_000_000_000 + id * 1000,
        interval_s: 1.0,
        packets: 86_700,
        bytes: 67_500_000,
        figures: HttpFigures {
            requests,
            responses: requests,
            complete: requests - 8,
            unanswered: 8,
            orphans: 2,
            retransmissions: 23,
            codes: BTreeMap::from([(200, requests - 100), (304, 60), (404, 30), (503, 10)]),
            methods: BTreeMap::from([("GET".to_owned(), requests - 5), ("POST".to_owned(), 5)]),
            response_time_ns: Some(Percentiles {
                count: requests,
                min: 180_000,
                mean: 15_000_000,
                p50: 7_960_000,
                p90: 35_000_000,
                p95: 56_000_000 + id,
                p99: 123_000_000,
                p999: 519_000_000,
                max: 2_400_000_000,
            }),
            ..HttpFigures::default()
        },
        dropped: Dropped::default(),
        dropped_total: Dropped::default(),
        table: TableState {
            entries: 37_800,
            capacity: 1_000_000,
        },
        alerts: Vec::new(),
    }
}

fn row(key: &str, requests: u64) -> TopRow {
    TopRow {
        key: key.to_owned(),
        requests,
        errors_4xx: 30,
        errors_5xx: 10,
        unanswered: 8,
        bytes: 3_200_000_000,
        p50: Some(4_000_000),
        p95: Some(24_000_000),
        p99: Some(72_000_000),
        max: None,
        about: AboutRow::default(),
    }
}

fn screen(ticks: impl IntoIterator<Item = Tick>) -> Screen<HttpKind> {
    let mut screen = Screen::new(true).unwrap();
    screen.meta = Some(Meta {
        kind: "http",
        version: "0.1.0",
        source: "eth1".to_owned(),
        live: true,
        interval_s: 1.0,
        started_ms: 1_700_000_000_000,
        finished: false,
        merged: false,
        history: false,
        archive: false,
        places: false,
    });
    screen.ticks = ticks.into_iter().map(Arc::new).collect();
    screen.table = Some(TopTable {
        by: By::Host,
        window: Window::FiveMinutes,
        rows: (0..40)
            .map(|rank| row(&format!("host-{rank}.example"), 780_000 / (rank + 1)))
            .collect(),
        floor: 0,
    });
    screen
}

fn drawn<K: Shown>(screen: &mut Screen<K>, width: u16, height: u16) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw::draw(frame, screen)).unwrap();
    terminal.backend().buffer().clone()
}

/// Rows of terminals: all where parts come and go, fewer where only more of the same is shown.
const HEIGHTS: [u16; 20] = [
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 15, 20, 24, 25, 30, 40, 50, 60,
];

/// It can be drawn on any terminal.
fn fits_everywhere<K: Shown>(screen: &mut Screen<K>) {
    for width in [1, 7, 19, 40, 79, 300] {
        for height in HEIGHTS {
            drawn(screen, width, height);
        }
    }
}

fn text(buffer: &Buffer) -> Vec<String> {
    let width = usize::from(buffer.area.width);
    buffer
        .content
        .chunks(width)
        .map(|row| {
            let line: String = row.iter().map(ratatui::buffer::Cell::symbol).collect();
            line.trim_end().to_owned()
        })
        .collect()
}

const fn press(code: KeyCode) -> KeyEvent {
    KeyEvent::new(code, KeyModifiers::NONE)
}

#[test]
fn everything_has_its_place_at_80_by_24() {
    let mut screen = screen((1..=200).map(|id| tick(id, 7000 + id)));
    let lines = text(&drawn(&mut screen, 80, 24));
    assert!(
        lines[0].starts_with("linkweir  eth1  up 3m 20s"),
        "{}",
        lines[0]
    );
    assert!(lines[0].ends_with("22:16:40Z"), "{}", lines[0]);
    assert_eq!(lines[1], "dropped 0   table 3.78 % 37.8k of 1M");
    assert_eq!(
        lines[2],
        "req/s 7.20k   pkt/s 86.7k   bit/s 540M   unanswered/s 8   retrans/s 23"
    );
    assert!(lines[3].starts_with("req/s  up to 7.20k"), "{}", lines[3]);
    assert!(lines[3].contains("p95  up to 56.0 ms"), "{}", lines[3]);
    assert!(
        lines[6].ends_with('█'),
        "the last interval is at the edge: {}",
        lines[6]
    );
    assert_eq!(
        lines[7],
        "p50 7.96 ms   p90 35 ms   p95 56.0 ms   p99 123 ms   p99.9 519 ms   max 2.40 s"
    );
    assert!(lines[8].starts_with("2xx ██████"), "{}", lines[8]);
    assert!(lines[8].contains("7,100   98.6 %"), "{}", lines[8]);
    assert!(
        lines[8].contains("200 7,100  304 60  404 30  503 10"),
        "{}",
        lines[8]
    );
    assert!(lines[9].contains("GET 7,195  POST 5"), "{}", lines[9]);
    assert!(
        lines[11].starts_with("5xx █ "),
        "what is not zero is seen: {}",
        lines[11]
    );
    assert!(lines[12].starts_with(" hosts  servers  urls  clients   last 5 minutes, by requests"));
    assert!(lines[13].starts_with("KEY"), "{}", lines[13]);
    assert!(lines[13].ends_with("P95    MAX"), "{}", lines[13]);
    assert!(lines[14].starts_with("host-0.example"), "{}", lines[14]);
    assert!(
        lines[14].contains("780k      40      8  3.20G   4 ms  24 ms      -"),
        "{}",
        lines[14]
    );
    assert!(lines[22].starts_with("host-8.example"), "{}", lines[22]);
    assert!(lines[23].starts_with("q quit   tab table"), "{}", lines[23]);
}

fn flow_tick() -> Tick<FlowFigures> {
    let times = |p50, p95| {
        Some(Percentiles {
            p50,
            p95,
            ..Percentiles::default()
        })
    };
    let http = tick(1, 7000);
    Tick {
        id: 1,
        t_ms: http.t_ms,
        interval_s: 1.0,
        packets: 86_700,
        bytes: 67_500_000,
        figures: FlowFigures {
            new_flows: 3120,
            ended: 3000,
            ended_tcp: 2000,
            ended_udp: 1000,
            ends: linkweir_live::api::FlowEnds {
                closed: 1800,
                idle: 1000,
                reset: 150,
                unanswered: 50,
                ..linkweir_live::api::FlowEnds::default()
            },
            data_segments: 50_000,
            retransmissions: 410,
            anomalies: [("rto", 100), ("fast_retransmit", 310)].into(),
            applications: [(
                "tls",
                linkweir_live::api::Application {
                    flows: 1900,
                    bytes: 1,
                },
            )]
            .into(),
            rtt_ns: times(21_000_000, 127_000_000),
            server_rtt_ns: times(19_000_000, 119_000_000),
            client_rtt_ns: times(2_000_000, 8_000_000),
            handshake_ns: times(22_000_000, 111_000_000),
            ..FlowFigures::default()
        },
        table: TableState {
            entries: 46_900,
            capacity: 1_000_000,
        },
        ..Tick::default()
    }
}

#[test]
fn flows_have_their_own_numbers_in_the_same_places() {
    let tick = flow_tick();
    let mut screen = Screen::<FlowKind>::new(true).unwrap();
    screen.ticks = vec![Arc::new(tick.clone())];
    screen.table = Some(TopTable {
        by: FlowBy::Name,
        window: Window::FiveMinutes,
        rows: vec![FlowTopRow {
            key: "video.example".to_owned(),
            bytes: 7_200_000_000,
            flows: 1200,
            reset: 10,
            unanswered: 2,
            data_segments: 1000,
            retransmissions: 44,
            rtt_p50: Some(24_000_000),
            rtt_p95: Some(120_000_000),
            about: AboutRow::default(),
        }],
        floor: 0,
    });
    let lines = text(&drawn(&mut screen, 80, 24));
    assert_eq!(lines[1], "dropped 0   table 4.69 % 46.9k of 1M");
    assert_eq!(
        lines[2],
        "new/s 3.12k   ended/s 3k   pkt/s 86.7k   bit/s 540M   retrans 0.82 %"
    );
    assert!(lines[3].starts_with("bit/s  up to 540M"), "{}", lines[3]);
    assert!(lines[3].contains("rtt p95  up to 127 ms"), "{}", lines[3]);
    assert!(
        lines[7].starts_with("rtt p50 21 ms   p95 127 ms   server p95 119 ms   client p95 8 ms"),
        "{}",
        lines[7]
    );
    assert!(lines[8].starts_with("closed      ██"), "{}", lines[8]);
    assert!(lines[8].contains("1,800     60 %"), "{}", lines[8]);
    assert!(lines[8].ends_with("tls 1,900"), "{}", lines[8]);
    assert!(
        lines[9].ends_with("fast retransmit 310  rto 100"),
        "{}",
        lines[9]
    );
    assert!(
        lines[12].starts_with(" names  servers  clients  applications   last 5 minutes, by bytes"),
        "{}",
        lines[12]
    );
    assert!(
        lines[14].ends_with("7.20G  1,200     12  4.40 %   24 ms  120 ms"),
        "{}",
        lines[14]
    );
    assert_eq!(
        line::<FlowKind>(&tick),
        "22:13:21Z dropped 0 table 4.69 % active 46.9k new/s 3.12k ended/s 3k failed 200 \
         retrans 0.82 % rtt-p50 21 ms rtt-p95 127 ms pkt/s 86.7k bit/s 540M"
    );
    fits_everywhere(&mut screen);
}

#[test]
fn losses_and_alerts_stand_out_with_and_without_colours() {
    let mut lossy = tick(2, 7000);
    lossy.dropped_total = Dropped {
        kernel: 8134,
        table_full: 3,
        ..Dropped::default()
    };
    lossy.dropped.kernel = 900;
    lossy.alerts = [AlertState::Pending, AlertState::Firing, AlertState::Firing]
        .map(|state| AlertStatus {
            rule: format!("5xx share > 2 % ({})", state.as_str()),
            state,
            value: Some(6.1),
            threshold: 2.0,
            unit: "%",
            since_ms: 1_700_000_000_000 - 58_000,
        })
        .to_vec();
    for is_coloured in [true, false] {
        let mut screen = screen([tick(1, 7000), lossy.clone()]);
        screen.is_coloured = is_coloured;
        let buffer = drawn(&mut screen, 100, 30);
        let lines = text(&buffer);
        assert!(
            lines[1].starts_with(" DROPPED 8,137: kernel 8,134, table_full 3 (now +900) "),
            "{}",
            lines[1]
        );
        assert!(lines[1].ends_with("alerts firing 2"), "{}", lines[1]);
        assert_eq!(
            lines[2],
            " FIRING  5xx share > 2 % (firing)  for 1m 00s  and 1 more"
        );
        let cell = &buffer[(1, 1)];
        if is_coloured {
            assert_eq!(cell.bg, Color::Red);
        } else {
            assert!(cell.modifier.contains(ratatui::style::Modifier::REVERSED));
            let is_plain =
                |cell: &ratatui::buffer::Cell| cell.fg == Color::Reset && cell.bg == Color::Reset;
            assert!(
                buffer.content.iter().all(is_plain),
                "a colour in spite of NO_COLOR"
            );
        }
    }
}

#[test]
fn keys_choose_the_table_and_scroll_it() {
    let mut screen = screen([tick(1, 7000)]);
    drawn(&mut screen, 80, 24);
    assert_eq!(screen.key(press(KeyCode::End)), After::Draw);
    let lines = text(&drawn(&mut screen, 80, 24));
    assert!(lines[22].starts_with("host-39.example"), "{}", lines[22]);
    assert_eq!(screen.key(press(KeyCode::Down)), After::Draw);
    assert_eq!(screen.offset, 40 - screen.page, "not past the end");
    assert_eq!(screen.key(press(KeyCode::Tab)), After::Ask);
    assert_eq!((screen.by, screen.offset), (By::Server, 0));
    assert_eq!(screen.key(press(KeyCode::BackTab)), After::Ask);
    assert_eq!(screen.key(press(KeyCode::BackTab)), After::Ask);
    assert_eq!(screen.by, By::Client, "around the end");
    assert_eq!(screen.key(press(KeyCode::Char('s'))), After::Ask);
    assert_eq!(screen.sort, Sort::Errors);
    assert_eq!(screen.key(press(KeyCode::Char('w'))), After::Ask);
    assert_eq!(screen.window, Window::All);
    assert_eq!(screen.key(press(KeyCode::Char('x'))), After::Nothing);
    assert_eq!(screen.key(press(KeyCode::Char('q'))), After::Quit);
    let again = KeyEvent::new(KeyCode::Char('l'), KeyModifiers::CONTROL);
    assert_eq!(screen.key(again), After::Repaint);
    let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert_eq!(screen.key(interrupt), After::Quit);
    assert_eq!(screen.key(press(KeyCode::Char('p'))), After::Draw);
    assert!(text(&drawn(&mut screen, 80, 24))[0].contains("PAUSED"));
}

#[test]
fn before_the_first_interval_it_says_so() {
    let mut screen = Screen::<HttpKind>::new(true).unwrap();
    let lines = text(&drawn(&mut screen, 80, 24));
    assert_eq!(lines[1], "waiting for packets: no interval has ended yet");
}

#[test]
fn no_size_of_terminal_is_too_small() {
    let mut screen = screen((1..=9).map(|id| tick(id, 7000)));
    for width in [1, 2, 7, 19, 20, 40, 79, 80, 300] {
        for height in HEIGHTS {
            drawn(&mut screen, width, height);
            screen.key(press(KeyCode::PageDown));
        }
    }
}

#[test]
fn a_line_has_losses_first() {
    let mut lossy = tick(1, 7000);
    assert_eq!(
        line::<HttpKind>(&lossy),
        "22:13:21Z dropped 0 table 3.78 % req/s 7k p50 7.96 ms p95 56.0 ms p99 123 ms \
         2xx 6,900 3xx 60 4xx 30 5xx 10 unanswered 8 pkt/s 86.7k bit/s 540M"
    );
    lossy.dropped.ring = 4;
    lossy.dropped_total.ring = 12;
    lossy.figures.response_time_ns = None;
    lossy.figures.codes.clear();
    assert!(
        line::<HttpKind>(&lossy)
            .starts_with("22:13:21Z dropped 12 now +4 table 3.78 % req/s 7k 5xx 0")
    );
}

#[test]
fn lines_end_with_the_run() {
    let live = Live::new(LiveOptions::default());
    let report = RunReport {
        packets: 5,
        bytes: 700,
        first: Some(linkweir_wire::Timestamp::from_nanos(
            1_700_000_000_100_000_000,
        )),
        last: Some(linkweir_wire::Timestamp::from_nanos(
            1_700_000_002_600_000_000,
        )),
        ..RunReport::default()
    };
    live.finish(&report);
    let mut out = Vec::new();
    let flag = AtomicBool::new(false);
    line_loop(&live, &mut out, &flag, &flag).unwrap();
    let out = String::from_utf8(out).unwrap();
    assert_eq!(out.lines().count(), live.ticks_after(0).len());
    assert!(
        out.lines().all(|line| line.contains(" dropped 0 ")),
        "{out}"
    );

    // A screen takes the same intervals, and the end.
    let mut screen = Screen::<HttpKind>::new(true).unwrap();
    assert!(screen.is_behind(&live));
    screen.refresh(&live);
    assert!(!screen.is_behind(&live));
    assert_eq!(screen.ticks.len(), out.lines().count());
    assert!(text(&drawn(&mut screen, 80, 24))[0].contains("FINISHED"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_numbers_and_texts_can_be_drawn(
        key in any::<Vec<u8>>(),
        numbers in any::<[u64; 8]>(),
        width in 1_u16..140,
        height in 1_u16..50,
    ) {
        let [requests, responses, packets, bytes, p95, entries, capacity, lost] = numbers;
        let key = linkweir_live::text::clean(&key);
        let mut tick = Tick { packets, bytes, ..tick(1, 1000) };
        (tick.figures.requests, tick.figures.responses) = (requests, responses);
        tick.figures.unanswered = requests;
        tick.figures.response_time_ns = Some(Percentiles { p95, ..Percentiles::default() });
        tick.table = TableState { entries, capacity };
        tick.dropped_total.kernel = lost;
        tick.dropped_total.ring = lost;
        tick.figures.methods.insert(key.clone(), lost);
        tick.figures.codes.insert(u16::MAX, lost);
        let mut screen = screen([tick.clone(), tick]);
        if let Some(table) = &mut screen.table {
            table.rows = vec![row(&key, requests)];
        }
        let buffer = drawn(&mut screen, width, height);
        prop_assert!(!buffer.content.iter().any(|cell| cell.symbol().chars().any(char::is_control)));
    }
}

#[test]
fn a_narrow_screen_has_whole_numbers_or_none() {
    let mut screen = screen((1..=200).map(|id| tick(id, 682_000 + id)));
    let wide = text(&drawn(&mut screen, 200, 24));
    let words: std::collections::BTreeSet<&str> = wide
        .iter()
        .flat_map(|line| line.split_whitespace())
        .collect();
    for width in 20..120 {
        let narrow = text(&drawn(&mut screen, width, 24));
        // Losses, rates, times and the rows of the table; the bars and curves between them have no numbers
        // of their own.
        let lines = [&narrow[1..=3], &narrow[7..8], &narrow[14..23]].concat();
        for word in lines.iter().flat_map(|line| line.split_whitespace()) {
            let is_number = word.starts_with(|c: char| c.is_ascii_digit());
            assert!(
                !is_number || words.contains(word),
                "{word} at {width}:\n{}",
                narrow.join("\n")
            );
        }
    }
    let narrow = text(&drawn(&mut screen, 40, 24)).join("\n");
    assert!(narrow.contains("780k"), "{narrow}");
    assert!(wide.join("\n").contains("every 5 s"), "{wide:?}");
}
