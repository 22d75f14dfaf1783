//! `gateway.toml`: read, checked, and turned into what the parts of the gateway take.

mod conditions;
mod regions;
mod rules;
mod settings;
mod values;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use linkweir_gateway::policy::{Limits, MAX_QUOTAS, Policy, Rule};
use linkweir_netfilter::rules::{ClientRate, Plan, Redirect, ShapeClass, assign_numbers};
use linkweir_record::Places;
use serde::Deserialize;
use toml::Spanned;
use toml::de::DeTable;

use crate::exit::Wrong;
use crate::files;
use rules::{Reader, RuleTable, SignatureTable};
use settings::{GatewayTable, LimitsTable, ScannerKeys};
pub(super) use settings::{RecordSettings, ScannerSettings, Settings};
use values::Place;

/// Bytes of the longest file.
const MAX_BYTES: u64 = 4 << 20;

/// The file, as it is written.
#[derive(Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
#[derive(Default)]
struct File {
    gateway: GatewayTable,
    #[serde(with = "LimitsTable")]
    limits: Limits,
    scanner: ScannerTable,
    record: RecordSettings,
    signature: Vec<Spanned<SignatureTable>>,
    rule: Vec<Spanned<RuleTable>>,
}

/// The table `[scanner]`.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ScannerTable {
    clamd: Option<Spanned<ScannerKeys>>,
    icap: Option<Spanned<ScannerKeys>>,
}

/// A gateway as its file says.
#[derive(Debug)]
pub(super) struct GatewayConfig {
    pub(super) path: PathBuf,
    pub(super) settings: Settings,
    pub(super) policy: Arc<Policy>,
    /// Rates of rules, bit/s, by number.
    pub(super) shapes: BTreeMap<u16, u64>,
    /// Rules under which each client has a rate of its own.
    pub(super) rates: Vec<ClientRate>,
    /// Rules that lead connections to a local proxy.
    pub(super) redirects: Vec<Redirect>,
    pub(super) scanner: Option<ScannerSettings>,
    pub(super) record: RecordSettings,
}

impl GatewayConfig {
    /// Reads the file. Rules that had a number keep it.
    pub(super) fn read(path: &Path, numbers: &BTreeMap<String, u16>) -> anyhow::Result<Self> {
        let text = read_text(path)?;
        let place = Place { path, text: &text };
        let config = parse(place, numbers)?;
        let checked = config.plan().check();
        checked.map_err(|error| Wrong(format!("{}: {error}", path.display())))?;
        Ok(config)
    }

    /// The part of it that the kernel carries out.
    pub(super) fn plan(&self) -> Plan {
        let settings = &self.settings;
        let rules = self.policy.rules.iter();
        Plan {
            marks: self.policy.marks,
            queues: settings.queues(),
            has_tcp: settings.has_tcp,
            has_udp: settings.has_udp,
            has_ipv6: settings.has_ipv6,
            is_fail_open: settings.is_fail_open(),
            interfaces: settings.interfaces.clone(),
            exclude: settings.exclude.clone(),
            classes: self
                .shapes
                .iter()
                .map(|(rule, rate_bits)| ShapeClass {
                    rule: *rule,
                    rate_bits: *rate_bits,
                })
                .collect(),
            redirects: self.redirects.clone(),
            rates: self.rates.clone(),
            rules: rules.map(|rule| (rule.name.clone(), rule.number)).collect(),
        }
    }

    /// Whether a rule keeps files, infected or all.
    pub(super) fn keeps_files(&self) -> bool {
        let keeps = |rule: &Arc<Rule>| rule.inspect.record || rule.inspect.quarantine;
        self.policy.rules.iter().any(keeps)
    }
}

fn read_text(path: &Path) -> Result<String, Wrong> {
    let text = files::read_text(path, MAX_BYTES);
    text.map_err(|error| Wrong(format!("{}: {error}", path.display())))
}

fn parse(place: Place<'_>, numbers: &BTreeMap<String, u16>) -> Result<GatewayConfig, Wrong> {
    let table = DeTable::parse(place.text).map_err(|error| place.not_read(&error))?;
    if table.get_ref().is_empty() {
        // As an editor or a full disk leaves it: that would open the gateway without a word.
        return Err(Wrong(format!(
            "{}: the policy is empty and would let everything pass; to allow everything, write `default = \"allow\"` in [gateway]",
            place.path.display()
        )));
    }
    let file = File::deserialize(toml::de::Deserializer::from(table))
        .map_err(|error| place.not_read(&error))?;
    let databases = regions::databases(&file.gateway.geoip, place)?;
    let settings = Settings::new(file.gateway, place)?;
    let scanner = match (file.scanner.clamd, file.scanner.icap) {
        (None, None) => None,
        (Some(clamd), None) => Some(ScannerSettings::new(clamd, false, place)?),
        (None, Some(icap)) => Some(ScannerSettings::new(icap, true, place)?),
        (Some(_), Some(icap)) => {
            let what = "there is one scanner: [scanner.clamd] or [scanner.icap]";
            return Err(place.wrong(&icap.span(), what));
        }
    };
    let record = file.record.at(place);
    let signatures = rules::signatures(file.signature, place)?;
    let fail = settings.fail;
    let scan = scanner.as_ref();
    let known = databases.as_ref();
    let mut reader = Reader::new(place, &signatures, scan, &record, fail, known);
    let mut read = Vec::new();
    for table in file.rule {
        read.push(reader.rule(table)?);
    }
    let names = read.iter().map(|one| one.rule.name.as_str());
    let numbers = assign_numbers(numbers, names)
        .map_err(|error| Wrong(format!("{}: {error}", place.path.display())))?;
    let mut shapes = BTreeMap::new();
    let mut redirects = Vec::new();
    let mut rates = Vec::new();
    let mut rules = Vec::new();
    let mut quotas = 0;
    for mut one in read {
        if let Some(quota) = &mut one.rule.quota {
            quota.index = quotas;
            quotas += 1;
            if usize::from(quotas) > MAX_QUOTAS {
                let what =
                    format!("more than {MAX_QUOTAS} rules have `quota` or `new-connections`");
                return Err(Wrong(format!("{}: {what}", place.path.display())));
            }
        }
        one.rule.number = numbers.get(&one.rule.name).copied().unwrap_or(0);
        if let Some(rate) = one.shape {
            shapes.insert(one.rule.number, rate);
        }
        rates.extend(one.client_rate.map(|rate| ClientRate {
            rule: one.rule.number,
            ..rate
        }));
        redirects.extend(one.proxy_port.map(|port| Redirect {
            rule: one.rule.number,
            port,
        }));
        rules.push(Arc::new(one.rule));
    }
    let asks_time = rules
        .iter()
        .any(|rule: &Arc<Rule>| !rule.times.0.is_empty());
    Ok(GatewayConfig {
        path: place.path.to_owned(),
        policy: Arc::new(Policy {
            marks: settings.marks,
            limits: file.limits,
            signatures,
            rules,
            places: databases.map(|databases| Arc::new(databases) as Arc<dyn Places>),
            quotas: (quotas > 0).then(Default::default),
            local_minute: asks_time.then_some(crate::clock::local_minute),
            default: Arc::new(Rule {
                fail,
                ..Rule::any("default", 0, settings.default)
            }),
        }),
        settings,
        shapes,
        rates,
        redirects,
        scanner,
        record,
    })
}

/// Where the running gateway of a policy listens, also where the policy has faults or is not there.
pub(super) fn control_path(path: &Path) -> PathBuf {
    let text = read_text(path).unwrap_or_default();
    let table = DeTable::parse(&text).ok();
    let named = table.as_ref().and_then(|table| {
        let gateway = table.get_ref().get("gateway")?.get_ref().as_table()?;
        gateway.get("control")?.get_ref().as_str()
    });
    let place = Place { path, text: &text };
    named.map_or_else(|| settings::CONTROL.into(), |named| place.resolve(named))
}

/// Reads a file of keywords or patterns: one a line; empty lines and those that begin with `#` are not
/// counted.
pub(super) fn read_list(path: &Path) -> anyhow::Result<Vec<String>> {
    let shown = || path.display().to_string();
    // The running gateway reads it too, for a reload: a pipe could keep it waiting.
    let is_file = std::fs::metadata(path).with_context(shown)?.is_file();
    anyhow::ensure!(is_file, "{}: not a regular file", shown());
    let text = read_text(path)?;
    let lines = text.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    Ok(lines.map(str::to_owned).collect())
}

#[cfg(test)]
mod tests;
