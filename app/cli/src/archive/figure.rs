//! The whole picture: title, legend, panels.

use super::panel::{AVERAGE, DARK, GREY, Panel, Style};
use crate::picture::scene::{Anchor, Paint, Scene, Shape, TextSize};

const WIDTH: f32 = 900.0;
const LEFT: f32 = 76.0;
const RIGHT: f32 = 880.0;

/// The drawing's place in the picture, and its height by the number of panels.
pub(super) const fn place(panels: usize) -> (f32, f32, f32) {
    (LEFT, RIGHT, if panels > 1 { 150.0 } else { 300.0 })
}

/// Draws it.
pub(super) fn draw(title: &str, subtitle: &str, style: &Style, panels: &[Panel]) -> Scene {
    let mut scene = Scene {
        width: WIDTH,
        height: 0.0,
        title: format!("{title}, {subtitle}"),
        shapes: Vec::new(),
    };
    scene.text((LEFT, 26.0), (TextSize::Large, Anchor::Start, DARK), title);
    scene.text(
        (LEFT, 44.0),
        (TextSize::Small, Anchor::Start, GREY),
        subtitle,
    );
    legend(&mut scene, style);
    let mut top = 84.0;
    for panel in panels {
        top = panel.draw(&mut scene, style, top) + 8.0;
    }
    scene.height = top + 2.0;
    scene
}

fn legend(scene: &mut Scene, style: &Style) {
    let mut x = LEFT;
    for curve in &style.curves {
        if curve == &AVERAGE {
            let area = Paint {
                alpha: 0.3,
                ..curve.paint
            };
            scene
                .shapes
                .push(Shape::Rectangle([x, 60.0, 18.0, 8.0], area));
            scene.line((x, 60.0), (x + 18.0, 60.0), curve.paint, 2.0);
        } else {
            scene.line((x, 64.0), (x + 18.0, 64.0), curve.paint, 2.0);
        }
        let ink = (TextSize::Small, Anchor::Start, DARK);
        scene.text((x + 24.0, 68.0), ink, curve.name);
        x += 145.0;
    }
    let ink = (TextSize::Small, Anchor::End, DARK);
    scene.text((RIGHT, 68.0), ink, style.directions.as_str());
}
