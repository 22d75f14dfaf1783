//! Pictures: shapes drawn as SVG or PNG. Parts that the commands that draw have in common.

#[cfg(feature = "png")]
mod png;
pub(crate) mod scene;
mod svg;
pub(crate) mod ticks;

use std::path::Path;

use crate::exit::Wrong;
use scene::Scene;

/// A kind of picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Svg,
    #[cfg(feature = "png")]
    Png,
}

impl Format {
    /// By the ending of a name; standard output takes SVG.
    pub(crate) fn of(path: &Path) -> anyhow::Result<Self> {
        let ending = path.extension().map(|ending| ending.to_ascii_lowercase());
        match ending.as_ref().and_then(|ending| ending.to_str()) {
            Some("svg") => Ok(Self::Svg),
            None if path == Path::new("-") => Ok(Self::Svg),
            #[cfg(feature = "png")]
            Some("png") => Ok(Self::Png),
            _ => Err(anyhow::anyhow!(Wrong(format!(
                "{}: a picture ends in {}",
                path.display(),
                if cfg!(feature = "png") {
                    ".svg or .png"
                } else {
                    ".svg (this build has no .png)"
                }
            )))),
        }
    }

    /// The file of a picture.
    pub(crate) fn document(self, scene: &Scene) -> anyhow::Result<Vec<u8>> {
        match self {
            Self::Svg => Ok(svg::document(scene).into_bytes()),
            #[cfg(feature = "png")]
            Self::Png => png::document(scene),
        }
    }
}
