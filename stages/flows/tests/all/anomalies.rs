//! Labelled anomalies, each with every combination of IP version, options and identification field.

use linkweir_flows::{Classifier, FlowsConfig, FlowsStage};
use linkweir_record::RecordBatch;
use linkweir_record::flow::{Anomaly, Evidence};
use linkweir_testkit::anomalies::{Options, Verdict, all};
use linkweir_testkit::conversation::Conversation;
use linkweir_testkit::memory::drive;
use linkweir_wire::LinkType;

#[test]
fn every_case_is_what_its_label_says() {
    let mut wrong = Vec::new();
    let (mut right, mut tolerated) = (0, 0);
    for options in Options::all() {
        for case in all(options, 40_000, Conversation::START_NS) {
            let mut stage = FlowsStage::new(&FlowsConfig::default());
            let batch = drive(&mut stage, &case.frames, LinkType::ETHERNET, &[16]);
            let row = *batch.get(0).unwrap().row;
            let counts = [row.client.anomalies, row.server.anomalies]
                .into_iter()
                .fold([0; Anomaly::COUNT], |mut sum, one| {
                    for (sum, one) in sum.iter_mut().zip(one) {
                        *sum += one;
                    }
                    sum
                });
            match case.judge(&counts) {
                Verdict::Right => right += 1,
                Verdict::Tolerated => tolerated += 1,
                Verdict::Wrong => wrong.push(format!(
                    "{} ({}): {counts:?} by {}, labels {:?}",
                    case.name,
                    case.options.name(),
                    Evidence::words(row.evidence),
                    case.labels
                )),
            }
        }
    }
    println!(
        "{right} right, {tolerated} tolerated, {} wrong",
        wrong.len()
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_published_rules_give_what_was_published() {
    let config = FlowsConfig {
        classifier: Classifier::Tstat,
        ..FlowsConfig::default()
    };
    let mut wrong = Vec::new();
    for options in Options::all() {
        for case in all(options, 40_000, Conversation::START_NS) {
            if case.is_one_way {
                // Tstat does not measure them.
                continue;
            }
            let mut stage = FlowsStage::new(&config);
            let batch = drive(&mut stage, &case.frames, LinkType::ETHERNET, &[16]);
            let row = *batch.get(0).unwrap().row;
            let mut counts = row.client.anomalies;
            for (sum, one) in counts.iter_mut().zip(row.server.anomalies) {
                *sum += one;
            }
            if !case.is_as_published(&counts) {
                wrong.push(format!(
                    "{} ({}): {counts:?}",
                    case.name,
                    case.options.name()
                ));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} cases\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
