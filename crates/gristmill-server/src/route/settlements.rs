//! `POST /v1/settlements`: how attempts ended, each with its answer.

use axum::http::StatusCode;

use crate::call::{self, Call};
use crate::message::settle::{SettlementIn, SettlementOut};
use crate::problem::{Answer, Problem};

pub(crate) async fn settle(call: Call) -> Answer {
    let (service, asked) = call.json::<Vec<SettlementIn>>().await?;
    let most = service.store.limits().settlements;
    if asked.len() > most {
        let why = format!("{} settlements and {most} are allowed in a call", asked.len());
        return Err(Problem::new(&crate::problem::INVALID, why));
    }
    let queues = service.known.queues(&service).await?;
    let mut settlements = Vec::with_capacity(asked.len());
    for (at, one) in asked.into_iter().enumerate() {
        let meant = one.meant(&queues);
        settlements.push(meant.map_err(|problem| problem.within(&format!("[{at}]")))?);
    }
    if settlements.is_empty() {
        return call::json(StatusCode::OK, &Vec::<SettlementOut>::new());
    }
    let named: Vec<_> = settlements.iter().map(|one| one.id).collect();
    let answers = service.store.settle(settlements).await?;
    let each = named.into_iter().zip(answers);
    let answers: Vec<_> = each.map(|(id, answer)| SettlementOut::of(id, answer)).collect();
    call::json(StatusCode::OK, &answers)
}
