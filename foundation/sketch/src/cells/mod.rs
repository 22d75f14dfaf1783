//! The cells of the archive: what is kept of each series in a step, mergeable by addition.
//!
//! A distribution keeps count, sum, sum of squares, smallest, largest and a log-linear histogram, so
//! that a row over many steps has the percentiles of all their values and not an average of
//! percentiles. A counter keeps its sum, a gauge its peak.
//!
//! Source: Tstat (Rossi, Mellia 2006) keeps such series in round-robin databases, which average.

mod catalogue;
mod distribution;
mod set;

pub use catalogue::{
    ANOMALIES, APPLICATIONS, Catalogue, Direction, Ended, Kind, Measure, Series, SeriesId,
    Transport, catalogue,
};
pub use distribution::{Bin, Buckets, Distribution};
pub use set::CellSet;
