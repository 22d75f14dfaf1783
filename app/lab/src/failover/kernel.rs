//! The connections that the gateway's kernel knows, and whether somebody has decided about them.

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::part::Part;
use super::records::Ends;
use crate::error::LabError;
use crate::testbed::Testbed;

use linkweir_testkit::gateway::Place;

/// How long the kernel remembers a connection that is over, seconds: longer than a part takes.
const MEMORY: u32 = 180;
/// The bits of a mark that the gateway uses: `mark-mask` of its policy.
const MASK: u32 = 0x0fff_0000;

/// Has the kernel remember connections until they are counted.
pub(super) fn remember(testbed: &Testbed<'_>) -> Result<(), LabError> {
    for state in ["close", "close_wait", "last_ack", "time_wait", "fin_wait"] {
        let setting = format!("net.netfilter.nf_conntrack_tcp_timeout_{state}={MEMORY}");
        testbed.set(Place::Gateway, &setting)?;
    }
    Ok(())
}

/// The connections of a part and the gateway's bits of their marks; `None` where the kernel has no such
/// table.
pub(super) fn connections(testbed: &Testbed<'_>, part: Part) -> Option<BTreeMap<Ends, u32>> {
    let table = testbed.net.table("nf_conntrack");
    if table.is_empty() {
        return None;
    }
    let all = table.lines().filter_map(connection);
    Some(all.filter(|((client, _), _)| part.has(*client)).collect())
}

/// A line as `ipv4 2 tcp 6 117 TIME_WAIT src=A dst=B sport=P dport=Q src=.. .. mark=M zone=0 use=2`.
fn connection(line: &str) -> Option<(Ends, u32)> {
    let mut words = line.split_ascii_whitespace();
    words.by_ref().find(|word| *word == "tcp")?;
    let mut value = |key: &str| words.by_ref().find_map(|word| word.strip_prefix(key));
    // The first of each is of the original direction.
    let client: IpAddr = value("src=")?.parse().ok()?;
    let port = value("sport=")?.parse().ok()?;
    let mark: u32 = value("mark=")?.parse().ok()?;
    Some(((client, port), mark & MASK))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read() {
        let line = "ipv4     2 tcp      6 117 TIME_WAIT src=10.40.1.2 dst=10.88.2.2 sport=33001 dport=80 \
                    src=10.88.2.2 dst=10.40.1.2 sport=80 dport=33001 [ASSURED] mark=589825 zone=0 use=2";
        let ends = (IpAddr::from([10, 40, 1, 2]), 33001);
        assert_eq!(connection(line), Some((ends, 0x9_0000)));
        assert_eq!(
            connection("ipv4 2 udp 17 29 src=10.40.1.2 dst=10.88.2.2 mark=0"),
            None
        );
    }
}
