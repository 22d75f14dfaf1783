//! A client with patience, for tests with any kind of clamd.

use std::path::Path;
use std::sync::{Mutex, mpsc};
use std::time::{Duration, Instant};

use linkweir_engine::effect::{ScanChunk, ScanOutcome, ScanReport, Ticket};
use linkweir_scan::{Address, ScanClient, Scanner, ScannerOptions};

/// Longest wait of a test for what will come.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// The timeout of scans.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(2);

/// Options for tests: one connection, and [`TIMEOUT`].
pub(crate) fn options(path: &Path) -> ScannerOptions {
    ScannerOptions {
        connections: 1,
        timeout: TIMEOUT,
        ..ScannerOptions::new(Address::Unix(path.to_owned()))
    }
}

/// A client, and what tells that it was woken.
pub(crate) struct Tester {
    pub(crate) client: ScanClient,
    woken: Mutex<mpsc::Receiver<()>>,
}

impl Tester {
    pub(crate) fn new(scanner: &Scanner) -> Self {
        let (wake, woken) = mpsc::channel();
        let client = scanner.client(move || {
            wake.send(()).ok();
        });
        Self {
            client,
            woken: Mutex::new(woken),
        }
    }

    pub(crate) fn submit(&self, ticket: u64, bytes: &[u8], is_last: bool) {
        self.client.submit(ScanChunk {
            ticket: Ticket(ticket),
            bytes: bytes.to_vec(),
            is_last,
        });
    }

    /// Waits for this many reports, in the order of their tickets.
    pub(crate) fn reports(&self, count: usize) -> Vec<ScanReport> {
        let begin = Instant::now();
        let mut reports = Vec::new();
        while reports.len() < count {
            self.client.take_reports(&mut reports);
            if reports.len() < count {
                let left = PATIENCE.saturating_sub(begin.elapsed());
                let woken = self.woken.lock().expect("no panic");
                woken.recv_timeout(left).expect("a report in time");
            }
        }
        reports.sort_by_key(|report| report.ticket);
        assert_eq!(reports.len(), count, "{reports:?}");
        reports
    }

    pub(crate) fn scan(&self, ticket: u64, bytes: &[u8]) -> ScanOutcome {
        self.submit(ticket, bytes, true);
        self.reports(1).remove(0).outcome
    }
}

pub(crate) fn why(outcome: &ScanOutcome) -> &str {
    match outcome {
        ScanOutcome::Failed(why) => why,
        other => panic!("expected a failure, got {other:?}"),
    }
}

pub(crate) fn infected(name: &str) -> ScanOutcome {
    ScanOutcome::Infected(name.to_owned())
}

/// Asks again and again until something is so.
pub(crate) fn eventually(mut is_so: impl FnMut() -> bool) -> Duration {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < PATIENCE, "never so");
        std::thread::sleep(Duration::from_millis(2));
    }
    begin.elapsed()
}
