//! A broker that asks for TLS and a password (SASL/SCRAM).
#![cfg(feature = "kafka")]

use super::site;

use crate::common::{Ran, demo, http};
use linkweir_kafka::Consumer;
use linkweir_testkit::kafka::{Broker, PASSWORD, USER};
use site::with_shared_broker;
use tempfile::tempdir;

/// Sends the bundled capture to a topic with these settings beside those of the mechanism.
fn sent(broker: &Broker, topic: &str, settings: &[String]) -> Ran {
    let url = broker.tls_url(topic);
    let user = format!("sasl.username={USER}");
    let mut words = vec!["-w", &url, "--delivery-timeout", "2s"];
    for setting in [
        "security.protocol=sasl_ssl",
        "sasl.mechanism=SCRAM-SHA-256",
        &user,
    ] {
        words.extend(["--kafka", setting]);
    }
    for setting in settings {
        words.extend(["--kafka", setting]);
    }
    http(&demo(), &words)
}

#[test]
fn records_arrive_over_tls_and_what_is_wrong_is_said() {
    with_shared_broker(|broker| {
        let directory = tempdir().unwrap();
        let secret = directory.path().join("password");
        std::fs::write(&secret, format!("{PASSWORD}\n")).unwrap();
        let password = format!("sasl.password=@{}", secret.display());
        let ca = format!("ssl.ca.location={}", broker.certificate().display());
        sent(broker, "tls", &[ca.clone(), password.clone()]).exits(0);
        let messages = Consumer::read_to_end(&broker.address(), "tls").unwrap();
        assert_eq!(messages.len(), 800);
        // The certificate is in no bundle of the system.
        sent(broker, "never", &[password])
            .exits(1)
            .says("certificate verify failed")
            .says("800 records are lost");
        let wrong = sent(broker, "never", &[ca, "sasl.password=guess".to_owned()]).exits(1);
        wrong.says("invalid credentials");
    });
}
