//! Which account the server runs as. PostgreSQL refuses to run as root.

use std::fs;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use crate::{Error, Result};

/// An account that the server and its watchdog run as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Account {
    uid: u32,
    gid: u32,
    /// Whether we are root and have to become the account first.
    switch: bool,
}

impl Account {
    /// Our own account; for root `postgres`, which the system's package makes,
    /// or `nobody`.
    pub(crate) fn choose() -> Result<Self> {
        let uid = rustix::process::geteuid().as_raw();
        if uid != 0 {
            return Ok(Self { uid, gid: rustix::process::getegid().as_raw(), switch: false });
        }
        let accounts = fs::read_to_string("/etc/passwd").unwrap_or_default();
        ["postgres", "nobody"]
            .iter()
            .find_map(|name| find(&accounts, name))
            .map(|(uid, gid)| Self { uid, gid, switch: true })
            .ok_or_else(|| {
                Error::new("PostgreSQL refuses to run as root, and this system has neither an account `postgres` nor `nobody`")
            })
    }

    pub(crate) fn uid(self) -> u32 {
        self.uid
    }

    /// A command that will run as this account.
    pub(crate) fn command(self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        if self.switch {
            // Setting the user also drops root's supplementary groups.
            command.gid(self.gid).uid(self.uid);
        }
        // The directory we stand in may be closed to the account.
        command.current_dir("/");
        command
    }

    /// Gives a file or directory to this account.
    pub(crate) fn own(self, path: &Path) -> Result<()> {
        if !self.switch {
            return Ok(());
        }
        chown(path, Some(self.uid), Some(self.gid)).map_err(|error| Error::at(path, &error))
    }
}

/// The user and group number of an account in the text of `/etc/passwd`.
fn find(accounts: &str, name: &str) -> Option<(u32, u32)> {
    accounts.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next()? == name).then_some(())?;
        let uid = fields.nth(1)?.parse().ok()?;
        let gid = fields.next()?.parse().ok()?;
        (uid != 0).then_some((uid, gid))
    })
}

#[cfg(test)]
mod tests {
    use super::find;

    #[test]
    fn an_account_is_found_by_its_whole_name_and_root_is_none() {
        let accounts = "root:x:0:0::/root:/bin/sh\npostgresql:x:7:8:::\npostgres:x:101:104:a,,,:/var/lib:/bin/sh\n";
        assert_eq!(find(accounts, "postgres"), Some((101, 104)));
        assert_eq!(find(accounts, "root"), None);
        assert_eq!(find(accounts, "nobody"), None);
    }
}
