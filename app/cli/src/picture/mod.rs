//! Pictures: shapes drawn as SVG. Parts that the commands that draw have in common.

pub(crate) mod scene;
pub(crate) mod svg;
pub(crate) mod ticks;

use std::path::Path;

use crate::exit::Wrong;

/// Refuses a name that does not end in `.svg`; standard output takes SVG.
pub(crate) fn check_name(path: &Path) -> anyhow::Result<()> {
    let is_svg = path
        .extension()
        .is_some_and(|ending| ending.eq_ignore_ascii_case("svg"));
    if is_svg || path == Path::new("-") {
        return Ok(());
    }
    Err(anyhow::anyhow!(Wrong(format!(
        "{}: a picture ends in .svg",
        path.display()
    ))))
}
