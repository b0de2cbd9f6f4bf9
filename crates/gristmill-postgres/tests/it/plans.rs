//! What a claim costs, by its plans: the claim's index, no sort, and as many
//! rows as it takes, whatever stands around them.

use std::sync::{Arc, Mutex};

use futures_util::future::poll_fn;
use gristmill_core::SettingsPatch;
use gristmill_postgres::tokio_postgres::{self, AsyncMessage, NoTls};
use serde_json::Value;

use crate::support::{database_within, declare, store};

/// A queue whose due tasks stand behind what may not cost anything.
const BACKLOG: &str = include_str!("backlog.sql");

/// Claims ten tasks and brings the plan of every statement within, as run.
async fn plans(url: &str, call: &str) -> Vec<Value> {
    let (client, mut connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    let heard: Arc<Mutex<Vec<String>>> = Arc::default();
    let ear = heard.clone();
    let driver = tokio::spawn(async move {
        while let Some(Ok(message)) = poll_fn(|cx| connection.poll_message(cx)).await {
            if let AsyncMessage::Notice(notice) = message {
                ear.lock().unwrap().push(notice.message().to_owned());
            }
        }
    });
    client
        .batch_execute(
            "LOAD 'auto_explain'; SET auto_explain.log_min_duration = 0;
             SET auto_explain.log_nested_statements = on; SET auto_explain.log_analyze = on;
             SET auto_explain.log_timing = off; SET auto_explain.log_format = json;
             SET auto_explain.log_level = notice; SET client_min_messages = notice",
        )
        .await
        .unwrap();
    let rows = client.query(call, &[]).await.unwrap();
    assert_eq!(rows.len(), 10, "{call}");
    drop(client);
    driver.await.unwrap();
    let texts = heard.lock().unwrap();
    let plans = texts.iter().filter_map(|text| text.split_once("plan:\n"));
    plans.map(|(_, plan)| serde_json::from_str(plan).expect("a plan")).collect()
}

/// Every node of a plan.
fn nodes<'a>(plan: &'a Value, found: &mut Vec<&'a Value>) {
    found.push(plan);
    for inner in plan.get("Plans").and_then(Value::as_array).into_iter().flatten() {
        nodes(inner, found);
    }
}

fn number(node: &Value, name: &str) -> f64 {
    node.get(name).and_then(Value::as_f64).unwrap_or(0.0)
}

#[tokio::test]
async fn a_claim_visits_what_it_takes() {
    let database = database_within().await;
    let store = store(&database.url()).await;
    for queue in ["plain", "sourced"] {
        declare(&store, queue, SettingsPatch::default()).await;
    }
    database.psql(BACKLOG).unwrap();
    for call in [
        "SELECT * FROM gristmill.claim('plain', 10)",
        "SELECT * FROM gristmill.claim('sourced', 10, source => 'mine')",
    ] {
        let plans = plans(&database.url(), call).await;
        let mut visited = 0.0;
        let mut used = false;
        for plan in &plans {
            let mut all = Vec::new();
            nodes(&plan["Plan"], &mut all);
            for node in all {
                if node.get("Relation Name").and_then(Value::as_str) != Some("task") {
                    continue;
                }
                let kind = node["Node Type"].as_str().unwrap_or_default();
                assert_ne!(kind, "Seq Scan", "{call}: {plan:#}");
                let rows = number(node, "Actual Rows") + number(node, "Rows Removed by Filter");
                visited += rows * number(node, "Actual Loops").max(1.0);
                let index = node.get("Index Name").and_then(Value::as_str);
                used |= matches!(index, Some("task_pick" | "task_source"));
            }
            let text = plan.to_string();
            let picks = text.contains("task_pick") || text.contains("task_source");
            assert!(!(picks && text.contains("\"Node Type\":\"Sort\"")), "a sort: {plan:#}");
        }
        assert!(used, "{call} uses its index");
        assert!(visited <= 100.0, "{call} visited {visited} rows for ten tasks");
    }
}
