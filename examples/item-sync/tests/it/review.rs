//! Failures by what went wrong, and what a person decides about each kind.

use std::process::Stdio;

use crate::shop::Shop;
use crate::webhook::Webhook;

/// Two kinds of failures of five tasks.
fn shop() -> Shop {
    let shop = Shop::new();
    shop.sync(&[(1, 100), (2, 100)]);
    shop.ok(&["work", "--drain", "--webhook", &Webhook::nobody()]);
    // At another port: the same went wrong, in other words.
    shop.sync(&[(3, 100)]);
    shop.ok(&["work", "--drain", "--webhook", &Webhook::nobody()]);
    shop.sync(&[(4, 100), (5, 100)]);
    let webhook = Webhook::start();
    let worker = shop.start(&["work", "--drain", "--webhook", &webhook.url]);
    webhook.next().answer(503);
    webhook.next().answer(503);
    assert!(worker.end().ok);
    shop
}

/// The mark of the group with so many tasks.
fn mark(listed: &str, count: &str) -> String {
    let line = listed.lines().find(|line| line.split_whitespace().nth(1) == Some(count));
    line.expect(listed).split_whitespace().next().expect("a mark").to_owned()
}

#[test]
fn failures_are_grouped_by_what_went_wrong() {
    let shop = shop();
    let listed = shop.ok(&["review"]).stdout;
    assert_eq!(listed.matches(" of NEW_ITEM, from ").count(), 2, "{listed}");
    assert!(listed.contains("refused") && listed.contains("the webhook answered 503"), "{listed}");
    let (three, two) = (mark(&listed, "3"), mark(&listed, "2"));
    let shown = shop.ok(&["review", &two]).stdout;
    assert!(shown.contains("tasks ") && shown.contains("503"), "{shown}");

    let said = shop.ok(&["review", &three, "--retry"]).stdout;
    assert_eq!(said, format!("{three}: 3 of 3 to run again\n"));
    assert_eq!(shop.standing("NEW_ITEM"), (3, 0, 2));
    let said = shop.ok(&["review", &two, "--discard"]).stdout;
    assert_eq!(said, format!("{two}: 2 of 2 discarded\n"));
    assert_eq!(shop.standing("NEW_ITEM"), (3, 0, 0));
    shop.ok(&["work", "--drain"]);
    assert_eq!(shop.ok(&["review"]).stdout, "nothing failed\n");
    let gone = shop.run(&["review", &two, "--retry"]);
    assert!(!gone.ok && gone.stderr.contains(&two), "{gone:?}");
}

#[test]
fn each_group_is_asked_about() {
    let shop = shop();
    let mut asked = shop.start(&["review", "--ask"]);
    // The larger one first: back to work; the other one goes.
    asked.feed("r\nd\n");
    let ran = asked.end();
    assert!(ran.ok && ran.stdout.contains("3 of 3 to run again"), "{ran:?}");
    assert!(ran.stdout.contains("2 of 2 discarded"), "{ran:?}");
    assert_eq!(shop.standing("NEW_ITEM"), (3, 0, 0));
}

#[test]
fn whoever_reads_only_the_first_line_gets_no_panic() {
    let shop = shop();
    for words in [["review"], ["show"]] {
        let mut program = shop.program(&words);
        let mut child = program
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        drop(child.stdout.take());
        let ran = child.wait_with_output().expect("its end");
        assert!(ran.status.success() && ran.stderr.is_empty(), "{ran:?}");
    }
}
