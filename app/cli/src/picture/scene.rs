//! A picture as a list of shapes, drawn as SVG.

/// A colour, and how much of it (0 to 1).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Paint {
    /// Red, green, blue.
    pub(crate) rgb: [u8; 3],
    /// How opaque it is.
    pub(crate) alpha: f32,
}

impl Paint {
    /// An opaque colour.
    pub(crate) const fn new(rgb: u32) -> Self {
        let [_, r, g, b] = rgb.to_be_bytes();
        Self {
            rgb: [r, g, b],
            alpha: 1.0,
        }
    }
}

/// Size of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextSize {
    /// Ticks and legends.
    Small,
    /// Titles of panels.
    Middle,
    /// The title of the picture.
    Large,
}

/// Which part of a text stands at its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// Something to draw. Units are pixels of an ordinary screen, y goes down.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Shape {
    /// A filled rectangle: left, top, width, height.
    Rectangle([f32; 4], Paint),
    /// A filled area.
    Area(Vec<(f32, f32)>, Paint),
    /// A line through points, of a width.
    Line(Vec<(f32, f32)>, Paint, f32),
    /// A text: where its baseline is.
    Text {
        at: (f32, f32),
        size: TextSize,
        anchor: Anchor,
        paint: Paint,
        /// Whether it goes up instead of to the right.
        is_upright: bool,
        text: String,
    },
}

/// A picture.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Scene {
    pub(crate) width: f32,
    pub(crate) height: f32,
    /// What it shows, for those who cannot see it.
    pub(crate) title: String,
    pub(crate) shapes: Vec<Shape>,
}

impl Scene {
    /// A text to the right.
    pub(crate) fn text(
        &mut self,
        at: (f32, f32),
        (size, anchor, paint): (TextSize, Anchor, Paint),
        text: impl Into<String>,
    ) {
        self.shapes.push(Shape::Text {
            at,
            size,
            anchor,
            paint,
            is_upright: false,
            text: text.into(),
        });
    }

    /// A straight line.
    pub(crate) fn line(&mut self, from: (f32, f32), to: (f32, f32), paint: Paint, width: f32) {
        self.shapes.push(Shape::Line(vec![from, to], paint, width));
    }
}
