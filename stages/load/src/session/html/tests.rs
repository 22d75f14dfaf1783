//! Objects of pages, however the pages are cut.

use proptest::prelude::*;

use super::*;

fn found<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<String> {
    let mut found = Found::default();
    found.begin(b"/dir/page.html?x=1");
    for piece in pieces {
        found.feed(piece, b"www.test", usize::MAX);
    }
    (0..found.len())
        .map(|n| String::from_utf8(found.target(n).to_vec()).expect("a target is text"))
        .collect()
}

const PAGE: &[u8] = b"<!DOCTYPE html><html><head>
<title>Not <img src=in-title.png></title>
<!-- <img src=\"commented.png\"> -- > still -->
<link href=\"/style.css\" rel='alternate StyleSheet'>
<link rel=next href=/next.html><link rel=icon href=favicon.ico />
<script src=app.js?a=1&amp;b=2 async></script>
<script>document.write('<img src=\"no.png\">'); if (a </b) </scriptx> <img src=no2.png></SCRIPT >
<style>@import url(no.css); <img src=no3.png></style>
</head><body background=bg.png>
<IMG alt='a > b' SRC = \"../img/a b.png#frag\" src=second.png>
<img src='http://www.test:80/abs.png'><img src=//WWW.test?q><img src=https://www.test/tls.png>
<img src=//other.test/x.png><img src=data:image/png;base64,AAAA><img src=''><img src=\"#top\">
<img src=/style.css><iframe src=frame.html></iframe><a href=/link.html>no</a>
<input type=image src=./././b.png><embed src=/a/../../c.swf><imgs src=no4.png>
<img data-src=no5.png title = src=no6.png ><img src=?other><img src=\"x\ny.png\">";

const OBJECTS: [&str; 11] = [
    "/style.css",
    "/dir/favicon.ico",
    "/dir/app.js?a=1&b=2",
    "/img/a%20b.png",
    "/abs.png",
    "/?q",
    "/dir/frame.html",
    "/dir/b.png",
    "/c.swf",
    "/dir/page.html?other",
    "/dir/xy.png",
];

#[test]
fn what_a_browser_asks_for() {
    assert_eq!(found([PAGE]), OBJECTS);
    assert_eq!(found(PAGE.chunks(1)), OBJECTS);
}

#[test]
fn a_base_moves_relative_links() {
    let page = b"<base href=/other/dir/><base href=/second/><img src=a.png>";
    assert_eq!(found([&page[..]]), ["/other/dir/a.png"]);
    let page = b"<base href=http://cdn.test/><img src=a.png><img src=/b.png><img src=http://www.test/c.png>";
    assert_eq!(found([&page[..]]), ["/c.png"]);
}

#[test]
fn links_by_the_rules_of_rfc_3986() {
    // Sec. 5.4.1 and 5.4.2, of those for the same site.
    for (link, want) in [
        ("g", "/b/c/g"),
        ("./g", "/b/c/g"),
        ("g/", "/b/c/g/"),
        ("/g", "/g"),
        ("?y", "/b/c/d;p?y"),
        ("g?y", "/b/c/g?y"),
        ("g#s", "/b/c/g"),
        (";x", "/b/c/;x"),
        (".", "/b/c/"),
        ("./", "/b/c/"),
        ("..", "/b/"),
        ("../g", "/b/g"),
        ("../..", "/"),
        ("../../g", "/g"),
        ("../../../g", "/g"),
        ("/./g", "/g"),
        ("/../g", "/g"),
        ("g.", "/b/c/g."),
        ("..g", "/b/c/..g"),
        ("./g/.", "/b/c/g/"),
        ("g/../h", "/b/c/h"),
        ("g?y/../x", "/b/c/g?y/../x"),
        ("http://a/x", "/x"),
        ("//a", "/"),
    ] {
        let mut out = b"before".to_vec();
        assert!(
            resolve(b"/b/c/d;p?q", b"a", link.as_bytes(), &mut out),
            "{link}"
        );
        assert_eq!(out.strip_prefix(b"before"), Some(want.as_bytes()), "{link}");
    }
    for link in [
        "",
        "#s",
        "//g",
        "http:g",
        "g:h",
        "mailto:a@b",
        "http://a:81/",
    ] {
        let mut out = Vec::new();
        assert!(
            !resolve(b"/b/c/d;p?q", b"a", link.as_bytes(), &mut out),
            "{link}"
        );
        assert_eq!(out, b"");
    }
}

#[test]
fn character_references() {
    for (text, want) in [
        ("a&amp;b&#38;c&#x26;d", "a&b&c&d"),
        ("&amp;amp;", "&amp;"),
        ("&lt;&&;&#999;&#x;&amp", "&lt;&&;&#999;&#x;&amp"),
    ] {
        let mut value = text.as_bytes().to_vec();
        unescape(&mut value);
        assert_eq!(value, want.as_bytes(), "{text}");
    }
}

#[test]
fn pages_without_end_are_bounded() {
    let mut found = Found::default();
    found.begin(b"/");
    for number in 0..10_000 {
        let tag = format!("<img src=/{number}/{}>", "x".repeat(number % 3000));
        found.feed(tag.as_bytes(), b"h", 100_000);
    }
    assert!(found.len() <= MAX_OBJECTS && found.bytes() <= 100_000);
    assert!(found.beyond() > 6_000);
    assert!(found.memory_bytes() < 300_000, "{}", found.memory_bytes());
    found.feed(&[b'<'; 100_000], b"h", 100_000);
    found.feed(&[b'a'; 1_000_000], b"h", 100_000);
    assert!(found.memory_bytes() < 300_000, "{}", found.memory_bytes());
}

/// Bytes of which tags are made.
fn soup() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just(b"<img src=".to_vec()),
        Just(b"<script>".to_vec()),
        Just(b"</script>".to_vec()),
        Just(b"<link rel=icon href=".to_vec()),
        Just(b"<base href=".to_vec()),
        Just(b"<!--".to_vec()),
        Just(b"-->".to_vec()),
        Just(b"/a/../b".to_vec()),
        "[<>=/\"'a. !?&#;-]{1,4}".prop_map(String::into_bytes),
        any::<u8>().prop_map(|byte| vec![byte]),
    ];
    proptest::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn cuts_change_nothing(page in soup(), cut in 1_usize..7) {
        let whole = found([&page[..]]);
        prop_assert_eq!(&found(page.chunks(cut)), &whole);
        for target in whole {
            prop_assert!(target.starts_with('/'), "{}", target);
            prop_assert!(target.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#'), "{}", target);
        }
    }
}
