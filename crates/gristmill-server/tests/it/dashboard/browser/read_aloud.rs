//! Pages for people who do not see them: axe-core, which looks for what a screen reader or
//! a keyboard stumbles over, finds nothing serious on any page.
//!
//! `./test` fetches it from the npm registry into `target/`; without it nothing is tried,
//! and `./test` lists that.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::driver::Browser;
use super::{PAGES, ground};

const VERSION: &str = "4.14.1";
const SHA256: &str = "29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c";

/// What it finds that keeps somebody from using a page, one line each.
const LOOK: &str = "
    const done = arguments[arguments.length - 1];
    axe.run(document, { resultTypes: ['violations'] }).then((found) => done(
        found.violations
            .filter((one) => ['serious', 'critical'].includes(one.impact))
            .map((one) => `${one.id}: ${one.nodes.slice(0, 3).map((n) => n.html).join(' ')}`)
    ), (why) => done([`axe failed: ${why}`]));
";

/// The program, if `./test` has fetched it.
fn axe() -> Option<String> {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
    let top = std::env::var_os("CARGO_TARGET_DIR").map_or(top, PathBuf::from);
    let file = top.join(format!("axe-core-{VERSION}/node_modules/axe-core/axe.min.js"));
    let Ok(text) = fs::read_to_string(&file) else {
        eprintln!("NOT RUN: {} is missing", file.display());
        return None;
    };
    let digest = Sha256::digest(text.as_bytes());
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, SHA256, "{} is not what was published", file.display());
    Some(text)
}

#[tokio::test]
async fn browser_finds_nothing_that_keeps_somebody_out() {
    let Some(axe) = axe() else { return };
    let site = ground().await;
    let Some(browser) = Browser::open(1400, 900).await else { return };
    for scheme in ["light", "dark"] {
        browser.look(scheme).await;
        for (name, path) in PAGES {
            browser.go(&site, path).await;
            browser.until("document.readyState === 'complete'").await;
            browser.run(&axe).await;
            let found = browser.told("/execute/async", json!({ "script": LOOK, "args": [] })).await;
            assert_eq!(found, Value::Array(Vec::new()), "{name}, {scheme}: {found:#}");
        }
    }
    // The dialogs, which are on every page.
    browser.go(&site, "/").await;
    browser.press("?").await;
    browser.until("document.querySelector('#keys[open]')").await;
    browser.run(&axe).await;
    let found = browser.told("/execute/async", json!({ "script": LOOK, "args": [] })).await;
    assert_eq!(found, Value::Array(Vec::new()), "the keys: {found:#}");
    // It would notice.
    browser.run("document.querySelector('#keys').append(document.createElement('img'))").await;
    let found = browser.told("/execute/async", json!({ "script": LOOK, "args": [] })).await;
    assert!(found[0].as_str().is_some_and(|why| why.starts_with("image-alt")), "{found}");
}
