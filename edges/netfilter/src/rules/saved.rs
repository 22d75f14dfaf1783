//! What `iptables-save` says: which of it is ours, and the text that removes it.

use std::fmt::Write as _;

use super::host::Foreign;
use super::host::Step;
use super::sign::{Made, Sign};
use super::xtables::{Family, OURS, Tables, restore};

/// A table, as far as it matters to us.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct SavedTable {
    pub name: String,
    /// Those of our names that are there.
    chains: Vec<SavedChain>,
    /// Our sign in one of them.
    pub sign: Option<Sign>,
    jumps: Vec<SavedJump>,
    /// Chains of the kernel with their policy and how many rules they have.
    base: Vec<(String, String, usize)>,
}

/// A chain that has one of our names.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SavedChain {
    name: String,
    /// How many rules it has.
    rules: usize,
    /// Where they lead to, as far as that is a chain of our names.
    targets: Vec<String>,
}

/// A rule of another chain that leads to one of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SavedJump {
    from: String,
    to: String,
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

    /// Whether anything of ours does something. Chains that a flush left empty do not.
    pub(super) fn has_ours(&self) -> bool {
        self.tables.iter().any(SavedTable::is_ours)
    }

    /// Our sign.
    pub(super) fn sign(&self) -> Option<Sign> {
        self.tables.iter().find_map(|table| table.sign)
    }

    /// Chains that have names of ours and were not made by us, by table.
    pub(super) fn foreign(&self) -> Vec<Foreign> {
        let tool = self.family.restore().trim_end_matches("-restore");
        let foreign = |table: &SavedTable| table.foreign(tool);
        self.tables.iter().filter_map(foreign).collect()
    }

    /// Whether all of this is there and no rule more or less.
    pub(super) fn is(&self, tables: &Tables) -> bool {
        tables.tables.iter().all(|wanted| {
            let same = |there: &SavedTable| {
                there.name == wanted.name
                    && there.sign == Some(tables.sign)
                    && there.rules() == wanted.rules()
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

    /// Removes what we made, and empty chains of our names; `None` where there is nothing.
    pub(super) fn remove(&self) -> Option<Step> {
        let mut text = String::new();
        for table in &self.tables {
            if table.chains.iter().any(|chain| table.is_removable(chain)) {
                table.write_removal(&mut text);
            }
        }
        (!text.is_empty()).then(|| restore(self.family, text))
    }

    /// The tables that we made.
    pub(super) fn made(&self) -> impl Iterator<Item = &str> {
        let made =
            |table: &&SavedTable| (table.jumps.iter()).any(|jump| jump.made == Some(Made::Table));
        self.tables.iter().filter(made).map(|it| it.name.as_str())
    }
}

impl SavedTable {
    /// Whether we made the chains: one rule of ours in them, or that leads to them, is enough.
    fn is_ours(&self) -> bool {
        self.sign.is_some() || self.jumps.iter().any(|jump| jump.made.is_some())
    }

    /// Whether a chain is ours, or empty with nothing leading to it: then it does no more than keep its
    /// name from us.
    fn is_removable(&self, chain: &SavedChain) -> bool {
        let is_led_to = || {
            let inside = self.chains.iter().flat_map(|one| &one.targets);
            let mut all = inside.chain(self.jumps.iter().map(|jump| &jump.to));
            all.any(|to| *to == chain.name)
        };
        self.is_ours() || (chain.rules == 0 && !is_led_to())
    }

    /// The chains that are not ours and stay.
    fn foreign(&self, tool: &str) -> Option<Foreign> {
        let stays = |chain: &&SavedChain| !self.is_removable(chain);
        let names: Vec<&str> = (self.chains.iter().filter(stays))
            .map(|chain| chain.name.as_str())
            .collect();
        let kind = if names.len() > 1 { "chains" } else { "chain" };
        let table = &self.name;
        // A chain that is led to cannot go.
        let jumps = self
            .jumps
            .iter()
            .filter(|jump| names.contains(&jump.to.as_str()));
        let mut undo: Vec<String> = jumps
            .map(|jump| format!("{tool} -t {table} -D {}", jump.rule))
            .collect();
        for verb in ["-F", "-X"] {
            let command = |name: &&str| format!("{tool} -t {table} {verb} {name}");
            undo.extend(names.iter().map(command));
        }
        (!names.is_empty()).then(|| Foreign {
            what: format!("{kind} {} in table {table} of {tool}", names.join(", ")),
            undo: undo.join("; "),
        })
    }

    /// How many rules the chains have.
    fn rules(&self) -> usize {
        self.chains.iter().map(|chain| chain.rules).sum()
    }

    fn take(&mut self, line: &str) {
        if let Some(chain) = line.strip_prefix(':') {
            let mut words = chain.split_whitespace().map(str::to_owned);
            let (Some(name), Some(policy)) = (words.next(), words.next()) else {
                return;
            };
            if OURS.contains(&name.as_str()) {
                self.chains.push(SavedChain {
                    name,
                    rules: 0,
                    targets: Vec::new(),
                });
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
        let target = after("-j").or_else(|| after("-g")).unwrap_or_default();
        let is_to_ours = OURS.contains(&target);
        if let Some(ours) = self.chains.iter_mut().find(|one| one.name == *chain) {
            ours.rules += 1;
            ours.targets.extend(is_to_ours.then(|| target.to_owned()));
            self.sign = self.sign.or_else(|| Sign::read(comment));
            return;
        }
        if let Some((_, _, rules)) = self.base.iter_mut().find(|(name, ..)| name == chain) {
            *rules += 1;
        }
        if is_to_ours {
            self.jumps.push(SavedJump {
                from: chain.clone(),
                to: target.to_owned(),
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
        let gone = || self.chains.iter().filter(|chain| self.is_removable(chain));
        // Also a jump that somebody else made: a chain that is led to cannot go.
        for jump in &self.jumps {
            if gone().any(|chain| chain.name == jump.to) {
                line("-D ", &jump.rule);
            }
        }
        for verb in ["-F ", "-X "] {
            for chain in gone() {
                line(verb, &chain.name);
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
        let foreign = Foreign {
            what: "chain LINKWEIR-REJECT in table filter of iptables".to_owned(),
            undo: "iptables -t filter -F LINKWEIR-REJECT; iptables -t filter -X LINKWEIR-REJECT"
                .to_owned(),
        };
        assert_eq!(saved.foreign(), [foreign]);
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
        assert!(!saved.has_ours() && saved.foreign().is_empty());
        assert_eq!(saved.remove(), None);
    }

    #[test]
    fn empty_chains_of_our_names_are_removed() {
        let empty = "*mangle\n:FORWARD ACCEPT [0:0]\n:LINKWEIR-DECIDE - [0:0]\n\
                     :LINKWEIR-FORWARD - [0:0]\n:LINKWEIR-SAVE - [0:0]\n";
        let saved = Saved::parse(Family::V4, &format!("{empty}COMMIT\n"));
        assert!(!saved.has_ours() && saved.foreign().is_empty());
        let removal = saved.remove().expect("there is something").input;
        let expected = "*mangle\n-F LINKWEIR-DECIDE\n-F LINKWEIR-FORWARD\n-F LINKWEIR-SAVE\n\
                        -X LINKWEIR-DECIDE\n-X LINKWEIR-FORWARD\n-X LINKWEIR-SAVE\nCOMMIT\n";
        assert_eq!(removal, expected);

        // What has rules stays, and so does what they or somebody's jump lead to.
        let used = "-A FORWARD -j LINKWEIR-FORWARD\n-A LINKWEIR-FORWARD -g LINKWEIR-DECIDE\n";
        let saved = Saved::parse(Family::V4, &format!("{empty}{used}COMMIT\n"));
        let removal = saved.remove().expect("there is something").input;
        let expected = "*mangle\n-F LINKWEIR-SAVE\n-X LINKWEIR-SAVE\nCOMMIT\n";
        assert_eq!(removal, expected);
        let said: Vec<String> = saved.foreign().iter().map(ToString::to_string).collect();
        let expected = "chains LINKWEIR-DECIDE, LINKWEIR-FORWARD in table mangle of iptables \
             (to remove: iptables -t mangle -D FORWARD -j LINKWEIR-FORWARD; \
             iptables -t mangle -F LINKWEIR-DECIDE; iptables -t mangle -F LINKWEIR-FORWARD; \
             iptables -t mangle -X LINKWEIR-DECIDE; iptables -t mangle -X LINKWEIR-FORWARD)";
        assert_eq!(said, [expected]);
    }

    #[test]
    fn a_jump_of_ours_tells_without_the_sign() {
        let text = "*mangle\n:FORWARD ACCEPT [0:0]\n:LINKWEIR-FORWARD - [0:0]\n\
                    -A FORWARD -m comment --comment \"linkweir gateway\" -j LINKWEIR-FORWARD\n\
                    -A LINKWEIR-FORWARD -p tcp -j ACCEPT\nCOMMIT\n";
        let saved = Saved::parse(Family::V4, text);
        assert!(saved.has_ours() && saved.foreign().is_empty());
        let removal = saved.remove().expect("there is something").input;
        assert!(removal.contains("-X LINKWEIR-FORWARD"), "{removal}");
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
            proptest::prop_assert!(named || saved.remove().is_none());
            proptest::prop_assert!(named || saved.foreign().is_empty());
        }
    }
}
