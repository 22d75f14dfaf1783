//! Milliseconds as Tstat prints them.

use crate::number::{push_millis6, push_u64};

/// Nanoseconds as milliseconds with six decimals, as C's `%f` prints the nearest double.
///
/// A time since 1970 in milliseconds leaves a double twelve bits for its fraction, so that Tstat
/// prints `.187988` for 188 microseconds. Scripts compare such texts: they come out the same here.
/// Shorter times are exact.
pub(super) fn push_ms(out: &mut Vec<u8>, nanos: u64) {
    let whole = nanos / 1_000_000;
    let bits = u64::BITS - whole.leading_zeros();
    // The bits that 53 leave for the fraction; from 20 on they cannot be told from six decimals.
    let fraction_bits = 53_u32.saturating_sub(bits);
    if fraction_bits >= 20 {
        return push_millis6(out, nanos);
    }
    // The nearest double: no tie is possible, because 15,625 does not divide a power of two.
    let nearest = (((nanos % 1_000_000) << fraction_bits) + 500_000) / 1_000_000;
    let (whole, fraction) = if nearest >> fraction_bits > 0 {
        (whole + 1, 0)
    } else {
        (whole, nearest)
    };
    // Its six decimals, ties to even.
    let scaled = fraction * 1_000_000;
    let (mut decimals, rest) = (scaled >> fraction_bits, scaled & ((1 << fraction_bits) - 1));
    let half = (1_u64 << fraction_bits) >> 1;
    if rest > half || (rest == half && decimals % 2 == 1) {
        decimals += 1;
    }
    // 0.9999995 and more have no double so near to the next whole number.
    push_u64(out, whole);
    out.push(b'.');
    let from = out.len();
    push_u64(out, 1_000_000 + decimals);
    // The leading one kept the zeros.
    out.remove(from);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(nanos: u64) -> String {
        let mut out = Vec::new();
        push_ms(&mut out, nanos);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn as_in_a_log_of_tstat() {
        assert_eq!(text(1_795_222_198_122_188_000), "1795222198122.187988");
        assert_eq!(text(1_795_222_198_259_855_000), "1795222198259.854980");
        assert_eq!(text(137_667_000), "137.667000");
        assert_eq!(text(0), "0.000000");
        assert_eq!(text(u64::MAX), "18446744073709.550781");
    }

    proptest! {
        /// Microseconds as Tstat has them: a double of microseconds, divided by 1000.
        #[test]
        fn as_c_prints_a_double(micros in prop_oneof![
            0_u64..10_000_000_000, 915_000_000_000_000..4_000_000_000_000_000_u64
        ]) {
            prop_assert_eq!(text(micros * 1000), format!("{:.6}", micros as f64 / 1000.0));
        }

        #[test]
        fn nanoseconds_are_near(nanos: u64) {
            let exact = nanos as f64 / 1e6;
            let printed: f64 = text(nanos).parse().unwrap();
            prop_assert!((printed - exact).abs() <= 0.002 + exact * 1e-15);
        }
    }
}
