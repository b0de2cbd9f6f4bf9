//! The dashboard in a real browser: Chromium without a window, told what to do over
//! WebDriver. `GRISTMILL_SHOTS` names a folder that pictures of every page go to.
//!
//! Without Chromium and its driver nothing is tried; `./test` lists that.

mod driver;
mod read_aloud;
mod smoke;

use serde_json::json;

use self::driver::Browser;
use super::strangers::payloads;
use super::{fail, put};
use crate::client::Site;

/// A store with something of everything.
async fn ground() -> Site {
    let site = Site::with(&[]).await;
    fill(&site).await;
    site
}

/// Something of everything.
async fn fill(site: &Site) {
    for queue in ["emails", "reports", "images"] {
        site.mill.declare_queue(queue).await.unwrap();
    }
    for n in 0..5 {
        put(site, "emails", &json!({ "payload": { "n": n }, "key": format!("order-{n}") })).await;
    }
    fail(site, "emails", "connect to smtp-3.example.org: timed out after 30012 ms").await;
    for n in 0..4 {
        put(site, "reports", &json!({ "payload": { "report": n }, "delay": "1h" })).await;
    }
    put(site, "images", &json!({ "payload": { "image": 1 } })).await;
    let claim = r#"{"queues":["images"],"worker":"worker-1"}"#;
    site.post("/v1/claims", claim).await;
    put(site, "images", &json!({ "payload": { "image": 2 } })).await;
    let nightly = r#"{"queue":"reports","cron":"0 3 * * *","zone":"Europe/Berlin","payload":{}}"#;
    let kind = [("content-type", "application/json")];
    site.send("PUT", "/v1/schedules/nightly", &kind, nightly).await;
}

const PAGES: [(&str, &str); 13] = [
    ("overview", "/"),
    ("tasks", "/tasks"),
    ("task", "/tasks/1"),
    ("failed", "/failed"),
    ("queues", "/queues"),
    ("queue", "/queues/emails"),
    ("workers", "/workers"),
    ("schedules", "/schedules"),
    ("manager", "/manager"),
    ("operations", "/operations"),
    ("audit", "/audit"),
    ("put", "/put"),
    ("nothing", "/no/such/page"),
];

#[tokio::test]
async fn browser_shows_every_page_light_dark_and_narrow() {
    let site = ground().await;
    let Some(browser) = Browser::open(1400, 900).await else { return };
    for (scheme, width) in [("light", 1400), ("dark", 1400), ("light", 390)] {
        browser.look(scheme).await;
        let mobile = width < 500;
        let size = json!({
            "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": mobile,
        });
        browser.devtools("Emulation.setDeviceMetricsOverride", size).await;
        for (name, path) in PAGES {
            browser.go(&site, path).await;
            browser.until("document.readyState === 'complete'").await;
            let wide = browser
                .run("return document.documentElement.scrollWidth - document.documentElement.clientWidth")
                .await;
            assert_eq!(wide, json!(0), "{path} is wider than a screen of {width}");
            let background = "return getComputedStyle(document.body).backgroundColor";
            let dark = browser.run(background).await == json!("rgb(19, 21, 22)");
            assert_eq!(dark, scheme == "dark", "{path}");
            let shown = if mobile { "narrow" } else { scheme };
            browser.picture(&format!("{name}-{shown}")).await;
        }
    }
    browser.go(&site, "/queues/emails").await;
    browser.until("document.querySelectorAll('.uplot canvas').length === 3").await;
    browser.until("document.querySelector('.numbers td')").await;
    assert_eq!(browser.complaints().await, Vec::<String>::new());
}

#[tokio::test]
async fn browser_sees_changes_without_a_reload() {
    let site = ground().await;
    let Some(browser) = Browser::open(1200, 800).await else { return };
    browser.go(&site, "/").await;
    browser.run("window.same = true").await;
    let ready = "document.querySelector('tr[data-row$=reports] [data-is=ready]')";
    browser.until(&format!("document.querySelector('tr[data-row$=reports]') && !{ready}")).await;
    put(&site, "reports", &json!({ "payload": 1 })).await;
    browser.until(&format!("{ready}?.textContent === '1'")).await;
    browser.until("window.same").await;
    // Who is about to do something is not disturbed.
    browser.go(&site, "/tasks?queue=emails").await;
    browser.run("document.querySelector('input[name=ids]').click()").await;
    browser
        .until("document.querySelector('[data-chosen]').textContent === 'With 1 selected:'")
        .await;
    browser.until("document.querySelector('input[name=ids]:checked')").await;
    assert_eq!(browser.complaints().await, Vec::<String>::new());
}

#[tokio::test]
async fn browser_goes_by_keys_and_asks_before_it_deletes() {
    let site = ground().await;
    let Some(browser) = Browser::open(1200, 800).await else { return };
    browser.go(&site, "/").await;
    browser.press("?").await;
    browser.until("document.querySelector('#keys[open]')").await;
    browser.press("\u{e00c}").await;
    browser.until("!document.querySelector('#keys[open]')").await;
    browser.press("gf").await;
    browser.until("location.pathname === '/failed'").await;
    browser.press("gt").await;
    browser.until("location.pathname === '/tasks' && document.readyState === 'complete'").await;
    browser.press("/").await;
    browser.until("document.activeElement.name === 'queue'").await;
    browser.press("\u{e00c}").await;
    browser.press("jjx").await;
    browser.until("document.querySelector('tr.here input:checked')").await;
    browser.press("t").await;
    browser.until("document.documentElement.dataset.theme === 'dark'").await;
    // A task is discarded only when that was meant.
    browser.go(&site, "/tasks/1").await;
    let discard = "document.querySelector('button[value=discard]').click()";
    browser.run(discard).await;
    browser.until("document.querySelector('#ask[open]')").await;
    browser.until("document.documentElement.dataset.theme === 'dark'").await;
    browser.picture("ask").await;
    browser.run("document.querySelector('#ask button[value=no]').click()").await;
    browser.until("!document.querySelector('#ask[open]')").await;
    assert!(site.mill.inspect().task("1".parse().unwrap()).await.unwrap().is_some());
    browser.run(discard).await;
    browser.until("document.querySelector('#ask[open]')").await;
    browser.run("document.querySelector('#ask button[value=yes]').click()").await;
    browser
        .until("document.querySelector('.flash')?.textContent.includes('1 task discarded.')")
        .await;
    assert!(site.mill.inspect().task("1".parse().unwrap()).await.unwrap().is_none());
    assert_eq!(browser.complaints().await, Vec::<String>::new());
}

#[tokio::test]
async fn browser_carries_out_each_action() {
    let site = ground().await;
    let Some(browser) = Browser::open(1200, 800).await else { return };
    let does = async |path: &str, script: &str, then: &str| {
        browser.go(&site, path).await;
        browser.run(script).await;
        browser.until(then).await;
    };
    let flash =
        |words: &str| format!("document.querySelector('.flash')?.textContent.includes('{words}')");
    let click = |what: &str| format!("document.querySelector('{what}').click()");
    does("/tasks/1", &click("main button[value=retry]"), &flash("1 task sent back")).await;
    does("/tasks/2", &click("main button[value=resolve]"), &flash("1 task resolved")).await;
    does("/queues/emails", &click("button[value=pause]"), &flash("Paused")).await;
    does("/queues", &click("button[value=resume]"), &flash("Resumed")).await;
    let set = "document.querySelector('[name=setting]').value = 'max_attempts';
        document.querySelector('[name=value]').value = '9';
        document.querySelector('button[value=set]').click()";
    does("/queues/emails", set, &flash("Changed")).await;
    does("/schedules", &click("button[value=fire]"), &flash("Fired by hand")).await;
    let put = "document.querySelector('[name=payload]').value = '{\"hello\": 1}';
        document.querySelector('button.main').click()";
    does("/put?queue=emails", put, &flash("The task was put")).await;
    does("/put?copy=3", &click("main button.main"), &flash("The task was put")).await;
    assert!(site.mill.inspect().task("3".parse().unwrap()).await.unwrap().is_none(), "resolved");
    let selected =
        "for (const box of document.querySelectorAll('input[name=ids]')) box.checked = true;
        document.querySelector('button[value=retry]').click()";
    does("/tasks?state=failed", selected, &flash("sent back")).await;
    fail(&site, "emails", "user 17 not found").await;
    browser.go(&site, "/failed").await;
    browser.run("[...document.querySelectorAll('.shapes a')].find((a) => a.textContent.startsWith('Retry')).click()").await;
    browser.until("location.pathname === '/tasks/all' && document.readyState === 'complete'").await;
    browser.picture("all").await;
    browser.run(&click("button.main")).await;
    browser.until("location.pathname.startsWith('/operations/')").await;
    browser.until("document.querySelector('h1 .pill')?.textContent === 'done'").await;
    browser.picture("operation").await;
    assert_eq!(site.mill.inspect().queue("emails").await.unwrap().failed, 0);
    assert_eq!(browser.complaints().await, Vec::<String>::new());
}

#[tokio::test]
async fn browser_runs_nothing_that_was_stored_or_asked() {
    let site = Site::with(&["a"]).await;
    let Some(browser) = Browser::open(1200, 800).await else { return };
    let all: Vec<String> = payloads().iter().map(|text| text.replace('\0', "")).collect();
    for (n, text) in all.iter().enumerate() {
        let task = json!({ "payload": { "x": text }, "key": format!("{text}{n}"), "group": text, "source": text });
        put(&site, "a", &task).await;
        fail(&site, "a", text).await;
    }
    // Whatever opens a dialog fails the next command; whatever is forbidden is complained of.
    for path in ["/tasks?limit=500", "/failed", "/"] {
        browser.go(&site, path).await;
        browser.until("document.readyState === 'complete'").await;
    }
    for n in (1..=all.len()).step_by(7) {
        browser.go(&site, &format!("/tasks/{n}")).await;
        browser.go(&site, &format!("/put?copy={n}")).await;
    }
    for text in all.iter().step_by(5) {
        let text: String = text.bytes().map(|byte| format!("%{byte:02X}")).collect();
        browser.go(&site, &format!("/tasks?key={text}&error={text}&state={text}")).await;
        browser.go(&site, &format!("/tasks?key={text}&error={text}&shape={text}&queue=a")).await;
    }
    browser.until("document.readyState === 'complete'").await;
    assert_eq!(browser.complaints().await, Vec::<String>::new());
}
