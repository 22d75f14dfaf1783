//! `linkweir gateway run` as a user of its own: what it may do, and that it does all it did before.

use super::site;

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::{Path, PathBuf};

use linkweir_testkit::clamd::{Clamd, EICAR};
use linkweir_testkit::netns::until;
use serde_json::Value;
use site::{CURL_RESET, PATIENCE, Site, noise, same, url};

use crate::common::{skipped, threads};

/// A user that every system has, with its number.
const USER: &str = "nobody";
/// `CAP_NET_ADMIN` alone.
const NET_ADMIN: u64 = 1 << 12;

/// A site whose directory that user may enter, and its number there; only root can become somebody else.
fn open(more: &[&str]) -> Option<(Site, u32)> {
    let site = Site::open(more)?;
    if site.net.is_unprivileged() {
        skipped("only root can become another user");
        return None;
    }
    let users = fs::read_to_string("/etc/passwd").unwrap();
    let line = users.lines().find(|line| line.starts_with("nobody:"));
    let Some(uid) = line.and_then(|line| line.split(':').nth(2)) else {
        skipped("there is no user nobody");
        return None;
    };
    fs::set_permissions(site.path("."), Permissions::from_mode(0o755)).unwrap();
    let uid = uid.parse().unwrap();
    Some((site, uid))
}

fn owner_and_mode(path: &Path) -> (u32, u32) {
    let meta = fs::metadata(path).unwrap();
    (meta.uid(), meta.mode() & 0o7777)
}

/// The complete files of events.
fn written(site: &Site) -> Vec<PathBuf> {
    let names = fs::read_dir(site.path(".")).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let names = names.filter(|name| name.starts_with("events"));
    names.map(|name| site.path(&name)).collect()
}

#[test]
fn a_user_of_its_own_does_all_of_it() {
    let clamd = match Clamd::start() {
        Ok(clamd) => clamd,
        Err(error) => return skipped(&error.to_string()),
    };
    let Some((site, uid)) = open(&[]) else { return };
    let socket = clamd.socket();
    fs::set_permissions(socket.parent().unwrap(), Permissions::from_mode(0o755)).unwrap();
    // As Debian's clamd has it.
    fs::set_permissions(&socket, Permissions::from_mode(0o666)).unwrap();
    chown(site.path("."), Some(uid), None).unwrap();
    for directory in ["record", "quarantine"] {
        fs::create_dir_all(site.path(directory)).unwrap();
        chown(site.path(directory), Some(uid), None).unwrap();
    }
    let policy = |record: &str| {
        format!(
            "[scanner.clamd]\naddress = \"{}\"\nwindow = \"32KiB\"\nspool = \"{}\"\n\
             [[rule]]\nname = \"web\"\napplication = [\"http\"]\naction = \"inspect\"\nscan = \"clamd\"\n\
             audit = true\nquarantine = true\n{record}\n",
            socket.display(),
            site.path("spool").display(),
        )
    };
    let words = [
        "--user",
        USER,
        "--summary",
        "summary.json",
        "--console",
        "127.0.0.1:8080",
    ];
    let gateway = site.gateway_with(&policy("record = true"), &words);

    let infected = [noise(100_000), EICAR.clone(), noise(100_000)].concat();
    let clean = noise(300_000);
    site.nginx.put("infected", &infected).unwrap();
    site.nginx.put("clean", &clean).unwrap();
    let fetch = || {
        let (code, _) = site.curl(0, &url("plain/infected"), "out", &[]);
        assert_eq!(code, CURL_RESET);
        let (code, out) = site.curl(1, &url("plain/clean"), "out", &[]);
        assert_eq!(code, 0);
        same(&out, &clean);
    };
    fetch();
    let all = threads(gateway.running.id());
    assert!(all.len() > 8, "{all:#?}");
    for thread in all {
        assert_eq!(thread.uid, uid, "{thread:?}");
        assert_eq!(thread.permitted, NET_ADMIN, "{thread:?}");
        assert_eq!(thread.capabilities, NET_ADMIN, "{thread:?}");
        assert_eq!(thread.no_new_privileges, "1", "{thread:?}");
        assert_eq!(thread.seccomp, "2", "{thread:?}");
    }
    let status = |gateway: &site::Gateway<'_>| -> Value {
        serde_json::from_str(&gateway.status_with(&["--json"])).unwrap()
    };
    let now = status(&gateway);
    // The kernel's own table is root's to read.
    assert_eq!(now["queues"].as_array().unwrap().len(), 2, "{now:#}");
    assert_eq!(now["scanner"]["is_reachable"], true, "{now:#}");
    assert!(now["rules"]["web"]["packets"].is_u64(), "{now:#}");

    gateway.reload(&policy("record = true\nfile-names = [\"*.exe\"]"));
    fetch();
    assert_eq!(status(&gateway)["reloads"], 1);
    gateway.running.signal("HUP").unwrap();
    assert!(
        until(PATIENCE, || !written(&site).is_empty()),
        "no new file"
    );
    assert!(until(PATIENCE, || status(&gateway)["reloads"] == 2));
    fetch();

    let quarantine = fs::read_dir(site.path("quarantine")).unwrap();
    let kept: Vec<_> = quarantine.map(|entry| entry.unwrap().path()).collect();
    assert!(!kept.is_empty());
    for path in &kept {
        let (owner, mode) = owner_and_mode(path);
        assert_eq!((owner, mode & 0o077), (uid, 0), "{}", path.display());
    }
    gateway.end();
    assert!(!site.path("gateway.sock").exists());
    let mut files = written(&site);
    assert_eq!(files.len(), 2, "{files:?}");
    let texts = files.iter().map(|path| fs::read_to_string(path).unwrap());
    let events = texts.collect::<String>();
    assert_eq!(
        events.matches("\"event\":\"infected\"").count(),
        3,
        "{events}"
    );
    files.push(site.path("summary.json"));
    for path in files {
        assert_eq!(owner_and_mode(&path), (uid, 0o640), "{}", path.display());
    }

    // What a killed one has left is no obstacle, also where another user left it.
    let mut killed = site.gateway_with(&policy("record = true"), &["--user", USER]);
    killed.running.signal("KILL").unwrap();
    let has_ended = || !matches!(killed.running.ended(), Ok(None));
    assert!(until(PATIENCE, has_ended));
    drop(killed);
    let again = site.gateway_with(&policy("record = true"), &["--user", USER]);
    fetch();
    assert_eq!(again.end().of("infected").len(), 1);
}

/// Before a packet waits for it.
#[test]
fn what_the_user_may_not_do_is_said_at_the_start() {
    let Some((site, uid)) = open(&[]) else { return };
    let at = site.path(".").canonicalize().unwrap();
    let at = at.display();
    let rule =
        "[[rule]]\nname = \"web\"\napplication = [\"http\"]\naction = \"inspect\"\nrecord = true\n";
    let text = format!(
        "[gateway]\ncontrol = \"{at}/run/deep/gateway.sock\"\n[record]\ndirectory = \"{at}/kept/files\"\n{rule}"
    );
    let config = site.put("own.toml", text.as_bytes());
    let config = config.to_str().unwrap();
    let run = |user: &str, events: &str| {
        let words = ["run", "--config", config, "--user", user, "-w", events];
        let output = site.linkweir(&words).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert_eq!(site.net.queues(), [], "{said}");
        said
    };
    let said = run("no-such-user", "events/a.jsonl");
    assert!(said.contains("no such user: `no-such-user`"), "{said}");
    // Root's directory.
    let said = run(USER, "a.jsonl");
    assert!(
        said.contains(&format!("the user `{USER}` cannot write there")),
        "{said}"
    );
    fs::set_permissions(config, Permissions::from_mode(0o600)).unwrap();
    let said = run(USER, "events/a.jsonl");
    let wanted = format!("own.toml: the user `{USER}` cannot read it");
    assert!(said.contains(&wanted), "{said}");

    // What is made is the user's, with the directories between.
    fs::set_permissions(config, Permissions::from_mode(0o644)).unwrap();
    let run = site.run(config, "events/b.jsonl", &["--user", USER]);
    assert!(until(PATIENCE, || !site.net.queues().is_empty()));
    for directory in ["run", "run/deep", "kept", "kept/files", "events"] {
        assert_eq!(owner_and_mode(&site.path(directory)).0, uid, "{directory}");
    }
    let output = run.finish().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert_eq!(owner_and_mode(&site.path("events/b.jsonl")), (uid, 0o640));
}

/// Events tell who wrote what to whom.
#[test]
fn events_are_not_for_everybody() {
    let Some(site) = Site::open(&[]) else { return };
    let policy = "[[rule]]\nname = \"web\"\napplication = [\"http\"]\naction = \"inspect\"\naudit = true\nrecord = true\n";
    let gateway = site.gateway_with(policy, &["--summary", "summary.json"]);
    site.nginx.put("small", b"small").unwrap();
    assert_eq!(site.curl(0, &url("plain/small"), "out", &[]).0, 0);
    let socket = owner_and_mode(&site.path("gateway.sock")).1;
    gateway.end();
    let mode = |name: &str| owner_and_mode(&site.path(name)).1;
    assert_eq!(socket, 0o600);
    assert_eq!([mode("events.jsonl"), mode("summary.json")], [0o640; 2]);
    let kept = fs::read_dir(site.path("record")).unwrap();
    let modes = kept.map(|entry| owner_and_mode(&entry.unwrap().path()).1);
    let modes: Vec<u32> = modes.collect();
    assert_eq!(modes, [0o600; 2]);
}
