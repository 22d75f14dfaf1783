//! Rust source text as the checks see it: code apart from comments and literals.

/// One line of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Line {
    /// The code, with comments removed and the contents of literals removed.
    pub(crate) code: String,
    /// The comments.
    pub(crate) comment: String,
}

#[derive(Clone, Copy)]
enum State {
    Code,
    LineComment,
    /// Block comments nest: how deep.
    BlockComment(usize),
    Text,
    /// Ends at a quote with this many `#`.
    RawText(usize),
}

/// Splits a file into lines of code and comment.
pub(crate) fn lines(text: &str) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut line = Line::default();
    let mut state = State::Code;
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let mut width = c.len_utf8();
        if c == '\n' {
            lines.push(std::mem::take(&mut line));
            if matches!(state, State::LineComment) {
                state = State::Code;
            }
            rest = rest.get(width..).unwrap_or("");
            continue;
        }
        match state {
            State::Code => {
                if rest.starts_with("//") {
                    state = State::LineComment;
                    line.comment.push_str("//");
                    width = 2;
                } else if rest.starts_with("/*") {
                    state = State::BlockComment(1);
                    width = 2;
                } else if let Some((hashes, opening)) = raw_text(rest, &line.code) {
                    state = State::RawText(hashes);
                    line.code.push('"');
                    width = opening;
                } else if c == '"' {
                    state = State::Text;
                    line.code.push('"');
                } else if let Some(literal) = char_literal(rest) {
                    line.code.push_str("''");
                    width = literal;
                } else {
                    line.code.push(c);
                }
            }
            State::LineComment => line.comment.push(c),
            State::BlockComment(depth) => {
                if rest.starts_with("*/") {
                    state = if depth == 1 {
                        State::Code
                    } else {
                        State::BlockComment(depth - 1)
                    };
                    width = 2;
                } else if rest.starts_with("/*") {
                    state = State::BlockComment(depth + 1);
                    width = 2;
                } else {
                    line.comment.push(c);
                }
            }
            State::Text => {
                if c == '\\' {
                    // The escaped character is skipped with it, unless it is the end of the line.
                    let escaped = rest.chars().nth(1);
                    width += escaped.filter(|e| *e != '\n').map_or(0, char::len_utf8);
                } else if c == '"' {
                    line.code.push('"');
                    state = State::Code;
                }
            }
            State::RawText(hashes) => {
                if c == '"' && rest.bytes().skip(1).take_while(|b| *b == b'#').count() >= hashes {
                    line.code.push('"');
                    state = State::Code;
                    width = 1 + hashes;
                }
            }
        }
        rest = rest.get(width..).unwrap_or("");
    }
    if line != Line::default() {
        lines.push(line);
    }
    lines
}

/// Whether a raw string starts here: how many `#` it has, how long its opening is.
fn raw_text(rest: &str, before: &str) -> Option<(usize, usize)> {
    if before.ends_with(|c: char| c.is_alphanumeric() || c == '_') {
        // The `r` is the end of a word, unless the word is the `b` or `c` of a raw byte string.
        let prefix = before.trim_end_matches(['b', 'c']);
        let is_prefix = prefix.len() + 1 == before.len();
        if !is_prefix || prefix.ends_with(|c: char| c.is_alphanumeric() || c == '_') {
            return None;
        }
    }
    let behind = rest.strip_prefix('r')?;
    let hashes = behind.bytes().take_while(|b| *b == b'#').count();
    behind
        .get(hashes..)?
        .starts_with('"')
        .then_some((hashes, hashes + 2))
}

/// The length of a character literal that starts here; a lifetime is none.
fn char_literal(rest: &str) -> Option<usize> {
    let inside = rest.strip_prefix('\'')?;
    let first = inside.chars().next()?;
    if first == '\\' {
        // The quote that ends it is not the escaped one.
        let behind = inside.get(2..)?;
        return behind.find('\'').filter(|end| *end < 10).map(|end| end + 4);
    }
    inside
        .get(first.len_utf8()..)?
        .starts_with('\'')
        .then_some(first.len_utf8() + 2)
}

/// How many lines stand before the tests at the end of the file.
pub(crate) fn lines_before_tests(lines: &[Line]) -> usize {
    let mut pending = None;
    for (index, line) in lines.iter().enumerate() {
        let code = line.code.trim();
        if code.starts_with("#[cfg(test)]") {
            pending = Some(index);
        } else if let Some(start) = pending {
            if code.starts_with("mod ") && code.ends_with('{') {
                return start;
            }
            // Other attributes may stand between; anything else is not a module of tests.
            if !code.is_empty() && !code.starts_with("#[") {
                pending = None;
            }
        }
    }
    lines.len()
}

/// Whether `word` stands in the code as a word of its own.
pub(crate) fn has_word(code: &str, word: &str) -> bool {
    let part_of_word = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(word).any(|(at, _)| {
        let before = code.get(..at).unwrap_or("");
        let after = code.get(at + word.len()..).unwrap_or("");
        !before.ends_with(part_of_word) && !after.starts_with(part_of_word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> String {
        lines(text)
            .into_iter()
            .map(|line| line.code)
            .collect::<Vec<_>>()
            .join("\n")
    }

    #[test]
    fn comments_and_literals_are_not_code() {
        assert_eq!(code("a // unsafe\nb"), "a \nb");
        assert_eq!(code("a /* x /* y */ unsafe */ b"), "a  b");
        assert_eq!(code(r#"f("unsafe \" // x"); g()"#), r#"f(""); g()"#);
        assert_eq!(code("f(r#\"un\"safe\"#) + br\"x\""), "f(\"\") + b\"\"");
        assert_eq!(code(r"f('\'', '\u{7f}', 'x')"), "f('', '', '')");
        assert_eq!(code("fn f<'a>(x: &'a str) {}"), "fn f<'a>(x: &'a str) {}");
    }

    #[test]
    fn a_comment_is_kept_apart() {
        assert_eq!(
            lines("x(); // TODO later").remove(0).comment,
            "// TODO later"
        );
    }

    #[test]
    fn tests_at_the_end_are_not_counted() {
        let with = "fn f() {}\n\n#[cfg(test)]\n#[allow(dead_code)]\nmod tests {\n}\n";
        assert_eq!(lines_before_tests(&lines(with)), 2);
        let elsewhere = "#[cfg(test)]\nmod tests;\nfn f() {}\n";
        assert_eq!(lines_before_tests(&lines(elsewhere)), 3);
    }

    #[test]
    fn words_are_whole() {
        assert!(has_word("unsafe { x }", "unsafe"));
        assert!(!has_word("deny(unsafe_code)", "unsafe"));
    }
}
