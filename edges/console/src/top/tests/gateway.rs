//! The view of a gateway.

use super::*;

fn gateway_screen() -> Screen<GatewayKind> {
    use linkweir_live::api::{GatewayFigures, GatewayLine, Now, Numbered};
    use linkweir_live::gateway::{
        ApplicationStatus, GatewayStatus, Held, QueueStatus, ScannerStatus,
    };
    let mut screen = Screen::<GatewayKind>::new(true).unwrap();
    let http = tick(1, 7000);
    screen.ticks = vec![Arc::new(Tick {
        id: 1,
        t_ms: http.t_ms,
        interval_s: 1.0,
        packets: 86_700,
        bytes: 67_500_000,
        figures: GatewayFigures {
            events: 130,
            kinds: [("decided", 100), ("blocked", 2), ("infected", 1)].into(),
            applications: [("msn".to_owned(), 30)].into(),
            refused: 18,
            blocked: 2,
            ..GatewayFigures::default()
        },
        table: TableState {
            entries: 321,
            capacity: 0,
        },
        ..Tick::default()
    })];
    let application = |bytes| ApplicationStatus {
        connections: 40,
        packets: 900,
        bytes,
        inspected: 33,
        blocked: 2,
        ..ApplicationStatus::default()
    };
    let status = GatewayStatus {
        uptime_s: 249.0,
        fail: "closed".into(),
        applications: [
            ("msn".to_owned(), application(7_000)),
            ("http\x1b[2J".to_owned(), application(9_000_000)),
        ]
        .into(),
        held: Held {
            packets: 1,
            bytes: 34_000,
            peak_packets: 56,
        },
        queues: vec![QueueStatus {
            number: 7,
            waiting: 12,
            user_dropped: 3,
            ..QueueStatus::default()
        }],
        scanner: Some(ScannerStatus {
            scans: 44,
            infected: 1,
            latency_us: [("p50".to_owned(), 850), ("p99".to_owned(), 12_300)].into(),
            ..ScannerStatus::default()
        }),
        ..GatewayStatus::default()
    };
    let event = |id| GatewayLine {
        t_ms: http.t_ms,
        event: "infected",
        application: "msn".to_owned(),
        rule: "audit".to_owned(),
        client: "10.0.0.7:40000".to_owned(),
        server: "192.0.2.1:1863".to_owned(),
        protocol: "tcp",
        action: "reject",
        verdict: "infected",
        file_name: format!("{id}.exe"),
        message: String::new(),
        detail: "Eicar".to_owned(),
        from: String::new(),
        to: String::new(),
        size: None,
    };
    let numbered = |id| {
        let event = event(id);
        Arc::new(Numbered { id, event })
    };
    screen.now = Some(Now {
        status: Some(Arc::new(status)),
        status_ms: http.t_ms,
        events: (1..=100).map(numbered).collect(),
    });
    screen
}

#[test]
fn a_gateway_shows_its_state_and_its_last_events() {
    let mut screen = gateway_screen();
    let lines = text(&drawn(&mut screen, 100, 44));
    let has = |start: &str| {
        let line = lines.iter().find(|line| line.starts_with(start));
        line.unwrap_or_else(|| panic!("no {start}: {lines:#?}"))
    };
    assert_eq!(lines[1], "dropped 0   in table 321");
    has("decided/s 100   stopped/s 20   events/s 130");
    assert!(has("passed").contains("80     80 %"), "{lines:#?}");
    has("up 4m 09s   fail closed   reloads 0   held 1 packet, 34 kB, at most 56");
    has("queue 7: 12 waiting, 3 dropped");
    has("scanner DOWN   scans 44   infected 1   failed 0   waiting 0   p50 850 µs   p99 12.3 ms");
    let at = |start: &str| lines.iter().position(|line| line.starts_with(start));
    let heading = at("APPLICATION").unwrap();
    assert!(
        lines[heading + 1].starts_with("http\\x1b[2J"),
        "the largest first: {lines:#?}"
    );
    assert!(
        lines[heading + 2].starts_with("msn") && lines[heading + 2].ends_with("33       2"),
        "{}",
        lines[heading + 2]
    );
    assert_eq!(
        lines[42],
        "22:13:21Z infected  msn 10.0.0.7:40000 > 192.0.2.1:1863  reject  100.exe  Eicar"
    );
    assert!(at("last events").unwrap() > at(" applications  clients").unwrap());
    // On a small terminal the lines and some events are left.
    let small = text(&drawn(&mut screen, 80, 24));
    assert!(small.iter().any(|line| line.starts_with("scanner DOWN")));
    assert!(!small.iter().any(|line| line.starts_with("APPLICATION")));
    assert!(small[22].contains("100.exe"), "{small:#?}");
    let line = line::<GatewayKind>(screen.last().unwrap());
    assert_eq!(
        line,
        "22:13:21Z dropped 0 table 321 decided/s 100 stopped/s 20 infected 1 pkt/s 86.7k bit/s 540M"
    );
    fits_everywhere(&mut screen);
}
