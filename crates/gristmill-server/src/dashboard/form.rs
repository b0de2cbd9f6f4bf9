//! A form that was sent from one of our pages.

use std::sync::Arc;

use super::fields::Fields;
use crate::body;
use crate::call::Call;
use crate::problem::{Answer, Problem, WRONG_TYPE};
use crate::service::Service;

/// What it says.
pub(crate) async fn read(call: Call) -> Answer<(Arc<Service>, Fields)> {
    let Call { service, request, .. } = call;
    let (parts, body) = request.into_parts();
    if body::media_type(&parts.headers) != "application/x-www-form-urlencoded" {
        return Err(Problem::new(&WRONG_TYPE, "this takes the form of its page; see /docs"));
    }
    let whole = body::read(&service, &parts.headers, body).await?;
    let fields = Fields::read(&whole.bytes);
    Ok((service, fields))
}
