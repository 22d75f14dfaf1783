//! The scanner with a real clamd. Skipped, and said so, where clamd is not installed.

use std::time::Duration;

use crate::common::{Tester, eventually, infected, options, why};
use linkweir_engine::effect::ScanOutcome;
use linkweir_scan::{FailureCause, Scanner, ScannerOptions};
use linkweir_testkit::clamd::{Clamd, EICAR, EICAR_NAME};

fn clamd_with(settings: &str) -> Option<Clamd> {
    Clamd::start_with(settings)
        .map_err(|error| eprintln!("SKIPPED: {error}"))
        .ok()
}

fn patient(clamd: &Clamd) -> ScannerOptions {
    ScannerOptions {
        timeout: Duration::from_secs(10),
        connections: 2,
        ..options(&clamd.socket())
    }
}

/// Bytes in which nothing is found.
fn noise(length: usize) -> Vec<u8> {
    (0_u64..)
        .map(|at| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40).to_le_bytes()[0])
        .take(length)
        .collect()
}

#[test]
fn the_test_string_is_found_wherever_it_is() {
    let Some(clamd) = clamd_with("") else { return };
    let scanner = Scanner::start(patient(&clamd)).expect("starts");
    let tester = Tester::new(&scanner);
    assert_eq!(tester.scan(0, b""), ScanOutcome::Clean);
    assert_eq!(tester.scan(1, &noise(30_000)), ScanOutcome::Clean);
    for (ticket, before, after) in [
        (2, 0, 0),
        (3, 0, 30_000),
        (4, 15_000, 15_000),
        (5, 30_000, 0),
        (6, 4_000_000, 7),
    ] {
        let bytes = [noise(before), EICAR.clone(), noise(after)].concat();
        assert_eq!(
            tester.scan(ticket, &bytes),
            infected(EICAR_NAME),
            "after {before}"
        );
    }
    // In two chunks, cut in its middle; and only its first half.
    let (first, second) = EICAR.split_at(34);
    tester.submit(7, &[&noise(20_000), first].concat(), false);
    tester.submit(7, second, true);
    assert_eq!(tester.reports(1)[0].outcome, infected(EICAR_NAME));
    assert_eq!(tester.scan(8, first), ScanOutcome::Clean);
    assert_eq!(tester.scan(9, &noise(5_000_000)), ScanOutcome::Clean);
    let status = scanner.status();
    assert!(status.version.starts_with("ClamAV "), "{}", status.version);
    assert_eq!(
        (status.scans, status.infected, status.failed.total()),
        (10, 6, 0)
    );
    assert!(
        status.connections <= 2,
        "a session is used again: {}",
        status.connections
    );
}

#[test]
fn every_scan_of_many_at_once_gets_its_own_verdict() {
    let Some(clamd) = clamd_with("") else { return };
    let options = ScannerOptions {
        connections: 6,
        ..patient(&clamd)
    };
    let scanner = Scanner::start(options).expect("starts");
    let tester = Tester::new(&scanner);
    for ticket in 0..200_u64 {
        let mut bytes = noise(usize::try_from(ticket).expect("small") * 100);
        if ticket % 3 == 0 {
            bytes.extend_from_slice(&EICAR);
        }
        tester.submit(ticket, &bytes, true);
    }
    for report in tester.reports(200) {
        let is_infected = report.outcome == infected(EICAR_NAME);
        assert_eq!(is_infected, report.ticket.0 % 3 == 0, "{report:?}");
        assert!(
            is_infected || report.outcome == ScanOutcome::Clean,
            "{report:?}"
        );
    }
}

#[test]
fn a_whole_file_is_scanned_from_the_spool_directory() {
    let Some(clamd) = clamd_with("") else { return };
    let spool = tempfile::tempdir().expect("a directory");
    let options = ScannerOptions {
        spool_dir: Some(spool.path().to_owned()),
        memory_bytes: 3 << 20,
        ..patient(&clamd)
    };
    let scanner = Scanner::start(options).expect("starts");
    let tester = Tester::new(&scanner);
    // 12 MB through 3 MiB of memory, with the signature across a chunk's end.
    let mut bytes = noise(12_000_000);
    bytes.splice(6_144_000 - 30..6_144_000 + 38, EICAR.iter().copied());
    for (number, chunk) in bytes.chunks(256_000).enumerate() {
        tester.submit(1, chunk, (number + 1) * 256_000 >= bytes.len());
        eventually(|| scanner.status().waiting_bytes < 2 << 20);
    }
    assert_eq!(tester.reports(1)[0].outcome, infected(EICAR_NAME));
    assert_eq!(scanner.status().bytes, 12_000_000);
}

#[test]
fn a_clamd_that_is_killed_and_comes_back_is_used_again() {
    let Some(mut clamd) = clamd_with("") else {
        return;
    };
    let scanner = Scanner::start(patient(&clamd)).expect("starts");
    let tester = Tester::new(&scanner);
    assert_eq!(tester.scan(1, &EICAR), infected(EICAR_NAME));
    // In the middle of scans: whatever they get, it is a report and never a wrong one.
    for ticket in 100..140 {
        tester.submit(ticket, &noise(400_000), true);
    }
    clamd.kill();
    let mut failed = 0;
    for report in tester.reports(40) {
        match report.outcome {
            ScanOutcome::Clean => {}
            ScanOutcome::Failed(_) => failed += 1,
            ScanOutcome::Infected(name) => panic!("found {name} in noise"),
        }
    }
    assert!(failed > 0);
    assert!(why(&tester.scan(2, &EICAR)).starts_with("clamd is not running: nobody listens"));
    assert!(!scanner.status().is_reachable);
    clamd.restart().expect("it starts again");
    let took = eventually(|| scanner.status().is_reachable);
    assert!(took < Duration::from_secs(4), "{took:?}");
    assert_eq!(tester.scan(3, &EICAR), infected(EICAR_NAME));
    // An orderly restart between two scans is not even noticed.
    let failed = scanner.status().failed.total();
    clamd.restart().expect("it starts again");
    eventually(|| scanner.status().is_reachable);
    assert_eq!(tester.scan(4, &EICAR), infected(EICAR_NAME));
    assert_eq!(scanner.status().failed.total(), failed);
}

#[test]
fn a_clamd_that_hangs_costs_one_timeout_and_then_none() {
    let Some(clamd) = clamd_with("") else { return };
    let options = ScannerOptions {
        timeout: Duration::from_secs(1),
        ..patient(&clamd)
    };
    let scanner = Scanner::start(options).expect("starts");
    let tester = Tester::new(&scanner);
    assert_eq!(tester.scan(1, b"x"), ScanOutcome::Clean);
    clamd.signal("STOP").expect("it runs");
    let outcome = tester.scan(2, b"x");
    assert_eq!(why(&outcome), "clamd did not answer within 1s");
    eventually(|| !scanner.status().is_reachable);
    tester.submit(3, b"x", true);
    let report = tester.reports(1).remove(0);
    assert!(report.latency_ns < 900_000_000, "{report:?}");
    clamd.signal("CONT").expect("it runs");
    eventually(|| scanner.status().is_reachable);
    assert_eq!(tester.scan(4, &EICAR), infected(EICAR_NAME));
}

#[test]
fn the_limit_of_clamd_is_told() {
    let Some(clamd) = clamd_with("StreamMaxLength 1M") else {
        return;
    };
    let scanner = Scanner::start(patient(&clamd)).expect("starts");
    let tester = Tester::new(&scanner);
    let outcome = tester.scan(1, &noise(3_000_000));
    assert_eq!(why(&outcome), "longer than clamd's StreamMaxLength");
    assert_eq!(scanner.status().failed.of(FailureCause::ClamdSizeLimit), 1);
    assert_eq!(
        tester.scan(2, &EICAR),
        infected(EICAR_NAME),
        "and the next one is scanned"
    );
}
