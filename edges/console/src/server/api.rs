//! The addresses of the API, as `/api` lists them: what each takes, and nothing else.

use serde::Serialize;

/// An address.
#[derive(Debug, Serialize)]
pub(super) struct Address {
    path: &'static str,
    parameters: &'static [&'static str],
    what: &'static str,
}

const fn address(
    path: &'static str,
    parameters: &'static [&'static str],
    what: &'static str,
) -> Address {
    Address {
        path,
        parameters,
        what,
    }
}

/// All of them; `token` goes with each.
static ADDRESSES: [Address; 10] = [
    address("/api/snapshot", &[], "the last ten minutes and the totals"),
    address(
        "/api/stream",
        &["after"],
        "each interval as it closes, as server-sent events",
    ),
    address("/api/history", &["span"], "the last SPAN seconds of a day"),
    address(
        "/api/records",
        &["by", "key", "rule", "where", "order"],
        "the last records behind a row, a rule or an expression",
    ),
    address("/api/top", &["by", "sort", "window", "n"], "a table"),
    address("/api/ccdf", &["of", "window"], "a distribution"),
    address(
        "/api/download.csv",
        &["what"],
        "a table or the series as CSV",
    ),
    address(
        "/api/download.json",
        &["what"],
        "a table or the series as JSON",
    ),
    address("/api/status", &[], "the state of a gateway"),
    address("/api/probes", &[], "the probes of merged statistics"),
];

/// The list of addresses, JSON.
pub(super) fn list() -> Vec<u8> {
    // Words of ours have no key that JSON could not have.
    serde_json::to_vec(&serde_json::json!({ "addresses": &ADDRESSES[..] })).unwrap_or_default()
}

/// Why a query is not one of this address: it has a parameter that the address does not take.
pub(super) fn wrong_parameter(path: &str, query: &str) -> Option<String> {
    let address = ADDRESSES.iter().find(|address| address.path == path)?;
    let names = query.split('&').filter(|pair| !pair.is_empty());
    let mut names = names.map(|pair| pair.split('=').next().unwrap_or(pair));
    names.find(|name| *name != "token" && !address.parameters.contains(name))?;
    Some(match address.parameters {
        [] => format!("{path} takes no parameters"),
        all => format!("{path} takes {}", all.join(", ")),
    })
}
