//! What clamd, the network and a stage can do wrong, by a clamd that does it on purpose.

use std::io::{Read as _, Write as _};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::common::{Tester, eventually, infected, options, why};
use crate::fake::{Dialogue, Fake};
use linkweir_engine::effect::{ScanOutcome, ScanReport, Ticket};
use linkweir_scan::{FailureCause, Scanner, ScannerOptions};
use linkweir_sys::privileges::Restrict;

const T: Duration = crate::common::TIMEOUT;
/// How late a late answer is.
const LATE: Duration = Duration::from_millis(200);
/// What a busy machine may add to a timeout.
const SLACK: Duration = Duration::from_millis(1500);

fn obedient(_: usize, dialogue: &mut Dialogue) {
    while let Ok(bytes) = dialogue.stream() {
        if bytes.starts_with(b"bad") {
            let name = String::from_utf8_lossy(&bytes).into_owned();
            dialogue.answer(&format!("stream: {name} FOUND"));
        } else {
            dialogue.answer("stream: OK");
        }
    }
}

#[test]
fn one_connection_serves_many_scans() {
    let fake = Fake::start(obedient);
    let scanner = Scanner::start(options(&fake.path)).expect("starts");
    let tester = Tester::new(&scanner);
    for ticket in 0..50 {
        assert_eq!(tester.scan(ticket * 2, b"good"), ScanOutcome::Clean);
        assert_eq!(tester.scan(ticket * 2 + 1, b"bad.A"), infected("bad.A"));
    }
    eventually(|| scanner.status().version == "ClamAV fake/1");
    let status = scanner.status();
    assert_eq!(fake.scans.load(Ordering::Relaxed), 1);
    assert_eq!(
        (status.scans, status.infected, status.bytes),
        (100, 50, 450)
    );
    assert_eq!(
        (status.connections, status.reconnects, status.waiting),
        (1, 0, 0)
    );
    assert_eq!((status.failed.total(), status.waiting_bytes), (0, 0));
    assert_eq!(status.latency_ns.count(), 100);
    assert!(status.is_reachable && status.last_error.is_none());
}

#[test]
fn a_connection_is_replaced_after_its_share_of_scans() {
    let fake = Fake::start(obedient);
    let options = ScannerOptions {
        scans_per_connection: 10,
        ..options(&fake.path)
    };
    let scanner = Scanner::start(options).expect("starts");
    let tester = Tester::new(&scanner);
    for ticket in 0..40 {
        assert_eq!(tester.scan(ticket, b"good"), ScanOutcome::Clean);
    }
    let status = scanner.status();
    assert_eq!((status.connections, status.reconnects), (4, 0));
}

#[test]
fn chunks_arrive_in_their_order_whatever_their_lengths() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&seen);
    let fake = Fake::start(move |_, dialogue| {
        while let Ok(bytes) = dialogue.stream() {
            kept.lock().expect("no panic").push(bytes);
            dialogue.answer("stream: OK");
        }
    });
    let spool = tempfile::tempdir().expect("a directory");
    let options = ScannerOptions {
        spool_dir: Some(spool.path().to_owned()),
        timeout: Duration::from_secs(10),
        ..options(&fake.path)
    };
    let scanner = Scanner::start(options).expect("starts");
    let tester = Tester::new(&scanner);
    // Lengths around the limits of joining and of the directory; two files at the same time.
    let lengths = [
        1, 100, 16_383, 16_384, 70_000, 3, 900_000, 500_000, 12, 1_200_000, 7, 0, 2_000_000,
    ];
    let mut sent = [Vec::new(), Vec::new()];
    for (turn, length) in lengths.into_iter().enumerate() {
        for (ticket, sent) in (0_u8..).zip(&mut sent) {
            let bytes: Vec<u8> = (0..length)
                .map(|at: usize| (at / 7 + turn * 13).to_le_bytes()[0] ^ ticket)
                .collect();
            sent.extend_from_slice(&bytes);
            tester.submit(ticket.into(), &bytes, turn + 1 == lengths.len());
            if length == 1_200_000 {
                // Time for the directory, so that what follows is not in the file.
                eventually(|| scanner.status().spooled_bytes > 0);
                let status = scanner.status();
                assert!(
                    status.waiting_bytes + usize::try_from(status.spooled_bytes).expect("small")
                        > sent.len()
                );
            }
        }
    }
    for report in tester.reports(2) {
        assert_eq!(report.outcome, ScanOutcome::Clean);
    }
    let mut seen = seen.lock().expect("no panic").clone();
    seen.sort();
    sent.sort();
    assert!(seen == sent, "the bytes differ");
    let status = scanner.status();
    assert_eq!((status.waiting_bytes, status.spooled_bytes), (0, 0));
    let left = std::fs::read_dir(spool.path())
        .expect("a directory")
        .count();
    assert_eq!(left, 0, "files without names");
}

#[test]
fn a_scan_whose_connection_dies_is_tried_once_more() {
    // The first connection dies in the middle of the stream, the second after the stream.
    let fake = Fake::start(|number, dialogue| match number {
        0 => drop(dialogue.wait()),
        1 => {
            dialogue.stream().expect("a stream");
            dialogue.answer("stream: OK");
            dialogue.stream().ok();
        }
        _ => obedient(number, dialogue),
    });
    let scanner = Scanner::start(options(&fake.path)).expect("starts");
    let tester = Tester::new(&scanner);
    assert_eq!(tester.scan(1, &vec![b'x'; 500_000]), ScanOutcome::Clean);
    assert_eq!(tester.scan(2, b"bad"), infected("bad"));
    let status = scanner.status();
    assert_eq!((status.reconnects, status.failed.total()), (2, 0));
}

#[test]
fn a_scan_that_kills_every_connection_fails() {
    let fake = Fake::start(|_, dialogue| {
        while let Ok(bytes) = dialogue.stream() {
            if bytes == b"deadly" {
                return;
            }
            dialogue.answer("stream: OK");
        }
    });
    let scanner = Scanner::start(options(&fake.path)).expect("starts");
    let tester = Tester::new(&scanner);
    assert_eq!(tester.scan(1, b"x"), ScanOutcome::Clean);
    assert_eq!(
        why(&tester.scan(2, b"deadly")),
        "clamd closed the connection, twice"
    );
    assert_eq!(
        tester.scan(3, b"x"),
        ScanOutcome::Clean,
        "the next one is none the worse"
    );
    assert_eq!(scanner.status().failed.of(FailureCause::Closed), 1);
}

#[test]
fn an_idle_connection_that_was_closed_is_no_fault() {
    let fake = Fake::start(|_, dialogue| {
        if dialogue.stream().is_ok() {
            dialogue.answer("stream: OK");
        }
    });
    let scanner = Scanner::start(options(&fake.path)).expect("starts");
    let tester = Tester::new(&scanner);
    for ticket in 0..3 {
        assert_eq!(tester.scan(ticket, b"x"), ScanOutcome::Clean);
        // The fake closes; that is seen before the next scan.
        std::thread::sleep(Duration::from_millis(50));
    }
    let status = scanner.status();
    assert_eq!(
        (status.connections, status.reconnects, status.failed.total()),
        (3, 0, 0)
    );
}

#[test]
fn answers_that_are_none_fail_the_scan() {
    let answers: [&'static [u8]; 6] = [
        b"HTTP/1.1 400 Bad Request\r\n\r\n\0",
        b"1: stream: OK\0and more",
        b"2: stream: OK\0",
        b"1: stream: \xff FOUND\0",
        b"\0",
        &[b'x'; 10_000],
    ];
    for answer in answers {
        let fake = Fake::start(move |_, dialogue| {
            if dialogue.stream().is_ok() {
                dialogue.raw(answer);
                dialogue.until_closed();
            }
        });
        let scanner = Scanner::start(options(&fake.path)).expect("starts");
        let tester = Tester::new(&scanner);
        let shown = String::from_utf8_lossy(answer);
        let text = "invalid reply from clamd, twice";
        assert_eq!(why(&tester.scan(1, b"x")), text, "{shown:.40}");
        assert_eq!(scanner.status().failed.of(FailureCause::Protocol), 1);
    }
}

#[test]
fn errors_of_clamd_are_told_and_not_tried_again() {
    let fake = Fake::start(|_, dialogue| {
        if dialogue.stream().is_ok() {
            dialogue.answer("stream: Can't create temporary file ERROR");
        }
    });
    let scanner = Scanner::start(options(&fake.path)).expect("starts");
    let tester = Tester::new(&scanner);
    assert_eq!(
        why(&tester.scan(1, b"x")),
        "clamd: Can't create temporary file"
    );
    assert_eq!(fake.scans.load(Ordering::Relaxed), 1);
    assert_eq!(scanner.status().failed.of(FailureCause::Clamd), 1);
}

#[test]
fn a_limit_that_clamd_tells_before_the_end_is_understood() {
    let fake = Fake::start(|_, dialogue| {
        if dialogue.wait().is_ok() {
            dialogue.answer("INSTREAM size limit exceeded. ERROR");
        }
    });
    let scanner = Scanner::start(options(&fake.path)).expect("starts");
    let tester = Tester::new(&scanner);
    for ticket in 0..5 {
        let outcome = tester.scan(ticket, &vec![b'x'; 4_000_000]);
        assert_eq!(why(&outcome), "longer than clamd's StreamMaxLength");
    }
    assert_eq!(scanner.status().failed.of(FailureCause::ClamdSizeLimit), 5);
}

#[test]
fn silence_ends_at_the_timeout_and_a_late_answer_is_nobodys() {
    let fake = Fake::start(|number, dialogue| {
        while let Ok(bytes) = dialogue.stream() {
            if number == 0 {
                std::thread::sleep(T + LATE);
                dialogue.answer("stream: Late FOUND");
            } else {
                assert_eq!(bytes, b"second");
                dialogue.answer("stream: OK");
            }
        }
    });
    let scanner = Scanner::start(options(&fake.path)).expect("starts");
    let tester = Tester::new(&scanner);
    let begin = Instant::now();
    assert_eq!(
        why(&tester.scan(1, b"first")),
        "clamd did not answer within 2s"
    );
    let took = begin.elapsed();
    assert!(took >= T && took < T + SLACK, "{took:?}");
    std::thread::sleep(LATE * 2);
    assert_eq!(tester.scan(2, b"second"), ScanOutcome::Clean);
    assert_eq!(scanner.status().failed.of(FailureCause::Timeout), 1);
}

#[test]
fn whoever_waits_for_a_connection_is_told_in_time_too() {
    // Reads nothing of long streams: sending blocks.
    let fake = Fake::start(|_, dialogue| {
        if dialogue.wait().is_ok() {
            std::thread::sleep(Duration::from_secs(30));
        }
    });
    let scanner = Scanner::start(options(&fake.path)).expect("starts");
    let tester = Tester::new(&scanner);
    let begin = Instant::now();
    for ticket in 0..20 {
        tester.submit(ticket, &vec![b'x'; 1_000_000], true);
    }
    let reports = tester.reports(20);
    let took = begin.elapsed();
    assert!(took >= T && took < T + SLACK, "{took:?}");
    assert_eq!(why(&reports[0].outcome), "clamd did not answer within 2s");
    // Those behind it never had a turn worth the name.
    let late = |report: &ScanReport| why(&report.outcome).ends_with("within 2s");
    assert!(reports.iter().all(late), "{reports:?}");
    assert!(
        reports
            .iter()
            .all(|report| report.latency_ns >= 2_000_000_000)
    );
}

#[test]
fn a_socket_whose_queue_is_full_is_a_timeout() {
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, bind, listen, socket};
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("clamd.sock");
    let listener = socket(AddressFamily::UNIX, SocketType::STREAM, None).expect("a socket");
    bind(
        &listener,
        &SocketAddrUnix::new(&path).expect("a short path"),
    )
    .expect("bound");
    listen(&listener, 0).expect("listens");
    // Takes the only place.
    let _first = std::os::unix::net::UnixStream::connect(&path).expect("one fits");
    let scanner = Scanner::start(options(&path)).expect("starts");
    let tester = Tester::new(&scanner);
    let begin = Instant::now();
    let outcome = tester.scan(1, b"x");
    assert!(why(&outcome).ends_with("within 2s"), "{outcome:?}");
    assert!(begin.elapsed() >= T && begin.elapsed() < T + SLACK);
    // By now the prober knows as well, and nobody waits any more.
    eventually(|| {
        scanner
            .status()
            .last_error
            .is_some_and(|text| text.contains("cannot be reached"))
    });
    let begin = Instant::now();
    tester.scan(2, b"x");
    assert!(begin.elapsed() < SLACK);
}

#[test]
fn without_clamd_scans_fail_at_once_until_it_is_there() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("clamd.sock");
    let scanner = Scanner::start(options(&path)).expect("starts without clamd");
    let tester = Tester::new(&scanner);
    let begin = Instant::now();
    for ticket in 0..100 {
        let outcome = tester.scan(ticket, b"x");
        assert!(
            why(&outcome).starts_with("clamd is not running"),
            "{outcome:?}"
        );
    }
    assert!(begin.elapsed() < T);
    let status = scanner.status();
    assert_eq!(status.failed.of(FailureCause::Unreachable), 100);
    assert!(!status.is_reachable);
    assert!(
        status.connect_failures < 50,
        "not one attempt for each scan"
    );
    let fake = Fake::at(&path, obedient);
    let took = eventually(|| scanner.status().is_reachable);
    assert!(took < Duration::from_secs(4), "{took:?}");
    assert_eq!(tester.scan(200, b"x"), ScanOutcome::Clean);
    assert_eq!(fake.scans.load(Ordering::Relaxed), 1);
}

#[test]
fn a_full_queue_fails_what_does_not_fit() {
    let fake = Fake::start(|_, dialogue| {
        if dialogue.stream().is_ok() {
            dialogue.until_closed();
        }
    });
    let options = ScannerOptions {
        memory_bytes: 100_000,
        ..options(&fake.path)
    };
    let scanner = Scanner::start(options).expect("starts");
    let tester = Tester::new(&scanner);
    for ticket in 0..10 {
        tester.submit(ticket, &[0; 30_000], true);
    }
    // Three fit; the others are refused at once.
    let refused = tester.reports(7);
    assert!(
        refused
            .iter()
            .all(|report| why(&report.outcome).starts_with("no room for it in the 100000 bytes"))
    );
    assert!(refused.iter().all(|report| report.ticket >= Ticket(3)));
    assert!(scanner.status().waiting_bytes <= 100_000);
    assert_eq!(tester.reports(3).len(), 3);
    assert_eq!(scanner.status().waiting_bytes, 0);
    assert_eq!(scanner.status().failed.of(FailureCause::QueueFull), 7);
}

#[test]
fn abandoned_scans_report_nothing_and_free_their_bytes() {
    let fake = Fake::start(|_, dialogue| {
        while let Ok(bytes) = dialogue.stream() {
            if bytes == b"slow" {
                std::thread::sleep(Duration::from_millis(300));
            }
            dialogue.answer("stream: OK");
        }
    });
    let scanner = Scanner::start(options(&fake.path)).expect("starts");
    let tester = Tester::new(&scanner);
    tester.submit(1, b"slow", true);
    eventually(|| fake.scans.load(Ordering::Relaxed) == 1);
    tester.submit(2, b"waits", true);
    tester.submit(3, b"gathers", false);
    for ticket in 1..=3 {
        tester.client.abandon(Ticket(ticket));
        tester.client.abandon(Ticket(ticket + 100));
    }
    assert_eq!(tester.scan(4, b"x"), ScanOutcome::Clean);
    let mut more = Vec::new();
    tester.client.take_reports(&mut more);
    assert!(more.is_empty(), "{more:?}");
    let status = scanner.status();
    assert_eq!((status.abandoned, status.scans, status.waiting), (3, 1, 0));
    assert_eq!(status.waiting_bytes, 0);
    // And so does a client that goes.
    tester.submit(5, &[0; 1000], false);
    drop(tester);
    assert_eq!(scanner.status().waiting_bytes, 0);
}

#[test]
fn the_end_is_quick_and_leaves_nobody_waiting() {
    let fake = Fake::start(|_, dialogue| {
        dialogue.stream().ok();
        dialogue.until_closed();
    });
    let options = ScannerOptions {
        timeout: Duration::from_secs(60),
        ..options(&fake.path)
    };
    let scanner = Scanner::start(options).expect("starts");
    let tester = Tester::new(&scanner);
    tester.submit(1, b"with clamd", true);
    tester.submit(2, b"waits", true);
    tester.submit(3, b"gathers", false);
    eventually(|| fake.scans.load(Ordering::Relaxed) == 1);
    let begin = Instant::now();
    drop(scanner);
    assert!(begin.elapsed() < SLACK);
    for report in tester.reports(3) {
        assert_eq!(why(&report.outcome), "the scanner was stopped");
    }
    assert_eq!(why(&tester.scan(4, b"x")), "the scanner was stopped");
}

#[test]
fn clients_get_their_own_reports_though_their_tickets_are_the_same() {
    let fake = Fake::start(obedient);
    let options = ScannerOptions {
        connections: 3,
        timeout: Duration::from_secs(20),
        // One connection may serve them all.
        scans_per_connection: 1200,
        ..options(&fake.path)
    };
    let scanner = Scanner::start(options).expect("starts");
    std::thread::scope(|scope| {
        for client in 0..4 {
            let scanner = &scanner;
            scope.spawn(move || {
                let tester = Tester::new(scanner);
                for ticket in 0..300 {
                    tester.submit(ticket, format!("bad.{client}").as_bytes(), false);
                    tester.submit(ticket, format!(".{ticket}").as_bytes(), true);
                }
                for (ticket, report) in (0..).zip(tester.reports(300)) {
                    assert_eq!(report.ticket, Ticket(ticket));
                    assert_eq!(report.outcome, infected(&format!("bad.{client}.{ticket}")));
                }
            });
        }
    });
    assert_eq!(
        (scanner.status().scans, scanner.status().infected),
        (1200, 1200)
    );
    assert!(scanner.status().connections <= 3);
}

#[test]
fn a_port_serves_as_well_as_a_path() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("bound").port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            let mut command = [0; 9];
            stream.read_exact(&mut command).expect("a command");
            if &command == b"zVERSION\0" {
                stream.write_all(b"ClamAV by TCP\0").ok();
                continue;
            }
            // zINSTREAM, its end, a length, four bytes, the end of the stream.
            let mut rest = [0; 13];
            stream.read_exact(&mut rest).expect("a stream");
            assert_eq!(&rest, b"\0\0\0\0\x04good\0\0\0\0");
            stream.write_all(b"stream: OK\0").ok();
        }
    });
    let options = ScannerOptions {
        scans_per_connection: 1,
        connections: 1,
        ..ScannerOptions::new(format!("localhost:{port}").parse().expect("an address"))
    };
    let scanner = Scanner::start(options).expect("starts");
    eventually(|| scanner.status().version == "ClamAV by TCP");
    let tester = Tester::new(&scanner);
    assert_eq!(tester.scan(1, b"good"), ScanOutcome::Clean);
    assert_eq!(tester.scan(2, b"good"), ScanOutcome::Clean);
    assert_eq!(scanner.status().connections, 2);
}

#[test]
fn a_scanner_that_has_given_up_its_rights_works() {
    let fake = Fake::start(obedient);
    let spool = tempfile::tempdir().expect("a directory");
    let options = ScannerOptions {
        spool_dir: Some(spool.path().to_owned()),
        timeout: Duration::from_secs(10),
        ..options(&fake.path)
    };
    let restrict = Restrict {
        writable: vec![spool.path().to_owned()],
        ..Restrict::default()
    };
    // Its threads have what the thread has that starts them.
    let started = std::thread::spawn(move || {
        restrict.apply().expect("restricted");
        Scanner::start(options).expect("starts")
    });
    let scanner = started.join().expect("no panic");
    let tester = Tester::new(&scanner);
    assert_eq!(tester.scan(1, b"bad"), infected("bad"));
    tester.submit(2, &vec![b'x'; 3_000_000], false);
    eventually(|| scanner.status().spooled_bytes == 3_000_000);
    tester.submit(2, b"end", true);
    assert_eq!(tester.reports(1)[0].outcome, ScanOutcome::Clean);
}

#[test]
fn a_spool_directory_that_is_not_there_is_an_error() {
    let fake = Fake::start(obedient);
    let options = ScannerOptions {
        spool_dir: Some("/nowhere/at/all".into()),
        ..options(&fake.path)
    };
    let error = Scanner::start(options)
        .expect_err("no directory")
        .to_string();
    assert!(
        error.starts_with("spool directory /nowhere/at/all"),
        "{error}"
    );
}
