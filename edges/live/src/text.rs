//! Text from the network, made fit for people's screens and for JSON; figures for people, as on the web
//! page: three significant digits.

use linkweir_record::escape::{is_unfit, push_hex};
pub use linkweir_record::human::{thousands, to_f64};

/// Valid UTF-8 without control characters: every byte that is not part of valid UTF-8, or is part of
/// a control character or of one that turns the direction of text, becomes `\xHH`.
#[must_use]
pub fn clean(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            if is_unfit(c) {
                let mut buffer = [0; 4];
                c.encode_utf8(&mut buffer)
                    .bytes()
                    .for_each(|byte| push_hex(&mut out, byte));
            } else {
                out.push(c);
            }
        }
        chunk
            .invalid()
            .iter()
            .for_each(|byte| push_hex(&mut out, *byte));
    }
    out
}

/// Seconds of so many nanoseconds.
#[must_use]
pub fn seconds(nanos: u64) -> f64 {
    to_f64(nanos) / 1e9
}

/// `part` of `whole` in percent; 0 of nothing.
pub fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        to_f64(part) * 100.0 / to_f64(whole)
    }
}

const PREFIXES: [&str; 7] = ["", "k", "M", "G", "T", "P", "E"];

/// Three significant digits of a value below a thousand.
fn digits(value: f64) -> String {
    let size = value.abs();
    if size >= 99.95 || value.fract() == 0.0 {
        format!("{value:.0}")
    } else if size >= 9.995 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}

/// 12345 -> `12.3` and `k`.
pub fn scaled(value: f64) -> (String, &'static str) {
    let mut scaled = value;
    let mut prefixes = PREFIXES.iter();
    let mut prefix = prefixes.next().copied().unwrap_or("");
    // 999.5 would round to 1000.
    while scaled.abs() >= 999.5 {
        let Some(next) = prefixes.next() else { break };
        scaled /= 1000.0;
        prefix = next;
    }
    (digits(scaled), prefix)
}

/// A value with its unit: of `ns` a time (`12.3 ms`), of `%` a share (`71.4 %`), of nothing a count
/// (`1,234`), of any other a rate (`1.25 Mbit/s`).
pub fn figure(value: f64, unit: &str) -> String {
    match unit {
        "ns" => {
            let (scaled, unit) = if value >= 0.9995e9 {
                (value / 1e9, "s")
            } else if value >= 0.9995e6 {
                (value / 1e6, "ms")
            } else if value >= 0.9995e3 {
                (value / 1e3, "µs")
            } else {
                (value, "ns")
            };
            format!("{} {unit}", digits(scaled))
        }
        "%" if value > 0.0 && value < 0.01 => "< 0.01 %".to_owned(),
        "%" => format!("{} %", digits(value)),
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "float to integer casts saturate"
        )]
        "" => thousands(value.round() as u64),
        _ => {
            let (digits, prefix) = scaled(value);
            format!("{digits} {prefix}{unit}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn figures_have_three_digits_and_one_style_of_units() {
        for (value, unit, text) in [
            (850.0, "ns", "850 ns"),
            (12_345.0, "ns", "12.3 µs"),
            (999_900.0, "ns", "1.00 ms"),
            (812.4e6, "ns", "812 ms"),
            (61e9, "ns", "61 s"),
            (0.0, "%", "0 %"),
            (0.001, "%", "< 0.01 %"),
            (3.1, "%", "3.10 %"),
            (71.428, "%", "71.4 %"),
            (100.0, "%", "100 %"),
            (7.0, "", "7"),
            (1_234_567.0, "", "1,234,567"),
            (0.0, "/s", "0 /s"),
            (12_345.0, "/s", "12.3 k/s"),
            (1.25e6, "bit/s", "1.25 Mbit/s"),
        ] {
            assert_eq!(figure(value, unit), text);
        }
    }

    #[test]
    fn what_acts_on_a_screen_is_shown_as_bytes() {
        assert_eq!(clean(b"shop.example"), "shop.example");
        assert_eq!(clean("h\u{e9}".as_bytes()), "h\u{e9}");
        assert_eq!(clean(b"a\x1b[2J\xff\r\n"), "a\\x1b[2J\\xff\\x0d\\x0a");
        assert_eq!(clean("\u{202e}txt".as_bytes()), "\\xe2\\x80\\xaetxt");
    }

    proptest! {
        #[test]
        fn nothing_unfit_is_left(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            prop_assert!(!clean(&bytes).chars().any(is_unfit));
        }
    }
}
