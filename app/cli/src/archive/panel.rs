//! One panel: a span of time, one direction above the line and one below.

use super::args::Scale;
use crate::picture::scene::{Anchor, Paint, Scene, Shape, TextSize};
use crate::picture::ticks::{AxisUnit, alone, step, times};

/// What is shown of each row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Point {
    pub(super) from_ns: u64,
    pub(super) to_ns: u64,
    /// Average, and one or two more: 95th and 99th percentile, or the largest step.
    pub(super) values: [Option<f64>; 3],
}

/// How one of the values is drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Curve {
    pub(super) name: &'static str,
    pub(super) paint: Paint,
}

/// The average.
pub(super) const AVERAGE: Curve = Curve {
    name: "average",
    paint: Paint::new(0x1b7f5c),
};
/// The 95th percentile.
pub(super) const P95: Curve = Curve {
    name: "95th percentile",
    paint: Paint::new(0x2563b8),
};
/// The 99th percentile.
pub(super) const P99: Curve = Curve {
    name: "99th percentile",
    paint: Paint::new(0xc85a1a),
};
/// The largest step.
pub(super) const LARGEST: Curve = Curve {
    name: "largest step",
    paint: P99.paint,
};

/// Ink of axes and texts.
pub(super) const DARK: Paint = Paint::new(0x1b2330);
/// Ink of ticks.
pub(super) const GREY: Paint = Paint::new(0x566072);
const GRID: Paint = Paint::new(0xe6e9ee);

/// A span of time and what was measured in it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Panel {
    pub(super) title: String,
    pub(super) from_ns: u64,
    pub(super) to_ns: u64,
    pub(super) up: Vec<Point>,
    pub(super) down: Vec<Point>,
}

/// What all panels of a picture have in common.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Style {
    /// Left, right, height of the drawing.
    pub(super) left: f32,
    pub(super) right: f32,
    pub(super) height: f32,
    /// Of the archive.
    pub(super) unit: String,
    pub(super) scale: Scale,
    /// Short names of the directions; below there may be none.
    pub(super) up: String,
    pub(super) down: Option<String>,
    /// The same for the legend, with what they mean.
    pub(super) directions: String,
    /// How values are drawn, in the order of [`Point::values`].
    pub(super) curves: Vec<Curve>,
}

impl Panel {
    /// Whether there is anything to see.
    pub(super) fn is_empty(&self) -> bool {
        let mut points = self.up.iter().chain(&self.down);
        !points.any(|point| point.values.iter().any(Option::is_some))
    }

    /// Draws it with its upper edge at `top`; returns where it ends.
    pub(super) fn draw(&self, scene: &mut Scene, style: &Style, top: f32) -> f32 {
        let above = top + 22.0;
        let below = above + style.height;
        let title = (TextSize::Middle, Anchor::Start, DARK);
        scene.text((style.left, top + 14.0), title, &*self.title);
        let heights = Heights::new(self, style, above, below);
        heights.draw_grid(scene, style);
        self.draw_times(scene, style, above, below);
        if self.is_empty() {
            let middle = (
                f32::midpoint(style.left, style.right),
                f32::midpoint(above, below) - 8.0,
            );
            let ink = (TextSize::Small, Anchor::Middle, GREY);
            scene.text(middle, ink, "nothing was measured in this time");
        }
        for (points, sign) in [(&self.up, 1.0), (&self.down, -1.0)] {
            self.draw_points(scene, style, &heights, points, sign);
        }
        // The line between the directions, and where time is.
        let zero = heights.zero;
        scene.line((style.left, zero), (style.right, zero), DARK, 1.0);
        let halves = [
            (Some(&style.up), above, zero),
            (style.down.as_ref(), zero, below),
        ];
        for (name, from, to) in halves {
            if let Some(name) = name {
                upright(scene, (32.0, f32::midpoint(from, to)), DARK, name);
            }
        }
        below + 26.0
    }

    fn x(&self, style: &Style, at_ns: u64) -> f32 {
        let span = self.to_ns.saturating_sub(self.from_ns).max(1) as f64;
        let at = at_ns.clamp(self.from_ns, self.to_ns) - self.from_ns;
        style.left + narrow(at as f64 / span) * (style.right - style.left)
    }

    fn draw_times(&self, scene: &mut Scene, style: &Style, above: f32, below: f32) {
        for tick in times(self.from_ns, self.to_ns, 9) {
            let x = self.x(style, tick.at_ns);
            scene.line((x, above), (x, below), GRID, 1.0);
            scene.line((x, below), (x, below + 4.0), GREY, 1.0);
            let ink = (TextSize::Small, Anchor::Middle, GREY);
            scene.text((x, below + 16.0), ink, tick.text);
        }
    }

    /// The average as an area, the others as lines: stairs, since a value is that of all of its
    /// row, with a gap where no row is.
    fn draw_points(
        &self,
        scene: &mut Scene,
        style: &Style,
        heights: &Heights,
        points: &[Point],
        sign: f64,
    ) {
        let stairs = |at: usize| self.stairs(style, heights, points, sign, at);
        for stair in stairs(0) {
            let (Some(first), Some(last)) = (stair.first(), stair.last()) else {
                continue;
            };
            let (from, to) = ((first.0, heights.zero), (last.0, heights.zero));
            let mut area = vec![from];
            area.extend(&stair);
            area.push(to);
            let paint = Paint {
                alpha: 0.3,
                ..AVERAGE.paint
            };
            scene.shapes.push(Shape::Area(area, paint));
        }
        for (at, curve) in style.curves.iter().enumerate().rev() {
            for stair in stairs(at) {
                scene.shapes.push(Shape::Line(stair, curve.paint, 1.3));
            }
        }
    }

    fn stairs(
        &self,
        style: &Style,
        heights: &Heights,
        points: &[Point],
        sign: f64,
        at: usize,
    ) -> Vec<Vec<(f32, f32)>> {
        let mut all: Vec<Vec<(f32, f32)>> = Vec::new();
        let mut end = None;
        for point in points {
            let Some(Some(value)) = point.values.get(at) else {
                end = None;
                continue;
            };
            let y = heights.y(sign * value);
            let from = self.x(style, point.from_ns);
            // At least a pixel, so that one row of a month is seen.
            let to = self.x(style, point.to_ns).max(from + 1.0).min(style.right);
            if end != Some(point.from_ns) || all.is_empty() {
                all.push(Vec::new());
            }
            if let Some(stair) = all.last_mut() {
                stair.extend([(from, y), (to, y)]);
            }
            end = Some(point.to_ns);
        }
        all
    }
}

/// A text that goes up.
fn upright(scene: &mut Scene, at: (f32, f32), paint: Paint, text: &str) {
    scene.shapes.push(Shape::Text {
        at,
        size: TextSize::Small,
        anchor: Anchor::Middle,
        paint,
        is_upright: true,
        text: text.to_owned(),
    });
}

/// The axis of values.
#[derive(Debug, Clone, PartialEq)]
struct Heights {
    scale: Scale,
    zero: f32,
    /// Pixels for one unit, or for one decade.
    per: f64,
    /// Of a logarithmic scale: what is at the line.
    floor: f64,
    up: f64,
    down: f64,
    above: f32,
    below: f32,
}

impl Heights {
    fn new(panel: &Panel, style: &Style, above: f32, below: f32) -> Self {
        let values = |points: &[Point]| -> Vec<f64> {
            let all = points.iter().flat_map(|point| point.values);
            all.flatten()
                .filter(|value| value.is_finite() && *value > 0.0)
                .collect()
        };
        let (up, down) = (values(&panel.up), values(&panel.down));
        let most = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
        let (up_most, down_most) = (most(&up), most(&down));
        let largest = up_most.max(down_most);
        let least = up.iter().chain(&down).copied().fold(f64::MAX, f64::min);
        // Six decades at most: what is less is at the line.
        let floor = 10_f64.powf(
            least
                .min(largest)
                .max(largest / 1e6)
                .max(1e-9)
                .log10()
                .floor(),
        );
        let height = |value: f64| match style.scale {
            Scale::Linear => value,
            Scale::Log if value > floor => (value / floor).log10(),
            Scale::Log => 0.0,
        };
        // Room above the highest, and for the name of a direction without values.
        let whole = (height(up_most) + height(down_most)).max(f64::MIN_POSITIVE);
        let has_down = style.down.is_some();
        let up = height(up_most).max(whole * 0.15) * 1.06;
        let down = if has_down {
            height(down_most).max(whole * 0.15) * 1.06
        } else {
            0.0
        };
        let (up, down) = if largest > 0.0 {
            (up, down)
        } else {
            (1.0, f64::from(u8::from(has_down)))
        };
        let per = f64::from(below - above) / (up + down);
        Self {
            scale: style.scale,
            zero: above + narrow(up * per),
            per,
            floor,
            up,
            down,
            above,
            below,
        }
    }

    fn y(&self, value: f64) -> f32 {
        let height = match self.scale {
            Scale::Linear => value,
            Scale::Log if value.abs() > self.floor => {
                (value.abs() / self.floor).log10().copysign(value)
            }
            Scale::Log => 0.0,
        };
        (self.zero - narrow(height * self.per)).clamp(self.above, self.below)
    }

    fn draw_grid(&self, scene: &mut Scene, style: &Style) {
        let unit = match self.scale {
            Scale::Linear => {
                let axis = AxisUnit::new(&style.unit, self.up.max(self.down));
                let step = step(self.up + self.down, 7.0);
                for number in 0..=20_u8 {
                    let value = f64::from(number) * step;
                    let text = linkweir_sink::human::short(value / axis.divisor);
                    self.draw_mark(scene, style, value, &text);
                }
                axis.name
            }
            Scale::Log => {
                // A mark at every decade, or at every other.
                let decades = self.up + self.down;
                let every = if decades > 9.0 { 2 } else { 1 };
                for number in (0..=8_i32).step_by(every) {
                    let value = self.floor * 10_f64.powi(number);
                    let text = alone(value, &style.unit);
                    self.draw_mark(scene, style, value, &text);
                }
                style.unit.clone()
            }
        };
        let middle = f32::midpoint(self.above, self.below);
        upright(scene, (16.0, middle), GREY, &unit);
    }

    /// A mark above the line and, where there is something, the same below.
    fn draw_mark(&self, scene: &mut Scene, style: &Style, value: f64, text: &str) {
        for (sign, room) in [(1.0, self.up), (-1.0, self.down)] {
            let y = self.y(sign * value);
            let height = f64::from((self.zero - y).abs()) / self.per;
            let is_inside = match self.scale {
                Scale::Linear => value <= room,
                Scale::Log => (value / self.floor).log10() <= room + 1e-9,
            };
            if !is_inside || (sign < 0.0 && height <= 0.0) {
                continue;
            }
            scene.line((style.left, y), (style.right, y), GRID, 1.0);
            let ink = (TextSize::Small, Anchor::End, GREY);
            scene.text((style.left - 6.0, y + 4.0), ink, text);
        }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "places in a picture")]
fn narrow(number: f64) -> f32 {
    number as f32
}
