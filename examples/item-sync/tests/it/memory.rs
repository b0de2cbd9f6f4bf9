//! Thousands of items in constant memory.

use crate::shop::{Shop, until};

const ITEMS: i64 = 20_000;

/// The most memory a running process ever had, in KiB.
fn peak(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("a status");
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).expect("a peak");
    line.split_whitespace().nth(1).expect("a number").parse().expect("a number")
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "the peak is read from /proc")]
fn twenty_thousand_items_need_no_more_memory_than_a_thousand() {
    let shop = Shop::new();
    // Each of a KiB: held whole, they would be far over the limit.
    let name = "n".repeat(1 << 10);
    let item = |id: i64| format!(r#"{{"id":{id},"name":"{name}","price_cents":100}}"#);
    let text = format!("[{}]", (1..=ITEMS).map(item).collect::<Vec<_>>().join(","));
    // The file's end is held back, so that the program is there to be looked at.
    let (most, end) = text.split_at(text.len() - 1);
    let mut sync = shop.start(&["sync", "-"]);
    let first = most.match_indices("},").nth(999).map(|(at, _)| at + 1).expect("a place");
    sync.feed(&most[..first]);
    until("a thousand items stand", || shop.rows("item") == 1_000);
    let early = peak(sync.id());
    sync.feed(&most[first..]);
    until("all items stand", || shop.rows("item") == ITEMS);
    let late = peak(sync.id());
    sync.feed(end);
    let ran = sync.end();
    assert!(ran.ok && ran.stdout.contains("20000 items"), "{ran:?}");
    println!("peak: {early} KiB after a thousand items, {late} KiB after all");
    assert!(late < 64 << 10, "{late} KiB");
    assert!(late < early + (8 << 10), "{early} KiB after a thousand, {late} KiB after all");
    assert_eq!(shop.standing("PRICE_UPDATED").0, ITEMS as u64);
}
