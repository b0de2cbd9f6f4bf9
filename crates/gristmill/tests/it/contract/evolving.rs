//! A contract that changes: what the store keeps, and what it refuses.

use gristmill::contract::{QueueContract, register};
use gristmill::{Mill, Payload};

use crate::mills;

fn contract(fields: &str) -> QueueContract {
    let mut text = String::from("id: 7\nname: letters\nfields:\n");
    for field in fields.split_whitespace() {
        let (name, kind) = field.split_once(':').unwrap();
        text += &format!("  - {{name: {name}, type: \"{kind}\"}}\n");
    }
    QueueContract::from_text(&text).unwrap()
}

async fn stored(mill: &Mill) -> String {
    let queues = mill.inspect().queues().await.unwrap();
    let queue = queues.into_iter().find(|queue| queue.name.as_str() == "letters").unwrap();
    queue.contract.unwrap()
}

#[tokio::test]
async fn a_breaking_contract_is_refused_while_tasks_stand() {
    for (mill, _folder) in mills().await {
        let first = contract("to:string");
        assert!(register(&mill, &first, false).await.unwrap().declared.created);
        mill.put_raw("letters", Payload::json(r#"{"to":"ada"}"#)).await.unwrap();

        let wider = contract("to:string cc:string?");
        let registered = register(&mill, &wider, false).await.unwrap();
        assert_eq!(registered.changes.len(), 1);
        assert_eq!(stored(&mill).await, wider.text());

        let broken = contract("to:int64");
        let error = register(&mill, &broken, false).await.unwrap_err().to_string();
        assert!(error.contains("1 of its tasks stand"), "{error}");
        assert!(error.contains("field 'to' was string and is int64"), "{error}");
        assert_eq!(stored(&mill).await, wider.text());

        register(&mill, &broken, true).await.unwrap();
        let kept = QueueContract::from_text(&stored(&mill).await).unwrap();
        assert_eq!(kept.fields, broken.fields);
    }
}

#[tokio::test]
async fn a_breaking_contract_is_taken_when_nothing_stands() {
    for (mill, _folder) in mills().await {
        register(&mill, &contract("to:string"), false).await.unwrap();
        register(&mill, &contract("to:int64 from:string"), false).await.unwrap();
        let other = QueueContract { number: 8, ..contract("to:string") };
        let error = register(&mill, &other, true).await.unwrap_err().to_string();
        assert!(error.contains("a queue keeps its number"), "{error}");
    }
}

#[tokio::test]
async fn what_one_step_cannot_break_two_cannot_either() {
    for (mill, _folder) in mills().await {
        register(&mill, &contract("a:string b:int64?"), false).await.unwrap();
        mill.put_raw("letters", Payload::json(r#"{"a":"x","b":5}"#)).await.unwrap();
        register(&mill, &contract("a:string"), false).await.unwrap();
        register(&mill, &contract("a:string c:bool?"), false).await.unwrap();
        let error = register(&mill, &contract("a:string b:string?"), false).await.unwrap_err();
        let said = error.to_string();
        assert!(said.contains("field 'b' was int64? before it was taken out"), "{said}");
        // Of its own type it may come back; then it is a field like any other.
        register(&mill, &contract("a:string b:int64?"), false).await.unwrap();
        assert_eq!(stored(&mill).await.matches("name: b").count(), 1);
    }
}
