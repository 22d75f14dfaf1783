//! The clients of a run, and the way to the server.

use std::net::IpAddr;

use anyhow::anyhow;
use linkweir_inject::plan::{self, HostSettings};
use linkweir_inject::{Port, Unwanted};
use linkweir_load::population::{Population, PopulationOptions, Station};
use linkweir_load::stage::Share;

use super::args::{LoadArgs, MacChoice, Role};
use super::target::Target;
use crate::exit::{Wrong, warn};

/// The population of the command line: without the server, the router and this host.
pub(super) fn population(
    args: &LoadArgs,
    target: &Target,
    share: Share,
    interface_mac: [u8; 6],
) -> anyhow::Result<Population> {
    let mut exclude = vec![target.server.ip()];
    exclude.extend(args.link.gateway);
    // The kernel would answer for those of this host.
    exclude.extend(plan::own_addresses()?);
    let options = PopulationOptions {
        clients: args.clients.clients.clone(),
        exclude,
        profile: args.clients.line.unwrap_or_default(),
        groups: args.clients.group.clone(),
        mac: args.link.mac.into(),
        interface_mac,
        vlan: args.link.vlan,
        seed: args.schedule.seed,
        station: Station {
            index: share.index,
            of: share.of,
            answers: args.roles.role != Role::Init,
        },
    };
    let population =
        Population::new(&options).map_err(|error| anyhow!(Wrong(error.to_string())))?;
    let server = target.server.ip();
    if population.any_like(server).is_none() {
        let what = format!("no client has an address of the IP version of the server ({server})");
        return Err(anyhow!(Wrong(what)));
    }
    Ok(population)
}

/// Who takes the frames for the server: the router that the command line names, that of the routes of
/// this host, or the server itself.
pub(super) fn next_hop(
    args: &LoadArgs,
    target: &Target,
    population: &Population,
) -> anyhow::Result<IpAddr> {
    let server = target.server.ip();
    let interface = args.link.interface.as_deref().unwrap_or_default();
    let hop = match args.link.gateway {
        Some(gateway) => gateway,
        None => plan::Target::find(&plan::routes()?, interface, server)
            .map_or(server, |found| found.next_hop),
    };
    if hop.is_ipv4() != server.is_ipv4() {
        let what = format!("--gateway {hop}: not the IP version of the server ({server})");
        return Err(anyhow!(Wrong(what)));
    }
    if population.has(hop) {
        return Err(anyhow!(Wrong(format!("{hop} is one of the clients"))));
    }
    Ok(hop)
}

/// Has the packets for clients dropped before IP, where the kernel lets us. It would drop them later all the same, but
/// look for the route of each client first, which costs whoever sends them a tenth of its core over veth.
pub(super) fn keep_from_stack(
    args: &LoadArgs,
    target: &Target,
    port: &mut Port,
) -> anyhow::Result<()> {
    let clients = args.clients.clients.iter();
    let destinations: Vec<(IpAddr, u8)> = clients
        .map(|clients| (clients.0.network(), clients.0.prefix_len()))
        .collect();
    // Those of this host are no clients.
    let mut except = plan::own_addresses()?;
    except.retain(|own| {
        args.clients
            .clients
            .iter()
            .any(|clients| clients.0.contains(own))
    });
    let unwanted = Unwanted {
        source: target.server.ip(),
        destinations: &destinations,
        except: &except,
    };
    // What is not dropped costs time and nothing else.
    port.keep_from_stack(&unwanted).ok();
    Ok(())
}

/// Refuses where the kernel would answer or send on what is meant for clients. With a virtual hardware
/// address it takes their frames for another host's; nothing else has to be set.
pub(super) fn keep_the_kernel_out(
    args: &LoadArgs,
    interface: &str,
    target: &Target,
) -> anyhow::Result<()> {
    let host = HostSettings::read(interface);
    let (proxies, forwards, version) = if target.server.is_ipv4() {
        (host.proxy_arp, host.forwards_v4, "ipv4")
    } else {
        (host.proxy_ndp, host.forwards_v6, "ipv6")
    };
    let wrong = |what: String| Err(anyhow!(Wrong(what)));
    if proxies {
        let setting = if version == "ipv4" {
            "proxy_arp"
        } else {
            "proxy_ndp"
        };
        return wrong(format!(
            "the kernel answers for other hosts on {interface}, the clients too: set \
             net.{version}.conf.{interface}.{setting} to 0"
        ));
    }
    if forwards && args.link.mac == MacChoice::Interface {
        return wrong(format!(
            "with --mac interface the kernel would send on what the clients get: set \
             net.{version}.conf.{interface}.forwarding to 0, or use --mac virtual"
        ));
    }
    if forwards {
        warn(&format!(
            "forwarding is on at {interface}: where what is for the clients is routed by way of this host's own \
             address, the kernel sends it back, round and round; then set \
             net.{version}.conf.{interface}.forwarding to 0"
        ));
    }
    Ok(())
}
