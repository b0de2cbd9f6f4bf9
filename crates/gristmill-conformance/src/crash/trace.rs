//! What a child asked of its disk, as `strace` saw it: whether an answer was
//! given that rests on bytes nobody synced.

use std::collections::HashMap;

/// What is wrong with the answers in a trace of `pwrite64`, `ftruncate`, `fsync`,
/// `fdatasync` and `write`, made with `-y`, which shows the files' names.
pub(super) fn unsynced_answers(trace: &str) -> Vec<String> {
    let mut dirty: HashMap<&str, usize> = HashMap::new();
    // Calls that another thread's came in between: by thread, the file.
    let mut open: HashMap<&str, &str> = HashMap::new();
    let mut faults = Vec::new();
    for line in trace.lines() {
        let Some((thread, call)) = line.split_once(' ') else { continue };
        let call = call.trim_start();
        if let Some(resumed) = call.strip_prefix("<... ") {
            let file = open.remove(thread);
            if resumed.starts_with('f') && succeeded(call) {
                dirty.remove(file.unwrap_or_default());
            }
            continue;
        }
        let file = call.split_once('<').and_then(|(_, rest)| rest.split_once('>'));
        let Some((file, rest)) = file else { continue };
        if call.ends_with("<unfinished ...>") {
            open.insert(thread, file);
        }
        match call.split('(').next().unwrap_or_default() {
            "pwrite64" if is_store(file) => *dirty.entry(file).or_default() += 1,
            // What the log held stands in the database then, synced before.
            "ftruncate" | "fsync" | "fdatasync" if succeeded(call) => {
                dirty.remove(file);
            }
            "write" if is_answer(rest) && !dirty.is_empty() => {
                faults.push(format!("answered {rest} with {dirty:?} written and not synced"));
            }
            _ => {}
        }
    }
    faults
}

fn is_store(file: &str) -> bool {
    !file.ends_with("-shm") && !file.ends_with(".log")
}

fn is_answer(written: &str) -> bool {
    written.contains(" put! ") || (written.contains(" settle! ") && written.contains("recorded"))
}

fn succeeded(call: &str) -> bool {
    call.rsplit_once("= ").is_some_and(|(_, answer)| answer.trim() == "0")
}

#[cfg(test)]
mod tests {
    use super::*;

    const WRITTEN: &str = "7 pwrite64(9</d/q.db-wal>, \"x\"..., 4096, 32) = 4096\n";
    const ANSWERED: &str = "6 write(5</d/1.log>, \"17 put! 4 1\\n\", 12) = 12\n";

    #[test]
    fn an_answer_comes_after_the_sync() {
        let synced = format!("{WRITTEN}7 fdatasync(9</d/q.db-wal>) = 0\n{ANSWERED}");
        assert_eq!(unsynced_answers(&synced), Vec::<String>::new());
        let apart = "7 fdatasync(9</d/q.db-wal> <unfinished ...>\n6 write(5</d/1.log>, \"x\", 1) \
                     = 1\n7 <... fdatasync resumed>) = 0\n";
        assert!(unsynced_answers(&format!("{WRITTEN}{apart}{ANSWERED}")).is_empty());
    }

    #[test]
    fn one_that_rests_on_nothing_is_seen() {
        assert_eq!(unsynced_answers(&format!("{WRITTEN}{ANSWERED}")).len(), 1);
        let failed = "7 fdatasync(9</d/q.db-wal>) = -1 EIO (Input/output error) (INJECTED)\n";
        assert_eq!(unsynced_answers(&format!("{WRITTEN}{failed}{ANSWERED}")).len(), 1);
    }
}
