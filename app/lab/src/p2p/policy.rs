//! What the gateway does with each application.

use super::Settings;
use crate::gateway;
use crate::services::Scanner;
use crate::testbed::Testbed;
use linkweir_testkit::gateway::client;
use std::net::{IpAddr, Ipv4Addr};

/// What nobody may say in a conversation.
pub(super) const KEYWORD: &str = "project aurora";
/// Whose peers may do what the policy allows to everybody.
pub(super) const MEMBER: IpAddr = client(0);
/// Whose FastTrack is rejected, and who alone tries eDonkey: so what is refused has an address of its own.
pub(super) const GUEST: IpAddr = client(1);
/// An address of the server that the kernel of the clients reaches from that of the guest.
pub(super) const FOR_GUEST: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 88, 2, 3));

/// The policy: one application is dropped, one is rejected for a guest, one is shaped; files are scanned,
/// conversations are searched. What has no rule passes.
pub(super) fn policy(
    testbed: &Testbed<'_>,
    settings: &Settings,
    scanner: Option<&Scanner>,
) -> String {
    let (table, scan) = scanner.map_or_else(Default::default, |scanner| {
        (scanner.policy(), "scan = \"clamd\"\nfail = \"closed\"\n")
    });
    format!(
        "{}{table}
[[rule]]
name = \"no edonkey\"
application = \"edonkey\"
action = \"drop\"

[[rule]]
name = \"no kazaa for guests\"
application = \"fasttrack\"
clients = [\"{GUEST}\"]
action = \"reject\"

[[rule]]
name = \"torrents\"
application = \"bittorrent\"
action = \"allow\"
shape = \"{}kbit\"

[[rule]]
name = \"files\"
application = [\"fasttrack\", \"gnutella\", \"msnftp\"]
action = \"inspect\"
audit = true
{scan}
[[rule]]
name = \"chat\"
application = \"msn\"
action = \"inspect\"
audit = true
keywords = [\"{KEYWORD}\"]
on-match = \"reject\"

[[rule]]
name = \"web\"
application = \"http\"
action = \"allow\"
",
        gateway::head(testbed),
        settings.shape_kbit
    )
}
