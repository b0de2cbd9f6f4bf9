//! What scripts of the pages ask for: the same as below `/v1`, for who has logged in. The
//! routes there take no cookie, so that no page of others could make a browser use one.

use super::view::View;
use crate::call::Call;
use crate::problem::Answer;
use crate::route::{events as events_route, stats};

/// `GET /live/events`: what happens.
pub(crate) async fn events(call: Call, _view: View) -> Answer {
    events_route::events(call).await
}

/// `GET /live/minutes`: the numbers of a chart.
pub(crate) async fn minutes(call: Call, _view: View) -> Answer {
    stats::minutes(call).await
}
