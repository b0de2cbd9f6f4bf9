//! Showing a token once instead of with each request, which a browser cannot do.
//!
//! The page asks for the token in a form; what the browser keeps is a cookie that other
//! pages cannot send along and that no script can read. It has no path of its own: a
//! browser then takes the place where the page stands, below whatever prefix.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use axum::routing::MethodFilter;
use axum::routing::on;
use maud::html;

use super::fields::query;
use super::layout::{self, Frame, Section};
use super::view::View;
use super::viewer::Viewer;
use super::{PAGES, form, from_a_page, refusal};
use crate::access::{Caller, Encrypted, LASTS, Peer, SESSION, Secret};
use crate::call::Call;
use crate::problem::{Answer, FAULT, Problem, TOO_LARGE};
use crate::service::Service;

/// Methods and paths.
pub(super) const PATHS: [(&str, &str); 3] =
    [("GET", "/login"), ("POST", "/login"), ("POST", "/logout")];
/// Most bytes of the form: whoever sends it has shown nothing yet.
const FORM_BYTES: u64 = 16 << 10;
/// Longest address that is come back to.
const PLACE_MAX: usize = 2_000;

/// The router with the login on top.
pub(super) fn mount(router: Router, service: &Arc<Service>) -> Router {
    let call = |service: &Arc<Service>, request: Request| {
        let service = service.clone();
        Call { service, caller: Caller::anyone(), params: Vec::new(), request }
    };
    let (asks, sends, leaves) = (service.clone(), service.clone(), service.clone());
    let shown = async move |request: Request| page(call(&asks, request)).await;
    let sent = async move |request: Request| log_in(call(&sends, request)).await;
    let left = async move |request: Request| log_out(&call(&leaves, request));
    router
        .route("/login", on(MethodFilter::GET, shown).on(MethodFilter::POST, sent))
        .route("/logout", on(MethodFilter::POST, left))
}

/// Leads whoever wants a page and has not shown who they are to the form.
pub(super) fn lead(view: &View, request: &Request) -> Option<Response> {
    if request.method() != axum::http::Method::GET || view.part || !super::wants_a_page(request) {
        return None;
    }
    see(&href(view, request.uri().path(), &view.asked), None).ok()
}

/// The address of the form, seen from a page, for who is to come back to this one.
pub(super) fn href(view: &View, path: &str, asked: &str) -> String {
    let path = path.trim_start_matches('/');
    let to = if asked.is_empty() { path.to_owned() } else { format!("{path}?{asked}") };
    let to = place(&to).filter(|to| !to.is_empty());
    view.href_with("login", &query([("to", to.as_deref())]))
}

/// `GET /login`.
async fn page(call: Call) -> Response {
    let view = View::of(&call);
    let to = view.query.one("to");
    let peer = call.request.extensions().get::<Peer>().copied();
    match call.service.door.visitor(call.headers(), peer).await {
        // Nobody is asked, or they have shown it already.
        Ok(_) => back(to.as_deref(), None).unwrap_or_else(|why| refusal::page(&view, &why)),
        Err(why) if why.status() == StatusCode::UNAUTHORIZED => form(&view, to.as_deref(), None),
        Err(why) => refusal::page(&view, &why),
    }
}

fn form(view: &View, to: Option<&str>, refused: Option<&Problem>) -> Response {
    let body = html! {
        section.refusal {
            h1 { "Log in" }
            @if let Some(why) = refused {
                p role="alert" { strong { (why.title()) } " " (why.detail()) "." }
            }
            form method="post" action=(view.href("login")) {
                @if let Some(to) = to.and_then(place) { input type="hidden" name="to" value=(to); }
                p {
                    label {
                        "Token "
                        input type="password" name="token" required autofocus
                            autocomplete="current-password" spellcheck="false";
                    }
                    " " button { "Log in" }
                }
            }
            p.advice {
                "With the scope " code { "read" } " it shows, with " code { "admin" } " it acts: "
                code { "gristmill token create NAME --scope read" } " makes one."
            }
        }
    };
    let status = refused.map_or(StatusCode::OK, Problem::status);
    let mut response =
        layout::answer(view, status, &Frame::of(Section::Nowhere, "Log in").still(), &body);
    if let Some(seconds) = refused.and_then(Problem::wait) {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// `POST /login`.
async fn log_in(call: Call) -> Response {
    let view = View::of(&call);
    let mut to = None;
    match let_in(call, &mut to).await {
        Ok(response) => response,
        Err(why) if to.is_some() => form(&view, to.as_deref(), Some(&why)),
        Err(why) => refusal::page(&view, &why),
    }
}

/// `to` is said as soon as the form was read: from then on it is shown again.
async fn let_in(call: Call, to: &mut Option<String>) -> Answer {
    from_a_page(&call)?;
    let length = call.headers().get(header::CONTENT_LENGTH).and_then(|said| said.to_str().ok());
    if length.and_then(|said| said.parse().ok()).is_none_or(|bytes: u64| bytes > FORM_BYTES) {
        return Err(Problem::new(&TOO_LARGE, "a login is smaller than that, and says how long"));
    }
    let peer = call.request.extensions().get::<Peer>().copied();
    let secure = is_encrypted(&call);
    let earlier = call.headers().clone();
    let (service, fields) = form::read(call).await?;
    *to = Some(fields.one("to").unwrap_or_default());
    let shown = fields.one("token").unwrap_or_default();
    let caller = service.door.shown(&shown, peer).await?;
    // A session that may see nothing would be one refusal after the other.
    Viewer::admit(&service, &caller)?;
    let session = service.door.begin(&caller)?;
    service.door.end(&earlier);
    let name = caller.name().unwrap_or_default();
    tracing::info!(target: "gristmill::server", token = name, "somebody logged in at the pages");
    back(to.as_deref(), session.map(|session| kept(&session, secure)))
}

/// `POST /logout`.
fn log_out(call: &Call) -> Response {
    let left = from_a_page(call).and_then(|()| {
        call.service.door.end(call.headers());
        let gone = cookie("", 0, is_encrypted(call));
        see("./login", Some(gone))
    });
    left.unwrap_or_else(|why| refusal::page(&View::of(call), &why))
}

/// Whether the browser speaks encrypted: here, or up to what stands between. The guard has
/// looked at what it says of that.
fn is_encrypted(call: &Call) -> bool {
    let here = call.request.extensions().get::<Encrypted>().is_some_and(|Encrypted(is)| *is);
    let origin = call.headers().get(header::ORIGIN).map(HeaderValue::as_bytes);
    here || origin.is_some_and(|origin| origin.starts_with(b"https://"))
}

fn kept(session: &Secret, secure: bool) -> String {
    cookie(session.reveal(), LASTS.as_secs(), secure)
}

fn cookie(value: &str, seconds: u64, secure: bool) -> String {
    let secure = if secure { "; Secure" } else { "" };
    format!("{SESSION}={value}; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}")
}

/// Leads back to where somebody wanted to go.
fn back(to: Option<&str>, cookie: Option<String>) -> Answer {
    see(&format!("./{}", to.and_then(place).unwrap_or_default()), cookie)
}

/// The address of a page of ours, seen from the first one; nothing for anything else, so
/// that no link to the form leads away from here.
fn place(to: &str) -> Option<String> {
    let (path, asked) = to.split_once('?').unwrap_or((to, ""));
    let plain = |c: u8| c.is_ascii_graphic() && !b"\\#".contains(&c);
    if to.len() > PLACE_MAX || !to.bytes().all(plain) || path.contains(':') {
        return None;
    }
    let parts: Vec<&str> = path.split('/').collect();
    let up =
        |part: &&str| part.replace("%2e", ".").replace("%2E", ".").trim_matches('.').is_empty();
    if !path.is_empty() && parts.iter().any(up) {
        return None;
    }
    let known = PAGES.iter().filter(|page| page.method == "GET").any(|page| {
        let known: Vec<&str> = page.path.trim_start_matches('/').split('/').collect();
        let same = |(known, part): (&&str, &&str)| known.starts_with('{') || known == part;
        known.len() == parts.len() && known.iter().zip(&parts).all(same)
    });
    let to = if asked.is_empty() { path } else { to };
    known.then(|| to.to_owned())
}

fn see(place: &str, cookie: Option<String>) -> Answer {
    let written = |text: &str| {
        HeaderValue::from_str(text)
            .map_err(|_| Problem::new(&FAULT, "an address that cannot be written"))
    };
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SEE_OTHER;
    let headers: &mut HeaderMap = response.headers_mut();
    headers.insert(header::LOCATION, written(place)?);
    if let Some(cookie) = cookie {
        headers.insert(header::SET_COOKIE, written(&cookie)?);
    }
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pages_of_ours_are_come_back_to() {
        for good in ["", "tasks", "tasks/17", "tasks?queue=a&key=//x", "queues/a%2Fb", "?back=1h"] {
            assert_eq!(place(good).as_deref(), Some(good));
        }
        for bad in [
            "//evil.example",
            "/tasks",
            "/\\evil.example",
            "\\\\evil.example",
            "https://evil.example/",
            "https:evil.example",
            "javascript:alert(1)",
            "tasks/..",
            "tasks/%2e%2E",
            "queues/.%2e",
            "../tasks",
            "tasks//",
            "tasks/1\r\nset-cookie: x=1",
            "tasks?x=\\",
            "nothing",
            "login",
        ] {
            assert_eq!(place(bad), None, "{bad}");
        }
        assert_eq!(place(&format!("tasks?key={}", "a".repeat(PLACE_MAX))), None);
    }
}
