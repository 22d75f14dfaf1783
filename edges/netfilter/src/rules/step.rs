//! One command, as it is run and as a person would type it.

use std::fmt;

/// A program, its words, and what it reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The program.
    pub program: &'static str,
    /// Its arguments.
    pub words: Vec<String>,
    /// What it reads from its standard input, ending with a line feed; nothing where empty.
    pub input: String,
}

impl Step {
    pub(super) fn new(program: &'static str, words: &[&str]) -> Self {
        Self {
            program,
            words: words.iter().map(|&word| word.to_owned()).collect(),
            input: String::new(),
        }
    }

    pub(super) fn reading(program: &'static str, words: &[&str], input: String) -> Self {
        Self {
            input,
            ..Self::new(program, words)
        }
    }
}

/// A line for a shell, with a here-document where the program reads something. No word that we write
/// needs quotes, nor does a line equal the end mark.
impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.program)?;
        for word in &self.words {
            write!(f, " {word}")?;
        }
        if self.input.is_empty() {
            return Ok(());
        }
        write!(f, " <<'END'\n{}END", self.input)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_a_line_of_a_shell() {
        let plain = Step::new("tc", &["qdisc", "show"]);
        assert_eq!(plain.to_string(), "tc qdisc show");
        let reading = Step::reading("nft", &["-f", "-"], "flush x\n".to_owned());
        assert_eq!(reading.to_string(), "nft -f - <<'END'\nflush x\nEND");
    }
}
