//! The page of a gateway with made-up traffic, to work on the page without one:
//! `gateway_page [ADDRESS]`, by default `127.0.0.1:8099`. Five minutes have passed when it starts.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "an example prints, and has a clock"
)]

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use linkweir_console::{Console, ConsoleOptions};
use linkweir_live::gateway::{
    ApplicationStatus, GatewayStatus, KernelCount, QueueStatus, ScannerStatus, StatusBoard,
    VaultStatus,
};
use linkweir_live::{GatewayLive, Kind as _, LiveOptions};
use linkweir_record::gateway::{
    GatewayBatch, GatewayEventKind, GatewayKind, GatewayRow, GatewayText,
};
use linkweir_wire::Timestamp;

const S: u64 = 1_000_000_000;
/// Seconds that are made at once.
const PAST: u64 = 300;

/// Applications: name, rule, action, port, connections in a hundred, bytes of a connection.
type Application = (&'static str, &'static str, &'static str, u16, u64, u64);
const APPLICATIONS: [Application; 8] = [
    ("http", "web", "inspect", 80, 46, 180_000),
    ("tls", "web", "allow", 443, 30, 9_000),
    ("bittorrent", "no-p2p", "drop", 6881, 8, 700),
    ("gnutella", "no-p2p", "reject", 6346, 4, 900),
    ("msn", "audit-chat", "inspect", 1863, 5, 6_000),
    ("fasttrack", "no-p2p", "reject", 1214, 2, 400),
    ("edonkey", "audit-files", "inspect", 4662, 3, 90_000),
    ("unknown", "default", "allow", 5000, 2, 1_500),
];
const FILES: [(&str, u64); 6] = [
    ("holiday.jpg", 2_400_000),
    ("report-2026.pdf", 780_000),
    ("setup.exe", 14_200_000),
    ("<b>song</b>.mp3", 5_100_000),
    ("archive.zip", 31_000_000),
    ("notes.txt", 3_100),
];
const WORDS: [&str; 3] = ["confidential", "project weir", "salary"];
const SAID: [&str; 4] = [
    "see you at ten",
    "<script>alert(1)</script>",
    "the salary list is attached",
    "did you get the file?",
];

/// A small generator with a seed: the same picture every time.
struct Random(u64);

impl Random {
    const fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        let at = self.below(all.len() as u64);
        *all.get(usize::try_from(at).unwrap()).unwrap()
    }
}

/// The gateway that is made up.
struct Made {
    random: Random,
    status: GatewayStatus,
}

impl Made {
    fn new() -> Self {
        let status = GatewayStatus {
            program: concat!("linkweir ", env!("CARGO_PKG_VERSION")).into(),
            pid: 4711,
            config: "/etc/linkweir/gateway.toml".into(),
            fail: "open".into(),
            reloads: 1,
            queues: (0..2)
                .map(|number| QueueStatus {
                    number,
                    ..QueueStatus::default()
                })
                .collect(),
            scanner: Some(ScannerStatus {
                address: "/run/clamav/clamd.ctl".into(),
                is_reachable: true,
                version: "ClamAV 1.4.6/27512".into(),
                ..ScannerStatus::default()
            }),
            vault: Some(VaultStatus::default()),
            ..GatewayStatus::default()
        };
        Self {
            random: Random(7),
            status,
        }
    }

    /// What happens in the second after `from`.
    fn second(&mut self, from: u64) -> GatewayBatch {
        let mut batch = GatewayBatch::default();
        let connections = 60 + self.random.below(40);
        for n in 0..connections {
            let at = from + n * S / connections;
            self.connection(at, &mut batch);
        }
        self.status.uptime_s += 1.0;
        self.status.connections = 900 + self.random.below(200);
        let held = &mut self.status.held;
        held.packets = self.random.below(40);
        held.bytes = held.packets * 24_000;
        held.peak_packets = held.peak_packets.max(held.packets);
        for queue in &mut self.status.queues {
            queue.waiting = self.status.held.packets / 2;
            queue.total = self.status.packets / 2;
        }
        batch
    }

    fn connection(&mut self, at: u64, batch: &mut GatewayBatch) {
        let mut left = self.random.below(100);
        let chosen = APPLICATIONS.iter().find(|one| {
            let is_it = left < one.4;
            left = left.saturating_sub(one.4);
            is_it
        });
        let &(name, rule, action, port, _, bytes) = chosen.unwrap();
        let client = Ipv4Addr::new(10, 0, 3, u8::try_from(10 + self.random.below(40)).unwrap());
        let server = Ipv4Addr::new(203, 0, 113, u8::try_from(self.random.below(90)).unwrap());
        let row = GatewayRow {
            ts_ns: at,
            action,
            client_ip: client.into(),
            client_port: u16::try_from(32_768 + self.random.below(28_000)).unwrap(),
            server_ip: server.into(),
            server_port: port,
            protocol: "tcp",
            ..GatewayRow::default()
        };
        let text = GatewayText {
            application: name.as_bytes(),
            rule: rule.as_bytes(),
            ..GatewayText::default()
        };
        batch.push(row, &text);
        let bytes = bytes / 2 + self.random.below(bytes);
        let packets = 6 + bytes / 9_000;
        let one = self.status.applications.entry(name.to_owned());
        let one: &mut ApplicationStatus = one.or_default();
        one.connections += 1;
        one.packets += packets;
        one.bytes += bytes;
        match action {
            "allow" => one.allowed += 1,
            "drop" => one.dropped += 1,
            "reject" => one.rejected += 1,
            _ => one.inspected += 1,
        }
        self.status.packets += packets;
        self.status.bytes += bytes;
        let counts: &mut KernelCount = self.status.rules.entry(rule.to_owned()).or_default();
        counts.packets += packets * if action == "allow" { 40 } else { 1 };
        counts.bytes += bytes * if action == "allow" { 40 } else { 1 };
        if action == "inspect" {
            self.inspect(name, &row, &text, batch);
        }
    }

    fn inspect(
        &mut self,
        name: &str,
        row: &GatewayRow,
        text: &GatewayText<'_>,
        batch: &mut GatewayBatch,
    ) {
        let (file_name, size) = self.random.one_of(&FILES);
        let row = GatewayRow {
            sender_side: "server",
            action: "",
            ..*row
        };
        let said = GatewayText {
            from: b"alice@example.net",
            to: b"bob@example.net",
            ..*text
        };
        if name == "msn" {
            let message = self.random.one_of(&SAID).as_bytes();
            let row = GatewayRow {
                event: GatewayEventKind::Message,
                size: Some(message.len() as u64),
                ..row
            };
            batch.push(row, &GatewayText { message, ..said });
            return;
        }
        if self.random.below(6) > 0 {
            return;
        }
        let text = GatewayText {
            file_name: file_name.as_bytes(),
            ..*text
        };
        let tell = |event, verdict, action, detail: &str, batch: &mut GatewayBatch| {
            let is_file = event == GatewayEventKind::File;
            let row = GatewayRow {
                event,
                verdict,
                action,
                size: is_file.then_some(size),
                is_complete: is_file.then_some(verdict == "clean"),
                ..row
            };
            let detail = detail.as_bytes();
            batch.push(row, &GatewayText { detail, ..text });
        };
        let scanner = self.status.scanner.as_mut().unwrap();
        let vault = self.status.vault.as_mut().unwrap();
        scanner.scans += 1;
        scanner.bytes += size;
        let verdict = match self.random.below(40) {
            0 => {
                tell(
                    GatewayEventKind::Infected,
                    "infected",
                    "reject",
                    "Win.Test.EICAR_HDB-1",
                    batch,
                );
                tell(GatewayEventKind::Blocked, "", "reject", "infected", batch);
                scanner.infected += 1;
                vault.quarantined += 1;
                "infected"
            }
            1 | 2 => {
                let word = self.random.one_of(&WORDS);
                tell(GatewayEventKind::Keyword, "", "reject", word, batch);
                tell(GatewayEventKind::Blocked, "", "reject", "keyword", batch);
                "blocked"
            }
            3 => {
                tell(
                    GatewayEventKind::Unscanned,
                    "unscanned",
                    "allow",
                    "timeout",
                    batch,
                );
                *scanner.failed.entry("timeout".to_owned()).or_default() += 1;
                "unscanned"
            }
            _ => "clean",
        };
        tell(GatewayEventKind::File, verdict, "", "", batch);
        if matches!(verdict, "infected" | "blocked") {
            let one = self.status.applications.entry(name.to_owned());
            one.or_default().blocked += 1;
        } else {
            vault.kept += 1;
            vault.bytes += size;
        }
        scanner.latency_us = BTreeMap::from(
            [
                ("p50", 11_400),
                ("p90", 84_000),
                ("p99", 397_000),
                ("max", 712_000),
            ]
            .map(|(name, micros)| (name.to_owned(), micros)),
        );
        for (cause, most) in [("out_of_order", 9), ("duplicates", 4), ("gaps", 1)] {
            let count = self.status.counts.entry(cause.to_owned()).or_default();
            *count += self.random.below(most + 1);
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let listen = std::env::args().nth(1);
    let options = ConsoleOptions {
        listen: listen.unwrap_or_else(|| "127.0.0.1:8099".to_owned()),
        ..ConsoleOptions::default()
    };
    let live = GatewayLive::new(LiveOptions {
        source: "gateway /etc/linkweir/gateway.toml".into(),
        alerts: ["infected rate > 0 /s", "blocked rate > 60 /s", "drops > 0"]
            .map(|rule| GatewayKind::rule(rule).unwrap())
            .into(),
        ..LiveOptions::default()
    });
    let board = StatusBoard::new(live.clone());
    let mut sink = live.sink();
    let mut made = Made::new();
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
    let mut at = u64::try_from(now.as_nanos())? - PAST * S;
    board.show(made.status.clone(), Timestamp::from_nanos(at));
    let mut step = |made: &mut Made| {
        sink.write(&made.second(at))?;
        at += S;
        board.show(made.status.clone(), Timestamp::from_nanos(at));
        Ok::<_, linkweir_engine::SinkError>(())
    };
    for _ in 0..PAST {
        step(&mut made)?;
    }
    let console = Console::start(&options, live)?;
    println!("{}", console.url());
    loop {
        std::thread::sleep(Duration::from_secs(1));
        step(&mut made)?;
    }
}
