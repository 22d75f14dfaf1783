//! Schedules: moments, bounds, and that a seed names one.

use linkweir_model::Random;
use proptest::prelude::*;

use super::*;

/// Rates in a circle.
#[derive(Debug, Clone)]
struct Circle {
    rates: Vec<f64>,
    at: usize,
}

impl Circle {
    fn new(rates: &[f64]) -> Self {
        let rates = rates.to_vec();
        Self { rates, at: 0 }
    }
}

impl RateSource for Circle {
    fn next_bin(&mut self) -> f64 {
        let rate = self.rates[self.at % self.rates.len()];
        self.at += 1;
        rate
    }
}

fn all(mut arrivals: impl Arrivals) -> Vec<u64> {
    std::iter::from_fn(|| arrivals.next()).collect()
}

fn until(plan: Plan<Circle>, duration_ns: u64) -> Vec<u64> {
    let limits = Limits {
        duration_ns,
        ..Limits::NONE
    };
    all(Schedule::new(plan, limits))
}

const SECOND: u64 = 1_000_000_000;

#[test]
fn equal_gaps_do_not_drift() {
    let times = until(Plan::Even(Even::new(3.0)), 10_000 * SECOND);
    assert_eq!(times.len(), 30_000);
    assert_eq!(times[..4], [0, 333_333_333, 666_666_666, SECOND]);
    assert_eq!(times[29_997], 9_999 * SECOND);
}

#[test]
fn poisson_has_its_rate_and_its_variance() {
    let times = until(
        Plan::Poisson(Poisson::new(50.0, Random::new(3))),
        4_000 * SECOND,
    );
    let mut counts = vec![0.0_f64; 4_000];
    for time in &times {
        counts[usize::try_from(time / SECOND).unwrap()] += 1.0;
    }
    let mean = counts.iter().sum::<f64>() / 4_000.0;
    let variance = counts
        .iter()
        .map(|count| (count - mean).powi(2))
        .sum::<f64>()
        / 4_000.0;
    // Three standard errors of each.
    assert!((mean - 50.0).abs() < 0.34, "{mean}");
    assert!((variance / 50.0 - 1.0).abs() < 0.07, "{variance}");
}

#[test]
fn counts_in_bins_are_poisson_of_their_rates() {
    let rates = [0.0, 40.0, 5.0, 0.2];
    let bin_ns = 10_000_003;
    let rounds = 5_000;
    let modulated = Modulated::new(Circle::new(&rates), bin_ns, 1.0, Random::new(11));
    let times = until(Plan::Modulated(modulated), bin_ns * 4 * rounds);
    let mut sums = [(0.0_f64, 0.0_f64); 4];
    let mut counts = vec![0.0_f64; usize::try_from(4 * rounds).unwrap()];
    for time in &times {
        counts[usize::try_from(time / bin_ns).unwrap()] += 1.0;
    }
    for (bin, count) in counts.iter().enumerate() {
        let (sum, squares) = &mut sums[bin % 4];
        *sum += count;
        *squares += count * count;
    }
    for ((sum, squares), rate) in sums.iter().zip(rates) {
        let (mean, square) = (sum / 5_000.0, squares / 5_000.0);
        let error = 4.0 * (rate / 5_000.0_f64).sqrt();
        assert!((mean - rate).abs() <= error, "{mean} for {rate}");
        let variance = square - mean * mean;
        assert!(
            (variance - rate).abs() <= 0.1 * rate,
            "{variance} for {rate}"
        );
    }
}

#[test]
fn rates_and_bins_are_scaled() {
    let factor = rate_factor(20.0, SECOND / 2, 1_000.0);
    assert!((factor - 25.0).abs() < 1e-9);
    assert!(rate_factor(0.0, SECOND, 5.0).abs() < 1e-9);
    let modulated = Modulated::new(
        Circle::new(&[10.0, 30.0]),
        SECOND / 2,
        factor,
        Random::new(1),
    );
    let times = until(Plan::Modulated(modulated), 100 * SECOND);
    let rate = f64::from(u32::try_from(times.len()).unwrap()) / 100.0;
    assert!((rate - 1_000.0).abs() < 12.0, "{rate}");
}

#[test]
fn a_number_of_sessions_is_kept_and_they_follow_the_rates() {
    let rates = [0.0, 40.0, 5.0, 0.2];
    let bin_ns = 10_000_003;
    // The last bin is not whole: half of the one without arrivals.
    let duration_ns = bin_ns * 4 * 1_000 + bin_ns / 2;
    let sessions = 60_000_u64;
    let exact = |seed| {
        let source = Circle::new(&rates);
        Exact::new(source, bin_ns, duration_ns, sessions, Random::new(seed)).unwrap()
    };
    let times = until(Plan::Exact(exact(3)), duration_ns);
    assert_eq!(times.len(), 60_000);
    assert!(times.is_sorted());
    assert_eq!(times, until(Plan::Exact(exact(3)), duration_ns));
    assert_ne!(times, until(Plan::Exact(exact(4)), duration_ns));
    let mut counts = [0.0_f64; 4];
    let mut halves = [0.0_f64; 2];
    for time in &times {
        counts[usize::try_from(time / bin_ns % 4).unwrap()] += 1.0;
        halves[usize::try_from(time * 2 / duration_ns).unwrap()] += 1.0;
    }
    for (count, rate) in counts.iter().zip(rates) {
        let expected = 60_000.0 * rate / 45.2;
        assert!(
            (count - expected).abs() <= 4.0 * expected.sqrt(),
            "{counts:?}"
        );
    }
    // Nothing heaps up at the end.
    assert!(
        (halves[0] - 30_000.0).abs() < 4.0 * 15_000_f64.sqrt(),
        "{halves:?}"
    );
    // Gaps within a bin of one rate are exponential: their deviation is their mean.
    let gaps = times
        .windows(2)
        .filter(|pair| pair[0] / bin_ns == pair[1] / bin_ns);
    let gaps: Vec<f64> = gaps
        .filter(|pair| pair[0] / bin_ns % 4 == 1)
        .map(|pair| (pair[1] - pair[0]) as f64)
        .collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let squares = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>();
    let deviation = (squares / gaps.len() as f64).sqrt();
    assert!((deviation / mean - 1.0).abs() < 0.05, "{deviation} {mean}");
}

#[test]
fn a_number_of_sessions_needs_a_path_with_arrivals() {
    let of = |rates: &[f64], duration_ns| {
        Exact::new(Circle::new(rates), 10, duration_ns, 5, Random::new(1)).is_some()
    };
    assert!(!of(&[0.0], 1_000) && !of(&[f64::NAN, -1.0], 1_000) && !of(&[1.0], 0));
    assert!(!of(&[1.0], u64::MAX), "too many bins");
    assert!(of(&[0.0, 1.0], 20) && !of(&[0.0, 1.0], 10));
    // All of them in the last tenth of a bin.
    let exact = Exact::new(Circle::new(&[0.0, 1.0]), 10, 11, 5, Random::new(1)).unwrap();
    assert_eq!(until(Plan::Exact(exact), 11), [10; 5]);
}

#[test]
fn a_silent_model_ends() {
    let silent = || Modulated::new(Circle::new(&[0.0]), SECOND, 1.0, Random::new(1));
    assert!(until(Plan::Modulated(silent()), 1_000 * SECOND).is_empty());
    assert!(until(Plan::Modulated(silent()), u64::MAX).is_empty());
    let nonsense = Modulated::new(Circle::new(&[f64::NAN, -1.0]), 0, 1.0, Random::new(1));
    assert!(until(Plan::Modulated(nonsense), 1_000).is_empty());
}

#[test]
fn a_seed_names_a_schedule() {
    let poisson = |seed| {
        until(
            Plan::Poisson(Poisson::new(100.0, Random::new(seed))),
            10 * SECOND,
        )
    };
    assert_eq!(poisson(5), poisson(5));
    assert_ne!(poisson(5), poisson(6));
    let modulated = |seed| {
        let circle = Circle::new(&[3.0, 50.0]);
        let modulated = Modulated::new(circle, SECOND, 1.0, Random::new(seed));
        until(Plan::Modulated(modulated), 60 * SECOND)
    };
    assert_eq!(modulated(5), modulated(5));
    assert_ne!(modulated(5), modulated(6));
    // A promise to every later version.
    assert_eq!(poisson(1)[..3], FIRST_OF_SEED_1);
}

const FIRST_OF_SEED_1: [u64; 3] = [16_692_524, 30_440_322, 31_495_604];

#[test]
fn both_bounds_end_a_schedule_for_good() {
    let limits = Limits {
        duration_ns: 10 * SECOND,
        sessions: 3,
    };
    let mut schedule: Schedule<Circle> = Schedule::new(Plan::Even(Even::new(1.0)), limits);
    let times: Vec<u64> = std::iter::from_fn(|| schedule.next()).collect();
    assert_eq!(times, [0, SECOND, 2 * SECOND]);
    assert_eq!((schedule.next(), schedule.planned()), (None, 3));
    let limits = Limits {
        duration_ns: SECOND,
        sessions: 3,
    };
    let mut schedule: Schedule<Circle> = Schedule::new(Plan::Even(Even::new(1.0)), limits);
    assert_eq!(
        [schedule.next(), schedule.next(), schedule.next()],
        [Some(0), None, None]
    );
}

#[test]
fn recorded_times_are_counted_from_the_first() {
    let text = "start_s,client\n# a comment\n\n1700000000.25,10.0.0.1\n1699999999.000000001 x\n1700000001\n";
    let replay = Replay::parse(text).expect("times");
    assert_eq!(replay.len(), 3);
    assert_eq!(all(replay.clone()), [0, 1_249_999_999, 1_999_999_999]);
    assert_eq!(all(replay.stretched(0.5)), [0, 624_999_999, 999_999_999]);
}

#[test]
fn faults_in_recorded_times_have_a_place() {
    for (text, place, word) in [
        ("1.0\n  x2\n", (2, 3), "x2"),
        ("1.0\n-3\n", (2, 1), "-3"),
        ("1e3\n", (1, 1), "1e3"),
        ("time\ntime\n", (2, 1), "time"),
        ("99999999999999999999\n", (1, 1), "9999"),
        ("# nothing\n", (1, 1), "no time"),
    ] {
        let error = Replay::parse(text).expect_err(text);
        assert_eq!((error.line, error.column), place, "{text:?}");
        assert!(error.to_string().contains(word), "{error}");
    }
}

#[test]
fn words_of_the_command_line() {
    let model = |path: &str, rate, is_exact| Word::Model {
        path: path.to_owned(),
        rate,
        is_exact,
    };
    for (word, want) in [
        ("constant:250", Word::Constant { rate: 250.0 }),
        ("poisson:0.5", Word::Poisson { rate: 0.5 }),
        ("mmpp:day.json", model("day.json", None, false)),
        ("mmpp:a@b.json@90", model("a@b.json", Some(90.0), false)),
        ("mmpp:a@b.json", model("a@b.json", None, false)),
        ("mmpp:m.json@=90", model("m.json", Some(90.0), true)),
        (
            "replay:c:/x",
            Word::Replay {
                path: "c:/x".to_owned(),
            },
        ),
    ] {
        assert_eq!(want.to_string(), word);
        assert_eq!(word.parse(), Ok(want), "{word}");
    }
    for (word, part) in [
        ("", "poisson:RATE"),
        ("uniform:3", "uniform:3"),
        ("constant:", "sessions a second"),
        ("constant:0", "above 0"),
        ("poisson:-1", "above 0"),
        ("poisson:NaN", "above 0"),
        ("constant:inf", "at most"),
        ("mmpp:m.json@0", "above 0"),
        ("mmpp:m.json@=-3", "above 0"),
        ("mmpp:", "names no file"),
        ("mmpp:@5", "names no file"),
        ("replay:", "names no file"),
    ] {
        let error = word.parse::<Word>().expect_err(word);
        assert!(error.to_string().contains(part), "{word}: {error}");
    }
}

proptest! {
    #[test]
    fn times_never_go_back(rates in proptest::collection::vec(prop_oneof![Just(0.0), 0.0..1e6_f64, any::<f64>()], 1..6), bin_ns in 1_u64..10_000_000, seed: u64) {
        let modulated = Modulated::new(Circle::new(&rates), bin_ns, 1.0, Random::new(seed));
        let limits = Limits { duration_ns: bin_ns.saturating_mul(20), sessions: 2_000 };
        let times = all(Schedule::new(Plan::Modulated(modulated), limits));
        prop_assert!(times.is_sorted());
        prop_assert!(times.iter().all(|time| *time < limits.duration_ns));
    }

    #[test]
    fn any_text_is_times_or_a_fault(text: String) {
        if let Ok(replay) = Replay::parse(&text) {
            prop_assert!(!replay.is_empty());
        }
        prop_assert!(text.contains(':') || text.parse::<Word>().is_err());
    }
}
