//! The same pages over PostgreSQL: each is shown, one task is retried, one queue paused.

use gristmill::Mill;

use super::driver::Browser;
use super::{PAGES, fill};
use crate::client::Site;

#[tokio::test]
async fn browser_shows_every_page_over_postgres() {
    let server = gristmill_pgserver::Server::shared().unwrap();
    let database = server.database("pages", |_| Ok(())).unwrap();
    let site = Site::over(Mill::open(&database.url()).await.unwrap()).await;
    fill(&site).await;
    let Some(browser) = Browser::open(1400, 900).await else { return };
    for (name, path) in PAGES {
        browser.go(&site, path).await;
        browser.until("document.readyState === 'complete'").await;
        if name != "nothing" {
            let refused = "document.querySelector('.refusal')?.innerText ?? ''";
            assert_eq!(browser.run(&format!("return {refused}")).await, "", "{path}");
        }
        browser.picture(&format!("postgres-{name}")).await;
    }
    let click = |what: &str| format!("document.querySelector('{what}').click()");
    let flash =
        |words: &str| format!("document.querySelector('.flash')?.textContent.includes('{words}')");
    browser.go(&site, "/tasks/1").await;
    browser.run(&click("main button[value=retry]")).await;
    browser.until(&flash("1 task sent back")).await;
    browser.go(&site, "/queues/emails").await;
    browser.run(&click("button[value=pause]")).await;
    browser.until(&flash("Paused")).await;
    browser.go(&site, "/").await;
    browser.until("document.body.innerText.includes('was paused by dashboard')").await;
    assert_eq!(browser.complaints().await, Vec::<String>::new());
    site.stop().await.close().await.unwrap();
}
