//! What threads of a run may still do.

use std::time::Duration;

use crate::common::threads;
use crate::traffic::Site;
use linkweir_testkit::conversation::Side;
use linkweir_testkit::netns::{interface, until};
use tempfile::tempdir;

/// `CAP_NET_RAW` alone: to open the interface again.
const NET_RAW: u64 = 1 << 13;

#[test]
fn every_thread_has_given_up_its_privileges() {
    let directory = tempdir().unwrap();
    let Some(site) = Site::open(directory.path()) else {
        return;
    };
    // A broker that is never there: its client has threads all the same.
    for output in ["x.jsonl", "kafka://127.0.0.1:9/x"] {
        let mut command = site.linkweir();
        command.args(["http", "-q", "-i", interface(Side::Server), "-w", output]);
        let running = site.listening(&mut command, 1);
        let is_kafka = output.starts_with("kafka");
        // It listens before it gives anything up.
        let has_started = || {
            let all = threads(running.id());
            all.iter().any(|thread| thread.seccomp == "2") && (!is_kafka || all.len() > 2)
        };
        assert!(until(Duration::from_secs(10), has_started), "{output}");
        for thread in threads(running.id()) {
            assert_eq!(thread.capabilities & !NET_RAW, 0, "{output}: {thread:?}");
            assert_eq!(thread.no_new_privileges, "1", "{output}: {thread:?}");
            assert_eq!(thread.seccomp, "2", "{output}: {thread:?}");
        }
        running.finish().unwrap();
    }
}
