//! The rows of the table.

use linkweir_testkit::load::routed;

/// What loads the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tool {
    /// wrk: one thread, each connection asks again when it is answered.
    Wrk,
    /// ab: the same.
    Ab,
    /// httperf: connections on a schedule.
    Httperf,
    /// linkweir load: sessions on a schedule.
    Linkweir(Clients),
}

/// How many addresses the clients have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Clients {
    /// 1.
    One,
    /// 1,024.
    Thousand,
    /// 1,048,576.
    Million,
}

impl Clients {
    pub(super) const ALL: [Self; 3] = [Self::One, Self::Thousand, Self::Million];

    /// Their addresses.
    pub(super) fn cidr(self) -> String {
        let million = routed(0);
        let base = million.split('/').next().unwrap_or_default();
        match self {
            Self::One => format!("{base}/32"),
            Self::Thousand => format!("{base}/22"),
            Self::Million => million,
        }
    }

    const fn count(self) -> u64 {
        match self {
            Self::One => 1,
            Self::Thousand => 1 << 10,
            Self::Million => 1 << 20,
        }
    }
}

/// Whether a connection is used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// One connection per request.
    Close,
    /// Many requests per connection.
    KeepAlive,
}

impl Mode {
    pub(super) const ALL: [Self; 2] = [Self::Close, Self::KeepAlive];

    /// Requests of a connection where the number is given.
    pub(super) const fn requests(self) -> u32 {
        match self {
            Self::Close => 1,
            Self::KeepAlive => 100,
        }
    }

    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::Close => "a new connection for each request: connections per second",
            Self::KeepAlive => "connections that are kept: requests per second",
        }
    }
}

impl Tool {
    /// All of them, in the order of the table.
    pub(super) fn all() -> Vec<Self> {
        let peers = [Self::Wrk, Self::Ab, Self::Httperf];
        let ours = Clients::ALL.map(Self::Linkweir);
        peers.into_iter().chain(ours).collect()
    }

    /// The word on the command line.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Wrk => "wrk",
            Self::Ab => "ab",
            Self::Httperf => "httperf",
            Self::Linkweir(Clients::One) => "one",
            Self::Linkweir(Clients::Thousand) => "thousand",
            Self::Linkweir(Clients::Million) => "million",
        }
    }

    /// The name in the table.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Linkweir(_) => "linkweir load",
            other => other.word(),
        }
    }

    /// Client addresses.
    pub(super) const fn addresses(self) -> u64 {
        match self {
            Self::Linkweir(clients) => clients.count(),
            _ => 1,
        }
    }

    /// Whether it starts sessions on a schedule, so that its highest rate has to be looked for.
    pub(super) const fn is_open_loop(self) -> bool {
        matches!(self, Self::Httperf | Self::Linkweir(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_addresses_as_the_table_says() {
        for clients in Clients::ALL {
            let cidr = clients.cidr();
            let length: u32 = cidr.split_once('/').unwrap().1.parse().unwrap();
            assert_eq!(1_u64 << (32 - length), clients.count(), "{cidr}");
        }
    }
}
