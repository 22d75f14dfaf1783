//! `linkweir gateway`: rules of countries and autonomous systems, and a database that changes.

use super::site;

use std::fs;

use linkweir_testkit::gateway::{SERVER, SERVER_V6, client};
use linkweir_testkit::mmdb;
use linkweir_testkit::netns::until;
use serde_json::{Value, json};
use site::{CURL_TIME, PATIENCE, Site, noise, same, url};

/// curl's code for a connection that was refused.
const CURL_REFUSED: i32 = 7;

const POLICY: &str = r#"
    [[rule]]
    name = "not from there"
    client-country = ["AQ", "NL"]
    action = "reject"

    [[rule]]
    name = "not from de to that system"
    client-country = "DE"
    server-asn = 64500
    action = "drop"
"#;

/// Has these clients in these countries.
fn countries(clients: &[(u8, &'static str)]) -> Vec<u8> {
    let networks: Vec<(String, mmdb::Value)> = clients
        .iter()
        .map(|(number, code)| (format!("{}/32", client(*number)), mmdb::country(code)))
        .collect();
    let networks: Vec<(&str, mmdb::Value)> = (networks.iter())
        .map(|(network, value)| (network.as_str(), value.clone()))
        .collect();
    mmdb::database("GeoLite2-Country", &networks)
}

/// The events of all files: each hangup begins another one.
fn events(site: &Site) -> Vec<Value> {
    let files = fs::read_dir(site.path("")).unwrap();
    let paths = files.map(|file| file.unwrap().path());
    let is_events = |path: &std::path::PathBuf| path.extension().is_some_and(|end| end == "jsonl");
    let texts = paths
        .filter(is_events)
        .map(|path| fs::read_to_string(path).unwrap());
    let text: String = texts.collect();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn a_country_is_refused_until_the_database_says_otherwise() {
    let Some(site) = Site::open(&[]) else { return };
    site.put("country.mmdb", &countries(&[(0, "NL"), (1, "DE")]));
    let system = format!("{SERVER}/32");
    let systems = mmdb::database("GeoLite2-ASN", &[(&system, mmdb::asn(64_500))]);
    site.put("asn.mmdb", &systems);
    let geoip = "[gateway]\ngeoip = [\"country.mmdb\", \"asn.mmdb\"]";
    let change = |text: String| text.replacen("[gateway]", geoip, 1);
    let gateway = site.gateway_changed(POLICY, change, &[]);
    let bytes = noise(300_000);
    site.nginx.put("page", &bytes).unwrap();
    let target = url("plain/page");
    let code = |number: u8, seconds: &str| {
        let (code, out) = site.curl(number, &target, "out", &["-m", seconds]);
        if code == 0 {
            same(&out, &bytes);
        }
        code
    };
    assert_eq!(code(0, "15"), CURL_REFUSED);
    assert_eq!(code(1, "2"), CURL_TIME);
    // Of the third client the database knows nothing, nor of anyone of IPv6.
    assert_eq!(code(2, "15"), 0);
    let six = format!("http://[{SERVER_V6}]/plain/page");
    assert_eq!(site.curl(0, &six, "out", &[]).0, 0);

    // Another database, of the same name.
    let replace = |bytes: &[u8]| {
        let new = site.put("new.mmdb", bytes);
        fs::rename(new, site.path("country.mmdb")).unwrap();
        gateway.running.signal("HUP").unwrap();
    };
    replace(&countries(&[(2, "NL")]));
    assert!(until(PATIENCE, || code(2, "15") == CURL_REFUSED));
    assert_eq!((code(0, "15"), code(1, "15")), (0, 0));

    // One that is damaged changes nothing.
    replace(b"not a database");
    let mut reload = site.linkweir(&["reload", "--config", &gateway.config]);
    let refused = reload.output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success(), "{said}");
    assert!(
        said.contains("gateway.toml:") && said.contains("country.mmdb: "),
        "{said}"
    );
    assert_eq!((code(2, "15"), code(0, "15")), (CURL_REFUSED, 0));

    let (code, said, _) = gateway.ended();
    assert_eq!(code, 0, "{said}");
    let events = events(&site);
    assert!(said.contains("the policy is unchanged"), "{said}");
    let places = |event: &Value| {
        let names = [
            "client_country",
            "client_asn",
            "server_country",
            "server_asn",
        ];
        names.map(|name| event[name].clone())
    };
    let decided = |number: u8, action: &str| {
        let address = client(number).to_string();
        let all = events.iter().filter(|event| {
            event["event"] == "decided"
                && event["client_ip"] == *address
                && event["server_ip"] == *SERVER.to_string()
                && event["action"] == *action
        });
        all.map(places).collect::<Vec<_>>()
    };
    let at = |country: Value| [country, Value::Null, Value::Null, json!(64_500)];
    for (number, action, country) in [
        (0, "reject", json!("NL")),
        (0, "allow", Value::Null),
        (1, "drop", json!("DE")),
        (1, "allow", Value::Null),
        (2, "reject", json!("NL")),
        (2, "allow", Value::Null),
    ] {
        let found = decided(number, action);
        let wanted = at(country);
        assert!(
            !found.is_empty() && found.iter().all(|one| *one == wanted),
            "{number} {action}: {found:?}"
        );
    }
}
