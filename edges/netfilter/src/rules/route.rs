//! The rule of routing that takes packets on their way to a local proxy for the machine's own (TPROXY).
//!
//! Without it the kernel would forward them: they are addressed to somebody else. A table of routes of our
//! own says that every address is local, and a rule leads there what carries the mark of such packets
//! ([`linkweir_engine::effect::MarkLayout::to_proxy`]). Both are known again by the number of the table.

use linkweir_engine::effect::MarkLayout;
use serde_json::Value;

use super::host::Step;
use super::host::{CommandError, Host};
use super::plan::Plan;
use super::xtables::Family;

/// The number of our table of routes, which is also the priority of the rule: `LW`.
const TABLE: &str = "19543";

/// Whether connections of a family are led to a local proxy.
pub(super) fn is_wanted(plan: &Plan, family: Family) -> bool {
    !plan.redirects.is_empty() && (family == Family::V4 || plan.has_ipv6)
}

/// Whether a family has our rule.
pub(super) fn is_there(host: &Host, family: Family) -> Result<bool, CommandError> {
    let json = host.run(&Step::new("ip", &[option(family), "-json", "rule", "show"]))?;
    // A kernel without the family says nothing.
    if json.trim().is_empty() {
        return Ok(false);
    }
    let rules: Vec<Value> = serde_json::from_str(&json).map_err(|error| CommandError::Output {
        program: "ip",
        what: error.to_string(),
    })?;
    let table = |rule: &Value| rule.get("table").and_then(Value::as_str) == Some(TABLE);
    Ok(rules.iter().any(table))
}

/// Makes the rule, where it is not there, then the route. The rule is what shows that something is there.
pub(super) fn make(marks: MarkLayout, family: Family, has_rule: bool) -> Step {
    let (bits, mask) = (marks.to_proxy(0), marks.decision_mask());
    let rule = format!("rule add fwmark {bits:#x}/{mask:#x} lookup {TABLE} priority {TABLE}\n");
    let rule = if has_rule { "" } else { &rule };
    batch(family, format!("{rule}{}", route()))
}

/// Removes the route, then the rule. A table without a route cannot be emptied, so it gets one before.
pub(super) fn remove(family: Family) -> Step {
    batch(
        family,
        format!(
            "{}route flush table {TABLE}\nrule del lookup {TABLE} priority {TABLE}\n",
            route()
        ),
    )
}

/// Every address is local.
fn route() -> String {
    format!("route replace local default dev lo table {TABLE}\n")
}

fn batch(family: Family, text: String) -> Step {
    Step::reading("ip", &[option(family), "-batch", "-"], text)
}

const fn option(family: Family) -> &'static str {
    match family {
        Family::V4 => "-4",
        Family::V6 => "-6",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_text() {
        let marks = MarkLayout::default();
        assert_eq!(
            make(marks, Family::V4, false).to_string(),
            "ip -4 -batch - <<'END'\n\
             rule add fwmark 0x50000/0x70000 lookup 19543 priority 19543\n\
             route replace local default dev lo table 19543\nEND"
        );
        assert_eq!(make(marks, Family::V4, true).input, route());
        assert!(remove(Family::V6).to_string().starts_with("ip -6 -batch"));
    }
}
