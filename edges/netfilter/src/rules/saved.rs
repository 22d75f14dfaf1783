//! What `iptables-save` says: which of it is ours, and the text that removes it.

use std::fmt::Write as _;

use super::sign::{Made, Sign};
use super::step::Step;
use super::xtables::{Family, OURS, Tables, restore};

/// A table, as far as it matters to us.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct SavedTable {
    pub name: String,
    /// Those of our names that are there.
    pub chains: Vec<String>,
    /// How many rules they have.
    rules: usize,
    /// Our sign in one of them.
    pub sign: Option<Sign>,
    jumps: Vec<SavedJump>,
    /// Chains of the kernel with their policy and how many rules they have.
    base: Vec<(String, String, usize)>,
}

/// A rule of another chain that leads to one of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SavedJump {
    from: String,
    /// The rule from its chain on.
    rule: String,
    /// What its comment says; `None` where it is not a rule of ours.
    made: Option<Made>,
}

/// The tables of a family.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Saved {
    pub family: Family,
    pub tables: Vec<SavedTable>,
}

impl Saved {
    /// Reads what `iptables-save` or `ip6tables-save` wrote.
    pub(super) fn parse(family: Family, text: &str) -> Self {
        let mut tables: Vec<SavedTable> = Vec::new();
        for line in text.lines() {
            if let Some(name) = line.strip_prefix('*') {
                tables.push(SavedTable {
                    name: name.to_owned(),
                    ..SavedTable::default()
                });
            } else if let Some(table) = tables.last_mut() {
                table.take(line);
            }
        }
        Self { family, tables }
    }

    /// Whether anything has one of our names.
    pub(super) fn has_ours(&self) -> bool {
        self.tables.iter().any(|table| !table.chains.is_empty())
    }

    /// Our sign.
    pub(super) fn sign(&self) -> Option<Sign> {
        self.tables.iter().find_map(|table| table.sign)
    }

    /// A chain that has a name of ours and was not made by us.
    pub(super) fn foreign(&self) -> Option<String> {
        let table = self.tables.iter().find(|table| table.is_foreign())?;
        Some(format!(
            "chain {} in table {} of {}",
            table.chains.first()?,
            table.name,
            self.family.restore().trim_end_matches("-restore")
        ))
    }

    /// Whether all of this is there and no rule more or less.
    pub(super) fn is(&self, tables: &Tables) -> bool {
        tables.tables.iter().all(|wanted| {
            let same = |there: &SavedTable| {
                there.name == wanted.name
                    && there.sign == Some(tables.sign)
                    && there.rules == wanted.rules()
                    && there.jumps.len() == wanted.jumps.len()
            };
            self.tables.iter().any(same)
        })
    }

    /// Whether every way into our chains is there, so that only what is in them may differ.
    pub(super) fn has_all_jumps(&self, tables: &Tables) -> bool {
        tables.tables.iter().all(|wanted| {
            let same = |there: &SavedTable| {
                there.name == wanted.name
                    && there.sign.is_some()
                    && there.jumps.len() == wanted.jumps.len()
            };
            self.tables.iter().any(same)
        })
    }

    /// Removes what we made; `None` where there is nothing.
    pub(super) fn remove(&self) -> Option<Step> {
        let mut text = String::new();
        for table in self.tables.iter().filter(|table| table.sign.is_some()) {
            table.write_removal(&mut text);
        }
        (!text.is_empty()).then(|| restore(self.family, text))
    }

    /// The tables that we made.
    pub(super) fn made(&self) -> impl Iterator<Item = &str> {
        let made = |table: &&SavedTable| {
            table.sign.is_some() && (table.jumps.iter()).any(|jump| jump.made == Some(Made::Table))
        };
        self.tables.iter().filter(made).map(|it| it.name.as_str())
    }
}

impl SavedTable {
    fn is_foreign(&self) -> bool {
        !self.chains.is_empty() && self.sign.is_none()
    }

    fn take(&mut self, line: &str) {
        if let Some(chain) = line.strip_prefix(':') {
            let mut words = chain.split_whitespace().map(str::to_owned);
            let (Some(name), Some(policy)) = (words.next(), words.next()) else {
                return;
            };
            if OURS.contains(&name.as_str()) {
                self.chains.push(name);
            } else if policy != "-" {
                self.base.push((name, policy, 0));
            }
        } else if let Some(rule) = line.strip_prefix("-A ") {
            self.take_rule(rule);
        }
    }

    fn take_rule(&mut self, rule: &str) {
        let words = words(rule);
        let after = |option: &str| {
            let at = words.iter().position(|word| word == option)?;
            words.get(at + 1).map(String::as_str)
        };
        let Some(chain) = words.first() else { return };
        let comment = after("--comment").unwrap_or_default();
        if OURS.contains(&chain.as_str()) {
            self.rules += 1;
            self.sign = self.sign.or_else(|| Sign::read(comment));
            return;
        }
        if let Some((_, _, rules)) = self.base.iter_mut().find(|(name, ..)| name == chain) {
            *rules += 1;
        }
        let target = after("-j").or_else(|| after("-g")).unwrap_or_default();
        if OURS.contains(&target) {
            self.jumps.push(SavedJump {
                from: chain.clone(),
                rule: rule.to_owned(),
                made: Made::read(comment),
            });
        }
    }

    fn write_removal(&self, text: &mut String) {
        let mut line = |verb: &str, what: &str| {
            // Writing to a text cannot fail.
            writeln!(text, "{verb}{what}").unwrap_or_default();
        };
        line("*", &self.name);
        // Also a jump that somebody else made: a chain that is led to cannot go.
        for jump in &self.jumps {
            line("-D ", &jump.rule);
        }
        for verb in ["-F ", "-X "] {
            for chain in &self.chains {
                line(verb, chain);
            }
        }
        for (base, policy, rules) in &self.base {
            let mut ours = self.jumps.iter().filter(|jump| jump.from == *base);
            let is_made = ours.clone().any(|jump| jump.made > Some(Made::Nothing));
            if is_made && policy == "ACCEPT" && *rules == ours.by_ref().count() {
                line("-X ", base);
            }
        }
        line("COMMIT", "");
    }
}

/// The words of a rule: those with blanks stand in double quotes, with `\` before a quote.
fn words(rule: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let (mut is_quoted, mut is_word) = (false, false);
    let mut letters = rule.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '"' => {
                is_quoted = !is_quoted;
                is_word = true;
            }
            '\\' => {
                word.extend(letters.next());
                is_word = true;
            }
            ' ' if !is_quoted => {
                if is_word {
                    words.push(std::mem::take(&mut word));
                }
                is_word = false;
            }
            _ => {
                word.push(letter);
                is_word = true;
            }
        }
    }
    if is_word {
        words.push(word);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAVED: &str = r#"# Generated by iptables-save v1.8.9 (nf_tables) on Sun Nov 22 06:20:21 2026
*mangle
:PREROUTING ACCEPT [0:0]
:FORWARD ACCEPT [1:2]
:POSTROUTING ACCEPT [0:0]
:LINKWEIR-DECIDE - [0:0]
:LINKWEIR-SAVE - [0:0]
:OTHER - [0:0]
-A FORWARD -m comment --comment "linkweir gateway made chain table" -j LINKWEIR-DECIDE
-A POSTROUTING -m comment --comment "linkweir gateway made chain" -j LINKWEIR-SAVE
-A POSTROUTING -m comment --comment "not \" -j LINKWEIR-SAVE" -j OTHER
-A LINKWEIR-DECIDE -j CONNMARK --save-mark -m comment --comment "linkweir gateway mask 0x0fff0000 plan 00000000000000ff"
-A LINKWEIR-SAVE -j ACCEPT
COMMIT
*filter
:FORWARD DROP [0:0]
:LINKWEIR-REJECT - [0:0]
-A LINKWEIR-REJECT -j ACCEPT
COMMIT
"#;

    #[test]
    fn only_what_carries_our_sign_is_removed() {
        let saved = Saved::parse(Family::V4, SAVED);
        assert!(saved.has_ours());
        assert_eq!(saved.sign().map(|sign| sign.plan), Some(255));
        let foreign = "chain LINKWEIR-REJECT in table filter of iptables";
        assert_eq!(saved.foreign().as_deref(), Some(foreign));
        assert_eq!(saved.made().collect::<Vec<_>>(), ["mangle"]);
        let expected = r#"iptables-restore --wait 10 --noflush <<'END'
*mangle
-D FORWARD -m comment --comment "linkweir gateway made chain table" -j LINKWEIR-DECIDE
-D POSTROUTING -m comment --comment "linkweir gateway made chain" -j LINKWEIR-SAVE
-F LINKWEIR-DECIDE
-F LINKWEIR-SAVE
-X LINKWEIR-DECIDE
-X LINKWEIR-SAVE
-X FORWARD
COMMIT
END"#;
        let removal = saved.remove().map(|step| step.to_string());
        assert_eq!(removal.as_deref(), Some(expected));
    }

    #[test]
    fn nothing_of_ours_is_nothing_to_remove() {
        let saved = Saved::parse(
            Family::V6,
            "*nat\n:OUTPUT ACCEPT [0:0]\n-A OUTPUT -j RETURN\nCOMMIT\n",
        );
        assert!(!saved.has_ours() && saved.foreign().is_none());
        assert_eq!(saved.remove(), None);
    }

    #[test]
    fn words_may_stand_in_quotes() {
        let expected = ["a", "b c", "", "d\"e", "f"];
        assert_eq!(words(r#"a "b c"  "" "d\"e" f"#), expected);
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read(text in "([*:A-Z-]|-A |LINKWEIR-SAVE|--comment |\"| |\\\\|\\n|-j )*") {
            let saved = Saved::parse(Family::V4, &text);
            let named = text.contains("LINKWEIR");
            proptest::prop_assert!(named || !saved.has_ours());
            proptest::prop_assert_eq!(saved.remove(), None);
        }
    }
}
