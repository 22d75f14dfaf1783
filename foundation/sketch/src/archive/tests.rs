//! The whole of it: consolidation, rings, torn writes, damaged files.

use proptest::prelude::*;

use super::*;
use crate::cells::{Buckets, Catalogue, CellSet, Distribution, Kind, Series, SeriesId, catalogue};

const SHAPE: Buckets = Buckets {
    low_bits: 4,
    high_bits: 12,
    sub_bits: 2,
};
const COUNTER: SeriesId = SeriesId(0);
const GAUGE: SeriesId = SeriesId(1);
const SPREAD: SeriesId = SeriesId(2);
const STEP: u64 = 300_000_000_000;

/// A few series, so that every byte of a file can be tried.
fn small() -> &'static Catalogue {
    static SMALL: std::sync::LazyLock<Catalogue> = std::sync::LazyLock::new(|| {
        let series = [
            ("counter", "bytes", Kind::Counter),
            ("gauge", "flows", Kind::Gauge),
            ("spread", "bytes", Kind::Distribution(SHAPE)),
        ];
        let series = series.map(|(name, unit, kind)| Series {
            name: name.to_owned(),
            unit: unit.to_owned(),
            kind,
        });
        Catalogue::new(series.to_vec()).unwrap()
    });
    &SMALL
}

fn short_ladder() -> Ladder {
    let levels = [(1, 7), (3, 4), (6, 5)].map(|(steps, rows)| Level { steps, rows });
    Ladder::new(STEP, levels.to_vec()).unwrap()
}

fn empty(ladder: &Ladder, catalogue: &Catalogue) -> Archive<Vec<u8>> {
    let bytes = Archive::<Vec<u8>>::file_bytes(ladder, catalogue);
    let memory = vec![0; usize::try_from(bytes).unwrap()];
    Archive::create(memory, ladder.clone(), catalogue.clone()).unwrap()
}

fn cells(counter: u64, values: &[u64]) -> CellSet {
    let mut cells = CellSet::of(small());
    cells.add(COUNTER, counter);
    cells.raise(GAUGE, counter / 2);
    for value in values {
        cells.add(SPREAD, *value);
    }
    cells
}

type Rows = Vec<(usize, u64, u32, Cell, Distribution)>;

/// All rows: level, number, steps, counter, distribution.
fn rows(bytes: &[u8]) -> Rows {
    let mut reader = Reader::open(bytes, bytes.len() as u64).unwrap();
    let mut out = Vec::new();
    let mut row = reader.buffer();
    for level in 0..reader.ladder().levels().len() {
        for place in reader.rows(level).unwrap() {
            assert!(reader.row(level, place, &mut row).unwrap());
            let Some(Cell::Distribution(spread)) = reader.cell(&row, 2) else {
                panic!("a distribution");
            };
            let counter = reader.cell(&row, 0).unwrap();
            out.push((level, place.number, row.steps(), counter, spread));
        }
    }
    out
}

fn level(bytes: &[u8], level: usize) -> Vec<u64> {
    rows(bytes)
        .iter()
        .filter(|row| row.0 == level)
        .map(|row| row.1)
        .collect()
}

/// Values of a step that differ from those of others.
fn values(number: u64) -> Vec<u64> {
    (0..number % 5 + 1)
        .map(|n| (number * 37 + n * 911) % 5000)
        .collect()
}

proptest! {
    #[test]
    fn a_row_is_the_merge_of_its_steps(
        steps in prop::collection::btree_map(0_u64..40, (0_u64..1000, prop::collection::vec(0_u64..6000, 0..20)), 1..30)
    ) {
        let levels = [(1, 50), (3, 50), (6, 50)].map(|(steps, rows)| Level { steps, rows });
        let mut archive = empty(&Ladder::new(STEP, levels.to_vec()).unwrap(), small());
        for (number, (counter, values)) in &steps {
            // In two parts, as after a restart.
            let (first, second) = values.split_at(values.len() / 2);
            prop_assert_eq!(archive.put(*number, &cells(counter / 3, first)), Ok(Put::New));
            prop_assert_eq!(archive.put(*number, &cells(counter - counter / 3, second)), Ok(Put::Added));
        }
        for (level, number, count, counter, spread) in rows(archive.memory()) {
            let length = [1, 3, 6][level];
            let inside: Vec<_> = steps.range(number * length..(number + 1) * length).map(|(_, v)| v).collect();
            prop_assert_eq!(count as usize, inside.len());
            let counters = || inside.iter().map(|step| step.0);
            let expected = Cell::Scalar {
                sum: counters().sum(),
                min: counters().min().unwrap(),
                max: counters().max().unwrap(),
            };
            prop_assert_eq!(counter, expected, "level {} row {}", level, number);
            let mut all = Distribution::new(SHAPE);
            inside.iter().flat_map(|step| &step.1).for_each(|value| all.add(*value));
            if all.count == 0 {
                all.min = 0;
            }
            // Not only close: the same, and so are all percentiles.
            prop_assert_eq!(spread, all);
        }
    }

    #[test]
    fn damaged_files_do_no_harm(
        damage in prop::collection::vec((0_usize..10_000, any::<u8>()), 1..40), cut in 0_usize..10_000, is_cut: bool
    ) {
        let mut archive = empty(&short_ladder(), small());
        for number in 90..100 {
            archive.put(number, &cells(number, &values(number))).unwrap();
        }
        let mut bytes = archive.into_memory();
        let len = bytes.len();
        for (at, value) in damage {
            bytes[at % len] = value;
        }
        if is_cut {
            bytes.truncate(cut % len);
        }
        if let Ok(mut reader) = Reader::open(bytes.as_slice(), bytes.len() as u64) {
            let read = reader.readings::<ReadFault>(&[0, 1, 2, 3], &[], (0, u64::MAX), |_| Ok(()));
            prop_assert!(read.is_ok());
        }
        if let Ok((mut archive, _)) = Archive::open(bytes, STEP, small()) {
            let _taken_or_not = archive.put(101, &cells(1, &[1]));
            let bytes = archive.into_memory();
            rows(&bytes);
        }
    }
}

#[test]
fn rings_wrap_around() {
    let mut archive = empty(&short_ladder(), small());
    for number in 0..100 {
        assert_eq!(archive.put(number, &cells(1, &[number])), Ok(Put::New));
    }
    let bytes = archive.memory();
    assert_eq!(level(bytes, 0), (93..100).collect::<Vec<u64>>());
    assert_eq!(level(bytes, 1), [30, 31, 32, 33]);
    assert_eq!(level(bytes, 2), [12, 13, 14, 15, 16]);
    let steps: Vec<u32> = rows(bytes)
        .iter()
        .filter(|row| row.0 == 2)
        .map(|row| row.2)
        .collect();
    assert_eq!(steps, [6, 6, 6, 6, 4]);
    // What the ring still has a place for is taken, what it has gone past is not.
    assert_eq!(archive.put(92, &cells(1, &[])), Err(PutError::TooOld));
    assert_eq!(archive.put(93, &cells(1, &[])), Ok(Put::Added));
    assert!(archive.holds(99) && !archive.holds(92) && !archive.holds(100));
}

#[test]
fn gaps_of_days_and_years_are_gaps() {
    let mut archive = empty(&Ladder::tstat(STEP), small());
    let (day, year) = (288, 288 * 365);
    let times = [
        1000,
        1000 + day,
        1000 + 3 * day,
        1000 + 5 * year,
        1000 + 5 * year + 1,
    ];
    for number in times {
        archive.put(number, &cells(number, &[number])).unwrap();
    }
    let bytes = archive.memory();
    assert_eq!(level(bytes, 3), [3, 4, 6, (1000 + 5 * year) / 288]);
    // Slot numbers of the lower rings met by accident: later rows win there.
    assert!(level(bytes, 0).ends_with(&[1000 + 5 * year, 1000 + 5 * year + 1]));
    let all = rows(bytes);
    let days: Vec<u32> = all
        .iter()
        .filter(|row| row.0 == 3)
        .map(|row| row.2)
        .collect();
    assert_eq!(days, [1, 1, 1, 2]);
    let beyond = u64::MAX / STEP;
    assert_eq!(
        archive.put(beyond, &cells(1, &[])),
        Err(PutError::BeyondTime)
    );
    assert_eq!(
        archive.put(u64::MAX, &cells(1, &[])),
        Err(PutError::BeyondTime)
    );
    archive.put(beyond - 1, &cells(1, &[])).unwrap();
}

#[test]
fn the_archive_of_this_version_fits_its_promise() {
    let bytes = Archive::<Vec<u8>>::file_bytes(&Ladder::tstat(STEP), catalogue());
    assert!(bytes < 150_000_000, "{bytes}");
    let kinds = catalogue().series().len() - catalogue().scalars();
    assert!(kinds >= 39 && catalogue().scalars() >= 180);
}

#[test]
fn readings_are_rates_levels_and_percentiles() {
    let mut archive = empty(&Ladder::tstat(STEP), small());
    for (number, counter) in [(600, 600), (601, 1200)] {
        archive
            .put(number, &cells(counter, &[100, 200, 300]))
            .unwrap();
    }
    let bytes = archive.into_memory();
    let mut reader = Reader::open(bytes.as_slice(), bytes.len() as u64).unwrap();
    let mut all = Vec::new();
    let missed = reader.readings::<ReadFault>(&[0, 1, 2], &[1], (0, u64::MAX), |reading| {
        all.push(*reading);
        Ok(())
    });
    assert_eq!(missed, Ok(0));
    let [counter, gauge, spread] = all[..] else {
        panic!("{all:?}");
    };
    assert_eq!((counter.start_ns, counter.span_ns), (600 * STEP, 6 * STEP));
    assert_eq!((counter.steps, counter.sum), (2, 1800));
    assert_eq!(
        [counter.min, counter.avg, counter.max],
        [Some(2.0), Some(3.0), Some(4.0)]
    );
    assert_eq!(
        [gauge.min, gauge.avg, gauge.max],
        [Some(300.0), Some(450.0), Some(600.0)]
    );
    assert_eq!((spread.count, spread.avg), (6, Some(200.0)));
    let p95 = spread.p95.unwrap();
    assert!((256.0..=300.0).contains(&p95), "{p95}");
    let outside = reader.readings::<ReadFault>(&[0], &[0], (0, 600 * STEP), |_| panic!("none"));
    assert_eq!(outside, Ok(0));
}

#[test]
fn other_archives_are_refused_with_reasons() {
    let bytes = empty(&short_ladder(), small()).into_memory();
    let refused = |bytes: Vec<u8>, step, catalogue: &Catalogue| {
        Archive::open(bytes, step, catalogue)
            .map(|_| ())
            .unwrap_err()
    };
    let step = refused(bytes.clone(), 60_000_000_000, small());
    assert_eq!(
        step.to_string(),
        "the archive has steps of 300 s, and not of 60 s: use --step 300s or another file"
    );
    let series = refused(bytes.clone(), STEP, catalogue()).to_string();
    assert!(
        series.contains("`counter` there, `packets_tcp_in`"),
        "{series}"
    );
    let fewer = Catalogue::new(small().series()[..2].to_vec()).unwrap();
    assert!(matches!(
        refused(bytes.clone(), STEP, &fewer),
        Refused::Series(_)
    ));
    let mut wrong = small().series().to_vec();
    wrong[2].kind = Kind::Distribution(Buckets {
        sub_bits: 3,
        ..SHAPE
    });
    let wrong = refused(bytes.clone(), STEP, &Catalogue::new(wrong).unwrap()).to_string();
    assert!(wrong.contains("of another shape"), "{wrong}");
    assert_eq!(
        refused(b"hello".to_vec(), STEP, small()),
        Refused::NotAnArchive
    );
    assert_eq!(refused(Vec::new(), STEP, small()), Refused::NotAnArchive);
    let mut cut = bytes.clone();
    cut.pop();
    assert!(matches!(refused(cut, STEP, small()), Refused::Size { .. }));
    let mut later = bytes.clone();
    later[8] = 9;
    assert_eq!(refused(later, STEP, small()), Refused::Version { found: 9 });
    for at in 12..200 {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x40;
        refused(damaged, STEP, small());
    }
    let mut archive = Archive::open(bytes, STEP, small()).unwrap().0;
    assert_eq!(
        archive.put(1, &CellSet::default()),
        Err(PutError::OtherSeries)
    );
}

#[test]
fn torn_rows_of_upper_levels_are_made_again() {
    let mut archive = empty(&short_ladder(), small());
    for number in 93..100 {
        archive
            .put(number, &cells(number, &values(number)))
            .unwrap();
    }
    let whole = archive.into_memory();
    let before = rows(&whole);
    let layout = header::Layout::read(&whole, whole.len() as u64).unwrap();
    let torn = |level: usize, number: u64| {
        let mut bytes = whole.clone();
        bytes[..].copy_from_slice(&whole);
        let at = layout.slot(level, layout.slot_of(level, number));
        bytes[at + 40] ^= 1;
        // The journal would put it right: as after many more steps, it is of others.
        bytes[layout.journal()] ^= 1;
        let (archive, opened) = Archive::open(bytes, STEP, small()).unwrap();
        (archive.into_memory(), opened)
    };
    for (level, number) in [(1, 32), (1, 33), (2, 16)] {
        let (bytes, opened) = torn(level, number);
        assert_eq!(
            (opened.rebuilt, opened.lost, opened.newest),
            (1, 0, Some(99))
        );
        assert_eq!(rows(&bytes), before);
    }
    // Steps 90 to 92 are not there any more, as far as anybody can know: the ring has gone on.
    let (bytes, opened) = torn(0, 95);
    assert_eq!((opened.rebuilt, opened.lost), (0, 1));
    assert_eq!(rows(&bytes).len(), before.len() - 1);
}

/// Keeps every write, in order.
struct Recorder {
    bytes: Vec<u8>,
    writes: Vec<(usize, Vec<u8>)>,
}

impl Memory for Recorder {
    fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn write(&mut self, at: usize, data: &[u8]) {
        self.bytes.write(at, data);
        self.writes.push((at, data.to_vec()));
    }

    fn barrier(&mut self) {}
}

/// Puts a step, killed after every byte of every write: all but the step is as before, or all is as
/// after it.
fn killed_everywhere(before: &[u8], number: u64) {
    let recorder = Recorder {
        bytes: before.to_vec(),
        writes: Vec::new(),
    };
    let (mut archive, _) = Archive::open(recorder, STEP, small()).unwrap();
    let step = cells(number + 5, &values(number + 1));
    archive.put(number, &step).unwrap();
    let recorder = archive.into_memory();
    let (old, new) = (rows(before), rows(&recorder.bytes));
    assert_ne!(old, new);
    let mut bytes = before.to_vec();
    let mut seen = [0; 3];
    let mut is_after = false;
    for (at, data) in &recorder.writes {
        for (offset, byte) in data.iter().enumerate() {
            bytes[at + offset] = *byte;
            // Rows as a reader sees them who comes while nobody has put things right.
            let read = rows(&bytes);
            let (archive, opened) = Archive::open(bytes.clone(), STEP, small()).unwrap();
            let now = rows(archive.memory());
            assert_eq!((opened.rebuilt, opened.lost), (0, 0), "at {}", at + offset);
            assert_eq!(read, now);
            if now == old {
                // Never back again.
                assert!(!is_after);
                seen[0] += 1;
            } else {
                assert!(now == new, "at {}", at + offset);
                is_after = true;
                seen[1] += 1;
                seen[2] += u32::from(opened.completed);
            }
            // And it goes on from there.
            if offset % 97 == 0 {
                let mut archive = archive;
                archive.put(number + 1, &step).unwrap();
                assert!(archive.holds(number + 1));
            }
        }
    }
    assert!(
        is_after && seen.iter().all(|times| *times > 100),
        "{seen:?}"
    );
}

#[test]
fn a_writer_killed_at_any_byte_loses_the_current_step_at_most() {
    let mut archive = empty(&short_ladder(), small());
    for number in 80..99 {
        archive
            .put(number, &cells(number, &values(number)))
            .unwrap();
    }
    let bytes = archive.into_memory();
    // A step inside rows, one that begins a row of the second level, one that is added to, one late.
    killed_everywhere(&bytes, 99);
    killed_everywhere(&bytes, 102);
    killed_everywhere(&bytes, 98);
    killed_everywhere(&bytes, 95);
}

/// The values of a time, counted one by one, and what the archive says of it.
#[test]
fn the_values_of_any_time_are_those_of_its_steps() {
    let ladder = short_ladder();
    let mut archive = empty(&ladder, small());
    // Longer than the finest ring, with steps that were not measured.
    let steps: Vec<u64> = (100..=117).filter(|number| *number != 109).collect();
    let value = |number: u64| [number - 90, 16 << (number % 4)];
    for number in &steps {
        archive
            .put(*number, &cells(*number * 300, &value(*number)))
            .unwrap();
    }
    let bytes: &[u8] = archive.memory();
    let mut reader = Reader::open(bytes, bytes.len() as u64).unwrap();
    let expected = |from: u64, to: u64| {
        let mut all = Distribution::new(SHAPE);
        let within = steps.iter().filter(|number| (from..to).contains(*number));
        within
            .flat_map(|number| value(*number))
            .for_each(|one| all.add(one));
        all
    };
    for (from, to, held_from) in [
        // All; a part that the finest ring still has; one whose first row is only there as one of three.
        (0, 1_000, 100),
        (112, 116, 112),
        (114, 118, 114),
        (103, 116, 102),
        (107, 109, 102),
    ] {
        let found = reader.spread(&[2], 0, (from * STEP, to * STEP)).unwrap();
        let until = if (from, to) == (107, 109) { 111 } else { to };
        let expected = expected(held_from, until);
        assert_eq!(found.series[0].distribution, expected, "{from} to {to}");
        assert_eq!(found.missed, 0);
        assert_eq!(found.steps * 2, expected.count, "{from} to {to}");
    }
    let found = reader.spread(&[2], 0, (112 * STEP, 116 * STEP)).unwrap();
    assert_eq!((found.from_ns, found.to_ns), (112 * STEP, 116 * STEP));
    let none = reader.spread(&[2], 0, (7 * STEP, 9 * STEP)).unwrap();
    assert_eq!((none.from_ns, none.to_ns, none.steps), (0, 0, 0));
    // Counters: a value a row, as a rate in thousandths.
    let found = reader.spread(&[0], 1, (0, 1_000 * STEP)).unwrap();
    let counter = &found.series[0];
    let rows = level(bytes, 1).len() as u64;
    assert_eq!((counter.parts, counter.distribution.count), (1000, rows));
    assert_eq!(counter.distribution.max, 117_000);
    let gauge = reader.spread(&[1], 0, (117 * STEP, 118 * STEP)).unwrap();
    assert_eq!(gauge.series[0].distribution.max, 117 * 150 * 1000);
    assert_eq!((gauge.steps, gauge.from_ns), (1, 117 * STEP));
    // The finest level that has it.
    let level_since = |number: u64| reader.level_since(number * STEP).unwrap();
    assert_eq!([117, 111, 110, 108, 107].map(level_since), [0, 0, 1, 1, 2]);
}

#[test]
fn a_damaged_row_is_taken_from_the_level_below() {
    let ladder = short_ladder();
    let mut archive = empty(&ladder, small());
    // The last one stands in the journal once more.
    for number in 0..7 {
        archive.put(number, &cells(1, &[number * 20])).unwrap();
    }
    let mut torn = archive.memory().clone();
    let spread = |bytes: &[u8]| {
        let mut reader = Reader::open(bytes, bytes.len() as u64).unwrap();
        let found = reader.spread(&[2], 0, (0, 6 * STEP)).unwrap();
        (found.series[0].distribution.count, found.missed)
    };
    assert_eq!(spread(&torn), (6, 0));
    let layout = header::Layout::new(ladder, small().clone());
    let at = |level: usize| layout.slot(level, 0);
    torn[at(2) + 40] ^= 1;
    assert_eq!(spread(&torn), (6, 0));
    torn[at(1) + 40] ^= 1;
    assert_eq!(spread(&torn), (6, 0));
    torn[at(0) + 40] ^= 1;
    assert_eq!(spread(&torn), (5, 1));
}
