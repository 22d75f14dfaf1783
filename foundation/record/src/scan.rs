//! Words of an expression, a rule or a filter, with the columns where they stand.

/// One word, operator or quoted name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// The text, without quotes; in quotes a backslash before a quote or a backslash is left out.
    pub text: String,
    /// What stands between quotes as it was written; empty where it was not quoted.
    pub raw: String,
    /// Column of its first character, from 1.
    pub column: usize,
    /// Whether it was quoted, and therefore is a name.
    pub is_quoted: bool,
}

/// What stands for itself in a filter.
pub const MARKS: &str = "<>=!~(),";

/// Splits an expression at spaces and around each of the characters `marks` (with a `=` that follows `<`, `>` or
/// `!`, as one word); `"..."` and `'...'` are one name, in which `\"`, `\'` and `\\` stand for the character behind the backslash.
///
/// # Errors
/// The column of a quote that is not closed.
pub fn tokens(rule: &str, marks: &str) -> Result<Vec<Token>, usize> {
    let mut out: Vec<Token> = Vec::new();
    let mut word: Option<Token> = None;
    let mut chars = rule.chars().enumerate().peekable();
    while let Some((at, c)) = chars.next() {
        let column = at + 1;
        if c.is_whitespace() {
            out.extend(word.take());
        } else if marks.contains(c) {
            out.extend(word.take());
            let mut text = String::from(c);
            let may_be_two = matches!(c, '<' | '>' | '!');
            if may_be_two && chars.next_if(|(_, next)| *next == '=').is_some() {
                text.push('=');
            }
            out.push(Token {
                text,
                raw: String::new(),
                column,
                is_quoted: false,
            });
        } else if matches!(c, '"' | '\'') && word.is_none() {
            let (mut text, mut raw) = (String::new(), String::new());
            loop {
                match chars.next() {
                    Some((_, end)) if end == c => break,
                    Some((_, '\\')) => {
                        let (_, next) = chars.next().ok_or(column)?;
                        if !matches!(next, '"' | '\'' | '\\') {
                            text.push('\\');
                        }
                        text.push(next);
                        raw.extend(['\\', next]);
                    }
                    Some((_, inside)) => {
                        text.push(inside);
                        raw.push(inside);
                    }
                    None => return Err(column),
                }
            }
            out.push(Token {
                text,
                raw,
                column,
                is_quoted: true,
            });
        } else {
            word.get_or_insert_with(|| Token {
                text: String::new(),
                raw: String::new(),
                column,
                is_quoted: false,
            })
            .text
            .push(c);
        }
    }
    out.extend(word);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters() {
        let got: Vec<_> = tokens("p95 of host \"é b\">=5ms", "<>")
            .unwrap()
            .into_iter()
            .map(|t| (t.text, t.column, t.is_quoted))
            .collect();
        let want = [
            ("p95", 1, false),
            ("of", 5, false),
            ("host", 8, false),
            ("é b", 13, true),
            (">=", 18, false),
            ("5ms", 20, false),
        ];
        assert_eq!(got, want.map(|(t, c, q)| (t.to_owned(), c, q)));
        let marks: Vec<_> = tokens("a!=(b==~c)", "<>=!~()").unwrap();
        let marks: Vec<_> = marks.into_iter().map(|token| token.text).collect();
        assert_eq!(marks, ["a", "!=", "(", "b", "=", "=", "~", "c", ")"]);
        let quoted = tokens("'a \"b' o'c", "").unwrap();
        let quoted: Vec<_> = quoted.into_iter().map(|t| (t.text, t.is_quoted)).collect();
        assert_eq!(
            quoted,
            [("a \"b".to_owned(), true), ("o'c".to_owned(), false)]
        );
        assert_eq!(tokens("of \"x", "<>"), Err(4));
        assert_eq!(tokens(r#"of "x\""#, "<>"), Err(4));
        let escaped = tokens(r#""a\"b\\" '\d\'' c\d"#, "").unwrap();
        let escaped: Vec<_> = escaped.into_iter().map(|t| (t.text, t.raw)).collect();
        let pair = |text: &str, raw: &str| (text.to_owned(), raw.to_owned());
        assert_eq!(
            escaped,
            [
                pair(r#"a"b\"#, r#"a\"b\\"#),
                pair(r"\d'", r"\d\'"),
                pair(r"c\d", "")
            ]
        );
        assert_eq!(tokens("  ", "<>"), Ok(vec![]));
    }
}
