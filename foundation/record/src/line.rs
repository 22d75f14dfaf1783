//! How a record is shown to people: a line of cells on a terminal, some columns and not all.

/// What stands in a cell, by the names of columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cell {
    /// The first of these moments that is there.
    Moment(&'static [&'static str]),
    /// Address and port of the client and of the server: `10.0.0.7:40112 → 10.0.0.1:80`.
    Ends([&'static str; 4]),
    /// How it ended: the first of these that is there. A status code has the colour of its class, and a word that
    /// is none of `good` that of an error.
    Outcome {
        /// The columns.
        of: &'static [&'static str],
        /// Words that are no errors.
        good: &'static [&'static str],
    },
    /// A span.
    Span(&'static str),
    /// A number.
    Number(&'static str),
    /// A span as a bar, by its logarithm: empty at 100 µs, full at 10 s.
    Bar(&'static str),
    /// Numbers of the client and of the server: `12/10`.
    Counts([&'static str; 2]),
    /// Bytes of the client and of the server: `1.2 k/340 k`.
    Bytes([&'static str; 2]),
    /// The first of these texts that is there.
    First(&'static [&'static str]),
    /// These texts one after the other, with this between them.
    Texts(&'static [&'static str], &'static str),
}

impl Cell {
    /// The names of its columns.
    #[must_use]
    pub fn columns(&self) -> Vec<&'static str> {
        match self {
            Self::Moment(names) | Self::First(names) | Self::Texts(names, _) => names.to_vec(),
            Self::Outcome { of, .. } => of.to_vec(),
            Self::Ends(names) => names.to_vec(),
            Self::Span(name) | Self::Number(name) | Self::Bar(name) => vec![name],
            Self::Counts(names) | Self::Bytes(names) => names.to_vec(),
        }
    }
}

/// A cell of a line, and its title.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineCell {
    /// The title above it.
    pub title: &'static str,
    /// What stands in it.
    pub cell: Cell,
    /// Characters that it has at least.
    pub width: usize,
    /// Whether it is left out on a narrow terminal.
    pub is_optional: bool,
}

impl LineCell {
    /// A cell that is always there.
    #[must_use]
    pub const fn new(title: &'static str, width: usize, cell: Cell) -> Self {
        Self {
            title,
            cell,
            width,
            is_optional: false,
        }
    }

    /// A cell that is left out on a narrow terminal.
    #[must_use]
    pub const fn optional(title: &'static str, width: usize, cell: Cell) -> Self {
        Self {
            is_optional: true,
            ..Self::new(title, width, cell)
        }
    }
}

/// Both ends, as most kinds name them.
pub(crate) const ENDS: LineCell = LineCell::new(
    "client → server",
    33,
    Cell::Ends(["client_ip", "client_port", "server_ip", "server_port"]),
);
