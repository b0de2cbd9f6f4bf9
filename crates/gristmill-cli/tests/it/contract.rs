//! Contracts from the shell: checked, compared, generated, registered, and
//! what they do to puts, shows, handlers and the configuration.

use serde_json::{Value, json};

use crate::place::Place;

const CONTRACT: &str = "
queues:
  - id: 1
    name: emails
    fields:
      - {name: to, type: string}
      - {name: user_id, type: int64}
      - {name: parts, type: \"[][]byte?\"}
    settings: {max_attempts: unlimited}
  - id: 2
    name: bills
    fields: [{name: total, type: float64}]
";

fn place() -> Place {
    let place = Place::new();
    place.write("queues.yaml", CONTRACT);
    place
}

fn registered() -> Place {
    let place = place();
    place.ok(&["contract", "register", "queues.yaml"]);
    place
}

#[test]
fn a_contract_is_checked() {
    let place = place();
    let said = place.ok(&["contract", "check", "queues.yaml"]);
    assert_eq!(said.trim(), "queues.yaml is fine: 2 queues with 4 fields");
    place.write("broken.yaml", CONTRACT.replace("string", "strnig").replace("id: 2", "id: 1"));
    let answer = place.run(&["contract", "check", "broken.yaml"]);
    assert_eq!(answer.code, 2);
    for part in ["broken.yaml:6:26: there is no type 'strnig'", "id 1 is taken", "^^^^^^"] {
        assert!(answer.stderr.contains(part), "{}", answer.stderr);
    }
    assert!(
        place.run(&["contract", "check", "none.yaml"]).stderr.contains("no contract none.yaml")
    );
}

#[test]
fn two_contracts_are_compared() {
    let place = place();
    place.write(
        "wider.yaml",
        CONTRACT.replace("float64}", "float64}, {name: due, type: timestamp?}"),
    );
    let said = place.ok(&["contract", "check", "queues.yaml", "wider.yaml"]);
    assert_eq!(said.trim(), "fine: bills: field 'due' (timestamp?) is new");
    place.write("other.yaml", CONTRACT.replace("type: int64", "type: string"));
    let answer = place.run(&["contract", "check", "queues.yaml", "other.yaml", "--json"]);
    assert_eq!(answer.code, 3);
    let changes: Value = serde_json::from_str(&answer.stdout).unwrap();
    assert_eq!(changes[0]["queue"], "emails");
    assert_eq!(changes[0]["weight"], "breaking");
}

#[test]
fn json_is_taken_by_the_contract_and_shown_as_json() {
    let place = registered();
    place.ok(&["put", "emails", r#"{"to":"ada","user_id":9007199254740993,"parts":["aGk="]}"#]);
    let task: Value = serde_json::from_str(&place.ok(&["show", "1", "--json"])).unwrap();
    assert_eq!(task["encoding"], "msgpack");
    let wanted = json!({"to": "ada", "user_id": 9_007_199_254_740_993_i64, "parts": ["aGk="]});
    assert_eq!(task["payload"], wanted);
    assert!(place.ok(&["list"]).contains(r#"{"to":"ada","user_id":9007199254740993"#));
    assert!(place.ok(&["show", "1"]).contains(r#"payload   {"to":"ada""#));
    // Kept as JSON where that is asked for, and checked all the same.
    place.ok(&["put", "bills", r#"{ "total": 5 }"#, "--encoding", "json"]);
    let task: Value = serde_json::from_str(&place.ok(&["show", "2", "--json"])).unwrap();
    assert_eq!((&task["encoding"], &task["payload"]), (&json!("json"), &json!({"total": 5})));
}

#[test]
fn what_does_not_fit_is_refused_at_the_door() {
    let place = registered();
    for (payload, said) in [
        (r#"{"to":"ada"}"#, "user_id: is missing"),
        (r#"{"to":"ada","user_id":"1"}"#, "user_id: a string was given and an int64 is wanted"),
        (r#"{"to":"ada","user_id":1,"parts":["aGk=",7]}"#, "parts[1]: a number was given"),
        (r#"{"to":"ada","user_id":1,"userid":2}"#, "userid: there is no such field; did you mean"),
        ("hello", "emails wants JSON with its fields"),
    ] {
        let answer = place.run(&["put", "emails", payload]);
        assert_eq!(answer.code, 3, "{answer:?}");
        assert!(answer.stderr.contains(said), "{answer:?}");
        let answer = place.run(&["put", "emails", payload, "--json"]);
        assert_eq!(
            answer.stdout.trim(),
            r#"{"outcome":"refused","id":null,"reason":"does_not_fit"}"#
        );
    }
    let lines = "{\"total\":1}\n{\"total\":\"x\"}\n{\"total\":2.5}\n";
    place.write("bills.ndjson", lines);
    let answer = place.run(&["put", "bills", "--from", "bills.ndjson", "--json"]);
    let outcomes: Vec<Value> = answer
        .stdout
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["outcome"].clone())
        .collect();
    assert_eq!(outcomes, ["enqueued", "refused", "enqueued"]);
}

#[test]
fn a_program_gets_json() {
    let place = registered();
    place.ok(&["put", "emails", r#"{"to":"ada","user_id":1}"#]);
    let exec = "cat > got.json; echo $GRISTMILL_TASK_ENCODING > encoding";
    place.ok(&["work", "emails", "--exec", exec, "--drain"]);
    let read = |name: &str| std::fs::read_to_string(place.path(name)).unwrap();
    assert_eq!(read("got.json"), r#"{"to":"ada","user_id":1}"#);
    assert_eq!(read("encoding").trim(), "json");
}

#[test]
fn a_breaking_contract_needs_force_while_tasks_stand() {
    let place = registered();
    place.ok(&["put", "bills", r#"{"total":1}"#]);
    place.write("queues.yaml", CONTRACT.replace("type: float64", "type: string"));
    let answer = place.run(&["contract", "register", "queues.yaml"]);
    assert_eq!(answer.code, 3);
    assert!(answer.stderr.contains("1 of its tasks stand"), "{answer:?}");
    place.ok(&["contract", "register", "queues.yaml", "--force"]);
    place.ok(&["put", "bills", r#"{"total":"1"}"#]);
}

#[test]
fn a_schema_is_printed() {
    let place = place();
    let said = place.ok(&["contract", "schema", "queues.yaml", "--queue", "emails"]);
    let schema: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(schema["required"], json!(["to", "user_id"]));
    assert_eq!(schema["properties"]["user_id"]["type"], "integer");
    assert_eq!(schema["additionalProperties"], json!(false));
    let all: Value =
        serde_json::from_str(&place.ok(&["contract", "schema", "queues.yaml"])).unwrap();
    assert_eq!(all["$defs"]["bills"]["title"], "bills");
    let answer = place.run(&["contract", "schema", "queues.yaml", "--queue", "email"]);
    assert!(answer.stderr.contains("did you mean 'emails'?"), "{answer:?}");
    // The hint of a refused put leads somewhere: to the schema that the store keeps.
    place.ok(&["contract", "register", "queues.yaml"]);
    let answer = place.run(&["put", "emails", "{}"]);
    assert!(answer.stderr.contains("'gristmill contract schema' shows"), "{answer:?}");
    assert_eq!(place.json(&["contract", "schema", "--queue", "emails"]), schema);
    place.ok(&["--store", "sqlite://none.db", "queue", "add", "plain"]);
    let answer = place.run(&["--store", "sqlite://none.db", "contract", "schema"]);
    assert!(answer.code == 3 && answer.stderr.contains("name a file"), "{answer:?}");
}

#[test]
fn code_is_generated_once() {
    let place = place();
    assert_eq!(place.run(&["generate", "--out", "src", "--check"]).code, 3);
    assert!(place.ok(&["generate", "--out", "src"]).contains("src/queues.rs is written"));
    let code = std::fs::read_to_string(place.path("src/queues.rs")).unwrap();
    assert!(code.contains("from queues.yaml") && code.contains("pub struct Emails {"), "{code}");
    assert!(place.ok(&["generate", "--out", "src"]).contains("up to date"));
    place.ok(&["generate", "--out", "src", "--check"]);
}

#[test]
fn a_configuration_names_contracts_and_its_payloads_have_to_fit() {
    let place = place();
    place.write(
        "gristmill.yaml",
        "contracts: [queues.yaml]\nqueues:\n  - {name: emails, exec: cat}\nseed:\n  \
         - {queue: emails, id: a, payload: {to: ada, user_id: many}}\n  \
         - {queue: bills, id: b, payload: {totel: 1}}\n",
    );
    let answer = place.run(&["config", "check"]);
    for part in [
        "gristmill.yaml:5:56: user_id: a string was given and an int64 is wanted",
        "gristmill.yaml:6:37: totel: there is no such field; did you mean 'total'?",
        "total: is missing",
    ] {
        assert!(answer.stderr.contains(part), "{}", answer.stderr);
    }
    place.write("queues.yaml", CONTRACT.replace("int64", "int46"));
    let answer = place.run(&["config", "check"]);
    assert!(answer.stderr.contains("queues.yaml:7:31: there is no type 'int46'"), "{answer:?}");
    place.write("gristmill.yaml", "contracts: [quues.yaml]\n");
    let answer = place.run(&["config", "check"]);
    assert!(answer.stderr.contains("gristmill.yaml:1:13: there is no contract quues.yaml"));
}

#[test]
fn a_payload_that_no_longer_reads_goes_to_no_handler() {
    let place = Place::new();
    let contract = |kind: &str| {
        let fields = format!("[{{name: a, type: string}}, {{name: b, type: {kind}}}]");
        format!(
            "queues:\n  - {{id: 1, name: o, settings: {{max_attempts: 1}}, fields: {fields}}}\n"
        )
    };
    place.write("old.yaml", contract("int64?"));
    place.ok(&["contract", "register", "old.yaml"]);
    place.ok(&["put", "o", "{\"a\":\"x\",\"b\":5}"]);
    place.write("new.yaml", contract("string?"));
    place.ok(&["contract", "register", "new.yaml", "--force"]);
    place.ok(&["work", "o", "--drain", "--exec", "touch ran"]);
    assert!(!place.path("ran").exists(), "it would have got bytes where it always got JSON");
    let error = place.json(&["failed"])[0]["error"].as_str().unwrap().to_owned();
    assert!(error.contains("does not fit the contract"), "{error}");
}
