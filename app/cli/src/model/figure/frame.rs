//! A rectangle with two linear axes.

use crate::picture::scene::{Anchor, Paint, Scene, Shape, TextSize};
use crate::picture::ticks::step;
use linkweir_sink::human::short;

use super::{DARK, GREY};

const GRID: Paint = Paint::new(0xe6e9ee);

/// Where it is, and what its edges stand for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Frame {
    pub(super) left: f32,
    pub(super) right: f32,
    pub(super) top: f32,
    pub(super) bottom: f32,
    pub(super) x: (f64, f64),
    pub(super) y: (f64, f64),
}

impl Frame {
    pub(super) fn x(&self, value: f64) -> f32 {
        self.left + share(value, self.x) * (self.right - self.left)
    }

    pub(super) fn y(&self, value: f64) -> f32 {
        self.bottom - share(value, self.y) * (self.bottom - self.top)
    }

    /// Title, axes, marks.
    pub(super) fn draw(&self, scene: &mut Scene, title: &str, along: &str, up: &str) {
        let heading = (TextSize::Middle, Anchor::Start, DARK);
        scene.text((self.left, self.top - 8.0), heading, title);
        for value in marks(self.y, 6.0) {
            let y = self.y(value);
            scene.line((self.left, y), (self.right, y), GRID, 1.0);
            let ink = (TextSize::Small, Anchor::End, GREY);
            scene.text((self.left - 6.0, y + 4.0), ink, short(value));
        }
        for value in marks(self.x, 8.0) {
            let x = self.x(value);
            scene.line((x, self.bottom), (x, self.bottom + 4.0), GREY, 1.0);
            let ink = (TextSize::Small, Anchor::Middle, GREY);
            scene.text((x, self.bottom + 16.0), ink, short(value));
        }
        let zero = self.y(0.0);
        scene.line((self.left, zero), (self.right, zero), DARK, 1.0);
        let middle = f32::midpoint(self.left, self.right);
        let ink = (TextSize::Small, Anchor::Middle, GREY);
        scene.text((middle, self.bottom + 32.0), ink, along);
        scene.shapes.push(Shape::Text {
            at: (self.left - 48.0, f32::midpoint(self.top, self.bottom)),
            size: TextSize::Small,
            anchor: Anchor::Middle,
            paint: GREY,
            is_upright: true,
            text: up.to_owned(),
        });
    }
}

/// Round values between two limits.
fn marks((low, high): (f64, f64), most: f64) -> Vec<f64> {
    let step = step(high - low, most);
    let first = (low / step).ceil();
    (0..=20_u8)
        .map(|number| (first + f64::from(number)) * step)
        .take_while(|value| *value <= high)
        .collect()
}

/// Where a value is between two limits, 0 to 1.
#[expect(clippy::cast_possible_truncation, reason = "a place in a picture")]
fn share(value: f64, (low, high): (f64, f64)) -> f32 {
    let share = (value - low) / (high - low);
    if share.is_finite() {
        share.clamp(0.0, 1.0) as f32
    } else {
        0.0
    }
}
