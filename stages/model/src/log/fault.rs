//! What of a log could not be used, by cause.

/// Why a line or record gave no request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// No client at its beginning.
    Client,
    /// No time, or one that is none.
    Time,
    /// The request is not in quotes.
    Request,
    /// No status code, nor `-` for none.
    Status,
    /// No size, nor `-` for none.
    Size,
    /// No record of the form.
    Record,
    /// Longer than a line may be.
    Length,
    /// The log ends within it.
    Truncated,
    /// Whole, but without a request: `"-"` of a connection that sent none, a response without its
    /// request. No damage.
    NoRequest,
}

impl Cause {
    /// All of them, in the order of the places in [`Faults`].
    pub const ALL: [Self; 9] = [
        Self::Client,
        Self::Time,
        Self::Request,
        Self::Status,
        Self::Size,
        Self::Record,
        Self::Length,
        Self::Truncated,
        Self::NoRequest,
    ];

    /// The name in summaries.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Time => "time",
            Self::Request => "request",
            Self::Status => "status",
            Self::Size => "size",
            Self::Record => "record",
            Self::Length => "too_long",
            Self::Truncated => "truncated",
            Self::NoRequest => "no_request",
        }
    }

    /// Whether the line is damaged; one without a request is not.
    #[must_use]
    pub const fn is_damage(self) -> bool {
        !matches!(self, Self::NoRequest)
    }
}

/// How often, and where first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Seen {
    count: u64,
    first: u64,
}

/// What could not be used: by cause how much, and the first line (or record) of each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Faults {
    seen: [Seen; Cause::ALL.len()],
}

impl Faults {
    /// Counts a line, by its number from 1.
    pub fn add(&mut self, cause: Cause, line: u64) {
        for (seen, of) in self.seen.iter_mut().zip(Cause::ALL) {
            if of == cause {
                if seen.count == 0 {
                    seen.first = line;
                }
                seen.count += 1;
            }
        }
    }

    /// The causes that occurred: how often, and the first line.
    pub fn iter(&self) -> impl Iterator<Item = (Cause, u64, u64)> {
        let all = Cause::ALL.into_iter().zip(self.seen);
        all.filter(|(_, seen)| seen.count > 0)
            .map(|(cause, seen)| (cause, seen.count, seen.first))
    }

    /// Lines that are damaged.
    #[must_use]
    pub fn damaged(&self) -> u64 {
        let damaged = self.iter().filter(|(cause, _, _)| cause.is_damage());
        damaged.map(|(_, count, _)| count).sum()
    }
}
