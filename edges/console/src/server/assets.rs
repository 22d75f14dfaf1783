//! The files of the page, carried in the binary.

/// Name below `web/dist`, and content.
static FILES: &[(&str, &[u8])] = &include!(concat!(env!("OUT_DIR"), "/assets.rs"));

/// Shown where the binary was built without the page.
const PLAIN: &[u8] = b"<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>linkweir</title></head>\n\
<body><h1>linkweir</h1><p>This build has no page. Its data: <a href=\"/api/snapshot\">/api/snapshot</a>, \
<a href=\"/api/top?by=host\">/api/top</a>, <a href=\"/api/ccdf\">/api/ccdf</a>, <a href=\"/metrics\">/metrics</a>.</p></body></html>\n";

/// One file of the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Asset {
    pub(super) bytes: &'static [u8],
    pub(super) content_type: &'static str,
    /// Whether its name changes with its content, so that it may be kept for good.
    pub(super) is_immutable: bool,
}

/// The file for a path of the site: `/` is the page itself, `/assets/NAME` the file of that name.
pub(super) fn find(path: &str) -> Option<Asset> {
    let name = match path.strip_prefix('/')? {
        "" | "index.html" => "index.html",
        name => name.strip_prefix("assets/")?,
    };
    let bytes = FILES
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, bytes)| *bytes)
        .or_else(|| (path == "/" || path == "/index.html").then_some(PLAIN))?;
    Some(Asset {
        bytes,
        content_type: content_type(name),
        is_immutable: has_hash(name),
    })
}

fn content_type(name: &str) -> &'static str {
    match name.rsplit('.').next().unwrap_or_default() {
        "html" => "text/html; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "ico" => "image/x-icon",
        "json" | "map" => "application/json",
        "woff2" => "font/woff2",
        "txt" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

/// Whether a name carries eight or more letters and digits with a hash's look before its ending, as
/// bundlers write them: `app-3F9C2B1A.js`.
fn has_hash(name: &str) -> bool {
    let stem = name.rsplit_once('.').map_or("", |(stem, _)| stem);
    stem.rsplit_once(['-', '.']).is_some_and(|(_, hash)| {
        hash.len() >= 8
            && hash.bytes().all(|b| b.is_ascii_alphanumeric())
            && hash.bytes().any(|b| b.is_ascii_digit())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        let page = find("/").unwrap();
        assert_eq!(page.content_type, "text/html; charset=utf-8");
        assert_eq!(find("/index.html"), Some(page));
        assert!(!page.is_immutable && page.bytes.starts_with(b"<!"));
        for absent in [
            "",
            "x",
            "//",
            "/../Cargo.toml",
            "/assets/",
            "/assets/nothing.js",
        ] {
            assert_eq!(find(absent), None, "{absent}");
        }
        assert!(has_hash("assets/app-3F9C2B1A.js"));
        assert!(!has_hash("assets/app.js") && !has_hash("index.html"));
    }
}
