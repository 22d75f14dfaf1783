//! Tables for a terminal: words to the left, numbers to the right.

/// Rows of cells under a head; columns as wide as their widest cell. A column of numbers stands to the
/// right.
pub(crate) fn lines(head: &[&str], rows: &[Vec<String>]) -> Vec<String> {
    let width = |at: usize| {
        let cells = rows
            .iter()
            .filter_map(|row| row.get(at))
            .map(String::as_str);
        cells
            .chain(head.get(at).copied())
            .map(|cell| cell.chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let is_number = |at: usize| {
        let mut cells = rows.iter().filter_map(|row| row.get(at));
        cells.all(|cell| cell.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b',')))
    };
    let line = |cells: &[&str]| {
        let mut text = String::new();
        for (at, (cell, width)) in cells.iter().zip(&widths).enumerate() {
            let pad = " ".repeat(width.saturating_sub(cell.chars().count()));
            let (before, after) = if is_number(at) {
                (pad.as_str(), "")
            } else {
                ("", pad.as_str())
            };
            text.extend(["  ", before, cell, after]);
        }
        text.trim_end().to_owned()
    };
    let body = rows.iter().map(|row| {
        let cells: Vec<&str> = row.iter().map(String::as_str).collect();
        line(&cells)
    });
    std::iter::once(line(head)).chain(body).collect()
}

/// Lines of a table without what stands beyond `width` characters.
pub(crate) fn fitted(lines: Vec<String>, width: usize) -> Vec<String> {
    let cut = |line: String| match line.char_indices().nth(width) {
        None => line,
        Some(_) => {
            let kept: String = line.chars().take(width.saturating_sub(1)).collect();
            kept.trim_end().to_owned() + "…"
        }
    };
    lines.into_iter().map(cut).collect()
}

#[cfg(test)]
mod tests {
    use super::{fitted, lines};

    #[test]
    fn lines_end_where_the_terminal_does() {
        let given = ["  häst  1,234", "  häst  1,2", "  h     1"].map(str::to_owned);
        let cut = fitted(given.to_vec(), 11);
        assert_eq!(cut, ["  häst  1,…", "  häst  1,2", "  h     1"]);
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = vec![
            vec!["http".to_owned(), "1,234".to_owned()],
            vec!["fasttrack".to_owned(), "3".to_owned()],
        ];
        assert_eq!(
            lines(&["application", "connections"], &rows),
            [
                "  application  connections",
                "  http               1,234",
                "  fasttrack              3",
            ]
        );
    }
}
