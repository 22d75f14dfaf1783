//! A scene as PNG, twice as fine as its units, so that it is sharp on fine screens too.

use anyhow::{Context, anyhow};
use noto_sans_mono_bitmap::{FontWeight, RasterHeight, get_raster};
use tiny_skia::{
    Color, FillRule, LineJoin, Paint as Ink, Path, PathBuilder, Pixmap, Rect, Stroke, Transform,
};

use super::scene::{Anchor, Paint, Scene, Shape, TextSize};

/// Pixels per unit.
const SCALE: f32 = 2.0;

/// The file.
pub(crate) fn document(scene: &Scene) -> anyhow::Result<Vec<u8>> {
    let pixels = |units: f32| whole((units * SCALE).round());
    let mut image = Pixmap::new(pixels(scene.width), pixels(scene.height))
        .ok_or_else(|| anyhow!("the picture is too large"))?;
    image.fill(Color::WHITE);
    for shape in &scene.shapes {
        draw(&mut image, shape);
    }
    image.encode_png().context("encode the picture")
}

fn draw(image: &mut Pixmap, shape: &Shape) {
    let scale = Transform::from_scale(SCALE, SCALE);
    match shape {
        Shape::Rectangle([x, y, width, height], paint) => {
            if let Some(rectangle) = Rect::from_xywh(*x, *y, *width, *height) {
                image.fill_rect(rectangle, &ink(*paint), scale, None);
            }
        }
        Shape::Area(points, paint) => {
            if let Some(path) = path(points, true) {
                image.fill_path(&path, &ink(*paint), FillRule::Winding, scale, None);
            }
        }
        Shape::Line(points, paint, width) => {
            let stroke = Stroke {
                width: *width,
                line_join: LineJoin::Miter,
                ..Stroke::default()
            };
            if let Some(path) = path(points, false) {
                image.stroke_path(&path, &ink(*paint), &stroke, scale, None);
            }
        }
        Shape::Text {
            at,
            size,
            anchor,
            paint,
            is_upright,
            text,
        } => write(image, *at, (*size, *anchor, *paint), *is_upright, text),
    }
}

fn ink(paint: Paint) -> Ink<'static> {
    let [r, g, b] = paint.rgb;
    let mut ink = Ink::default();
    let alpha = (paint.alpha.clamp(0.0, 1.0) * 255.0).round();
    ink.set_color_rgba8(r, g, b, u8::try_from(whole(alpha)).unwrap_or(u8::MAX));
    ink
}

fn path(points: &[(f32, f32)], is_closed: bool) -> Option<Path> {
    let mut path = PathBuilder::new();
    let mut points = points.iter();
    let (x, y) = points.next()?;
    path.move_to(*x, *y);
    for (x, y) in points {
        path.line_to(*x, *y);
    }
    if is_closed {
        path.close();
    }
    path.finish()
}

/// Letters stand on whole pixels, as they were made.
fn write(
    image: &mut Pixmap,
    (x, y): (f32, f32),
    (size, anchor, paint): (TextSize, Anchor, Paint),
    is_upright: bool,
    text: &str,
) {
    let (height, weight) = match size {
        TextSize::Small => (RasterHeight::Size20, FontWeight::Regular),
        TextSize::Middle => (RasterHeight::Size24, FontWeight::Bold),
        TextSize::Large => (RasterHeight::Size32, FontWeight::Bold),
    };
    let letters: Vec<_> = text
        .chars()
        .filter_map(|letter| {
            get_raster(letter, weight, height).or_else(|| get_raster('?', weight, height))
        })
        .collect();
    let length: usize = letters.iter().map(|letter| letter.width()).sum();
    let before = match anchor {
        Anchor::Start => 0,
        Anchor::Middle => length / 2,
        Anchor::End => length,
    };
    // About a fifth of a letter's box is below the line.
    let above = signed(height.val() * 4 / 5);
    let start = (rounded(x * SCALE), rounded(y * SCALE));
    let mut along = -signed(before);
    for letter in letters {
        for (down, row) in letter.rows().enumerate() {
            for (right, cover) in row.iter().enumerate() {
                let (along, down) = (along + signed(right), signed(down) - above);
                let place = if is_upright {
                    (start.0 + down, start.1 - along)
                } else {
                    (start.0 + along, start.1 + down)
                };
                blend(image, place, paint, *cover);
            }
        }
        along += signed(letter.width());
    }
}

/// Lays a colour over a pixel; `cover` is how much of it the letter covers.
fn blend(image: &mut Pixmap, (x, y): (i64, i64), paint: Paint, cover: u8) {
    let (Ok(x), Ok(y)) = (u32::try_from(x), u32::try_from(y)) else {
        return;
    };
    if cover == 0 || x >= image.width() || y >= image.height() {
        return;
    }
    let at = (y as usize * image.width() as usize + x as usize) * 4;
    let Some([r, g, b, _]) = image.data_mut().get_mut(at..at + 4) else {
        return;
    };
    let cover = u16::from(cover);
    for (below, above) in [r, g, b].into_iter().zip(paint.rgb) {
        let mixed = (u16::from(*below) * (255 - cover) + u16::from(above) * cover) / 255;
        *below = u8::try_from(mixed).unwrap_or(u8::MAX);
    }
}

fn signed(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(0)
}

#[expect(clippy::cast_possible_truncation, reason = "places in a picture")]
fn rounded(number: f32) -> i64 {
    number.round() as i64
}

fn whole(number: f32) -> u32 {
    u32::try_from(rounded(number)).unwrap_or(0)
}
