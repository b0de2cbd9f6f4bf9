//! The list of behaviours itself: complete, and each name once.

use std::collections::BTreeSet;

use gristmill_conformance::behaviours;

#[test]
fn every_rule_has_behaviours_and_every_name_is_its_own() {
    let all = behaviours();
    let names: BTreeSet<&str> = all.iter().map(|behaviour| behaviour.name).collect();
    assert_eq!(names.len(), all.len());
    for rule in 1..=12 {
        let shown = all.iter().filter(|behaviour| behaviour.rule == Some(rule)).count();
        assert!(shown >= 3, "rule {rule} is shown by {shown} behaviours");
    }
    let verbs = all.iter().filter(|behaviour| behaviour.rule.is_none());
    assert!(verbs.clone().all(|behaviour| behaviour.name.starts_with("verb_")));
    assert!(verbs.count() >= 30);
}
