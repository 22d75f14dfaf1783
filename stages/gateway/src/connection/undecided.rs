//! Why a connection was not decided.

use std::net::IpAddr;

use super::{Connection, Phase};
use crate::policy::{Label, Policy, Shown};

/// A connection that went before it was decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undecided {
    /// Address and port of the client.
    pub client: (IpAddr, u16),
    /// Address and port of the server.
    pub server: (IpAddr, u16),
    /// Whether it is TCP; else it is UDP.
    pub is_tcp: bool,
    /// What it is as far as it was seen; `None` where that is not known.
    pub application: Option<String>,
    /// The rule that it has unless what is missing says otherwise; `None` where the application is not known.
    pub rule: Option<String>,
    /// What was missing.
    pub why: String,
}

impl Connection {
    /// What was missing, where it was not decided. A connection that went otherwise is not asked.
    pub(crate) fn undecided(&self, policy: &Policy) -> Option<Undecided> {
        let (label, present, possible, missing) = match &self.phase {
            Phase::Opening(opening) if self.passes_by.is_none() => {
                use crate::policy::Wait;
                let (label, wait) = opening.waits();
                let missing = match wait {
                    Wait::Application => "its application is not known",
                    Wait::Head => "its head is not complete",
                    Wait::Hello => "its client hello is not complete",
                    Wait::Certificate => "the certificate of its server has not come",
                    Wait::Signature => "a signature of the policy may still match",
                    Wait::More | Wait::Datagrams => "it may go on as another application",
                };
                let is_known = label != Label::Unknown || wait == Wait::Datagrams;
                let present = is_known.then(|| policy.rule(label, &self.ends, &Shown::default()));
                let possible = policy.still_possible((label, wait), &self.ends);
                (
                    label,
                    present.map(AsRef::as_ref),
                    possible.map(AsRef::as_ref),
                    missing,
                )
            }
            Phase::Inspected(exam) => {
                let (label, present, possible) = exam.undecided()?;
                let missing = "its request is not complete";
                (label, Some(present), possible, missing)
            }
            Phase::Opening(_) | Phase::Allowed(_) | Phase::Answered(_) => return None,
        };
        let why = match possible {
            Some(rule) => format!(
                "more packets needed: rule `{}` is still possible",
                rule.name
            ),
            None => format!("more packets needed: {missing}"),
        };
        Some(Undecided {
            client: self.ends.client,
            server: self.ends.server,
            is_tcp: self.key.is_tcp,
            application: present.map(|_| policy.name(label).to_owned()),
            rule: present.map(|rule| rule.name.clone()),
            why,
        })
    }
}
