//! What every page has: head, menu, and the part that changes while one looks.

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::view::View;
use super::{assets, flash, words};

/// Where in the menu a page stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Section {
    Overview,
    Tasks,
    Failed,
    Queues,
    Workers,
    Schedules,
    Manager,
    Operations,
    Audit,
    Put,
    Nowhere,
}

/// The menu: where, its words, its address, and the key behind `g`.
const MENU: &[(Section, &str, &str, &str)] = &[
    (Section::Overview, "Overview", "", "o"),
    (Section::Tasks, "Tasks", "tasks", "t"),
    (Section::Failed, "Failed", "failed", "f"),
    (Section::Queues, "Queues", "queues", "q"),
    (Section::Workers, "Workers", "workers", "w"),
    (Section::Schedules, "Schedules", "schedules", "s"),
    (Section::Manager, "Manager", "manager", "m"),
    (Section::Operations, "Operations", "operations", "p"),
    (Section::Audit, "Audit", "audit", "a"),
];

/// What is special about a page.
pub(crate) struct Frame<'a> {
    pub(crate) section: Section,
    pub(crate) title: &'a str,
    /// Whether it is asked for again when something happened.
    pub(crate) live: bool,
    /// Whether it draws charts.
    pub(crate) charts: bool,
}

impl<'a> Frame<'a> {
    pub(crate) fn of(section: Section, title: &'a str) -> Self {
        Frame { section, title, live: true, charts: false }
    }

    /// A page that somebody fills in: it stays as it is.
    pub(crate) fn still(self) -> Self {
        Frame { live: false, ..self }
    }

    pub(crate) fn with_charts(self) -> Self {
        Frame { charts: true, ..self }
    }
}

/// Headers of pages. Scripts and styles come from here alone, and nothing is written
/// into a page that could be one.
const MARKS: [(&str, &str); 3] = [
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
         connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    ),
    // With `no-referrer`, a browser would hide where a form comes from.
    ("referrer-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
];

/// The whole answer.
pub(crate) fn page(view: &View, frame: &Frame<'_>, body: &Markup) -> Response {
    answer(view, StatusCode::OK, frame, body)
}

/// The same with another status.
pub(crate) fn answer(
    view: &View,
    status: StatusCode,
    frame: &Frame<'_>,
    body: &Markup,
) -> Response {
    let part = live(view, frame, body);
    let text = if view.part { part } else { whole(view, frame, &part) }.into_string();
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    for (name, value) in MARKS {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    response
}

fn whole(view: &View, frame: &Frame<'_>, part: &Markup) -> Markup {
    let file = |name: &str| view.href(&assets::href(name));
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                title { (frame.title) " · Gristmill" }
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                // Nothing is evaluated and no style is written in: the policy above forbids it.
                meta name="htmx-config"
                    content=r#"{"includeIndicatorCSS":false,"history":false,"morphIgnore":["data-htmx-powered","open"]}"#;
                link rel="icon" type="image/svg+xml" href=(file("icon.svg"));
                link rel="stylesheet" href=(file("app.css"));
                @if frame.charts { link rel="stylesheet" href=(file("uplot.css")); }
                script src=(file("theme.js")) {}
                script src=(file("htmx.js")) defer {}
                @if frame.charts {
                    script src=(file("uplot.js")) defer {}
                    script src=(file("charts.js")) defer {}
                }
                script src=(file("app.js")) defer {}
            }
            body data-root=(view.href("")) {
                a.skip href="#main" { "Skip to the content" }
                div.offline hidden role="status" {
                    "The service does not answer. What you see is as it was at "
                    span.since {} "."
                }
                (part)
                (keys())
                dialog.ask #ask aria-labelledby="ask-words" {
                    form method="dialog" {
                        p #ask-words {}
                        div.buttons {
                            button value="no" { "Leave it" }
                            button.grave value="yes" { "Do it" }
                        }
                    }
                }
            }
        }
    }
}

/// The part that is asked for again.
fn live(view: &View, frame: &Frame<'_>, body: &Markup) -> Markup {
    let again = frame.live.then(|| format!("?{}", flash::without(&view.asked)));
    html! {
        div #live hx-get=[again] hx-trigger=[frame.live.then_some("refresh")]
            hx-swap=[frame.live.then_some("outerMorph")] {
            (menu(view, frame.section))
            main #main tabindex="-1" {
                (flash::said(view))
                (body)
            }
        }
    }
}

fn menu(view: &View, here: Section) -> Markup {
    html! {
        header.side {
            a.brand href=(view.href("")) { (mark()) span { "Gristmill" } }
            nav aria-label="Pages" {
                ul {
                    @for (section, words, path, key) in MENU {
                        li {
                            a href=(view.href(path)) data-key=(key)
                                aria-current=[(*section == here).then_some("page")] {
                                (words)
                                @if *words == "Failed" {
                                    @if let Some(failed) = view.failed.filter(|n| *n > 0) {
                                        span.badge { (words::number(failed)) }
                                    }
                                }
                            }
                        }
                    }
                }
            }
            @if view.viewer.may_act {
                a.new href=(view.href("put")) data-key="n" aria-current=[(here == Section::Put).then_some("page")] { "Put a task" }
            }
            div.tools {
                @if !view.viewer.may_act && !view.viewer.name.is_empty() { span.note { "read only" } }
                button.plain type="button" data-does="theme" hidden { "Light or dark" }
                button.plain type="button" data-does="keys" hidden { "Keys " kbd { "?" } }
                a.plain href=(view.href("docs")) { "HTTP" }
                @if view.viewer.caller.is_logged_in() {
                    form method="post" action=(view.href("logout")) {
                        button.plain { "Log out " (view.viewer.name) }
                    }
                }
            }
        }
    }
}

/// The sign: a millstone.
fn mark() -> Markup {
    PreEscaped(
        r#"<svg viewBox="0 0 32 32" width="22" height="22" aria-hidden="true"><circle cx="16" cy="16" r="12" fill="none" stroke="currentColor" stroke-width="3.5"/><circle cx="16" cy="16" r="3" fill="currentColor"/><path d="M16 4v7M28 16h-7M16 28v-7M4 16h7" stroke="currentColor" stroke-width="3.5"/></svg>"#
            .to_owned(),
    )
}

/// What `?` shows.
fn keys() -> Markup {
    html! {
        dialog.keys #keys aria-labelledby="keys-title" {
            form method="dialog" {
                h2 #keys-title { "Keys" }
                dl {
                    @for (_, words, _, key) in MENU {
                        dt { kbd { "g" } " " kbd { (key) } }
                        dd { (words) }
                    }
                    dt { kbd { "g" } " " kbd { "n" } } dd { "Put a task" }
                    dt { kbd { "/" } } dd { "Go to the filter" }
                    dt { kbd { "j" } " " kbd { "k" } } dd { "Next and previous row" }
                    dt { kbd { "Enter" } } dd { "Open the row" }
                    dt { kbd { "x" } } dd { "Select the row" }
                    dt { kbd { "r" } } dd { "Look again now" }
                    dt { kbd { "t" } } dd { "Light or dark" }
                    dt { kbd { "?" } } dd { "These keys" }
                }
                button { "Close" }
            }
        }
    }
}
