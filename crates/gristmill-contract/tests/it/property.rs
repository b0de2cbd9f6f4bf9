//! Any value of any contract survives the way to a payload and back, and any
//! contract its own text.

use gristmill_contract::{Field, FieldType, QueueContract, Scalar, view};
use gristmill_core::{QueueName, SettingsPatch, Timestamp};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::sample::{every_type, hard_value};

fn scalar_value(scalar: Scalar) -> BoxedStrategy<Value> {
    match scalar {
        Scalar::Int | Scalar::Int64 => prop_oneof![
            any::<i64>(),
            any::<i16>().prop_map(i64::from),
            Just(i64::MIN),
            Just(i64::MAX),
        ]
        .prop_map(Value::from)
        .boxed(),
        Scalar::String => ".{0,40}".prop_map(Value::from).boxed(),
        Scalar::Bool => any::<bool>().prop_map(Value::from).boxed(),
        Scalar::Bytes => vec(any::<u8>(), 0..300)
            .prop_map(|bytes| gristmill_contract::base64::encode(&bytes).into())
            .boxed(),
        Scalar::Float64 => any::<u64>()
            .prop_map(|bits| match f64::from_bits(bits) {
                float if float.is_finite() => json!(float),
                float if float.is_nan() => json!("NaN"),
                float if float > 0.0 => json!("Infinity"),
                _ => json!("-Infinity"),
            })
            .boxed(),
        _ => (-377_705_023_201_000_000..=Timestamp::MAX.as_micros())
            .prop_map(|micros| Timestamp::from_micros(micros).to_string().into())
            .boxed(),
    }
}

fn value(kind: FieldType) -> BoxedStrategy<Option<Value>> {
    let one = scalar_value(kind.scalar);
    let whole = if kind.list { vec(one, 0..40).prop_map(Value::from).boxed() } else { one };
    if kind.optional { proptest::option::of(whole).boxed() } else { whole.prop_map(Some).boxed() }
}

fn kind() -> impl Strategy<Value = FieldType> {
    (proptest::sample::select(Scalar::ALL.to_vec()), any::<bool>(), any::<bool>())
        .prop_map(|(scalar, list, optional)| FieldType { scalar, list, optional })
}

fn task() -> impl Strategy<Value = (QueueContract, Value)> {
    vec(kind(), 0..30).prop_flat_map(|kinds| {
        let name = |at: usize| format!("field_{at}");
        let fields = kinds
            .iter()
            .enumerate()
            .map(|(at, kind)| Field { name: name(at), kind: *kind, doc: None })
            .collect();
        let queue = QueueContract {
            number: 1,
            name: QueueName::new("any").unwrap(),
            doc: None,
            fields,
            retired: Vec::new(),
            settings: SettingsPatch::default(),
            said: Vec::new(),
        };
        let values: Vec<_> = kinds.into_iter().map(value).collect();
        let values = values.prop_map(move |values| {
            let given = values.into_iter().enumerate();
            let object: Map<String, Value> =
                given.filter_map(|(at, value)| Some((name(at), value?))).collect();
            Value::Object(object)
        });
        (Just(queue), values)
    })
}

fn survives(queue: &QueueContract, given: &Value) {
    let payload = view::to_payload(queue, given).unwrap_or_else(|wrong| panic!("{wrong:?}"));
    let text = view::to_json(queue, &payload).unwrap();
    let back: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(&back, given);
    // And once more from the text, as it would be put again.
    let again = view::text_to_payload(queue, text.as_bytes()).unwrap();
    assert_eq!(again.bytes, payload.bytes);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_value_of_any_contract_survives((queue, given) in task()) {
        survives(&queue, &given);
    }

    #[test]
    fn any_contract_is_read_back_from_its_text((queue, _) in task()) {
        let kept = QueueContract::from_text(&queue.text());
        prop_assert_eq!(kept.as_ref(), Some(&queue));
        // The text is YAML, too.
        let indented: String = queue.text().lines().map(|line| format!("    {line}\n")).collect();
        let whole = format!("queues:\n  -{}", indented.get(3..).unwrap());
        let read = crate::sample::contract(&whole);
        prop_assert_eq!(&read.queues[0].fields, &queue.fields);
    }
}

#[test]
fn what_is_hard_to_carry_survives() {
    survives(&every_type(), &hard_value());
}
