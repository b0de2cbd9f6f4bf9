//! What a new contract changes, in the exact words.

use gristmill_contract::evolution::compare;

use crate::sample::contract;

const OLD: &str = "
queues:
  - id: 1
    name: emails
    fields:
      - {name: to, type: string}
      - {name: user_id, type: int}
      - {name: cc, type: string?}
  - {id: 2, name: bills}
";

fn said(from: &str, to: &str) -> Vec<String> {
    let new = contract(&OLD.replace(from, to));
    compare(&contract(OLD), &new).iter().map(ToString::to_string).collect()
}

#[test]
fn every_change_is_weighed() {
    for (from, to, wanted) in [
        ("{name: cc, type: string?}", "{name: cc, type: string?}", ""),
        ("type: int}", "type: int64}", "fine: emails: field 'user_id' was int and is int64"),
        (
            "type: int}",
            "type: string}",
            "breaking: emails: field 'user_id' was int and is string: standing tasks cannot be \
             read; add a field of another name, or a queue with a new id",
        ),
        (
            "type: int}",
            "type: '[]int'}",
            "breaking: emails: field 'user_id' was int and is []int: standing tasks cannot be \
             read; add a field of another name, or a queue with a new id",
        ),
        (
            "type: int}",
            "type: int?}",
            "careful: emails: field 'user_id' may now be missing: workers of the old contract \
             need it",
        ),
        (
            "string?}",
            "string}",
            "breaking: emails: field 'cc' may no longer be missing: standing tasks without it \
             cannot be read",
        ),
        (
            "      - {name: cc, type: string?}\n",
            "",
            "fine: emails: field 'cc' is gone: what tasks say of it is skipped",
        ),
        (
            "      - {name: to, type: string}\n",
            "",
            "careful: emails: field 'to' is gone: workers of the old contract need it; bring out \
             the workers first",
        ),
        (
            "{name: cc, type: string?}",
            "{name: cc, type: string?}\n      - {name: bcc, type: '[]string'}",
            "breaking: emails: field 'bcc' ([]string) is new and may not be missing: standing \
             tasks do not have it; make it []string?",
        ),
        (
            "{id: 2, name: bills}",
            "{id: 2, name: bills}\n  - {id: 3, name: x}",
            "fine: x: it is new, with id 3",
        ),
        (
            "  - {id: 2, name: bills}\n",
            "",
            "breaking: bills: it is gone: its tasks wait and nobody reads them",
        ),
        (
            "{id: 2, name: bills}",
            "{id: 2, name: invoices}",
            "breaking: bills: id 2 is now 'invoices': its tasks stay behind under the old name; \
             give the new queue a new id",
        ),
        (
            "{id: 2, name: bills}",
            "{id: 4, name: bills}",
            "breaking: bills: its id is 4 and was 2: a queue keeps its number",
        ),
    ] {
        assert_eq!(said(from, to).join("\n"), wanted);
    }
}
