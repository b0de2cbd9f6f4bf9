//! The routes: one table, from which the router and the published document are made.

use std::pin::Pin;
use std::sync::Arc;

use axum::Router;
use axum::extract::{RawPathParams, Request};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, MethodRouter, on};

use crate::access::{Caller, Peer, Rule, Scope};
use crate::audit::Audit;
use crate::call::Call;
use crate::dashboard;
use crate::openapi;
use crate::problem::{Answer, NO_ROUTE, Problem, WRONG_METHOD};
use crate::route::{
    about, audit, claims, events, extensions, health, operate, port, put, queues, schedules,
    settlements, stats, tasks,
};
use crate::service::Service;

/// What a route does.
type Handler = fn(Call) -> Pin<Box<dyn Future<Output = Answer> + Send>>;

/// One route, and what the document says of it.
pub(crate) struct Route {
    pub(crate) method: &'static str,
    pub(crate) path: &'static str,
    /// Who may use it.
    pub(crate) rule: Rule,
    pub(crate) summary: &'static str,
    /// Names in `schemas.json`: what goes in, and what comes out with which status.
    pub(crate) body: Option<&'static str>,
    pub(crate) answers: &'static [(u16, &'static str)],
    /// What may stand behind the question mark: name, and what it is.
    pub(crate) query: &'static [(&'static str, &'static str)],
    /// The codes of problems that are this route's own.
    pub(crate) problems: &'static [u16],
    handler: Handler,
}

impl Route {
    /// Whether it is what operators do: each is written down.
    fn is_a_deed(&self) -> bool {
        self.rule == Rule::Needs(Scope::Admin) && self.method != "GET"
    }

    /// Whether it is one of the store's verbs: those that operators do say themselves what
    /// they are called.
    fn is_of_port(&self) -> bool {
        self.path.starts_with("/v1/port/")
    }

    /// What it is called in the audit log: `queues.pause`, `tasks.retry`,
    /// `schedules.declare`.
    fn action(&self) -> String {
        let mut words = self.path.split('/').filter(|part| !part.is_empty() && *part != "v1");
        let subject = words.next().unwrap_or_default();
        let last = words.next_back().filter(|part| !part.starts_with('{'));
        let verb = match (self.method, last) {
            (_, Some(verb)) => verb,
            ("PUT", None) => "declare",
            ("PATCH", None) => "change",
            ("DELETE", None) => "remove",
            (_, None) => "do",
        };
        format!("{subject}.{verb}")
    }
}

macro_rules! routes {
    ($( $method:ident $path:literal [$rule:ident] $does:path, $summary:literal
        $(, body $body:literal)? $(, query [$($name:literal: $what:literal),+])?
        , answers [$($status:literal $schema:literal),+]
        $(, problems [$($problem:literal),+])? ; )+) => {
        /// All of them.
        pub(crate) const ROUTES: &[Route] = &[$( Route {
            method: stringify!($method),
            path: $path,
            rule: routes!(@rule $rule),
            summary: $summary,
            body: routes!(@body $($body)?),
            answers: &[$(($status, $schema)),+],
            query: &[$($(($name, $what)),+)?],
            problems: &[$($($problem),+)?],
            handler: |call| Box::pin($does(call)),
        } ),+];
    };
    (@rule open) => { Rule::Open };
    (@rule any) => { Rule::Any };
    (@rule put) => { Rule::Needs(Scope::Put) };
    (@rule work) => { Rule::Needs(Scope::Work) };
    (@rule read) => { Rule::Needs(Scope::Read) };
    (@rule admin) => { Rule::Needs(Scope::Admin) };
    (@rule all_read) => { Rule::Whole(Scope::Read) };
    (@rule all_admin) => { Rule::Whole(Scope::Admin) };
    (@body) => { None };
    (@body $body:literal) => { Some($body) };
}

routes! {
    GET "/v1" [any] about::about, "Version, limits, capabilities", answers [200 "About"];
    POST "/v1/queues/{queue}/tasks" [put] put::put, "Put a task, a list of tasks, or a stream of them (application/x-ndjson)",
        body "Tasks", query ["atomic": "boolean"], answers [201 "PutAnswer", 200 "PutAnswers"], problems [404, 409, 413];
    POST "/v1/claims" [work] claims::claim, "Claim tasks of one of the queues, by rotation; waits for work", body "Claim",
        answers [200 "Claimed"], problems [404, 409];
    POST "/v1/claims/{token}/extend" [work] extensions::extend_one, "Prolong a lease", body "Extend", answers [200 "ExtensionAnswer"];
    POST "/v1/extensions" [work] extensions::extend_all, "Prolong leases", body "Extensions", answers [200 "ExtensionAnswers"];
    POST "/v1/settlements" [work] settlements::settle, "Say how attempts ended", body "Settlements", answers [200 "SettlementAnswers"],
        problems [404, 409, 413];
    GET "/v1/tasks" [read] tasks::list, "List tasks, a page at a time",
        query ["queue": "name", "state": "state", "key": "string", "group": "string", "source": "string",
               "error": "string", "payload": "string", "since": "since", "order": "order", "cursor": "id", "limit": "integer"],
        answers [200 "TaskPage"], problems [404];
    GET "/v1/tasks/{id}" [read] tasks::get, "Look at a task, or wait for its end", query ["wait": "wait"], answers [200 "Task"], problems [404];
    POST "/v1/tasks/retry" [admin] operate::retry, "Run failed tasks again", body "Retry", answers [200 "OperationAnswer", 202 "StoredOperation"], problems [404, 409];
    POST "/v1/tasks/discard" [admin] operate::discard, "Delete failed tasks", body "Operation", answers [200 "OperationAnswer", 202 "StoredOperation"], problems [404, 409];
    POST "/v1/tasks/cancel" [admin] operate::cancel, "Delete waiting tasks, stop running ones", body "CancelOperation", answers [200 "OperationAnswer", 202 "StoredOperation"], problems [404, 409];
    POST "/v1/tasks/resolve" [admin] operate::resolve, "Take failed tasks off the list: they were dealt with by hand", body "Operation",
        answers [200 "OperationAnswer", 202 "StoredOperation"], problems [404, 409];
    POST "/v1/find" [read] tasks::find, "Which of these keys stand, and where", body "Find", answers [200 "Found"], problems [404];
    GET "/v1/operations" [read] operate::list, "What is done to all tasks that match a filter, the newest first", answers [200 "StoredOperations"];
    GET "/v1/operations/{id}" [read] operate::get, "One operation", answers [200 "StoredOperation"], problems [404];
    POST "/v1/operations/{id}/stop" [admin] operate::stop, "Have an operation end after the step it is at", body "By", answers [200 "StoredOperation"], problems [404];
    GET "/v1/queues" [read] queues::list, "All queues", answers [200 "Queues"];
    GET "/v1/queues/{queue}" [read] queues::get, "One queue", answers [200 "Queue"], problems [404];
    PUT "/v1/queues/{queue}" [admin] queues::declare, "Declare a queue", body "QueueSettings", answers [201 "Queue", 200 "Queue"];
    PATCH "/v1/queues/{queue}" [admin] queues::change, "Change settings as an operator, until reset", body "QueueSettings", answers [200 "Queue"], problems [404];
    POST "/v1/queues/{queue}/pause" [admin] queues::pause, "Stop claims; puts go on", body "By", answers [200 "Queue"], problems [404];
    POST "/v1/queues/{queue}/resume" [admin] queues::resume, "Let claims go on", body "By", answers [200 "Queue"], problems [404];
    POST "/v1/queues/{queue}/reset" [admin] queues::reset, "Take the operator's changes back", body "By", answers [200 "Queue"], problems [404];
    GET "/v1/schedules" [read] schedules::list, "All schedules", answers [200 "Schedules"];
    GET "/v1/schedules/{schedule}" [read] schedules::get, "One schedule", answers [200 "Schedule"], problems [404];
    PUT "/v1/schedules/{schedule}" [admin] schedules::declare, "Declare a schedule", body "NewSchedule", answers [201 "Schedule", 200 "Schedule"],
        problems [404];
    PATCH "/v1/schedules/{schedule}" [admin] schedules::change, "Change what is said of a schedule", body "ScheduleChange", answers [200 "Schedule"],
        problems [404];
    DELETE "/v1/schedules/{schedule}" [admin] schedules::remove, "Remove a schedule; its tasks stay", answers [200 "Removed"], problems [404];
    POST "/v1/schedules/{schedule}/pause" [admin] schedules::pause, "Stop a schedule", body "By", answers [200 "Schedule"], problems [404];
    POST "/v1/schedules/{schedule}/resume" [admin] schedules::resume, "Let a schedule go on", body "By", answers [200 "Schedule"], problems [404];
    POST "/v1/schedules/{schedule}/fire" [admin] schedules::fire, "Fire a schedule by hand", body "By", answers [200 "Fired"], problems [404, 409];
    GET "/v1/workers" [read] stats::workers, "Who works, heard of lately", answers [200 "Workers"];
    GET "/v1/stats" [read] stats::stats, "The numbers of queues", query ["queue": "name"], answers [200 "Stats"], problems [404];
    GET "/v1/minutes" [read] stats::minutes, "The last minutes of a queue, or of all together", query ["queue": "name", "back": "back", "step": "step"], answers [200 "Minutes"], problems [404];
    GET "/v1/audit" [admin] audit::list, "What operators did, the newest first", query ["after": "string", "limit": "integer"],
        answers [200 "AuditLines"];
    GET "/v1/events" [read] events::events, "What happens, as server-sent events", answers [200 "text/event-stream"];
    GET "/v1/port" [any] port::about, "What gristmill's own clients ask first", answers [200 "PortValue"];
    POST "/v1/port/put" [put] port::put, "The store's verb put, for gristmill's own clients", body "PortValue", answers [200 "PortValue"], problems [404, 409, 500];
    POST "/v1/port/claim" [work] port::claim, "The store's verb claim, for gristmill's own clients", body "PortValue", answers [200 "PortValue"], problems [404, 409, 500];
    POST "/v1/port/settle" [work] port::settle, "The store's verb settle, for gristmill's own clients", body "PortValue", answers [200 "PortValue"], problems [404, 409, 500];
    POST "/v1/port/extend" [work] port::extend, "The store's verb extend, for gristmill's own clients", body "PortValue", answers [200 "PortValue"], problems [404, 409, 500];
    POST "/v1/port/checkpoint" [work] port::checkpoint, "The store's verb checkpoint, for gristmill's own clients", body "PortValue", answers [200 "PortValue"], problems [404, 409, 500];
    POST "/v1/port/endings" [all_read] port::endings, "The store's verb endings, for gristmill's own clients", body "PortValue", answers [200 "PortValue"], problems [404, 409, 500];
    POST "/v1/port/wait_ended" [all_read] port::wait_ended, "The store's verb wait_ended, for gristmill's own clients", body "PortValue", answers [200 "PortValue"], problems [404, 409, 500];
    POST "/v1/port/open_under" [work] port::open_under, "The store's verb open_under, for gristmill's own clients", body "PortValue", answers [200 "PortValue"], problems [404, 409, 500];
    POST "/v1/port/reclaim" [work] port::reclaim, "The store's verb reclaim, for gristmill's own clients", body "PortValue", answers [200 "PortValue"], problems [404, 409, 500];
    POST "/v1/port/sweep" [work] port::sweep, "The store's verb sweep, for gristmill's own clients", body "PortValue", answers [200 "PortValue"], problems [404, 409, 500];
    POST "/v1/port/reach" [work] port::reach, "The store's verb reach, for gristmill's own clients", body "PortValue", answers [200 "PortValue"], problems [404, 409, 500];
    POST "/v1/port/wait" [work] port::wait, "The store's verb wait, for gristmill's own clients", body "PortValue", answers [200 "PortValue"], problems [404, 409, 500];
    POST "/v1/port/find" [read] port::find, "The store's verb find, for gristmill's own clients", body "PortValue", answers [200 "PortValue"], problems [404, 409, 500];
    POST "/v1/port/get" [read] port::get, "The store's verb get, for gristmill's own clients", body "PortValue", answers [200 "PortValue"], problems [404, 409, 500];
    POST "/v1/port/list" [read] port::list, "The store's verb list, for gristmill's own clients", body "PortValue", answers [200 "PortValue"], problems [404, 409, 500];
    POST "/v1/port/operate" [all_admin] port::operate, "The store's verb operate, for gristmill's own clients", body "PortValue", answers [200 "PortValue"], problems [404, 409, 500];
    POST "/v1/port/import" [all_admin] port::import, "The store's verb import, for gristmill's own clients", body "PortValue", answers [200 "PortValue"], problems [404, 409, 500];
    POST "/v1/port/declare_queue" [all_admin] port::declare_queue, "The store's verb declare_queue, for gristmill's own clients", body "PortValue", answers [200 "PortValue"], problems [404, 409, 500];
    POST "/v1/port/override_queue" [all_admin] port::override_queue, "The store's verb override_queue, for gristmill's own clients", body "PortValue", answers [200 "PortValue"], problems [404, 409, 500];
    POST "/v1/port/reset_queue" [all_admin] port::reset_queue, "The store's verb reset_queue, for gristmill's own clients", body "PortValue", answers [200 "PortValue"], problems [404, 409, 500];
    POST "/v1/port/pause_queue" [all_admin] port::pause_queue, "The store's verb pause_queue, for gristmill's own clients", body "PortValue", answers [200 "PortValue"], problems [404, 409, 500];
    POST "/v1/port/register_contract" [all_admin] port::register_contract, "The store's verb register_contract, for gristmill's own clients", body "PortValue", answers [200 "PortValue"], problems [404, 409, 500];
    POST "/v1/port/queues" [work] port::queues, "The store's verb queues, for gristmill's own clients", body "PortValue", answers [200 "PortValue"], problems [404, 409, 500];
    POST "/v1/port/stats" [read] port::stats, "The store's verb stats, for gristmill's own clients", body "PortValue", answers [200 "PortValue"], problems [404, 409, 500];
    POST "/v1/port/minutes" [read] port::minutes, "The store's verb minutes, for gristmill's own clients", body "PortValue", answers [200 "PortValue"], problems [404, 409, 500];
    POST "/v1/port/declare_schedule" [all_admin] port::declare_schedule, "The store's verb declare_schedule, for gristmill's own clients", body "PortValue", answers [200 "PortValue"], problems [404, 409, 500];
    POST "/v1/port/schedules" [read] port::schedules, "The store's verb schedules, for gristmill's own clients", body "PortValue", answers [200 "PortValue"], problems [404, 409, 500];
    POST "/v1/port/remove_schedule" [all_admin] port::remove_schedule, "The store's verb remove_schedule, for gristmill's own clients", body "PortValue", answers [200 "PortValue"], problems [404, 409, 500];
    POST "/v1/port/pause_schedule" [all_admin] port::pause_schedule, "The store's verb pause_schedule, for gristmill's own clients", body "PortValue", answers [200 "PortValue"], problems [404, 409, 500];
    POST "/v1/port/fire" [all_admin] port::fire, "The store's verb fire, for gristmill's own clients", body "PortValue", answers [200 "PortValue"], problems [404, 409, 500];
    POST "/v1/port/document" [work] port::document, "The store's verb document, for gristmill's own clients", body "PortValue", answers [200 "PortValue"], problems [404, 409, 500];
    POST "/v1/port/documents" [all_read] port::documents, "The store's verb documents, for gristmill's own clients", body "PortValue", answers [200 "PortValue"], problems [404, 409, 500];
    POST "/v1/port/save_document" [work] port::save_document, "The store's verb save_document, for gristmill's own clients", body "PortValue", answers [200 "PortValue"], problems [404, 409, 500];
    POST "/v1/port/diagnose" [all_admin] port::diagnose, "The store's verb diagnose, for gristmill's own clients", body "PortValue", answers [200 "PortValue"], problems [404, 409, 500];
    GET "/livez" [open] health::livez, "Whether the process answers", answers [200 "Live"];
    GET "/readyz" [open] health::readyz, "Whether the store answers", answers [200 "Ready"];
    GET "/metrics" [read] health::metrics, "Numbers for Prometheus", answers [200 "text/plain"];
    GET "/openapi.json" [open] openapi::document, "This document", answers [200 "Any"];
    GET "/docs" [open] openapi::page, "This document, for people", answers [200 "text/html"];
    GET "/docs/style.css" [open] openapi::style, "How the page looks", answers [200 "text/css"];
}

/// What is served where only the process is watched.
const WATCHED: &[&str] = &["/livez", "/readyz", "/metrics"];

/// The router over a service.
pub(crate) fn router(service: Arc<Service>, watch_only: bool) -> Router {
    let mut router = Router::new();
    for route in ROUTES.iter().filter(|route| !watch_only || WATCHED.contains(&route.path)) {
        let filter = match route.method {
            "POST" => MethodFilter::POST,
            "PUT" => MethodFilter::PUT,
            "PATCH" => MethodFilter::PATCH,
            "DELETE" => MethodFilter::DELETE,
            _ => MethodFilter::GET,
        };
        router = router.route(route.path, served(service.clone(), filter, route));
    }
    if watch_only {
        return router.fallback(no_route).method_not_allowed_fallback(wrong_method);
    }
    let router = dashboard::mount(router, &service);
    let fallback = move |request: Request| async move {
        let why = unknown(&request);
        if dashboard::wants_a_page(&request) {
            return dashboard::refused(&service, request, &why);
        }
        (*why).into_response()
    };
    router.fallback(fallback).method_not_allowed_fallback(wrong_method)
}

fn served(service: Arc<Service>, filter: MethodFilter, route: &'static Route) -> MethodRouter {
    on(filter, move |params: RawPathParams, request: Request| async move {
        let params: Vec<(String, String)> =
            params.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let peer = request.extensions().get::<Peer>().copied();
        let caller = match admit(&service, route.rule, request.headers(), peer).await {
            Ok(caller) => caller,
            Err(problem) => return (*problem).into_response(),
        };
        let limited = caller.is_limited();
        let is_told = route.is_a_deed() || route.is_of_port();
        let deed = is_told.then(|| (service.clone(), caller.clone()));
        let target = params.first().map(|(_, value)| value.clone());
        let call = Call { service, caller, params, request };
        let answer = match call.expect_path(route.rule) {
            Ok(()) => (route.handler)(call).await,
            Err(problem) => Err(problem),
        };
        if let (true, Some((service, caller))) = (answer.is_ok(), deed) {
            let mut deed = caller.deed();
            if route.is_of_port() {
                deed.via = "port".to_owned();
            } else {
                deed.action = route.action();
                deed.via = "http".to_owned();
                if route.path.starts_with("/v1/queues/") {
                    deed.queue.clone_from(&target);
                }
                deed.target = deed.target.or(target);
            }
            if !deed.action.is_empty() {
                Audit::of(&service.mill).tell(deed).await;
            }
        }
        answer.unwrap_or_else(|problem| {
            let problem = if limited { problem.without_suggestion() } else { problem };
            (*problem).into_response()
        })
    })
}

/// Who calls, if they may use this route at all. Before anything of the body is read.
async fn admit(
    service: &Service,
    rule: Rule,
    headers: &HeaderMap,
    peer: Option<Peer>,
) -> Answer<Caller> {
    if rule == Rule::Open {
        return Ok(Caller::anyone());
    }
    let caller = service.door.caller(headers, peer).await?;
    rule.check(&caller)?;
    Ok(caller)
}

async fn no_route(request: Request) -> Response {
    (*unknown(&request)).into_response()
}

fn unknown(request: &Request) -> Box<Problem> {
    let path: String = request.uri().path().chars().take(200).collect();
    Problem::new(&NO_ROUTE, format!("there is nothing at {path}"))
}

async fn wrong_method(method: Method, request: Request) -> Response {
    // OPTIONS tells what there is; no other site's page is let in by it.
    let allowed: Vec<&str> = allowed(request.uri().path());
    let mut response = if method == Method::OPTIONS {
        StatusCode::NO_CONTENT.into_response()
    } else {
        let why = format!("{method} is not possible here; {} is", allowed.join(", "));
        Problem::new(&WRONG_METHOD, why).into_response()
    };
    if let Ok(allowed) = allowed.join(", ").parse() {
        response.headers_mut().insert(header::ALLOW, allowed);
    }
    response
}

/// The methods of a path.
fn allowed(path: &str) -> Vec<&'static str> {
    let fits = |known: &str| {
        let (mut known, mut asked) = (known.split('/'), path.split('/'));
        loop {
            match (known.next(), asked.next()) {
                (None, None) => return true,
                (Some(known), Some(asked)) if known == asked || known.starts_with('{') => {}
                _ => return false,
            }
        }
    };
    let routes = ROUTES.iter().map(|route| (route.method, route.path));
    let all: Vec<_> = routes.chain(dashboard::paths()).collect();
    let exact = all.iter().any(|(_, known)| *known == path);
    let meant = all.into_iter().filter(|(_, known)| !exact || *known == path);
    meant.filter(|(_, known)| fits(known)).map(|(method, _)| method).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_down_has_a_name() {
        let named: Vec<String> =
            ROUTES.iter().filter(|route| route.is_a_deed()).map(Route::action).collect();
        let mut meant = vec![
            "tasks.retry",
            "tasks.discard",
            "tasks.cancel",
            "tasks.resolve",
            "operations.stop",
            "queues.declare",
            "queues.change",
            "queues.pause",
            "queues.resume",
            "queues.reset",
            "schedules.declare",
            "schedules.change",
            "schedules.remove",
            "schedules.pause",
            "schedules.resume",
            "schedules.fire",
        ];
        let mut named: Vec<&str> = named.iter().map(String::as_str).collect();
        named.sort_unstable();
        meant.sort_unstable();
        assert_eq!(named, meant);
    }

    #[test]
    fn a_path_knows_its_methods() {
        assert_eq!(allowed("/v1/queues/emails"), ["GET", "PUT", "PATCH"]);
        assert_eq!(allowed("/v1/queues/emails/tasks"), ["POST"]);
        assert_eq!(allowed("/v1/tasks/retry"), ["POST"], "no task has this id");
        assert!(allowed("/v2").is_empty());
    }
}
