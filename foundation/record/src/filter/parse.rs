//! Reads the words of a filter one after the other.

use std::iter::Peekable;
use std::vec::IntoIter;

use super::ends::{self, URL, Url};
use super::value::Literal;
use super::{FilterError, MAX_CHARS, MAX_DEPTH, Node, Op};
use crate::scan::{MARKS, Token, tokens};
use crate::schema::Field;

pub(super) fn read(text: &str, kind: &'static str, fields: &[Field]) -> Result<Node, FilterError> {
    let mut parser = Parser {
        text,
        kind,
        fields,
        tokens: Vec::new().into_iter().peekable(),
        end: text.chars().count() + 1,
        expressions: 0,
    };
    if parser.end > MAX_CHARS {
        return parser.fault(MAX_CHARS, "a filter has fewer than 4,000 characters");
    }
    match tokens(text, MARKS) {
        Ok(tokens) => {
            let marks = tokens.iter().filter(|token| !token.is_quoted);
            parser.expressions = marks.filter(|token| token.text == "~").count();
            parser.tokens = tokens.into_iter().peekable();
        }
        Err(column) => return parser.fault(column, "this quotation mark is not closed"),
    }
    let node = parser.any(0)?;
    match parser.tokens.next() {
        None => Ok(node),
        Some(rest) => parser.fault(
            rest.column,
            format!("expected `and`, `or` or the end, found `{}`", rest.text),
        ),
    }
}

struct Parser<'a> {
    text: &'a str,
    kind: &'static str,
    fields: &'a [Field],
    tokens: Peekable<IntoIter<Token>>,
    end: usize,
    /// Regular expressions in it.
    expressions: usize,
}

impl Parser<'_> {
    fn fault<T>(&self, column: usize, message: impl Into<String>) -> Result<T, FilterError> {
        Err(FilterError {
            filter: self.text.chars().take(MAX_CHARS).collect(),
            column,
            message: message.into(),
        })
    }

    fn next(&mut self, expected: &str) -> Result<Token, FilterError> {
        match self.tokens.next() {
            Some(token) => Ok(token),
            None => self.fault(
                self.end,
                format!("expected {expected}, the filter ends here"),
            ),
        }
    }

    fn is_next(&mut self, word: &str) -> bool {
        let is_it = |token: &Token| !token.is_quoted && token.text.eq_ignore_ascii_case(word);
        self.tokens.next_if(is_it).is_some()
    }

    fn any(&mut self, depth: usize) -> Result<Node, FilterError> {
        let mut nodes = vec![self.all(depth)?];
        while self.is_next("or") {
            nodes.push(self.all(depth)?);
        }
        Ok(Node::Or(nodes))
    }

    fn all(&mut self, depth: usize) -> Result<Node, FilterError> {
        let mut nodes = vec![self.one(depth)?];
        while self.is_next("and") {
            nodes.push(self.one(depth)?);
        }
        Ok(Node::And(nodes))
    }

    fn one(&mut self, depth: usize) -> Result<Node, FilterError> {
        if depth > MAX_DEPTH {
            let column = self.tokens.peek().map_or(self.end, |token| token.column);
            return self.fault(column, "this is nested too deeply");
        }
        if self.is_next("not") {
            return Ok(Node::Not(Box::new(self.one(depth + 1)?)));
        }
        if self.is_next("(") {
            let node = self.any(depth + 1)?;
            self.expect(")")?;
            return Ok(node);
        }
        self.condition()
    }

    fn expect(&mut self, mark: &str) -> Result<(), FilterError> {
        let token = self.next(&format!("`{mark}`"))?;
        if token.text == mark && !token.is_quoted {
            return Ok(());
        }
        self.fault(
            token.column,
            format!("expected `{mark}`, found `{}`", token.text),
        )
    }

    fn condition(&mut self) -> Result<Node, FilterError> {
        let name = self.next("a column")?;
        let url = Url::of_fields(self.fields).filter(|_| name.text == URL.name);
        let (at, field) = match url {
            Some(_) => (0, URL),
            None => self.column(&name)?,
        };
        // Of a column, or of the two that are the URL.
        let is = |op, literals| match url {
            Some(url) => Node::OfUrl(url, op, literals),
            None => Node::Is(at, op, literals),
        };
        if self.is_next("in") {
            return Ok(is(Op::Equal, self.list(&field)?));
        }
        let is_mark = |token: &Token| {
            !token.is_quoted && token.text.chars().all(|c| MARKS.contains(c)) && token.text != ")"
        };
        let Some(mark) = self.tokens.next_if(is_mark) else {
            let there = url.map(|url| url.columns().map(Node::There).into());
            return Ok(there.map_or(Node::There(at), Node::Or));
        };
        let op = match mark.text.as_str() {
            "=" => {
                // As in other languages.
                self.is_next("=");
                Op::Equal
            }
            "!=" => Op::Unequal,
            "<" => Op::Below,
            "<=" => Op::AtMost,
            ">" => Op::Above,
            ">=" => Op::AtLeast,
            "~" => Op::Matches,
            other => {
                return self.fault(
                    mark.column,
                    format!("expected =, !=, <, <=, >, >=, ~ or `in`, found `{other}`"),
                );
            }
        };
        let literal = self.literal(&field, op)?;
        Ok(is(op, vec![literal]))
    }

    fn list(&mut self, field: &Field) -> Result<Vec<Literal>, FilterError> {
        self.expect("(")?;
        let mut literals = vec![self.literal(field, Op::Equal)?];
        while self.is_next(",") {
            literals.push(self.literal(field, Op::Equal)?);
        }
        self.expect(")")?;
        Ok(literals)
    }

    /// A value; a unit may stand apart.
    fn literal(&mut self, field: &Field, op: Op) -> Result<Literal, FilterError> {
        let token = self.next("a value")?;
        let is_mark = token.text.chars().all(|c| MARKS.contains(c)) && !token.is_quoted;
        if is_mark {
            return self.fault(
                token.column,
                format!("expected a value, found `{}`", token.text),
            );
        }
        let mut text = token.text;
        let is_number = !token.is_quoted && text.chars().all(|c| c.is_ascii_digit() || c == '.');
        let is_unit = |next: &Token| {
            let is_word = matches!(next.text.to_ascii_lowercase().as_str(), "and" | "or");
            !next.is_quoted && !is_word && next.text.chars().all(char::is_alphabetic)
        };
        if is_number && let Some(unit) = self.tokens.next_if(is_unit) {
            text.push_str(&unit.text);
        }
        let quoted = token.is_quoted.then_some(token.raw.as_str());
        match Literal::read(&text, quoted, field, op, self.expressions) {
            Ok(literal) => Ok(literal),
            Err(message) => self.fault(token.column, message),
        }
    }

    /// The column of a name, or of the beginning of one.
    fn column(&self, token: &Token) -> Result<(usize, Field), FilterError> {
        match find(&token.text, self.kind, self.fields) {
            Ok(at) => match self.fields.get(at) {
                Some(field) => Ok((at, *field)),
                None => self.fault(token.column, "no such column"),
            },
            Err(message) => self.fault(token.column, message),
        }
    }
}

/// The place of the column that a name means: its own, that of the same thing in another kind, or the beginning of one and no
/// other up to a `_`. The error says what
/// is wrong with it.
pub(super) fn find(name: &str, kind: &str, fields: &[Field]) -> Result<usize, String> {
    let all = || fields.iter().enumerate();
    if let Some((at, _)) = all().find(|(_, field)| field.name == name) {
        return Ok(at);
    }
    if let Some(at) = ends::same(name, fields) {
        return Ok(at);
    }
    if name == URL.name && Url::of_fields(fields).is_some() {
        return Err("`url` is the columns host and uri together: write those".to_owned());
    }
    let begins = |field: &Field| {
        let rest = field.name.strip_prefix(name);
        rest.is_some_and(|rest| rest.starts_with('_'))
    };
    let found: Vec<_> = all().filter(|(_, field)| begins(field)).collect();
    if let [(at, _)] = found.as_slice() {
        return Ok(*at);
    }
    let names: Vec<&str> = found.iter().map(|(_, field)| field.name).collect();
    Err(match names.as_slice() {
        [] => format!("no column `{name}`; `linkweir schema {kind}` lists the columns"),
        names => format!("`{name}` begins {}: write one of them", names.join(", ")),
    })
}
