//! URL templates: what stays of a URL when the identifiers in it are folded.
//!
//! `/user/123/orders/9f86d081-...?x=1` and `/user/77/orders/...` are one resource to whoever runs the
//! site: `/user/{n}/orders/{id}`. The query, the fragment and `;parameters` are dropped.
//!
//! Cost: one pass over the path, no allocation beyond `out`.

/// Longest host, in bytes, that goes into a template.
const MAX_HOST_BYTES: usize = 96;
/// Longest path of a template; what would go beyond becomes `/{rest}`.
const MAX_PATH_BYTES: usize = 96;
/// Most segments of a template.
const MAX_SEGMENTS: usize = 8;
/// A longer segment is an identifier, whatever it is made of.
const MAX_SEGMENT_BYTES: usize = 48;
/// Longest template: the key size that a table of templates needs.
pub const MAX_TEMPLATE_BYTES: usize = MAX_HOST_BYTES + MAX_PATH_BYTES + 8;

/// Appends the template of a request to `out`: host in lower case, path with identifiers folded.
///
/// A segment of the path becomes
/// - `{n}` where it is a number, also with `-`, `_`, `.`, `:` or `,` in it (`2024-05-01`),
/// - `{id}` where it is 8 or more hexadecimal digits, a UUID, or at least 16 characters that switch
///   between letters, capitals and digits as base64 does, or is longer than 48 bytes,
/// - and keeps a short ending: `/img/8812.jpg` is `/img/{n}.jpg`.
///
/// Shape: at most [`MAX_TEMPLATE_BYTES`]; at most 8 segments, the rest is `/{rest}`.
pub fn url_template(host: &[u8], target: &[u8], out: &mut Vec<u8>) {
    let host = host.get(..MAX_HOST_BYTES).unwrap_or(host);
    let start = out.len();
    out.extend_from_slice(host);
    if let Some(added) = out.get_mut(start..) {
        added.make_ascii_lowercase();
    }
    path_template(target, out);
}

/// Appends the template of the path of a request target (RFC 9112 sec. 3.2) to `out`.
pub(crate) fn path_template(target: &[u8], out: &mut Vec<u8>) {
    let path = path_of(target);
    let Some(segments) = path.strip_prefix(b"/") else {
        // `*`, or not a path.
        out.extend_from_slice(path.get(..MAX_PATH_BYTES).unwrap_or(path));
        return;
    };
    let parameters = memchr::memchr(b';', segments).is_some();
    let start = out.len();
    for (number, segment) in segments.split(|byte| *byte == b'/').enumerate() {
        let segment = match parameters.then(|| memchr::memchr(b';', segment)).flatten() {
            Some(at) => segment.get(..at).unwrap_or(segment),
            None => segment,
        };
        let (stem, ending) = split_ending(segment);
        let (stem, ending) = match fold(stem) {
            Some(folded) => (folded, ending),
            None => (segment, &[][..]),
        };
        let used = out.len() - start;
        if number == MAX_SEGMENTS || used + 1 + stem.len() + ending.len() > MAX_PATH_BYTES {
            out.extend_from_slice(b"/{rest}");
            return;
        }
        out.push(b'/');
        out.extend_from_slice(stem);
        out.extend_from_slice(ending);
    }
}

/// The path of a request target: without the scheme and authority of an absolute-form target, without
/// query and fragment.
fn path_of(target: &[u8]) -> &[u8] {
    let mut path = target;
    if !target.starts_with(b"/")
        && let Some(at) = target.iter().take(16).position(|byte| *byte == b':')
        && let Some(rest) = target.get(at..).and_then(|rest| rest.strip_prefix(b"://"))
    {
        let start = rest
            .iter()
            .position(|byte| matches!(byte, b'/' | b'?' | b'#'))
            .unwrap_or(rest.len());
        path = rest.get(start..).unwrap_or_default();
    }
    let end = memchr::memchr2(b'?', b'#', path).unwrap_or(path.len());
    match path.get(..end).unwrap_or_default() {
        // `http://host` asks for the same as `http://host/`.
        [] => b"/",
        path => path,
    }
}

/// Splits off an ending of one to five letters and digits, with its dot.
fn split_ending(segment: &[u8]) -> (&[u8], &[u8]) {
    let from = segment.len().saturating_sub(6);
    let tail = segment.get(from..).unwrap_or_default();
    if let Some(dot) = tail.iter().rposition(|byte| *byte == b'.')
        && from + dot > 0
        && let Some((stem, ending)) = segment.split_at_checked(from + dot)
        && ending.len() > 1
        && ending.iter().skip(1).all(u8::is_ascii_alphanumeric)
        && ending.iter().any(u8::is_ascii_alphabetic)
    {
        return (stem, ending);
    }
    (segment, &[])
}

const MARK: u8 = 0;
const DIGIT: u8 = 1;
const LOWER: u8 = 2;
const UPPER: u8 = 3;
/// Words in other scripts, braces, percent signs: such a segment stays.
const OTHER: u8 = 1 << 2;
const CLASS: u8 = 7;
const HEX: u8 = 1 << 3;

/// What each byte is: a table, because letters and digits of an identifier come in no order that a
/// branch could be predicted by.
const KINDS: [u8; 256] = {
    let mut kinds = [OTHER; 256];
    let mut byte = 0;
    while let Some((place, _)) = kinds.split_at_mut(byte).1.split_first_mut() {
        #[expect(clippy::cast_possible_truncation, reason = "below 256")]
        let value = byte as u8;
        *place = match value {
            b'0'..=b'9' => DIGIT | HEX,
            b'a'..=b'f' => LOWER | HEX,
            b'A'..=b'F' => UPPER | HEX,
            b'g'..=b'z' => LOWER,
            b'G'..=b'Z' => UPPER,
            b'-' | b'_' | b'.' | b':' | b',' | b'=' | b'+' | b'~' => MARK,
            _ => OTHER,
        };
        byte += 1;
    }
    kinds
};

/// What a segment is folded to, `None` where it stays.
fn fold(segment: &[u8]) -> Option<&'static [u8]> {
    if segment.len() > MAX_SEGMENT_BYTES {
        return Some(b"{id}");
    }
    // Most are words.
    if !segment.iter().any(u8::is_ascii_digit) {
        return None;
    }
    let (mut digits, mut letters, mut hex, mut marks, mut switches) = (0, 0, 0, 0, 0);
    let mut last = MARK;
    for byte in segment {
        let kind = KINDS.get(usize::from(*byte)).copied().unwrap_or(OTHER);
        let class = kind & CLASS;
        if class == OTHER {
            return None;
        }
        digits += usize::from(class == DIGIT);
        letters += usize::from(class >= LOWER);
        marks += usize::from(class == MARK);
        hex += usize::from(kind & HEX != 0);
        switches += usize::from((class != last) & (class != MARK) & (last != MARK));
        last = class;
    }
    let length = segment.len();
    if letters == 0 {
        return Some(b"{n}");
    }
    let is_hex = length >= 8 && hex == length;
    let is_uuid = length == 36 && hex == 32 && marks == 4;
    let is_mixed = length >= 16 && digits >= 2 && switches * 4 >= length;
    (is_hex || is_uuid || is_mixed).then_some(b"{id}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn template(host: &str, target: &[u8]) -> String {
        let mut out = Vec::new();
        url_template(host.as_bytes(), target, &mut out);
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn identifiers_fold_and_words_stay() {
        for (target, want) in [
            ("/user/123/x", "/user/{n}/x"),
            ("/user/123/x?q=1#f", "/user/{n}/x"),
            ("/", "/"),
            ("", "/"),
            ("*", "*"),
            ("http://other:80/a/9", "/a/{n}"),
            ("http://other?x", "/"),
            ("/api/v1/items", "/api/v1/items"),
            ("/o/6f1ed002ab5595859014ebf0951522d9", "/o/{id}"),
            ("/o/123E4567-e89b-12d3-a456-426614174000/p", "/o/{id}/p"),
            ("/t/eyJhbGciOiJIUzI1NiJ9", "/t/{id}"),
            ("/t/dQw4w9WgXcQ", "/t/dQw4w9WgXcQ"),
            ("/blog/2024-05-01/how-to-do-it", "/blog/{n}/how-to-do-it"),
            (
                "/blog/article-2024-how-to-fold-urls",
                "/blog/article-2024-how-to-fold-urls",
            ),
            ("/img/8812.jpg", "/img/{n}.jpg"),
            ("/img/logo.svg", "/img/logo.svg"),
            ("/js/app.3f9c2b1a.js", "/js/app.3f9c2b1a.js"),
            ("/download/1.2.3", "/download/{n}"),
            ("/dead/beef", "/dead/beef"),
            ("/facade00", "/{id}"),
            ("/cart;jsessionid=99/x", "/cart/x"),
            ("/a//b/", "/a//b/"),
            ("/.5", "/{n}"),
            ("/%41/{n}", "/%41/{n}"),
            (
                "/1/2/3/4/5/6/7/8/9",
                "/{n}/{n}/{n}/{n}/{n}/{n}/{n}/{n}/{rest}",
            ),
        ] {
            assert_eq!(template("", target.as_bytes()), want, "{target}");
        }
        assert_eq!(
            template("Shop.Example:8080", b"/A/1"),
            "shop.example:8080/A/{n}"
        );
        let long = format!("/{}/x", "a".repeat(49));
        assert_eq!(template("", long.as_bytes()), "/{id}/x");
        let long = format!("/{0}/{0}/{0}", "ab".repeat(20));
        assert_eq!(
            template("", long.as_bytes()),
            format!("/{0}/{0}/{{rest}}", "ab".repeat(20))
        );
    }

    proptest! {
        #[test]
        fn bounded_and_a_template_is_its_own_template(
            host in prop::collection::vec(any::<u8>(), 0..200),
            target in prop_oneof![
                prop::collection::vec(any::<u8>(), 0..300),
                "(/([a-z]{1,9}|[0-9]{1,20}|[0-9a-f]{8,40}|[A-Za-z0-9_=-]{1,60}(\\.[a-z]{2,4})?)){0,12}(\\?[a-z=]{0,9})?"
                    .prop_map(String::into_bytes),
            ],
        ) {
            let mut once = Vec::new();
            url_template(&host, &target, &mut once);
            prop_assert!(once.len() <= MAX_TEMPLATE_BYTES);
            prop_assert!(!target.starts_with(b"/") || !once.iter().skip(host.len()).any(|b| matches!(b, b'?' | b'#')));
            if target.starts_with(b"/") {
                let path = &once[host.len().min(MAX_HOST_BYTES)..];
                let mut twice = Vec::new();
                path_template(path, &mut twice);
                prop_assert_eq!(String::from_utf8_lossy(path), String::from_utf8_lossy(&twice));
            }
        }
    }
}
