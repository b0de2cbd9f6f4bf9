//! Which other process holds a lock on a file, as far as the system tells.

use std::path::Path;

/// `process 4711 (python3)`, and whether it is stopped. Nothing where no other
/// process is seen: it may be on another machine or in another container.
/// `byte` is the one whose lock is meant, of locks on parts of a file.
#[must_use]
pub fn lock_holder(file: &Path, byte: Option<u64>) -> Option<String> {
    found(file, byte)
}

#[cfg(not(target_os = "linux"))]
fn found(_: &Path, _: Option<u64>) -> Option<String> {
    None
}

#[cfg(target_os = "linux")]
fn found(file: &Path, byte: Option<u64>) -> Option<String> {
    use std::os::unix::fs::MetadataExt;
    let inode = std::fs::metadata(file).ok()?.ino().to_string();
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    let own = std::process::id().to_string();
    let pid = locks.lines().find_map(|line| {
        let pid = holder(line, &inode, byte)?;
        (pid != own).then_some(pid)
    })?;
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The state stands behind the name, which may hold anything.
    let state = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
    let stopped = if state.starts_with(['T', 't']) { ", which is stopped," } else { "" };
    Some(match name.trim() {
        "" => format!("process {pid}"),
        name => format!("process {pid} ({name}){stopped}"),
    })
}

/// The process of a line like `1: POSIX  ADVISORY  WRITE 4711 08:01:5678 120 120`
/// that holds a write lock on the file. One that only waits has `->` in it.
#[cfg(target_os = "linux")]
fn holder<'a>(line: &'a str, inode: &str, byte: Option<u64>) -> Option<&'a str> {
    let mut words = line.split_whitespace().skip(1);
    let kind = words.next().filter(|kind| *kind != "->")?;
    let (access, pid) = (words.nth(1)?, words.next()?);
    let place = words.next()?;
    let (from, to) = (words.next()?.parse::<u64>().ok()?, words.next()?);
    let to = to.parse().unwrap_or(u64::MAX);
    let meant = byte.is_none_or(|byte| kind != "POSIX" || (from..=to).contains(&byte));
    let same = place.rsplit(':').next() == Some(inode);
    (access == "WRITE" && same && meant && pid.parse::<u32>().is_ok_and(|pid| pid > 0))
        .then_some(pid)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_its_holder() {
        let line = "1: POSIX  ADVISORY  WRITE 4711 08:01:5678 120 120";
        assert_eq!(holder(line, "5678", Some(120)), Some("4711"));
        assert_eq!(holder(line, "5678", None), Some("4711"));
        assert_eq!(holder(line, "5678", Some(121)), None);
        assert_eq!(holder(line, "567", Some(120)), None);
        let flock = "2: FLOCK  ADVISORY  WRITE 12 fe:00:99 0 EOF";
        assert_eq!(holder(flock, "99", Some(7)), Some("12"));
        for other in [
            "2: -> FLOCK  ADVISORY  WRITE 12 fe:00:99 0 EOF",
            "2: FLOCK  ADVISORY  READ 12 fe:00:99 0 EOF",
            "2: OFDLCK ADVISORY  WRITE -1 fe:00:99 0 EOF",
            "",
        ] {
            assert_eq!(holder(other, "99", None), None, "{other}");
        }
    }
}
