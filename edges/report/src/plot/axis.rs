//! Axes: how values become places, and where the marks stand.

use std::time::Duration;

use super::times::times;
use linkweir_record::human::{moment, scaled, short};

/// Marks of an axis of time at most, about.
const MOST_TIMES: u64 = 9;

/// How the values of an axis are spread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Evenly, from zero where no value is negative.
    Linear,
    /// By powers of ten; values of zero and below are not drawn, but for a mirrored axis.
    Log,
}

/// How a number of an axis is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// A count, with decimal prefixes.
    Count,
    /// Seconds, from nanoseconds to seconds.
    Seconds,
    /// A share of one, as per cent.
    Share,
    /// A plain number.
    Plain,
    /// A moment: seconds since 1970, written as UTC. Such an axis does not begin at zero.
    Time,
}

impl Unit {
    pub(super) fn text(self, value: f64) -> String {
        match self {
            Self::Count => scaled(value, "").replace(' ', "\u{202f}"),
            Self::Plain => short(value),
            Self::Time => moment(nanos(value)),
            Self::Share => {
                let percent = value * 100.0;
                let digits = if percent >= 0.1 || percent == 0.0 {
                    short(percent)
                } else {
                    let text = format!("{percent:.6}");
                    text.trim_end_matches('0').trim_end_matches('.').to_owned()
                };
                format!("{digits}\u{202f}%")
            }
            Self::Seconds => {
                let (factor, unit) = match value.abs() {
                    0.0 => (1.0, "s"),
                    0.0..0.999_999e-6 => (1e9, "ns"),
                    0.999_999e-6..0.999_999e-3 => (1e6, "µs"),
                    0.999_999e-3..0.999_999 => (1e3, "ms"),
                    _ => (1.0, "s"),
                };
                format!("{}\u{202f}{unit}", short(value * factor))
            }
        }
    }
}

/// One axis.
#[derive(Debug, Clone)]
pub struct Axis {
    /// What is measured, with its unit.
    pub label: String,
    /// How its values are spread.
    pub scale: Scale,
    /// How they are written.
    pub unit: Unit,
    /// Where it begins and ends, whatever values there are.
    pub limits: Option<(f64, f64)>,
    /// Whether values below zero are those of another direction: they are written without a sign, and
    /// spread as those above.
    pub is_mirrored: bool,
}

impl Axis {
    /// An axis as long as its values need.
    #[must_use]
    pub fn new(label: impl Into<String>, scale: Scale, unit: Unit) -> Self {
        Self {
            label: label.into(),
            scale,
            unit,
            limits: None,
            is_mirrored: false,
        }
    }

    /// A value of it as it is written.
    pub(super) fn text(&self, value: f64) -> String {
        let value = if self.is_mirrored { value.abs() } else { value };
        self.unit.text(value)
    }
}

/// An axis with its limits, mapped to the drawing.
pub(super) struct Mapped<'a> {
    pub(super) axis: &'a Axis,
    /// What is at both ends: values, or of a logarithmic axis powers of ten.
    low: f64,
    high: f64,
    /// Of a mirrored logarithmic axis the value that is at the middle line, and what is less.
    floor: f64,
    from: f64,
    to: f64,
}

impl<'a> Mapped<'a> {
    /// Maps it to the places between `from` and `to`, with room for all of `values`.
    pub(super) fn new(
        axis: &'a Axis,
        values: impl Iterator<Item = f64> + Clone,
        from: f64,
        to: f64,
    ) -> Self {
        let mut mapped = Self {
            axis,
            low: 0.0,
            high: 0.0,
            floor: floor(values.clone()),
            from,
            to,
        };
        let heights = values
            .filter(|value| value.is_finite())
            .filter_map(|value| mapped.height(value));
        let extent = heights.fold(None, |extent: Option<(f64, f64)>, height| {
            Some(extent.map_or((height, height), |(low, high)| {
                (low.min(height), high.max(height))
            }))
        });
        let known = axis
            .limits
            .map(|(low, high)| (mapped.height(low), mapped.height(high)));
        (mapped.low, mapped.high) = match (known, extent) {
            (Some((Some(low), Some(high))), _) => (low, high),
            (_, Some((low, high))) if axis.is_mirrored => {
                // Room above the highest, and for a direction without values.
                let (low, high) = (low.min(0.0), high.max(0.0));
                let least = (high - low) * 0.15;
                (low.min(-least) * 1.06, high.max(least) * 1.06)
            }
            (_, Some((low, high))) if axis.unit == Unit::Time => (low, high),
            (_, Some((low, high))) if axis.scale == Scale::Log => {
                ((low + 1e-9).floor(), (high - 1e-9).ceil())
            }
            (_, Some((low, high))) => (low.min(0.0), high),
            (_, None) => (0.0, 1.0),
        };
        if mapped.high <= mapped.low {
            mapped.high = mapped.low + 1.0;
        }
        mapped
    }

    /// How far a value is from where the axis begins, in its scale.
    fn height(&self, value: f64) -> Option<f64> {
        match self.axis.scale {
            // A gap has no place.
            _ if value.is_nan() => None,
            Scale::Linear => Some(value),
            Scale::Log if self.axis.is_mirrored => {
                let decades = (value.abs() / self.floor).log10();
                Some(decades.max(0.0).copysign(value))
            }
            Scale::Log => (value > 0.0).then(|| value.log10()),
        }
    }

    /// Where a value stands; at an end what is beyond it.
    pub(super) fn place(&self, value: f64) -> Option<f64> {
        let share = (self.height(value)? - self.low) / (self.high - self.low);
        let at = self.from + share.clamp(0.0, 1.0) * (self.to - self.from);
        at.is_finite().then_some(at)
    }

    /// Where zero stands, or what is next to it.
    pub(super) fn zero(&self) -> f64 {
        self.place(0.0).unwrap_or(self.from)
    }

    /// The marks and what they say.
    pub(super) fn marks(&self) -> Vec<(f64, String)> {
        if self.axis.unit == Unit::Time {
            let ticks = times(nanos(self.low), nanos(self.high), MOST_TIMES);
            let seconds = |at_ns: u64| Duration::from_nanos(at_ns).as_secs_f64();
            let marks = ticks.into_iter();
            return marks.map(|tick| (seconds(tick.at_ns), tick.text)).collect();
        }
        let ticks = self.ticks().into_iter();
        ticks.map(|tick| (tick, self.axis.text(tick))).collect()
    }

    /// Ticks: at decades, or at steps of 1, 2 or 5 times a power of ten.
    fn ticks(&self) -> Vec<f64> {
        match self.axis.scale {
            Scale::Log if self.axis.is_mirrored => {
                let every = if self.high - self.low > 9.0 { 2 } else { 1 };
                let powers = (0..=8)
                    .step_by(every)
                    .map(|power| (power, self.floor * 10_f64.powi(power)));
                let mut ticks = Vec::new();
                for (power, tick) in powers {
                    let height = f64::from(power);
                    ticks.extend((height <= self.high).then_some(tick));
                    ticks.extend((power > 0 && -height >= self.low).then_some(-tick));
                }
                ticks
            }
            Scale::Log => {
                let decades = (self.high - self.low).round();
                let every = (decades / 7.0).ceil().max(1.0);
                let mut ticks = Vec::new();
                let mut power = 0.0;
                while power <= decades && ticks.len() < 64 {
                    let tick = 10_f64.powf(self.low + power);
                    ticks.push(tick);
                    if decades <= 2.0 && power < decades {
                        ticks.extend([tick * 2.0, tick * 5.0]);
                    }
                    power += every;
                }
                ticks
            }
            Scale::Linear => {
                let rough = (self.high - self.low) / 6.0;
                let power = 10_f64.powf(rough.log10().floor());
                let step = [1.0, 2.0, 5.0, 10.0]
                    .into_iter()
                    .map(|n| n * power)
                    .find(|step| *step >= rough * 0.999)
                    .unwrap_or(rough);
                let first = (self.low / step).ceil();
                (0..64_u8)
                    .map(|number| (first + f64::from(number)) * step)
                    .take_while(|tick| *tick <= self.high + step * 1e-6)
                    .collect()
            }
        }
    }
}

/// What is at the middle line of a mirrored logarithmic axis: six decades at most are drawn.
fn floor(values: impl Iterator<Item = f64>) -> f64 {
    let sizes = values.map(f64::abs);
    let sizes = sizes.filter(|size| size.is_finite() && *size > 0.0);
    let extent = sizes.fold(None, |extent: Option<(f64, f64)>, size| {
        Some(extent.map_or((size, size), |(least, most)| {
            (least.min(size), most.max(size))
        }))
    });
    let (least, most) = extent.unwrap_or((1.0, 1.0));
    10_f64.powf(least.max(most / 1e6).log10().floor())
}

/// Seconds since 1970 as nanoseconds.
fn nanos(seconds: f64) -> u64 {
    let since = Duration::try_from_secs_f64(seconds).ok();
    since.map_or(0, |since| {
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticks(axis: &Axis, low: f64, high: f64) -> Vec<f64> {
        Mapped::new(axis, [low, high].into_iter(), 0.0, 1.0).ticks()
    }

    #[test]
    fn ticks_are_round() {
        let axis = Axis::new("", Scale::Linear, Unit::Plain);
        assert_eq!(ticks(&axis, 0.0, 6.0), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        assert_eq!(
            ticks(&axis, 0.0, 100.0),
            [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]
        );
        assert_eq!(ticks(&axis, 0.0, 0.0).len(), 6);
        let axis = Axis::new("", Scale::Log, Unit::Plain);
        assert_eq!(ticks(&axis, 0.002, 30.0).len(), 6);
        assert_eq!(
            ticks(&axis, 3.0, 70.0),
            [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0]
        );
        assert!(ticks(&axis, 1e-300, 1e300).len() <= 64);
    }

    #[test]
    fn both_directions_of_a_mirrored_axis_have_marks_without_a_sign() {
        for (scale, low, expected) in [
            (Scale::Linear, -60.0, ["50", "0", "50", "100"]),
            // What is less than the power of ten of the smallest value is at the line.
            (Scale::Log, -20.0, ["1", "10", "10", "100"]),
        ] {
            let axis = Axis {
                is_mirrored: true,
                ..Axis::new("", scale, Unit::Plain)
            };
            let mapped = Mapped::new(&axis, [low, 100.0, 5.0].into_iter(), 0.0, 1.0);
            let marks = mapped.marks().into_iter();
            let texts: Vec<_> = marks.map(|(_, text)| text).collect();
            assert_eq!(texts, expected);
            let zero = mapped.zero();
            assert_eq!(mapped.place(f64::NAN), None);
            assert!(mapped.place(low).unwrap() < zero && zero < mapped.place(100.0).unwrap());
            // Room for the direction without values.
            let one = Mapped::new(&axis, [300.0].into_iter(), 0.0, 1.0);
            assert!(one.zero() > 0.1);
        }
    }

    #[test]
    fn times_stand_where_they_are() {
        let axis = Axis {
            limits: Some((1_794_657_600.0, 1_794_661_200.0)),
            ..Axis::new("", Scale::Linear, Unit::Time)
        };
        let mapped = Mapped::new(&axis, std::iter::empty(), 0.0, 1.0);
        let marks = mapped.marks();
        assert_eq!(marks[0], (1_794_657_600.0, "12:00".to_owned()));
        assert_eq!(mapped.place(marks[0].0), Some(0.0));
        assert_eq!(mapped.place(1_794_659_400.0), Some(0.5));
        assert_eq!(axis.text(marks[0].0), "2026-11-14 12:00:00 UTC");
    }

    #[test]
    fn units() {
        assert_eq!(Unit::Seconds.text(1e-5), "10\u{202f}µs");
        assert_eq!(Unit::Seconds.text(1e-3), "1\u{202f}ms");
        assert_eq!(Unit::Seconds.text(10.0), "10\u{202f}s");
        assert_eq!(Unit::Share.text(1e-5), "0.001\u{202f}%");
        assert_eq!(Unit::Share.text(1.0), "100\u{202f}%");
    }
}
