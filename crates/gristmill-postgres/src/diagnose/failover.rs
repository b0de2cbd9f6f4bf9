//! Whether what was acknowledged would survive if another server took over.

use gristmill_core::Diagnosis;

/// This server and those that follow it.
#[derive(Debug, Clone, Default)]
pub(super) struct Standbys {
    pub(super) read_only: bool,
    /// `synchronous_standby_names`.
    pub(super) wanted: String,
    /// `synchronous_commit`.
    pub(super) commits: String,
    pub(super) following: i64,
    pub(super) synchronous: i64,
    /// Sessions whose state this role may not see.
    pub(super) unseen: i64,
}

const CODE: &str = "failover";
const PAGE: &str = "see docs/high-availability.md";

/// What a failover would lose, or why it is not known.
pub(super) fn failover(standbys: &Standbys) -> Option<Diagnosis> {
    let Standbys { wanted, commits, following, synchronous, unseen, .. } = standbys;
    let waits = !wanted.trim().is_empty();
    if waits && commits == "local" {
        return Some(Diagnosis::grave(
            CODE,
            "synchronous_commit is 'local': puts and settlements are acknowledged before any \
             standby has them, and a failover loses the last ones",
            format!("leave it 'on' for this role and database; {PAGE}"),
        ));
    }
    if *unseen > 0 {
        return Some(Diagnosis::note(
            CODE,
            format!(
                "{unseen} sessions of standbys cannot be seen, so it is not known what a failover \
                 would lose"
            ),
            "GRANT pg_read_all_stats to this role",
        ));
    }
    if waits && *synchronous == 0 {
        return Some(Diagnosis::grave(
            CODE,
            format!(
                "synchronous_standby_names is '{wanted}' and no such standby follows: every put \
                 and settlement waits for one"
            ),
            format!("bring a standby back, or name those that are there; {PAGE}"),
        ));
    }
    if !waits && *following > 0 {
        let those = match following {
            1 => "1 standby follows and is not waited for".to_owned(),
            _ => format!("{following} standbys follow and are not waited for"),
        };
        return Some(Diagnosis::note(
            CODE,
            format!("{those}: a failover may lose the last acknowledged puts and settlements"),
            format!("set synchronous_standby_names = 'ANY 1 (*)' if it must not; {PAGE}"),
        ));
    }
    None
}

/// A server that can only be read.
pub(super) fn read_only(standbys: &Standbys) -> Option<Diagnosis> {
    standbys.read_only.then(|| {
        Diagnosis::note(
            "read_only",
            "this server takes no writes: it is a standby, or was demoted; the schema was not \
             compared",
            "name the others in the URL as well, or run doctor on the primary",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(wanted: &str, commits: &str, following: i64, synchronous: i64) -> Option<bool> {
        let (wanted, commits) = (wanted.to_owned(), commits.to_owned());
        let standbys = Standbys { wanted, commits, following, synchronous, ..Standbys::default() };
        failover(&standbys).map(|found| found.grave)
    }

    #[test]
    fn what_a_failover_would_lose_is_told() {
        assert_eq!(told("", "on", 0, 0), None, "nobody stands by");
        assert_eq!(told("ANY 1 (*)", "on", 2, 2), None);
        assert_eq!(told("ANY 1 (*)", "remote_apply", 2, 1), None);
        assert_eq!(told("", "on", 2, 0), Some(false));
        assert_eq!(told("ANY 1 (*)", "local", 2, 2), Some(true));
        assert_eq!(told("FIRST 1 (gone)", "on", 1, 0), Some(true));
        let unseen = Standbys { unseen: 1, ..Standbys::default() };
        assert!(failover(&unseen).is_some_and(|found| !found.grave));
    }
}
