//! Tstat's classes of sites: of requests in clear text by method, host and path, of TLS by server name.
//!
//! The numbers are Tstat's; the names that belong to them are those of the sites' own domains, so that a flow
//! may be in another class than by Tstat's search in whole requests.
//!
//! Source: Tstat 3.3.0, the lists `http_content`, `web_category` and `tls_category` of its `struct.h`.

/// A class of HTTP: an index into the bins of `L7_HTTP_num_*` and `http_bitrate_*`.
pub(crate) type HttpClass = u8;
/// A class of TLS: an index into the bins of `L7_TLS_num_*` and `tls_bitrate_*`.
pub(crate) type TlsClass = u8;

/// A GET that is nothing else.
const GET: HttpClass = 0;
/// A POST that is nothing else.
const POST: HttpClass = 1;
/// RTMP in requests.
const RTMPT: HttpClass = 3;
const YOUTUBE_VIDEO: HttpClass = 4;
/// A file of a video.
const VIDEO: HttpClass = 5;
const MAPS: HttpClass = 13;
const YOUTUBE: HttpClass = 15;
/// A file of Flash video.
const FLASH: HttpClass = 17;
const YOUTUBE_204: HttpClass = 21;
const YOUTUBE_EMBEDDED: HttpClass = 24;
/// Number of classes of HTTP.
pub(crate) const HTTP_CLASSES: u8 = 27;
/// Number of classes of TLS.
pub(crate) const TLS_CLASSES: u8 = 9;

/// Classes by the domain that a host is in.
const HOSTS: &[(&str, HttpClass)] = &[
    ("messenger.hotmail.com", 2),
    ("googlevideo.com", YOUTUBE_VIDEO),
    ("vimeo.com", 6),
    ("vimeocdn.com", 6),
    ("wikipedia.org", 7),
    ("wikimedia.org", 7),
    ("rapidshare.com", 8),
    ("megaupload.com", 9),
    ("facebook.com", 10),
    ("facebook.net", 10),
    ("fbcdn.net", 10),
    ("doubleclick.net", 11),
    ("googlesyndication.com", 11),
    ("flickr.com", 12),
    ("staticflickr.com", 12),
    ("maps.google.com", MAPS),
    ("netflix.com", 14),
    ("nflxvideo.net", 14),
    ("nflximg.net", 14),
    ("youtube.com", YOUTUBE),
    ("youtube-nocookie.com", YOUTUBE),
    ("ytimg.com", YOUTUBE),
    ("nk.pl", 16),
    ("iwiw.hu", 16),
    ("linkedin.com", 16),
    ("vk.com", 16),
    ("mediafire.com", 18),
    ("hotfile.com", 19),
    ("storage.to", 20),
    ("twitter.com", 25),
    ("twimg.com", 25),
    ("dropbox.com", 26),
    ("dropboxusercontent.com", 26),
];

/// Classes by the domain that a server name is in: Google, `YouTube`, Facebook, Netflix, Dropbox, Microsoft,
/// Apple, Instagram.
const SERVICES: &[(&str, TlsClass)] = &[
    ("google.com", 1),
    ("googleapis.com", 1),
    ("googleusercontent.com", 1),
    ("gstatic.com", 1),
    ("youtube.com", 2),
    ("youtube-nocookie.com", 2),
    ("googlevideo.com", 2),
    ("ytimg.com", 2),
    ("gvt1.com", 2),
    ("facebook.com", 3),
    ("facebook.net", 3),
    ("fbcdn.net", 3),
    ("netflix.com", 4),
    ("nflxvideo.net", 4),
    ("dropbox.com", 5),
    ("dropboxstatic.com", 5),
    ("dropboxusercontent.com", 5),
    ("microsoft.com", 6),
    ("live.com", 6),
    ("live.net", 6),
    ("windows.net", 6),
    ("apple.com", 7),
    ("icloud.com", 7),
    ("icloud-content.com", 7),
    ("instagram.com", 8),
    ("cdninstagram.com", 8),
];

/// The class of the domain in `table` that a name is, or is in.
fn in_domain(name: &[u8], table: &[(&str, u8)]) -> Option<u8> {
    let name = name.strip_suffix(b".").unwrap_or(name);
    let is_in = |domain: &str| {
        let (front, end) = match name.len().checked_sub(domain.len()) {
            Some(at) => name.split_at_checked(at).unwrap_or_default(),
            None => return false,
        };
        end.eq_ignore_ascii_case(domain.as_bytes()) && (front.is_empty() || front.ends_with(b"."))
    };
    table
        .iter()
        .find(|(domain, _)| is_in(domain))
        .map(|(_, class)| *class)
}

/// The class of a request; `host` may have a port.
pub(crate) fn http_class(method: &[u8], host: &[u8], target: &[u8]) -> HttpClass {
    let host = host.split(|byte| *byte == b':').next().unwrap_or(host);
    let path = target.split(|byte| *byte == b'?').next().unwrap_or(target);
    let is_post = method == b"POST";
    match in_domain(host, HOSTS) {
        Some(YOUTUBE | YOUTUBE_VIDEO) if path == b"/generate_204" => return YOUTUBE_204,
        Some(YOUTUBE) if path.starts_with(b"/embed/") => return YOUTUBE_EMBEDDED,
        Some(YOUTUBE) if path.starts_with(b"/videoplayback") => return YOUTUBE_VIDEO,
        Some(class) => return class,
        None => {}
    }
    let is_rtmpt = ["/open/", "/send/", "/idle/", "/fcs/"]
        .iter()
        .any(|start| path.starts_with(start.as_bytes()));
    let ends = |ending: &[u8]| {
        let at = path.len().checked_sub(ending.len());
        let end = at.and_then(|at| path.get(at..));
        end.is_some_and(|end| end.eq_ignore_ascii_case(ending))
    };
    if is_post {
        return if is_rtmpt { RTMPT } else { POST };
    }
    if ends(b".flv") {
        FLASH
    } else if ends(b".mp4") || ends(b".webm") || ends(b".m4v") {
        VIDEO
    } else {
        GET
    }
}

/// The class that the histograms count: several of the log are one there.
pub(crate) const fn counted(class: HttpClass) -> HttpClass {
    match class {
        YOUTUBE_204 | 22 => YOUTUBE_VIDEO,
        23 | YOUTUBE_EMBEDDED => YOUTUBE,
        // Twitter is a social network, Dropbox anything.
        25 => 16,
        26 => GET,
        _ => class,
    }
}

/// The category of a class: an index into the bins of `L7_WEB_num_*` and `web_bitrate_*`.
pub(crate) const fn web_category(class: HttpClass) -> u8 {
    match counted(class) {
        GET => 0,
        POST => 1,
        8 | 9 | 18..=20 => 2,
        YOUTUBE_VIDEO => 3,
        VIDEO | 6 | FLASH => 4,
        2 | RTMPT | 10 | 16 => 5,
        14 => 7,
        _ => 6,
    }
}

/// The class of a TLS session by its server name; 0 where it is of no service that is known.
pub(crate) fn tls_class(server_name: &[u8]) -> TlsClass {
    in_domain(server_name, SERVICES).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sites_have_their_classes() {
        let get = |host: &str, target: &str| http_class(b"GET", host.as_bytes(), target.as_bytes());
        assert_eq!(get("www.example.org", "/"), 0);
        assert_eq!(http_class(b"POST", b"example.org", b"/form"), 1);
        assert_eq!(http_class(b"POST", b"example.org", b"/send/1/2"), 3);
        assert_eq!(get("EN.wikipedia.org:8080", "/wiki/Rust"), 7);
        assert_eq!(get("notwikipedia.org", "/"), 0);
        assert_eq!(get("facebook.com", "/"), 10);
        assert_eq!(get("r1.googlevideo.com", "/generate_204"), 21);
        assert_eq!(get("www.youtube.com", "/embed/x?y"), 24);
        assert_eq!(get("cdn.example.org", "/a/B.FLV?start=1"), 17);
        assert_eq!(get("cdn.example.org", "/a.mp4"), 5);
        assert_eq!(
            [21, 22, 23, 24, 25, 26, 7].map(counted),
            [4, 4, 15, 15, 16, 0, 7]
        );
        assert_eq!(
            [0, 1, 8, 4, 6, 10, 7, 14].map(web_category),
            [0, 1, 2, 3, 4, 5, 6, 7]
        );
        let tls = |name: &str| tls_class(name.as_bytes());
        assert_eq!(
            [
                "www.google.com",
                "youtube.com.",
                "example.com",
                "apple.com.example",
                ""
            ]
            .map(tls),
            [1, 2, 0, 0, 0]
        );
        let all = HOSTS.iter().map(|(_, class)| *class);
        assert!(all.max() < Some(HTTP_CLASSES));
        let all = SERVICES.iter().map(|(_, class)| *class);
        assert!(all.max() < Some(TLS_CLASSES));
    }
}
