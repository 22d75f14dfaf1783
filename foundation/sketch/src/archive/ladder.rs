//! At which resolutions rows are kept, and for how long.

/// One resolution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Level {
    /// Steps in a row.
    pub steps: u32,
    /// Rows in the ring.
    pub rows: u32,
}

/// The levels of an archive, finest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ladder {
    step_ns: u64,
    levels: Vec<Level>,
}

/// Tstat's levels, in steps of 5 minutes: 50 hours of 5 minutes, 14.6 days of 30 minutes, 64.6 days
/// of 2 hours, 797 days of 1 day.
const TSTAT: [(u32, u32); 4] = [(1, 600), (6, 700), (24, 775), (288, 797)];

impl Ladder {
    /// The most levels.
    pub const MAX_LEVELS: usize = 8;
    /// The most rows of a level.
    const MAX_ROWS: u32 = 1 << 20;

    /// Tstat's ladder for steps of `step_ns` nanoseconds: 600 rows of one step, 700 of 6, 775 of 24,
    /// 797 of 288.
    #[must_use]
    pub fn tstat(step_ns: u64) -> Self {
        let levels = TSTAT.map(|(steps, rows)| Level { steps, rows }).to_vec();
        Self {
            step_ns: step_ns.max(1),
            levels,
        }
    }

    /// A ladder; `None` unless the first level has one step in a row, each further one a multiple of
    /// the one before, and each ring holds at least the rows that one row of the next is made of.
    #[must_use]
    pub fn new(step_ns: u64, levels: Vec<Level>) -> Option<Self> {
        let first = levels.first()?;
        let is_sound = |pair: &[Level]| match pair {
            [low, high] => {
                let parts = high.steps / low.steps.max(1);
                high.steps > low.steps
                    && high.steps.is_multiple_of(low.steps.max(1))
                    && parts <= low.rows
            }
            _ => false,
        };
        let are_sound = first.steps == 1
            && levels.len() <= Self::MAX_LEVELS
            && levels.windows(2).all(is_sound)
            && levels
                .iter()
                .all(|level| (1..=Self::MAX_ROWS).contains(&level.rows));
        (are_sound && step_ns > 0).then_some(Self { step_ns, levels })
    }

    /// The levels, finest first.
    #[must_use]
    pub fn levels(&self) -> &[Level] {
        &self.levels
    }

    /// Length of a step, nanoseconds.
    #[must_use]
    pub const fn step_ns(&self) -> u64 {
        self.step_ns
    }

    /// Length of a row of a level, nanoseconds; zero where there is no such level.
    #[must_use]
    pub fn span_ns(&self, level: usize) -> u64 {
        let steps = self.levels.get(level).map_or(0, |one| one.steps);
        self.step_ns.saturating_mul(u64::from(steps))
    }

    /// The name of a level: the length of its rows, `5min`, `30min`, `2h`, `1day`.
    #[must_use]
    pub fn name(&self, level: usize) -> String {
        const UNITS: [(u64, &str); 6] = [
            (86_400_000_000_000, "day"),
            (3_600_000_000_000, "h"),
            (60_000_000_000, "min"),
            (1_000_000_000, "s"),
            (1_000_000, "ms"),
            (1_000, "us"),
        ];
        let span = self.span_ns(level);
        let unit = UNITS
            .iter()
            .find(|(ns, _)| span >= *ns && span.is_multiple_of(*ns));
        unit.map_or_else(
            || format!("{span}ns"),
            |(ns, name)| format!("{}{name}", span / ns),
        )
    }

    /// The level with a name.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<usize> {
        (0..self.levels.len()).find(|level| self.name(*level) == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tstats_levels_have_tstats_spans() {
        let ladder = Ladder::tstat(300_000_000_000);
        assert!(Ladder::new(ladder.step_ns(), ladder.levels().to_vec()).is_some());
        let names: Vec<String> = (0..4).map(|level| ladder.name(level)).collect();
        assert_eq!(names, ["5min", "30min", "2h", "1day"]);
        let hours = |level: usize| {
            ladder.span_ns(level) / 60_000_000_000 * u64::from(ladder.levels()[level].rows) / 60
        };
        assert_eq!([0, 1, 2, 3].map(hours), [50, 350, 1550, 797 * 24]);
        assert_eq!(ladder.named("2h"), Some(2));
        assert_eq!(ladder.named("3h"), None);
        let short = Ladder::tstat(1_000_000_000);
        let names: Vec<String> = (0..4).map(|level| short.name(level)).collect();
        assert_eq!(names, ["1s", "6s", "24s", "288s"]);
        assert_eq!(Ladder::tstat(7).name(0), "7ns");
    }

    #[test]
    fn ladders_that_cannot_be_are_refused() {
        let ladder = |levels: &[(u32, u32)]| {
            let levels = levels.iter().map(|(steps, rows)| Level {
                steps: *steps,
                rows: *rows,
            });
            Ladder::new(1, levels.collect())
        };
        assert!(ladder(&[(1, 6), (6, 1)]).is_some());
        for wrong in [
            &[][..],
            &[(2, 6)],
            &[(1, 0)],
            &[(1, 5), (6, 1)],
            &[(1, 9), (1, 9)],
            &[(1, 9), (4, 9), (6, 9)],
            &[(1, u32::MAX)],
            &[
                (1, 2),
                (2, 2),
                (4, 2),
                (8, 2),
                (16, 2),
                (32, 2),
                (64, 2),
                (128, 2),
                (256, 2),
            ],
        ] {
            assert_eq!(ladder(wrong), None, "{wrong:?}");
        }
        assert_eq!(Ladder::new(0, vec![Level { steps: 1, rows: 1 }]), None);
    }
}
