//! The part of the port that moves tasks stays small: what the system agrees on beside
//! them goes through documents.

use crate::repo::{Finding, Repo, expect};

const PORT: &str = "crates/gristmill-core/src/store.rs";
/// Most verbs about tasks.
const MOST: usize = 20;

/// Verbs in the port's section of tasks.
pub(crate) fn verbs(repo: &Repo) -> Vec<Finding> {
    let begun = |line: &str, section: &str| line.trim_start().starts_with(section);
    let lines = repo.get(PORT).into_iter().flat_map(|file| file.lines());
    let of_tasks = lines
        .skip_while(|(_, line)| !begun(line, "// ---- tasks"))
        .skip(1)
        .take_while(|(_, line)| !begun(line, "// ----"));
    let verbs: Vec<usize> = of_tasks
        .filter(|(_, line)| begun(line, "fn ") || begun(line, "async fn "))
        .map(|(at, _)| at)
        .collect();
    let remedy = "keep it as a document, or let another verb say it";
    match verbs.as_slice() {
        [] => {
            vec![Finding::new(PORT, 1, "the port has no verbs about tasks", "say where they are")]
        }
        [..] if verbs.len() <= MOST => Vec::new(),
        [.., last] => {
            let wrong = format!("{} verbs are about tasks, and {MOST} may be", verbs.len());
            vec![Finding::new(PORT, *last, wrong, remedy)]
        }
    }
}

#[test]
fn one_verb_too_many_is_found() {
    let port = |verbs: usize| {
        let verbs = "    /// Does it.\n    async fn one(&self);\n".repeat(verbs);
        let text =
            format!("    // ---- tasks ---\n{verbs}    // ---- queues ---\n    fn q(&self);\n");
        Repo::sample(&[(PORT, &text)])
    };
    expect(&verbs(&port(MOST)), &[]);
    expect(&verbs(&port(MOST + 1)), &[("crates/gristmill-core/src/store.rs:43", "21 verbs")]);
    expect(&verbs(&port(0)), &[("crates/gristmill-core/src/store.rs:1", "no verbs")]);
}
