//! What the page may order, where that was allowed: `POST /api/start` and `POST /api/stop`.
//!
//! A page of a stranger must not be able to order anything through the browser of somebody who has the token. It
//! cannot read the answer, but a form could send a POST with our cookie; therefore an order also needs a field of
//! its own, which no form can have and a script of another origin only after a preflight that is refused here, and
//! where the browser says from where the order comes, that must be our own page.

use hyper::header::{self, HeaderMap, HeaderName};

use super::guard::Guard;

/// What a page orders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Start what is ready.
    Start,
    /// Let what runs end early, with its results.
    Stop,
}

/// The field that an order has, with the word of the order.
const FIELD: HeaderName = HeaderName::from_static("x-linkweir-order");

/// Why an order is not carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    /// It comes from another page, or could.
    Foreign,
    /// There is no such order.
    Unknown,
}

impl Order {
    const fn word(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Stop => "stop",
        }
    }

    /// The order of a path, if its fields show that our own page or a program gives it.
    pub(super) fn of(path: &str, fields: &HeaderMap, guard: &Guard) -> Result<Self, Refused> {
        let all = [Self::Start, Self::Stop];
        let named = path.strip_prefix("/api/");
        let order = all.into_iter().find(|one| named == Some(one.word()));
        let order = order.ok_or(Refused::Unknown)?;
        let is_named = fields.get(FIELD).is_some_and(|word| word == order.word());
        if is_named && is_from_here(fields, guard) {
            Ok(order)
        } else {
            Err(Refused::Foreign)
        }
    }
}

/// Whether a request comes from our own page, or from a program: as far as the browser says from where it comes.
pub(super) fn is_from_here(fields: &HeaderMap, guard: &Guard) -> bool {
    let field = |name: HeaderName| fields.get(name).map(|value| value.to_str().ok());
    let is_same_site = match field(HeaderName::from_static("sec-fetch-site")) {
        None => true,
        Some(site) => site == Some("same-origin"),
    };
    let is_our_origin = match field(header::ORIGIN) {
        None => true,
        Some(origin) => origin
            .and_then(|origin| origin.split_once("://"))
            .is_some_and(|(_, host)| guard.is_ours(host)),
    };
    is_same_site && is_our_origin
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(path: &str, fields: &[(&'static str, &str)]) -> Result<Order, Refused> {
        let guard = Guard::new("127.0.0.1:8080".parse().unwrap(), &[], None, false);
        let mut map = HeaderMap::new();
        for (name, value) in fields {
            map.insert(HeaderName::from_static(name), value.parse().unwrap());
        }
        Order::of(path, &map, &guard)
    }

    #[test]
    fn only_our_own_page_gives_orders() {
        let field = ("x-linkweir-order", "start");
        assert_eq!(order("/api/start", &[field]), Ok(Order::Start));
        let ours = [
            field,
            ("origin", "http://127.0.0.1:8080"),
            ("sec-fetch-site", "same-origin"),
        ];
        assert_eq!(order("/api/start", &ours), Ok(Order::Start));
        for foreign in [
            vec![],
            vec![("x-linkweir-order", "stop")],
            vec![field, ("origin", "http://evil.example")],
            vec![field, ("origin", "null")],
            vec![field, ("sec-fetch-site", "cross-site")],
            vec![field, ("sec-fetch-site", "same-site")],
        ] {
            assert_eq!(
                order("/api/start", &foreign),
                Err(Refused::Foreign),
                "{foreign:?}"
            );
        }
        assert_eq!(order("/api/shutdown", &[field]), Err(Refused::Unknown));
        assert_eq!(order("/", &[field]), Err(Refused::Unknown));
    }
}
