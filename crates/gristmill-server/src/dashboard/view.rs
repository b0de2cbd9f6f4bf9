//! What a page knows of who asked for it and how.

use gristmill::Timestamp;

use super::fields::Fields;
use super::viewer::Viewer;
use crate::call::Call;
use crate::route::now;
use crate::service::Service;

/// One look at a page.
#[derive(Debug, Clone)]
pub(crate) struct View {
    /// The way from this page to the first one: `./`, `../`, and so on. No page knows
    /// below which prefix it is served.
    root: String,
    pub(crate) viewer: Viewer,
    /// What stands behind the question mark.
    pub(crate) query: Fields,
    /// The same, as it was written.
    pub(crate) asked: String,
    /// Only the part that changes is wanted.
    pub(crate) part: bool,
    /// When it is.
    pub(crate) now: Timestamp,
    /// Failed tasks, for the menu; nothing when the store does not say.
    pub(crate) failed: Option<u64>,
}

impl View {
    pub(crate) fn of(call: &Call) -> Self {
        let (uri, headers) = (call.request.uri(), call.headers());
        let depth = uri.path().matches('/').count().saturating_sub(1);
        let asked = uri.query().unwrap_or_default();
        View {
            root: if depth == 0 { "./".to_owned() } else { "../".repeat(depth) },
            viewer: Viewer::stranger(),
            query: Fields::read(asked.as_bytes()),
            asked: asked.to_owned(),
            part: headers.contains_key("hx-request"),
            now: now(),
            failed: None,
        }
    }

    /// The same for somebody who may look, with what the menu tells. A page about something
    /// else can be shown while the store is away.
    pub(crate) async fn shown_to(mut self, viewer: Viewer, service: &Service) -> Self {
        self.viewer = viewer;
        let stats = service.sampled.stats(service).await.ok();
        self.failed = stats.map(|stats| stats.iter().map(|one| one.failed).sum());
        self
    }

    /// The address of a page, seen from this one.
    pub(crate) fn href(&self, path: &str) -> String {
        format!("{}{path}", self.root)
    }

    /// The address of a page with a query, seen from this one.
    pub(crate) fn href_with(&self, path: &str, query: &str) -> String {
        if query.is_empty() { self.href(path) } else { format!("{}{path}?{query}", self.root) }
    }
}
