//! All cells of one step.

use super::catalogue::{Catalogue, Kind, Series, SeriesId, catalogue};
use super::distribution::Distribution;

/// The cells of one step: counters and gauges side by side, distributions only where they have
/// values.
///
/// About 1.6 kB, and about 2 kB for each distribution with values (at most 39).
#[derive(Debug, Clone)]
pub struct CellSet {
    catalogue: &'static Catalogue,
    scalars: Vec<u64>,
    distributions: Vec<Option<Box<Distribution>>>,
}

impl Default for CellSet {
    fn default() -> Self {
        Self::of(catalogue())
    }
}

impl PartialEq for CellSet {
    fn eq(&self, other: &Self) -> bool {
        self.scalars == other.scalars && self.distributions == other.distributions
    }
}

impl Eq for CellSet {}

impl CellSet {
    /// Empty cells of a catalogue.
    #[must_use]
    pub fn of(catalogue: &'static Catalogue) -> Self {
        let distributions = catalogue.series().len() - catalogue.scalars();
        Self {
            catalogue,
            scalars: vec![0; catalogue.scalars()],
            distributions: vec![None; distributions],
        }
    }

    /// Whose cells these are.
    #[must_use]
    pub const fn catalogue(&self) -> &'static Catalogue {
        self.catalogue
    }

    /// Adds to a counter, or a value to a distribution.
    #[inline]
    pub fn add(&mut self, series: SeriesId, value: u64) {
        let at = usize::from(series.0);
        if let Some(sum) = self.scalars.get_mut(at) {
            *sum = sum.saturating_add(value);
            return;
        }
        self.add_value(at, value);
    }

    /// Raises a gauge to at least this.
    #[inline]
    pub fn raise(&mut self, series: SeriesId, value: u64) {
        if let Some(peak) = self.scalars.get_mut(usize::from(series.0)) {
            *peak = value.max(*peak);
        }
    }

    fn add_value(&mut self, at: usize, value: u64) {
        let Some(Series {
            kind: Kind::Distribution(shape),
            ..
        }) = self.catalogue.series().get(at)
        else {
            return;
        };
        if let Some(cell) = self.distributions.get_mut(at - self.scalars.len()) {
            let new = || Box::new(Distribution::new(*shape));
            cell.get_or_insert_with(new).add(value);
        }
    }

    /// Counters and gauges, in the order of the catalogue.
    #[must_use]
    pub fn scalars(&self) -> &[u64] {
        &self.scalars
    }

    /// Distributions in the order of the catalogue; `None` without values.
    pub fn distributions(&self) -> impl Iterator<Item = Option<&Distribution>> {
        self.distributions.iter().map(Option::as_deref)
    }

    /// A distribution with values.
    #[must_use]
    pub fn distribution(&self, series: SeriesId) -> Option<&Distribution> {
        let at = usize::from(series.0).checked_sub(self.scalars.len())?;
        self.distributions.get(at)?.as_deref()
    }

    /// A counter or gauge.
    #[must_use]
    pub fn scalar(&self, series: SeriesId) -> u64 {
        let at = self.scalars.get(usize::from(series.0));
        at.copied().unwrap_or_default()
    }

    /// Whether nothing was counted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.scalars.iter().all(|sum| *sum == 0) && self.distributions.iter().all(Option::is_none)
    }

    /// Adds what another shard measured in the same step. The peaks of the shards add up too, which
    /// is at least the peak of all.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.scalars.iter_mut().zip(&other.scalars) {
            *mine = mine.saturating_add(*theirs);
        }
        for (mine, theirs) in self.distributions.iter_mut().zip(&other.distributions) {
            match (mine, theirs) {
                (Some(mine), Some(theirs)) => mine.merge(theirs),
                (mine @ None, Some(theirs)) => *mine = Some(theirs.clone()),
                (_, None) => {}
            }
        }
    }

    /// Forgets everything; keeps the memory of the counters.
    pub fn clear(&mut self) {
        self.scalars.fill(0);
        self.distributions.fill(None);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Direction, Measure, Transport};
    use super::*;

    #[test]
    fn cells_count_and_merge() {
        let rtt = SeriesId::distribution(Measure::TcpRttAvg, Direction::Out).unwrap();
        let packets = SeriesId::packets(Transport::Tcp, Direction::Out);
        let active = SeriesId::active(Transport::Tcp).unwrap();
        let (mut a, mut b) = (CellSet::default(), CellSet::default());
        assert!(a.is_empty() && a.distribution(rtt).is_none());
        a.add(packets, 3);
        a.raise(active, 7);
        a.raise(active, 5);
        b.add(packets, 4);
        b.add(rtt, 1_000_000);
        b.raise(active, 2);
        a.merge(&b);
        a.merge(&b);
        assert_eq!((a.scalar(packets), a.scalar(active)), (11, 11));
        assert_eq!(a.distribution(rtt).unwrap().count, 2);
        a.add(SeriesId(u16::MAX), 1);
        a.raise(rtt, 1);
        a.clear();
        assert_eq!(a, CellSet::default());
    }
}
