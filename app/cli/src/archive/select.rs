//! Which series, rows and times are meant.

use linkweir_sketch::archive::{Ladder, ReadAt, ReadFault, Reader, Reading};
use linkweir_sketch::cells::{Catalogue, Kind};

/// A series as it is shown: one of the archive, or a counter of bytes in bits.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct View {
    /// Its name.
    pub(crate) name: String,
    /// The unit of its values; of a counter per second.
    pub(crate) unit: String,
    /// Its place in the catalogue of the file.
    pub(crate) place: usize,
    /// Whether its values are a distribution.
    pub(crate) has_percentiles: bool,
    factor: u32,
}

impl View {
    /// What a value of the series is multiplied with.
    pub(crate) fn factor(&self) -> f64 {
        f64::from(self.factor)
    }

    /// A reading in the unit of the view.
    pub(crate) fn of(&self, reading: &Reading) -> Reading {
        let factor = f64::from(self.factor);
        let scaled = |value: Option<f64>| value.map(|value| value * factor);
        Reading {
            sum: reading.sum.saturating_mul(u128::from(self.factor)),
            avg: scaled(reading.avg),
            min: scaled(reading.min),
            max: scaled(reading.max),
            ..*reading
        }
    }
}

/// What there is to see: each series, and counters of bytes as `bitrate_…` too.
pub(crate) fn views(catalogue: &Catalogue) -> Vec<View> {
    let mut views = Vec::new();
    for (place, series) in catalogue.series().iter().enumerate() {
        let unit = match series.kind {
            Kind::Counter => format!("{}/s", series.unit),
            Kind::Gauge | Kind::Distribution(_) => series.unit.clone(),
        };
        let has_percentiles = matches!(series.kind, Kind::Distribution(_));
        views.push(View {
            name: series.name.clone(),
            unit,
            place,
            has_percentiles,
            factor: 1,
        });
        if let (Kind::Counter, Some(of)) = (series.kind, series.name.strip_prefix("bytes_")) {
            views.push(View {
                name: format!("bitrate_{of}"),
                unit: "bit/s".to_owned(),
                place,
                has_percentiles: false,
                factor: 8,
            });
        }
    }
    views
}

/// The view of exactly this name.
pub(crate) fn named<'a>(views: &'a [View], name: &str) -> Option<&'a View> {
    views.iter().find(|view| view.name == name)
}

/// The views of a name, or of a beginning of names up to a `_`. Bit rates only where they are
/// asked for: they are the counters of bytes once more.
pub(crate) fn matching(views: &[View], names: &[String]) -> Result<Vec<View>, String> {
    if names.is_empty() {
        return Ok(views
            .iter()
            .filter(|view| view.factor == 1)
            .cloned()
            .collect());
    }
    for name in names {
        if !views.iter().any(|view| is_meant(view, name)) {
            return Err(format!(
                "no series `{name}`; `linkweir archive dump FILE --list` shows all"
            ));
        }
    }
    let is_chosen = |view: &&View| names.iter().any(|name| is_meant(view, name));
    Ok(views.iter().filter(is_chosen).cloned().collect())
}

fn is_meant(view: &View, name: &str) -> bool {
    let rest = view.name.strip_prefix(name);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
}

/// The time that an archive has rows of, nanoseconds since the epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Held {
    /// Begin of the first row. A coarse row is a whole one: what it holds may be its end.
    pub(crate) oldest: u64,
    /// End of the latest step.
    pub(crate) newest: u64,
    /// Begin and end of the coarsest rows.
    rows: Vec<(u64, u64)>,
}

impl Held {
    pub(crate) fn of(reader: &mut Reader<impl ReadAt>) -> Result<Self, ReadFault> {
        let last = reader.ladder().levels().len().saturating_sub(1);
        let (step_ns, span_ns) = (reader.ladder().step_ns(), reader.ladder().span_ns(last));
        let mut fine = reader.rows(0)?;
        // A damaged row may say any time: the latest must be whole.
        let mut row = reader.buffer();
        while let Some(latest) = fine.last()
            && !reader.row(0, *latest, &mut row)?
        {
            fine.pop();
        }
        let newest = fine.last().map_or(0, |row| row.number.saturating_add(1));
        let rows = reader.rows(last)?.into_iter().map(|row| {
            let from = row.number.saturating_mul(span_ns);
            (from, from.saturating_add(span_ns))
        });
        let newest = newest.saturating_mul(step_ns);
        let mut held = Self {
            oldest: 0,
            newest,
            rows: rows.filter(|(from, _)| *from < newest).collect(),
        };
        let first_step = fine.first().map(|row| row.number.saturating_mul(step_ns));
        held.oldest = match (held.rows.first(), first_step) {
            (Some((from, to)), Some(first)) if (*from..*to).contains(&first) => first,
            (Some((from, _)), _) => *from,
            (None, first) => first.unwrap_or(held.newest),
        };
        Ok(held)
    }

    /// Whether there is a row of any of this time.
    pub(crate) fn has(&self, from: u64, to: u64) -> bool {
        let overlaps = |(begin, end): &(u64, u64)| *begin < to && from < *end;
        from < self.newest && to > self.oldest && self.rows.iter().any(overlaps)
    }

    #[cfg(test)]
    pub(crate) fn made(oldest: u64, newest: u64) -> Self {
        Self {
            oldest,
            newest,
            rows: vec![(oldest, newest)],
        }
    }
}

/// The levels of these names.
pub(crate) fn levels(ladder: &Ladder, names: &[String]) -> Result<Vec<usize>, String> {
    let level = |name: &String| {
        ladder.named(name).ok_or_else(|| {
            let all: Vec<String> = (0..ladder.levels().len())
                .map(|at| ladder.name(at))
                .collect();
            format!("no rows of `{name}`; available: {}", all.join(", "))
        })
    };
    names.iter().map(level).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use linkweir_sketch::archive::{Archive, Level};
    use linkweir_sketch::cells::{CellSet, catalogue};

    #[test]
    fn names_and_beginnings_of_names() {
        let views = views(catalogue());
        let count = |name: &str| matching(&views, &[name.to_owned()]).map(|all| all.len());
        assert_eq!(count("tcp_rtt_avg_in"), Ok(1));
        assert_eq!(count("tcp_rtt_avg"), Ok(3));
        assert_eq!(count("tcp_rtt"), Ok(9));
        assert_eq!(count("bitrate_tcp"), Ok(4));
        assert!(count("tcp_rt").is_err() && count("").is_err());
        assert_eq!(
            matching(&views, &[]).unwrap().len(),
            catalogue().series().len()
        );
        let bits = named(&views, "bitrate_udp_out").unwrap();
        let reading = Reading {
            sum: 3,
            avg: Some(1.5),
            ..Reading::default()
        };
        assert_eq!(
            (bits.of(&reading).sum, bits.of(&reading).avg),
            (24, Some(12.0))
        );
        assert_eq!(named(&views, "packets_tcp_in").unwrap().unit, "packets/s");
    }

    #[test]
    fn a_damaged_row_is_not_the_latest_step() {
        let step = 300_000_000_000;
        let levels = [(1, 7), (3, 4)].map(|(steps, rows)| Level { steps, rows });
        let ladder = Ladder::new(step, levels.to_vec()).unwrap();
        let series = catalogue().clone();
        let size = Archive::<Vec<u8>>::file_bytes(&ladder, &series);
        let memory = vec![0; usize::try_from(size).unwrap()];
        let mut archive = Archive::create(memory, ladder, series).unwrap();
        let first = 5_000_000_u64;
        for number in first..first + 3 {
            archive.put(number, &CellSet::of(catalogue())).unwrap();
        }
        let mut bytes = archive.memory().clone();
        let held = |bytes: &[u8]| {
            let mut reader = Reader::open(bytes, bytes.len() as u64).unwrap();
            let held = Held::of(&mut reader).unwrap();
            (held.oldest / step, held.newest / step)
        };
        assert_eq!(held(&bytes), (first, first + 3));
        // Wherever its number stands, one more than it is, there is a later one that could stand in its place.
        let (latest, later) = (first + 3, first + 3 + 7_000_000);
        let places: Vec<usize> = (0..bytes.len() - 8)
            .filter(|at| bytes[*at..].starts_with(&latest.to_le_bytes()))
            .collect();
        assert!(!places.is_empty());
        for at in places {
            bytes[at..at + 8].copy_from_slice(&later.to_le_bytes());
        }
        assert_eq!(held(&bytes), (first, first + 2));
    }

    #[test]
    fn names_of_levels() {
        let ladder = Ladder::tstat(300_000_000_000);
        let names = ["2h".to_owned(), "5min".to_owned()];
        assert_eq!(levels(&ladder, &names), Ok(vec![2, 0]));
        let error = levels(&ladder, &["1h".to_owned()]).unwrap_err();
        assert!(
            error.ends_with("available: 5min, 30min, 2h, 1day"),
            "{error}"
        );
    }
}
