//! Where the service listens: on this machine, for others too, or not at all.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::str::FromStr;

/// The port that is used unless another is said.
const PORT: u16 = 4747;

/// Where to listen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listen {
    /// Nowhere: no HTTP.
    Off,
    /// At this address. Port 0 is any that is free.
    At(SocketAddr),
}

impl Default for Listen {
    fn default() -> Self {
        Listen::At(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), PORT))
    }
}

impl Listen {
    /// The address, if others than this machine can reach it.
    #[must_use]
    pub fn reachable(self) -> Option<SocketAddr> {
        match self {
            Listen::At(address) if !address.ip().is_loopback() => Some(address),
            _ => None,
        }
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Listen::Off => f.write_str("off"),
            Listen::At(address) => write!(f, "{address}"),
        }
    }
}

impl FromStr for Listen {
    type Err = String;

    /// Reads `off`, `127.0.0.1:4747`, `[::1]:4747`, `localhost:4747` or a port.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| {
            let shown: String = text.chars().take(80).collect();
            Err(format!("'{shown}' is no address to listen at: {why}; write 127.0.0.1:4747 or off"))
        };
        if matches!(text, "off" | "false" | "no" | "none") {
            return Ok(Listen::Off);
        }
        let local = text.strip_prefix("localhost:").unwrap_or(text);
        let address = match local.parse::<u16>() {
            Ok(port) => SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port),
            Err(_) => match text.parse::<SocketAddr>() {
                Ok(address) => address,
                Err(_) => return wrong("it wants an IP address and a port"),
            },
        };
        Ok(Listen::At(address))
    }
}

/// Why nothing can be served at an address.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// Another program has the port.
    #[error(
        "{0} is in use by another program, perhaps by another 'gristmill up': stop it, or say \
         another address with 'listen:' in gristmill.yaml or GRISTMILL_LISTEN (127.0.0.1:0 takes \
         any free port, off serves no HTTP)"
    )]
    Busy(SocketAddr),
    /// The address is not of this machine, or not for us.
    #[error("nothing can be served at {address}: {why}")]
    Denied {
        /// The address.
        address: SocketAddr,
        /// What the operating system says.
        why: std::io::Error,
    },
    /// Others could reach it, and there is no token to tell who they are.
    #[error(
        "{0} can be reached from other machines and the store has no token to tell callers apart: \
         make one first ('gristmill token create NAME --scope admin'), or listen at 127.0.0.1"
    )]
    NoToken(SocketAddr),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_this_machine_are_read() {
        for (text, shown) in [
            ("127.0.0.1:4747", "127.0.0.1:4747"),
            ("127.9.9.9:0", "127.9.9.9:0"),
            ("[::1]:80", "[::1]:80"),
            ("localhost:5000", "127.0.0.1:5000"),
            ("5000", "127.0.0.1:5000"),
            ("0.0.0.0:4747", "0.0.0.0:4747"),
            ("192.168.1.5:80", "192.168.1.5:80"),
            ("[::]:4747", "[::]:4747"),
            ("off", "off"),
            ("false", "off"),
        ] {
            assert_eq!(text.parse::<Listen>().expect(text).to_string(), shown);
        }
        assert_eq!(Listen::default().to_string(), "127.0.0.1:4747");
        for (text, reachable) in [
            ("127.0.0.1:1", false),
            ("[::1]:1", false),
            ("off", false),
            ("0.0.0.0:1", true),
            ("[::]:1", true),
        ] {
            let listen = text.parse::<Listen>().expect(text);
            assert_eq!(listen.reachable().is_some(), reachable, "{text}");
        }
    }

    #[test]
    fn others_are_refused_with_what_to_write() {
        for (text, part) in [
            ("example.org:80", "an IP address and a port"),
            ("127.0.0.1", "an IP address and a port"),
            ("127.0.0.1:99999", "an IP address and a port"),
            ("", "an IP address"),
        ] {
            let error = text.parse::<Listen>().expect_err(text);
            assert!(error.contains(part) && error.contains("127.0.0.1:4747"), "{error}");
        }
    }
}
