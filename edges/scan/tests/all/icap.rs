//! With a real c-icap: its echo service, and its virus scanner, which asks clamd.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use linkweir_engine::effect::ScanOutcome;
use linkweir_scan::{Address, FailureCause, Protocol, Scanner, ScannerOptions};
use linkweir_testkit::clamd::{Clamd, EICAR, EICAR_NAME};
use linkweir_testkit::netns::{Running, until};
use linkweir_testkit::ran::installed;

use crate::common::{Tester, eventually, infected, why};

/// A server with both services; its port.
fn server(directory: &Path, clamd: &Path) -> Option<(Running, u16)> {
    let program = installed("c-icap")?;
    let port = TcpListener::bind("127.0.0.1:0")
        .ok()?
        .local_addr()
        .ok()?
        .port();
    let at = directory.display();
    let modules = "/usr/lib/x86_64-linux-gnu/c_icap";
    if !Path::new(modules).join("virus_scan.so").exists() {
        return None;
    }
    let text = format!(
        "PidFile {at}/pid\nCommandsSocket {at}/ctl\nPort 127.0.0.1:{port}\nTmpDir {at}\n\
         ServerLog {at}/server.log\nAccessLog {at}/access.log\nStartServers 1\nMaxServers 1\nThreadsPerChild 8\n\
         KeepAlive on\nMaxKeepAliveRequests 100\n\
         ModulesDir {modules}\nServicesDir {modules}\nLoadMagicFile /etc/c-icap/c-icap.magic\n\
         Service echo srv_echo.so\nModule common clamd_mod.so\nclamd_mod.ClamdSocket {}\n\
         Service antivirus_module virus_scan.so\nvirus_scan.ScanFileTypes TEXT DATA EXECUTABLE ARCHIVE\n\
         virus_scan.DefaultEngine clamd\nvirus_scan.MaxObjectSize 20M\n",
        clamd.display()
    );
    std::fs::write(directory.join("c-icap.conf"), text).ok()?;
    let mut command = Command::new(program);
    command
        .arg("-N")
        .arg("-f")
        .arg(directory.join("c-icap.conf"));
    let running = Running::start(command.stdout(Stdio::null()).stderr(Stdio::null())).ok()?;
    let listens = || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok();
    until(Duration::from_secs(10), listens).then_some((running, port))
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
    let directory = tempfile::tempdir().expect("a directory");
    let Some((server, port)) = server(directory.path(), &clamd.socket()) else {
        return eprintln!(
            "SKIPPED: c-icap does not start (Debian: c-icap libc-icap-mod-virus-scan)"
        );
    };
    let harmless = b"a line like every other\n".repeat(20_000);
    let mut virus = harmless.clone();
    virus.extend_from_slice(&EICAR);

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
    ] {
        assert_eq!(tester.scan(ticket, bytes), expected, "{ticket}");
    }
    drop(tester);
    drop(scanner);

    // One that always answers after the preview, with 204, over one connection.
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
