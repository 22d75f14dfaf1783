//! Names of files on the disk.

/// Longest name that is taken as it is, bytes. What is added (`.`, `-999`, `.json`, `.partial`) stays
/// below the 255 of Linux.
const MAX_NAME: usize = 200;
/// Names tried for one file.
const MAX_TRIES: u32 = 999;
/// What the hidden name of an open file ends with.
const PARTIAL: &str = ".partial";
/// What the name of the text beside a file ends with.
pub(crate) const JSON: &str = ".json";

/// A name without anything that a file system or a shell could act on: letters, digits, `.`, `-`, `_`;
/// no dot at its beginning. The stage promises that already; it is made sure here, because a mistake
/// would be one with paths.
pub(crate) fn sanitise(name: &str) -> String {
    let clean = |character: char| match character {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '.' | '-' | '_' => character,
        _ => '_',
    };
    let mut out: String = name.chars().take(MAX_NAME).map(clean).collect();
    if out.starts_with('.') {
        out.replace_range(..1, "_");
    }
    if out.is_empty() {
        out.push_str("file");
    }
    out
}

/// The name, and the same with `-2`, `-3` and so on.
pub(crate) fn candidates(name: &str) -> impl Iterator<Item = String> + '_ {
    std::iter::once(name.to_owned())
        .chain((2..=MAX_TRIES).map(move |number| format!("{name}-{number}")))
}

/// The name of the text beside a file.
pub(crate) fn json(name: &str) -> String {
    format!("{name}{JSON}")
}

/// The hidden name while it is open.
pub(crate) fn partial(name: &str) -> String {
    format!(".{name}{PARTIAL}")
}

/// The name that a hidden one stands for; `None` for any other.
pub(crate) fn of_partial(hidden: &str) -> Option<&str> {
    let name = hidden.strip_prefix('.')?.strip_suffix(PARTIAL)?;
    // One of ours.
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
    (!name.is_empty() && !name.starts_with('.') && name.bytes().all(is_plain)).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn paths_become_names() {
        for (name, expected) in [
            ("../../etc/passwd", "_._.._etc_passwd"),
            ("/etc/passwd", "_etc_passwd"),
            ("..", "_."),
            (".", "_"),
            ("", "file"),
            ("a\0b\nc d", "a_b_c_d"),
            ("é.exe", "_.exe"),
            ("fine-1_2.tar.gz", "fine-1_2.tar.gz"),
        ] {
            assert_eq!(sanitise(name), expected, "{name:?}");
        }
        assert_eq!(
            candidates("a").take(3).collect::<Vec<_>>(),
            ["a", "a-2", "a-3"]
        );
    }

    #[test]
    fn hidden_names_are_told_from_others() {
        assert_eq!(of_partial(&partial("a.b")), Some("a.b"));
        for other in [
            "a.partial",
            ".partial",
            "..partial",
            "..a.partial",
            ".a b.partial",
            ".a",
        ] {
            assert_eq!(of_partial(other), None, "{other}");
        }
    }

    proptest! {
        #[test]
        fn a_name_is_a_name(name in any::<String>()) {
            let clean = sanitise(&name);
            prop_assert!(!clean.is_empty() && clean.len() <= MAX_NAME && !clean.starts_with('.'));
            prop_assert!(clean.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte)));
            prop_assert_eq!(&sanitise(&clean), &clean);
            let longest = candidates(&clean).last().expect("there are some");
            prop_assert!(partial(&json(&longest)).len() <= 255);
            let hidden = partial(&clean);
            prop_assert_eq!(of_partial(&hidden), Some(clean.as_str()));
        }
    }
}
