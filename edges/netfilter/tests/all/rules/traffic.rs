//! Real traffic under the rules: nginx, curl, and a program that answers the queues.

use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::Duration;

use linkweir_engine::effect::{Decision, Mark};
use linkweir_netfilter::conntrack::{clear_marks, count_marks};
use linkweir_netfilter::rules::{self, Host, Up};
use linkweir_testkit::netns::until;

use super::net::Net;
use super::plan;
use super::service::{DROPPED, HELD, INSPECTED, PASS, REJECTED, SHAPED, Service};

const SERVERS: [&str; 2] = ["10.91.2.2", "[fd91:2::2]"];
/// Bytes of the file that is downloaded.
const FILE: u64 = 200 << 20;

/// nginx at the server, with one file of zeros.
struct Web {
    child: Child,
    directory: PathBuf,
}

impl Web {
    fn start(net: &Net) -> Option<Self> {
        let (is_there, _) = net.try_script("s", "nginx -v && curl --version");
        if !is_there {
            eprintln!("SKIPPED: no nginx or no curl");
            return None;
        }
        let directory = std::env::temp_dir().join(format!("linkweir-rules-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory");
        let file = std::fs::File::create(directory.join("zeros")).expect("a file");
        file.set_len(FILE).expect("a long file");
        let listen: String = (PASS..=HELD)
            .map(|port| format!("listen {port}; listen [::]:{port}; "))
            .collect();
        let at = directory.display();
        let config = format!(
            "daemon off; master_process off; user root; pid {at}/pid; error_log {at}/log;
             events {{}} http {{ access_log off; server {{ {listen} root {at}; }} }}"
        );
        std::fs::write(directory.join("conf"), config).expect("a file");
        let script = format!("exec nginx -e {at}/log -c {at}/conf");
        let child = net.command("s", &script).stdin(Stdio::null()).spawn();
        let web = Self {
            child: child.expect("ip runs"),
            directory,
        };
        let hears = || {
            net.try_script("s", &format!("curl -sI 127.0.0.1:{PASS}/zeros"))
                .0
        };
        assert!(
            until(Duration::from_secs(10), hears),
            "nginx does not start"
        );
        Some(web)
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        // It may have ended.
        drop(self.child.kill());
        drop(self.child.wait());
        drop(std::fs::remove_dir_all(&self.directory));
    }
}

/// A download by curl: its exit status, bytes, seconds, and seconds until the first byte.
struct Download {
    exit: i32,
    bytes: f64,
    seconds: f64,
    wait: f64,
}

impl Download {
    fn start(net: &Net, server: &str, port: u16, words: &str) -> Child {
        let script = format!(
            "exec curl -s -o /dev/null {words} \
             -w '%{{exitcode}} %{{size_download}} %{{time_total}} %{{time_starttransfer}}' \
             http://{server}:{port}/zeros"
        );
        let mut command = net.command("c", &script);
        command.stdout(Stdio::piped()).spawn().expect("ip runs")
    }

    fn end(child: Child) -> Self {
        let output = child.wait_with_output().expect("curl runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let numbers: Vec<f64> = text
            .split(' ')
            .filter_map(|word| word.parse().ok())
            .collect();
        let [_, bytes, seconds, wait] = numbers[..] else {
            panic!("curl says {text:?}")
        };
        Self {
            exit: output.status.code().expect("an exit status"),
            bytes,
            seconds,
            wait,
        }
    }

    fn run(net: &Net, server: &str, port: u16, words: &str) -> Self {
        Self::end(Self::start(net, server, port, words))
    }

    /// Bytes per second from the first byte on.
    fn rate(&self) -> f64 {
        self.bytes / (self.seconds - self.wait)
    }
}

/// What the kernel has counted for a decision by a rule: packets, bytes.
fn counted(decision: Decision, rule: u16) -> (u64, u64) {
    let standing = rules::standing().expect("the kernel").expect("up");
    let mark = Mark { decision, rule };
    let count = standing.counts.iter().find(|count| count.mark == mark);
    count.map_or((0, 0), |count| (count.packets, count.bytes))
}

#[test]
fn the_kernel_does_what_verdicts_say() {
    let Some(net) = Net::inside("rules::traffic::the_kernel_does_what_verdicts_say") else {
        return;
    };
    let Some(_web) = Web::start(&net) else { return };
    let before = net.snapshot();
    let mut plan = plan();
    plan.classes.clear();
    assert_eq!(rules::up(&Host::here(), &plan).expect("up"), Up::Made);
    let service = Service::start(plan.queues.clone());
    for (server, times) in SERVERS.into_iter().zip(1..) {
        let run = |port, words| Download::run(&net, server, port, words);
        // One packet is asked about, and the rest passes in the kernel and is counted there.
        let counts = counted(Decision::Pass, 1);
        let passed = run(PASS, "");
        assert_eq!((passed.exit, passed.bytes), (0, 209_715_200.0));
        assert_eq!(service.seen(PASS), times);
        let (packets, bytes) = counted(Decision::Pass, 1);
        assert!(bytes - counts.1 > FILE && packets > counts.0, "{bytes}");

        let inspected = run(INSPECTED, "--range 0-9999999");
        assert_eq!((inspected.exit, inspected.bytes), (0, 10_000_000.0));
        let (_, bytes) = counted(Decision::Inspect, 5);
        assert!(bytes > 10_000_000 * times, "{bytes}");
        // All but the first, which had no mark yet; the last ones may still be in the queue.
        let has_seen_all = until(Duration::from_secs(5), || {
            service.seen(INSPECTED) == counted(Decision::Inspect, 5).0 + times
        });
        assert!(has_seen_all, "{} seen", service.seen(INSPECTED));

        // Three packets open the connection, the fourth is dropped. So is what comes again of it, about
        // which nobody is asked.
        let dropped = run(DROPPED, "--max-time 2");
        assert_eq!(dropped.exit, 28, "curl: operation timed out");
        assert_eq!(service.seen(DROPPED), 4 * times);
        assert!(counted(Decision::Drop, 3).0 >= 2 * times);

        let rejected = run(REJECTED, "--connect-timeout 2");
        assert_eq!(rejected.exit, 7, "curl: could not connect");
        assert!(rejected.seconds < 0.5, "{}", rejected.seconds);
        assert_eq!(service.seen(REJECTED), times);
        // The one packet that there is counts, and counts once.
        assert_eq!(counted(Decision::Reject, 4).0, times);
    }
    // Somebody accepts everything before our chain of the filter table: nothing gets through even so.
    net.must("g", "iptables -I FORWARD -j ACCEPT");
    let refused = Download::run(&net, SERVERS[0], REJECTED, "--connect-timeout 1");
    assert_eq!(refused.exit, 28, "curl: operation timed out");
    net.must("g", "iptables -D FORWARD -j ACCEPT");
    drop(service);
    // Nobody serves the queue, and the plan says open.
    let open = Download::run(&net, SERVERS[0], PASS, "--range 0-999999");
    assert_eq!((open.exit, open.bytes), (0, 1_000_000.0));
    let removed = rules::down(&Host::here()).expect("down");
    let mask = removed.marks.expect("it was up").mask();
    assert!(clear_marks(mask).expect("conntrack") > 0);
    assert_eq!(count_marks(mask).expect("conntrack").keys().max(), Some(&0));
    assert_eq!(net.snapshot(), before);
}

#[test]
fn a_packet_that_waited_does_not_undo_a_decision() {
    let Some(net) = Net::inside("rules::traffic::a_packet_that_waited_does_not_undo_a_decision")
    else {
        return;
    };
    let plan = plan();
    // Bits of somebody else, on packets and on connections.
    net.must(
        "g",
        "iptables -t mangle -A PREROUTING -p udp -j MARK --set-xmark 0x3/0xff
         iptables -t mangle -A PREROUTING -p udp -j CONNMARK --set-xmark 0xa0000005/0xf000ffff
         iptables -t mangle -A POSTROUTING -p udp -m mark --mark 0x3/0xff",
    );
    rules::up(&Host::here(), &plan).expect("up");
    let service = Service::start(plan.queues.clone());
    net.must("s", "iptables -A OUTPUT -p icmp -j DROP");
    let script = format!(
        "exec bash -c 'exec 3>/dev/udp/10.91.2.2/{HELD}
         for datagram in 1 2 3 4 4 4; do echo $datagram >&3; sleep 0.1; done'"
    );
    net.must("c", &script);
    assert_eq!(service.seen(HELD), 3);
    let pass = Mark {
        decision: Decision::Pass,
        rule: 1,
    };
    let bits = plan.marks.replace(0xa000_0005, pass);
    let marks = count_marks(u32::MAX).expect("conntrack");
    assert_eq!(marks.get(&bits), Some(&1), "{marks:x?}");
    let counted = net.must(
        "g",
        "iptables-save -c -t mangle | grep -- '-A POSTROUTING -p udp'",
    );
    assert!(counted.starts_with("[6:"), "{counted}");
    // Those that came when it was decided go by the first rule, and get no mark that would be saved again.
    let first = "iptables-save -c -t mangle | grep -- '-A LINKWEIR-FORWARD -m mark'";
    let went_by = net.must("g", first);
    assert!(went_by.starts_with("[3:"), "{went_by}");

    // What is not tracked is of no connection that passes: each packet is asked about.
    net.must(
        "g",
        "iptables -t raw -A PREROUTING -p udp --dport 8080 -j NOTRACK",
    );
    let twice = format!(
        "exec bash -c 'exec 3>/dev/udp/10.91.2.2/{PASS}
         for datagram in 1 2; do echo $datagram >&3; sleep 0.1; done'"
    );
    net.must("c", &twice);
    assert!(until(Duration::from_secs(5), || service.seen(PASS) == 2));

    // A datagram that is rejected is answered.
    let reject = format!("exec bash -c 'echo x >/dev/udp/10.91.2.2/{REJECTED}'");
    net.must("c", &reject);
    let reject = "iptables-save -c -t filter | grep -- '-p udp -j REJECT'";
    let answered = || net.must("g", reject).starts_with("[1:");
    assert!(until(Duration::from_secs(5), answered));
}

#[test]
fn a_class_has_its_rate_and_others_do_not() {
    let Some(net) = Net::inside("rules::traffic::a_class_has_its_rate_and_others_do_not") else {
        return;
    };
    let Some(_web) = Web::start(&net) else { return };
    let mut plan = plan();
    rules::up(&Host::here(), &plan).expect("up");
    let _service = Service::start(plan.queues.clone());
    // 1448 bytes of 1514 on the link, 1428 with IPv6.
    for (server, payload) in SERVERS.into_iter().zip([1448.0, 1428.0]) {
        let expected = 10e6 / 8.0 * payload / 1514.0;
        // A machine that is busy with other tests may stand still for a tenth of a download.
        let is_right = (0..3).any(|_| {
            let (shaped, other) = shaped_and_other(&net, server);
            let ratio = shaped / expected;
            println!(
                "{server}: {shaped:.0} byte/s, {ratio:.4} of {expected:.0}; others {other:.0}"
            );
            assert!(other > 20e6, "others: {other:.0} byte/s");
            (ratio - 1.0).abs() < 0.05
        });
        assert!(is_right, "not {expected:.0} byte/s from {server}");
    }
    // Another rate while a download runs.
    let running = Download::start(&net, SERVERS[0], SHAPED, "--max-time 4");
    std::thread::sleep(Duration::from_secs(1));
    plan.classes[0].rate_bits *= 4;
    assert_eq!(
        rules::change(&Host::here(), &plan).expect("change"),
        Up::Made
    );
    let running = Download::end(running);
    let expected = (10e6 * 1.0 + 40e6 * 3.0) / 4.0 / 8.0 * 1448.0 / 1514.0;
    let ratio = running.rate() / expected;
    assert!((ratio - 1.0).abs() < 0.2, "{ratio:.3} of {expected:.0}");
}

/// Bytes per second of a download that is in the class of 10 Mbit/s, and of another at the same time.
fn shaped_and_other(net: &Net, server: &str) -> (f64, f64) {
    let seconds = std::env::var("LINKWEIR_SHAPE_SECONDS").unwrap_or_else(|_| "3".to_owned());
    let shaped = Download::start(net, server, SHAPED, &format!("--max-time {seconds}"));
    let other = Download::run(net, server, PASS, "");
    assert_eq!(other.exit, 0);
    (Download::end(shaped).rate(), other.rate())
}
