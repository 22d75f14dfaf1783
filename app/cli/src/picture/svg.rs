//! A scene as SVG.

use std::fmt::Write;

use super::scene::{Anchor, Paint, Scene, Shape, TextSize};

/// The file.
pub(crate) fn document(scene: &Scene) -> String {
    let mut out = String::new();
    let (width, height) = (scene.width, scene.height);
    push(
        &mut out,
        format_args!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{}\" \
             font-family=\"DejaVu Sans,Verdana,sans-serif\">\n\
             <rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>\n",
            escape(&scene.title)
        ),
    );
    for shape in &scene.shapes {
        draw(&mut out, shape);
    }
    out.push_str("</svg>\n");
    out
}

fn draw(out: &mut String, shape: &Shape) {
    match shape {
        Shape::Rectangle([x, y, width, height], paint) => push(
            out,
            format_args!(
                "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"{}/>\n",
                fill(*paint)
            ),
        ),
        Shape::Area(points, paint) => push(
            out,
            format_args!("<path d=\"{}Z\"{}/>\n", path(points), fill(*paint)),
        ),
        Shape::Line(points, paint, width) => push(
            out,
            format_args!(
                "<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-opacity=\"{}\" stroke-width=\"{width}\"/>\n",
                path(points),
                colour(*paint),
                paint.alpha
            ),
        ),
        Shape::Text {
            at: (x, y),
            size,
            anchor,
            paint,
            is_upright,
            text,
        } => {
            let size = match size {
                TextSize::Small => "11",
                TextSize::Middle => "12.5\" font-weight=\"bold",
                TextSize::Large => "17\" font-weight=\"bold",
            };
            let anchor = match anchor {
                Anchor::Start => "start",
                Anchor::Middle => "middle",
                Anchor::End => "end",
            };
            let turn = if *is_upright {
                format!(" transform=\"rotate(-90 {x:.1} {y:.1})\"")
            } else {
                String::new()
            };
            push(
                out,
                format_args!(
                    "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\" text-anchor=\"{anchor}\" \
                     fill=\"{}\"{turn}>{}</text>\n",
                    colour(*paint),
                    escape(text)
                ),
            );
        }
    }
}

/// Horizontal and vertical pieces are what most paths are made of, and shorter to say.
fn path(points: &[(f32, f32)]) -> String {
    let mut out = String::new();
    let mut last: Option<(f32, f32)> = None;
    for point in points {
        let (x, y) = *point;
        match last {
            None => push(&mut out, format_args!("M{x:.1} {y:.1}")),
            Some((_, old)) if near(old, y) => push(&mut out, format_args!("H{x:.1}")),
            Some((old, _)) if near(old, x) => push(&mut out, format_args!("V{y:.1}")),
            Some(_) => push(&mut out, format_args!("L{x:.1} {y:.1}")),
        }
        last = Some(*point);
    }
    out
}

fn near(a: f32, b: f32) -> bool {
    (a - b).abs() < 0.01
}

fn colour(paint: Paint) -> String {
    let [r, g, b] = paint.rgb;
    format!("#{r:02x}{g:02x}{b:02x}")
}

fn fill(paint: Paint) -> String {
    format!(
        " fill=\"{}\" fill-opacity=\"{}\"",
        colour(paint),
        paint.alpha
    )
}

fn escape(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;").replace('"', "&quot;")
}

fn push(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _unfailing = out.write_fmt(text);
}
