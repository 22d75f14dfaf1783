//! With a real c-icap: its echo service, and its virus scanner, which asks clamd.

use std::net::TcpListener;
use std::process::Command;
use std::time::Duration;

use linkweir_engine::effect::ScanOutcome;
use linkweir_scan::{Address, FailureCause, Protocol, Scanner, ScannerOptions};
use linkweir_testkit::clamd::{Clamd, EICAR, EICAR_NAME};
use linkweir_testkit::icap::{CIcap, Unavailable};

use crate::common::{Tester, eventually, infected, why};

/// A free port.
fn port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("its address").port()
}

fn options(port: u16, service: &str) -> ScannerOptions {
    ScannerOptions {
        connections: 1,
        timeout: Duration::from_secs(5),
        protocol: Protocol::Icap {
            service: service.to_owned(),
        },
        ..ScannerOptions::new(Address::Tcp {
            host: "127.0.0.1".to_owned(),
            port,
        })
    }
}

#[test]
fn services_of_c_icap() {
    let clamd = match Clamd::start() {
        Ok(clamd) => clamd,
        Err(why) => return eprintln!("SKIPPED: {why}"),
    };
    let port = port();
    let server = match CIcap::start(&clamd, port, |program| Command::new(program)) {
        Ok(server) => server,
        Err(missing @ Unavailable::Missing(_)) => return eprintln!("SKIPPED: {missing}"),
        Err(failed) => panic!("{failed}"),
    };
    let harmless = b"a line like every other\n".repeat(20_000);
    let mut virus = harmless.clone();
    virus.extend_from_slice(&EICAR);
    let long = harmless.repeat(10);
    let long_virus = [&long[..], &EICAR].concat();

    let scanner = Scanner::start(options(port, "virus_scan")).expect("a scanner");
    eventually(|| scanner.status().is_reachable);
    let version = scanner.status().version;
    assert!(version.contains("C-ICAP"), "{version}");
    let tester = Tester::new(&scanner);
    for (ticket, bytes, expected) in [
        (1, &b"short"[..], ScanOutcome::Clean),
        (2, &EICAR[..], infected(EICAR_NAME)),
        (3, &harmless[..], ScanOutcome::Clean),
        (4, &virus[..], infected(EICAR_NAME)),
        (5, &b""[..], ScanOutcome::Clean),
        (6, &harmless[..], ScanOutcome::Clean),
        // Beyond 2 MB it gives a part back before it has all: it can but leave out the rest, which is a virus without a name.
        (7, &long[..], ScanOutcome::Clean),
        (
            8,
            &long_virus[..],
            infected("replaced by the ICAP service (another body)"),
        ),
        (9, &virus[..], infected(EICAR_NAME)),
    ] {
        assert_eq!(tester.scan(ticket, bytes), expected, "{ticket}");
    }
    drop(tester);
    drop(scanner);

    // One that answers with 204 after the preview, or gives all back: both over one connection.
    let scanner = Scanner::start(options(port, "echo")).expect("a scanner");
    eventually(|| scanner.status().is_reachable);
    let tester = Tester::new(&scanner);
    for ticket in 1..=20 {
        assert_eq!(tester.scan(ticket, &virus), ScanOutcome::Clean);
    }
    let connections = scanner.status().connections;
    assert!(connections <= 2, "{connections} connections for 20 scans");
    drop(tester);
    drop(scanner);

    let scanner = Scanner::start(options(port, "nowhere")).expect("a scanner");
    let tester = Tester::new(&scanner);
    let outcome = tester.scan(1, b"short");
    assert!(why(&outcome).contains("404"), "{outcome:?}");
    drop(server);
    let outcome = tester.scan(2, b"short");
    assert!(why(&outcome).contains("ICAP service"), "{outcome:?}");
    let failed = scanner.status().failed;
    assert!(
        failed
            .iter()
            .any(|(cause, count)| cause == FailureCause::Unreachable && count > 0),
        "{failed:?}"
    );
}
