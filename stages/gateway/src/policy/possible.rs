//! Which rules may still come to hold for a connection of which more packets come: whether it has to wait for them.

use std::sync::Arc;

use linkweir_proto::application::Application;

use super::{Action, Label, Policy, Rule, Shown};
use crate::connection::Ends;

/// What looks like HTTP until its head is complete.
const LIKE_HTTP: [Application; 3] = [
    Application::Http,
    Application::FastTrack,
    Application::Gnutella,
];

/// What a connection that is not decided waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Wait {
    /// Bytes that say its application.
    #[default]
    Application,
    /// The end of the head of what looks like HTTP.
    Head,
    /// The rest of the client's hello.
    Hello,
    /// The server's certificate.
    Certificate,
    /// Bytes that a signature of the policy may be in.
    Signature,
    /// What a flow that begins with STUN goes on as.
    More,
    /// More datagrams: what comes first disguises nothing.
    Datagrams,
}

impl Policy {
    /// The rule that a connection gets instead where it goes on as more than it is `so_far`.
    pub(crate) fn rule_of_more(&self, so_far: Application, ends: &Ends) -> Option<&Arc<Rule>> {
        let present = self.rule_without_conditions(so_far, ends);
        let more = Application::ALL.iter().filter(|more| more.includes(so_far));
        let mut rules = more.map(|more| self.rule_without_conditions(*more, ends));
        rules.find(|rule| !Arc::ptr_eq(rule, present))
    }

    /// Whether what looks like HTTP is inspected by one rule, whatever it turns out to be: a transfer of FastTrack or Gnutella
    /// is HTTP too.
    pub(crate) fn inspects_alike(&self, so_far: Application, ends: &Ends) -> bool {
        let shown = Shown::default();
        let first = self.rule_without_conditions(so_far, ends);
        let requests = |application| {
            let rules = self.rules_of_requests(Label::Known(application), ends, &shown);
            rules.map(|rule| rule.number)
        };
        (first.action == Action::Inspect || requests(so_far).next().is_some())
            && LIKE_HTTP.contains(&so_far)
            && LIKE_HTTP.iter().all(|one| {
                Arc::ptr_eq(self.rule_without_conditions(*one, ends), first)
                    && requests(*one).eq(requests(so_far))
            })
    }

    /// A rule that lets nothing pass of what datagrams between two ends may turn out to be, whatever the first of them are.
    pub(crate) fn rule_against_datagrams(&self, ends: &Ends) -> Option<&Arc<Rule>> {
        let mut stopping = self.rules.iter().filter(|rule| rule.action.stops());
        stopping.find(|rule| rule.may_be_for_datagrams() && rule.is_for(ends))
    }

    /// The rule that may still come to hold instead of the present one, for a connection that waits.
    pub(crate) fn still_possible(
        &self,
        (label, wait): (Label, Wait),
        ends: &Ends,
    ) -> Option<&Arc<Rule>> {
        let known = match label {
            Label::Known(application) => Some(application),
            Label::Own(_) | Label::Unknown => None,
        };
        let asks = |certificate: bool| {
            let mut rules = self.rules.iter().filter(|rule| rule.is_for(ends));
            rules.find(|rule| {
                let tls = &rule.conditions.tls;
                !tls.is_any()
                    && (!certificate || !tls.certificates.0.is_empty())
                    && rule.is_for_application(label)
            })
        };
        match wait {
            Wait::Application | Wait::Signature => None,
            Wait::Head => {
                let (present, shown) =
                    (self.rule_without_conditions(known?, ends), Shown::default());
                let is_other = |rule: &&Arc<Rule>| !Arc::ptr_eq(rule, present);
                let before = self.rules.iter().take_while(is_other);
                let mut of_requests = before
                    .filter(|rule| rule.asks_requests(label) && rule.matches(label, ends, &shown));
                let mut others = LIKE_HTTP
                    .iter()
                    .map(|one| self.rule_without_conditions(*one, ends));
                others.find(is_other).or_else(|| of_requests.next())
            }
            Wait::Hello => asks(false),
            Wait::Certificate => asks(true),
            Wait::More => self.rule_of_more(known?, ends),
            Wait::Datagrams => self.rule_against_datagrams(ends),
        }
    }

    fn rule_without_conditions(&self, application: Application, ends: &Ends) -> &Arc<Rule> {
        self.rule(Label::Known(application), ends, &Shown::default())
    }
}
