//! Telling systemd how the process is (`Type=notify`): ready, or about to stop.

use std::ffi::OsStr;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// It does what it was started for.
pub(crate) const READY: &str = "READY=1";
/// It is about to end.
pub(crate) const STOPPING: &str = "STOPPING=1";

/// Tells whoever started this process and wants to know; nobody is waited for.
pub(crate) fn tell(state: &str) {
    if let Some(place) = std::env::var_os("NOTIFY_SOCKET")
        && let Err(error) = send(&place, state)
    {
        tracing::debug!(%error, "systemd could not be told");
    }
}

fn send(place: &OsStr, state: &str) -> std::io::Result<()> {
    let address = match place.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(place)?,
    };
    let socket = UnixDatagram::unbound()?;
    socket.set_nonblocking(true)?;
    socket.send_to_addr(state.as_bytes(), &address).map(drop)
}
