//! Fourier transforms: of any length, and of powers of two.

use rustfft::algorithm::Radix4;
use rustfft::num_complex::Complex;
use rustfft::{Fft as _, FftDirection};

use crate::number::number;

/// In place; the length is a power of two. Forward has `exp(-2 pi i j k / n)`; nothing is scaled.
pub(super) fn of_power_of_two(values: &mut [Complex<f64>], direction: FftDirection) {
    // Without a planner, whose every other algorithm would be compiled too.
    Radix4::new(values.len(), direction).process(values);
}

/// The first `count` values of the forward transform of real values, for any number of them: a convolution with a
/// chirp.
///
/// Source: Bluestein 1970 (IEEE Trans. Audio Electroacoustics 18).
pub(super) fn forward(values: &[f64], count: usize) -> Vec<Complex<f64>> {
    let n = values.len();
    let size = (2 * n).next_power_of_two();
    // exp(-i pi k^2 / n); the square modulo 2 n keeps the angle exact.
    let chirp = |k: usize| {
        let square = (k as u128 * k as u128) % (2 * n as u128);
        let square = usize::try_from(square).unwrap_or(0);
        Complex::from_polar(1.0, -std::f64::consts::PI * number(square) / number(n))
    };
    let zero = Complex::new(0.0, 0.0);
    let mut a = vec![zero; size];
    let mut b = vec![zero; size];
    for (k, (a, value)) in a.iter_mut().zip(values).enumerate() {
        *a = chirp(k) * value;
    }
    for k in 0..n {
        let conjugate = chirp(k).conj();
        if let Some(b) = b.get_mut(k) {
            *b = conjugate;
        }
        // The same at -k, which is at the end of the circle.
        if let Some(b) = b.get_mut((size - k) % size) {
            *b = conjugate;
        }
    }
    of_power_of_two(&mut a, FftDirection::Forward);
    of_power_of_two(&mut b, FftDirection::Forward);
    for (a, b) in a.iter_mut().zip(&b) {
        *a *= b;
    }
    of_power_of_two(&mut a, FftDirection::Inverse);
    let scale = number(size);
    let all = a.iter().take(count.min(n)).enumerate();
    all.map(|(k, value)| value * chirp(k) / scale).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;

    #[test]
    fn it_is_the_sum() {
        let mut random = Random::new(1);
        for n in [1, 2, 7, 64, 101] {
            let values: Vec<f64> = (0..n).map(|_| random.uniform()).collect();
            let found = forward(&values, n);
            assert_eq!(found.len(), n);
            for (k, found) in found.iter().enumerate() {
                let terms = values.iter().enumerate().map(|(t, x)| {
                    let turn = number(k * t % n) / number(n);
                    Complex::from_polar(*x, -std::f64::consts::TAU * turn)
                });
                let sum: Complex<f64> = terms.sum();
                assert!((found - sum).norm() < 1e-10, "{n} {k}");
            }
        }
    }
}
