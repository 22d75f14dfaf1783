//! One failure: its clients, and what they send.

use super::Settings;
use crate::error::LabError;
use crate::program::{Ended, Program};
use crate::services::url;
use crate::testbed::Testbed;
use std::net::IpAddr;
use std::time::Duration;

/// Everybody's addresses, for the gateway's routes: clients and guests, and those who carry what is
/// planted.
pub(super) const ALL: [&str; 2] = ["10.40.0.0/13", "10.56.0.0/13"];
/// Sessions in turn, one connection each: one small answer, a redirection, a file, and one that takes
/// its time, so that some are under way whenever something is killed.
const SCRIPT: &str = "/small\n\n/moved\n\n/file\n\n/slow/file\n";
/// Bytes of `/file`; `/slow/file` takes a second and a half.
pub(super) const FILE: usize = 30_000;
/// How long sessions may go on when no more begin.
const DRAIN: Duration = Duration::from_secs(8);
/// How long a response may take: longer than what is dead is away, so that TCP may repair it.
const TIMEOUT: &str = "6s";

/// Clients of a failure, which no other failure has: what was left behind by one is not counted by
/// another.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    /// Which one, from 0 to 7.
    pub(super) number: u8,
    /// What fails.
    pub(super) name: &'static str,
    /// Begins the names of its files.
    pub(super) files: &'static str,
}

impl Part {
    /// Prefix of its ordinary clients.
    pub(super) fn clients(self) -> String {
        format!("10.{}.0.0/17", 40 + self.number)
    }

    /// Prefix of its guests.
    pub(super) fn guests(self) -> String {
        format!("10.{}.128.0/17", 40 + self.number)
    }

    /// Prefix of those who carry something.
    pub(super) fn carriers(self) -> String {
        format!("10.{}.0.0/16", 56 + self.number)
    }

    /// Whether an address is one of its own.
    pub(super) fn has(self, address: IpAddr) -> bool {
        self.is_of_load(address) || is_second(address, 56 + self.number)
    }

    /// Whether it is of its ordinary clients or guests.
    pub(super) fn is_of_load(self, address: IpAddr) -> bool {
        is_second(address, 40 + self.number)
    }

    /// Whether it is of its guests.
    pub(super) fn is_guest(self, address: IpAddr) -> bool {
        matches!(address, IpAddr::V4(v4) if self.is_of_load(address) && v4.octets()[2] >= 128)
    }

    /// Where something of it is written.
    pub(super) fn file(self, name: &str) -> String {
        format!("{}-{name}", self.files)
    }

    /// Starts the sessions.
    pub(super) fn load(
        self,
        testbed: &Testbed<'_>,
        settings: &Settings,
    ) -> Result<Program, LabError> {
        self.load_of(testbed, settings, SCRIPT)
    }

    /// Starts sessions of a script in httperf's format.
    pub(super) fn load_of(
        self,
        testbed: &Testbed<'_>,
        settings: &Settings,
        script: &str,
    ) -> Result<Program, LabError> {
        let script = testbed.put(&self.file("script"), script.as_bytes())?;
        let script = script.display().to_string();
        let clients = format!("{},{}", self.clients(), self.guests());
        let arrivals = format!("poisson:{}", settings.rate);
        let words = ["--script", &script];
        self.generate(
            testbed,
            settings,
            ("load", "/small"),
            &clients,
            &arrivals,
            &words,
        )
    }

    /// Has what is planted fetched, at an even pace: some before, some while, and some after something is
    /// dead.
    pub(super) fn carry(
        self,
        testbed: &Testbed<'_>,
        settings: &Settings,
        kind: Planted,
    ) -> Result<Program, LabError> {
        let clients = format!("10.{}.{}.0/24", 56 + self.number, kind as u8);
        let arrivals = format!("constant:{}", settings.planted);
        let path = format!("/{}", kind.name());
        self.generate(
            testbed,
            settings,
            (kind.name(), &path),
            &clients,
            &arrivals,
            &[],
        )
    }

    fn generate(
        self,
        testbed: &Testbed<'_>,
        settings: &Settings,
        (name, path): (&str, &str),
        clients: &str,
        arrivals: &str,
        more: &[&str],
    ) -> Result<Program, LabError> {
        let duration = format!("{}ms", settings.duration().as_millis());
        let drain = format!("{}s", DRAIN.as_secs());
        let words = [
            "--duration",
            &duration,
            "--drain",
            &drain,
            "--timeout",
            TIMEOUT,
            "--lag-limit",
            "100ms",
        ];
        let more = [&words, more].concat();
        Program::load(
            testbed,
            &self.file(name),
            &url(path),
            (clients, arrivals),
            testbed.order.seed,
            &more,
        )
    }

    /// Waits until a generator has ended.
    pub(super) fn wait(
        testbed: &Testbed<'_>,
        settings: &Settings,
        load: Program,
    ) -> Result<Ended, LabError> {
        load.wait(testbed, settings.duration() + DRAIN)
    }
}

/// What happens to traffic while there is no gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fail {
    /// It passes.
    Open,
    /// It does not.
    Closed,
}

impl Fail {
    /// As a policy has it.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Closed => "closed",
        }
    }

    /// Whose traffic it is.
    pub(super) const fn part(self) -> Part {
        match self {
            Self::Open => Part {
                number: 1,
                name: "gateway killed, fails open",
                files: "open",
            },
            Self::Closed => Part {
                number: 2,
                name: "gateway killed, fails closed",
                files: "closed",
            },
        }
    }
}

/// What must not arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Planted {
    /// A text with a keyword of the policy.
    Keyword = 1,
    /// The EICAR string.
    Virus = 2,
}

impl Planted {
    /// The name of its file.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Keyword => "keyword",
            Self::Virus => "virus",
        }
    }

    /// What the gateway calls it.
    pub(super) const fn event(self) -> &'static str {
        match self {
            Self::Keyword => "keyword",
            Self::Virus => "infected",
        }
    }
}

fn is_second(address: IpAddr, octet: u8) -> bool {
    matches!(address, IpAddr::V4(v4) if matches!(v4.octets(), [10, second, ..] if second == octet))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_do_not_share_clients() {
        let part = |number| Part {
            number,
            name: "",
            files: "",
        };
        let (one, two) = (part(1), part(2));
        let guest = IpAddr::from([10, 41, 200, 3]);
        assert!(one.has(guest) && one.is_guest(guest) && !two.has(guest));
        let client = IpAddr::from([10, 41, 3, 3]);
        assert!(one.is_of_load(client) && !one.is_guest(client));
        let carrier = IpAddr::from([10, 58, 1, 3]);
        assert!(two.has(carrier) && !two.is_of_load(carrier) && !one.has(carrier));
    }
}
