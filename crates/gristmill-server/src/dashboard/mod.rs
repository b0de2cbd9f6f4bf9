//! The dashboard: pages for people, made here and complete before any script runs.
//!
//! ```text
//!   GET a page  ──► View (who looks, what was asked) ──► the reading API ──► markup
//!   POST a form ──► may they act? from a page of ours? ──► the verb ──► 303 to a page
//! ```
//!
//! A page is the same with and without scripts. With them, its part `#live` is asked for
//! again when something happened and put over what is shown. Addresses are relative, so
//! that it works below any prefix; `maud` escapes whatever is shown.

mod assets;
mod attention;
mod audit;
mod busy;
mod chart;
mod checked;
mod failed;
mod fields;
mod flash;
mod form;
mod layout;
mod login;
mod looked;
mod manager;
mod operations;
mod overview;
mod pill;
mod put;
mod queues;
mod refusal;
mod schedules;
mod task;
mod tasks;
mod trend;
mod view;
mod viewer;
mod words;
mod workers;

use std::pin::Pin;
use std::sync::Arc;

use axum::Router;
use axum::extract::{RawPathParams, Request};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use axum::routing::{MethodFilter, on};

pub(crate) use checked::Checked;
pub(crate) use failed::Shapes;
pub(crate) use trend::Trends;
use view::View;
use viewer::Viewer;

use crate::access::{Caller, Peer};
use crate::audit::Audit;
use crate::call::Call;
use crate::problem::{Answer, Problem, READ_ONLY, WRONG_ORIGIN};
use crate::service::Service;

/// What a page does.
type Handler = fn(Call, View) -> Pin<Box<dyn Future<Output = Answer> + Send>>;

/// One page, or one form that is sent from one.
struct Page {
    method: &'static str,
    path: &'static str,
    handler: Handler,
}

macro_rules! pages {
    ($( $method:ident $path:literal $does:path; )+) => {
        /// All of them.
        const PAGES: &[Page] = &[$( Page {
            method: stringify!($method),
            path: $path,
            handler: |call, view| Box::pin($does(call, view)),
        } ),+];
    };
}

pages! {
    GET "/" overview::page;
    GET "/tasks" tasks::page;
    POST "/tasks/act" task::act::selected;
    GET "/tasks/all" task::all::page;
    POST "/tasks/all" task::all::begin;
    GET "/tasks/{id}" task::page;
    POST "/tasks/{id}/act" task::act::one;
    GET "/failed" failed::page;
    GET "/queues" queues::page;
    GET "/queues/{queue}" queues::one;
    POST "/queues/{queue}/act" queues::act;
    GET "/workers" workers::page;
    POST "/workers/act" workers::act;
    GET "/schedules" schedules::page;
    POST "/schedules/add" schedules::declare;
    POST "/schedules/{schedule}/act" schedules::act;
    GET "/manager" manager::page;
    GET "/put" put::page;
    POST "/put" put::put;
    GET "/operations" operations::page;
    GET "/operations/{id}" operations::one;
    POST "/operations/{id}/stop" operations::stop;
    GET "/audit" audit::page;
    GET "/live/events" looked::events;
    GET "/live/minutes" looked::minutes;
}

/// The router with the pages on top.
pub(crate) fn mount(mut router: Router, service: &Arc<Service>) -> Router {
    for page in PAGES {
        let filter = if page.method == "POST" { MethodFilter::POST } else { MethodFilter::GET };
        let (service, handler) = (service.clone(), page.handler);
        let does = move |params: RawPathParams, request: Request| async move {
            let params =
                params.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
            answer(Call { service, caller: Caller::anyone(), params, request }, handler).await
        };
        router = router.route(page.path, on(filter, does));
    }
    // They tell nothing of what is stored, and a page that refuses somebody needs them.
    let (service, logins) = (service.clone(), service.clone());
    let asset = move |params: RawPathParams, request: Request| async move {
        let params =
            params.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let call = Call { service, caller: Caller::anyone(), params, request };
        let refused = View::of(&call);
        assets::serve(call).await.unwrap_or_else(|problem| refusal::page(&refused, &problem))
    };
    login::mount(router.route(ASSETS, on(MethodFilter::GET, asset)), &logins)
}

/// Where the files are.
const ASSETS: &str = "/assets/{name}";

/// A page, or a page that says why not.
async fn answer(mut call: Call, handler: Handler) -> Response {
    let (view, service) = (View::of(&call), call.service.clone());
    let stranger = view.clone();
    let peer = call.request.extensions().get::<Peer>().copied();
    let headers = call.request.headers().clone();
    let known = match service.door.visitor(&headers, peer).await {
        Ok(caller) => Viewer::admit(&service, &caller).map(|viewer| (caller, viewer)),
        Err(why) => Err(why),
    };
    let (caller, viewer) = match known {
        Ok(known) => known,
        Err(why) => {
            let asked = why.status() == StatusCode::UNAUTHORIZED;
            let led = asked.then(|| login::lead(&stranger, &call.request)).flatten();
            return led.unwrap_or_else(|| refusal::page(&stranger, &why));
        }
    };
    call.caller = caller;
    let view = view.shown_to(viewer, &service).await;
    let refused = view.clone();
    let changes = call.request.method() == axum::http::Method::POST;
    let path = call.request.uri().path().to_owned();
    let target = call.params.first().map(|(_, value)| value.clone());
    let done = match may(&call, &view) {
        Ok(()) => handler(call, view).await,
        Err(why) => Err(why),
    };
    if changes && done.is_ok() {
        written_down(&service, &refused.viewer, &path, target).await;
    }
    done.unwrap_or_else(|problem| refusal::page(&refused, &problem))
}

/// Writes down what was done from a page, if it was anything.
async fn written_down(service: &Service, viewer: &Viewer, path: &str, target: Option<String>) {
    let mut deed = viewer.caller.deed();
    if deed.action.is_empty() {
        // What says nothing of itself goes by its address.
        let mut words = path.split('/').filter(|part| !part.is_empty());
        let (subject, verb) = (words.next(), words.next_back());
        let (Some(subject @ ("queues" | "schedules")), Some(verb)) = (subject, verb) else {
            return;
        };
        deed.action = format!("{subject}.{verb}");
    }
    deed.via = "dashboard".to_owned();
    deed.target = deed.target.or(target);
    deed.by = deed.by.or_else(|| Some(viewer.name.clone()));
    Audit::of(&service.mill).tell(deed).await;
}

/// Whether it may be asked at all. A form comes from a page of ours: every browser says
/// where from, and the guard has looked at what it said.
fn may(call: &Call, view: &View) -> Answer<()> {
    if call.request.method() != axum::http::Method::POST {
        return Ok(());
    }
    if !view.viewer.may_act {
        return Err(Problem::new(&READ_ONLY, "nothing can be changed from these pages"));
    }
    from_a_page(call)
}

/// Refuses a form that does not say which page it comes from.
fn from_a_page(call: &Call) -> Answer<()> {
    let headers = call.headers();
    if !headers.contains_key(header::ORIGIN) && !headers.contains_key("sec-fetch-site") {
        let why = "a form does not say which page it comes from; programs use /v1";
        return Err(Problem::new(&WRONG_ORIGIN, why));
    }
    Ok(())
}

/// Whether somebody who asks for a path that there is not would rather read a page.
pub(crate) fn wants_a_page(request: &Request) -> bool {
    let accepted = request.headers().get(header::ACCEPT).map(HeaderValue::as_bytes);
    !request.uri().path().starts_with("/v1")
        && accepted.is_some_and(|said| said.starts_with(b"text/html"))
}

/// What such a one is told, whoever they are.
pub(crate) fn refused(service: &Arc<Service>, request: Request, why: &Problem) -> Response {
    let caller = Caller::anyone();
    let call = Call { service: service.clone(), caller, params: Vec::new(), request };
    refusal::page(&View::of(&call), why)
}

/// Methods and paths, for who asks for what there is.
pub(crate) fn paths() -> impl Iterator<Item = (&'static str, &'static str)> {
    PAGES.iter().map(|page| (page.method, page.path)).chain([("GET", ASSETS)]).chain(login::PATHS)
}
