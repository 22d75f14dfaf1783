//! SSH, Telnet, and screens of other machines: RDP, VNC.

use super::bytes::{be16, begins, byte};
use super::{Application, Verdict, View};

/// `SSH-2.0-`, `SSH-1.99-`, `SSH-1.5-` (RFC 4253 section 4.2).
pub(super) fn ssh(view: &View<'_>) -> Verdict {
    begins(view.own, b"SSH-2.0-", Application::Ssh)
        .or(|| begins(view.own, b"SSH-1.", Application::Ssh))
}

/// `RFB 003.008` (RFC 6143 section 7.1.1).
pub(super) fn vnc(view: &View<'_>) -> Verdict {
    begins(view.own, b"RFB 003.00", Application::Vnc)
        .or(|| begins(view.own, b"RFB 004.00", Application::Vnc))
}

/// Negotiation of options (RFC 854, RFC 855): `IAC`, `DO`, `DONT`, `WILL` or `WONT`, an option.
pub(super) fn telnet(view: &View<'_>) -> Verdict {
    /// Highest option in use (RFC 2953: 38), and those of clients beyond.
    const OPTION: u8 = 49;
    let mut options = 0;
    for triple in view.own.chunks(3) {
        match *triple {
            [0xFF, 0xFB..=0xFE, option] if option <= OPTION => options += 1,
            _ => break,
        }
    }
    match options {
        0 => {
            let may_become = matches!(view.own, [0xFF] | [0xFF, 0xFB..=0xFE]);
            if may_become {
                Verdict::More
            } else {
                Verdict::No
            }
        }
        1 | 2 if view.has_port_of(&[23, 2323]) => Verdict::Is(Application::Telnet),
        1 | 2 if view.own.len() < 9 => Verdict::More,
        1 | 2 => Verdict::No,
        _ => Verdict::Is(Application::Telnet),
    }
}

/// Request for a connection and its confirmation (X.224 class 0 in TPKT; MS-RDPBCGR 2.2.1.1).
pub(super) fn rdp(view: &View<'_>) -> Verdict {
    let own = view.own;
    let (Some(3), Some(0), Some(length)) = (byte(own, 0), byte(own, 1), be16(own, 2)) else {
        let may_become = matches!(own, [3] | [3, 0] | [3, 0, _]);
        return if may_become {
            Verdict::More
        } else {
            Verdict::No
        };
    };
    let length = usize::from(length);
    // The header of X.224 says its own length, which is all that follows.
    let (Some(indicator), Some(code)) = (byte(own, 4), byte(own, 5)) else {
        return if length >= 11 {
            Verdict::More
        } else {
            Verdict::No
        };
    };
    let is_connection = usize::from(indicator) + 5 == length && matches!(code, 0xE0 | 0xD0);
    let Some(data) = own.get(11..).filter(|_| is_connection) else {
        return Verdict::No;
    };
    let negotiates = |data: &[u8]| {
        // Type 1 to 3, flags, length 8 (lowest byte first).
        matches!(data, [1..=3, _, 8, 0, ..])
    };
    let tail = own.get(length.saturating_sub(8)..).unwrap_or_default();
    let is_its = data.starts_with(b"Cookie: mstshash=")
        || data.starts_with(b"Cookie: msts=")
        || negotiates(data)
        || negotiates(tail)
        || view.has_port(3389);
    Verdict::when(is_its, Application::Rdp)
}
