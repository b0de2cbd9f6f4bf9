//! A page that says why something is not shown or not done, and what to do.

use axum::http::StatusCode;
use axum::response::Response;
use maud::html;

use super::layout::{self, Frame, Section};
use super::login;
use super::view::View;
use crate::problem::Problem;

pub(crate) fn page(view: &View, problem: &Problem) -> Response {
    let status = problem.status();
    // One that may be over in a moment is looked at again by itself.
    let frame = Frame::of(Section::Nowhere, problem.title());
    let frame = if status == StatusCode::SERVICE_UNAVAILABLE { frame } else { frame.still() };
    let body = html! {
        section.refusal role="alert" {
            p.kind { (status.as_u16()) " · " code { (problem.code()) } }
            h1 { (problem.title()) }
            p.detail {
                @if let Some(field) = problem.at_field() { strong { (field) } ": " }
                (problem.detail())
            }
            p.advice { (problem.advice()) }
            p {
                @if status == StatusCode::UNAUTHORIZED {
                    a href=(login::href(view, "", "")) { "Log in" } " · "
                }
                a href=(view.href("")) { "Back to the overview" }
            }
        }
    };
    layout::answer(view, status, &frame, &body)
}
