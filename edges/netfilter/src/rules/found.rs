//! What is there before anything is changed, and what it means for a plan.

use linkweir_engine::effect::MarkLayout;

use super::host::Step;
use super::host::{CommandError, Host};
use super::host::{Foreign, RulesError};
use super::plan::Plan;
use super::route;
use super::saved::Saved;
use super::shape::{self, Root};
use super::sign::Made;
use super::table;
use super::xtables::{Family, Tables};

/// What is there of ours, and where it has or would have its place.
#[derive(Debug)]
pub(super) struct Found {
    v4: Saved,
    v6: Saved,
    /// Whether iptables keeps its rules in tables of nft, and is not the older one (legacy).
    pub is_nft: bool,
    pub tables: table::Tables,
    /// By interface.
    pub roots: Vec<Root>,
    /// Families with our rule of routing.
    pub routed: Vec<Family>,
}

impl Found {
    pub(super) fn look(host: &Host) -> Result<Self, CommandError> {
        for program in ["iptables", "ip6tables-save", "nft"] {
            host.needs(program)?;
        }
        let saved = |family: Family| {
            let text = host.run(&Step::new(family.save(), &[]))?;
            Ok::<_, CommandError>(Saved::parse(family, &text))
        };
        let version = host.run(&Step::new("iptables", &["--version"]))?;
        Ok(Self {
            v4: saved(Family::V4)?,
            v6: saved(Family::V6)?,
            is_nft: version.contains("nf_tables"),
            tables: table::look(host)?,
            // Where there is no tc, nobody made classes.
            roots: match host.needs("tc") {
                Ok(()) => shape::roots(host)?,
                Err(_) => Vec::new(),
            },
            // Nor rules of routing where there is no ip.
            routed: match host.needs("ip") {
                Ok(()) => routed(host)?,
                Err(_) => Vec::new(),
            },
        })
    }

    /// Where nobody may look: nothing of ours, and nothing that we would have to make for it.
    pub(super) fn unknown() -> Self {
        Self {
            v4: Saved::parse(Family::V4, ""),
            v6: Saved::parse(Family::V6, ""),
            is_nft: false,
            tables: table::Tables {
                names: Vec::new(),
                ours: None,
            },
            roots: Vec::new(),
            routed: Vec::new(),
        }
    }

    pub(super) const fn saved(&self, family: Family) -> &Saved {
        match family {
            Family::V4 => &self.v4,
            Family::V6 => &self.v6,
        }
    }

    /// Both families.
    pub(super) const fn all_saved(&self) -> [&Saved; 2] {
        [&self.v4, &self.v6]
    }

    /// What has to be made for a jump out of a chain of the kernel.
    pub(super) fn made(&self, family: Family, table: &str, chain: &str) -> Made {
        let table = format!("{} {table}", family.nft());
        if !self.is_nft {
            Made::Nothing
        } else if !self.tables.has(&table) {
            Made::Table
        } else if !self.tables.has(&format!("{table} {chain}")) {
            Made::Chain
        } else {
            Made::Nothing
        }
    }

    /// Which bits were ours, by the first sign that is found.
    pub(super) fn marks(&self) -> Option<MarkLayout> {
        let table = self.tables.ours.as_ref().and_then(|ours| ours.sign);
        let chains = self.all_saved().into_iter().find_map(Saved::sign);
        table.or(chains).map(|sign| sign.marks)
    }

    /// Interfaces whose root is ours.
    pub(super) fn our_roots(&self) -> impl Iterator<Item = &Root> {
        self.roots.iter().filter(|root| root.is_ours())
    }

    pub(super) fn has_ours(&self) -> bool {
        self.tables.ours.is_some()
            || self.all_saved().into_iter().any(Saved::has_ours)
            || self.our_roots().next().is_some()
            || !self.routed.is_empty()
    }

    /// What has our name and is not ours.
    pub(super) fn foreign(&self) -> Vec<Foreign> {
        let mut all: Vec<Foreign> = (self.all_saved().into_iter())
            .flat_map(Saved::foreign)
            .collect();
        let is_foreign = |it: &table::OurTable| it.sign.is_none();
        if self.tables.ours.as_ref().is_some_and(is_foreign) {
            all.push(Foreign {
                what: "table inet linkweir of nft".to_owned(),
                undo: table::remove().to_string(),
            });
        }
        all
    }

    /// Refuses what has our name and is not ours, and what has our place.
    pub(super) fn refuse_foreign(&self, plan: &Plan) -> Result<(), RulesError> {
        let foreign = self.foreign();
        if !foreign.is_empty() {
            return Err(RulesError::Foreign(foreign));
        }
        let is_wanted =
            |root: &&Root| !plan.classes.is_empty() && plan.interfaces.contains(&root.interface);
        let is_taken = |root: &&Root| !root.is_ours() && !root.is_default();
        let taken = self.roots.iter().filter(is_wanted).find(is_taken);
        taken.map_or(Ok(()), |root| {
            Err(RulesError::Taken {
                interface: root.interface.clone(),
                kind: root.kind.clone(),
                handle: root.handle.clone(),
            })
        })
    }

    /// Whether all of a plan is there and nothing else of ours; otherwise the first thing that differs.
    pub(super) fn difference(&self, plan: &Plan) -> Option<String> {
        for family in Family::ALL {
            let saved = self.saved(family);
            let is_wanted = family == Family::V4 || plan.has_ipv6;
            let is_same = if is_wanted {
                saved.is(&Tables::new(plan, family))
            } else {
                !saved.has_ours()
            };
            if !is_same {
                let tool = family.restore().trim_end_matches("-restore");
                return Some(format!("chains of {tool}"));
            }
        }
        let ours = self.tables.ours.as_ref();
        if ours.and_then(|ours| ours.sign) != Some(table::sign(plan)) {
            return Some("table inet linkweir of nft".to_owned());
        }
        let is_otherwise =
            |family: &Family| route::is_wanted(plan, *family) != self.routed.contains(family);
        if Family::ALL.iter().any(is_otherwise) {
            return Some("rules of routing".to_owned());
        }
        let mut numbers: Vec<u16> = plan.classes.iter().map(|class| class.rule).collect();
        numbers.sort_unstable();
        let is_same = |root: &Root| {
            let mut there = root.classes.clone();
            there.sort_unstable();
            there == numbers && plan.interfaces.contains(&root.interface)
        };
        let wanted = if numbers.is_empty() {
            0
        } else {
            plan.interfaces.len()
        };
        let are_same = self.our_roots().all(is_same) && self.our_roots().count() == wanted;
        (!are_same).then(|| "classes of tc".to_owned())
    }
}

fn routed(host: &Host) -> Result<Vec<Family>, CommandError> {
    let mut all = Vec::new();
    for family in Family::ALL {
        if route::is_there(host, family)? {
            all.push(family);
        }
    }
    Ok(all)
}
