//! Whatever is sent is what is read at the other end, through text.

use std::collections::BTreeSet;
use std::fmt::Debug;

use gristmill_core::*;
use gristmill_remote::wire::{Verb, Wire, verbs};
use proptest::prelude::*;
use serde_json::Value;

use crate::dice::{Any, Dice};

fn travels<T: Wire + Any + Debug + PartialEq>(dice: &mut Dice) {
    let sent: T = dice.any();
    let text = sent.write().to_string();
    let came = serde_json::from_str(&text).unwrap();
    let read = T::read(came).unwrap_or_else(|fault| panic!("{fault}: {text}"));
    assert_eq!(read, sent, "{text}");
}

fn verb<V: Verb<Asked: Any + Debug + PartialEq, Answer: Any + Debug + PartialEq>>(dice: &mut Dice) {
    travels::<V::Asked>(dice);
    travels::<V::Answer>(dice);
}

impl Any for () {
    fn any(_: &mut Dice) -> Self {}
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn properties_hold_of_what_travels(seed in any::<u64>()) {
        let dice = &mut Dice(seed);
        verb::<verbs::Put>(dice);
        verb::<verbs::ClaimTasks>(dice);
        verb::<verbs::Settle>(dice);
        verb::<verbs::Extend>(dice);
        verb::<verbs::KeepCheckpoints>(dice);
        verb::<verbs::Endings>(dice);
        verb::<verbs::WaitEnded>(dice);
        verb::<verbs::OpenUnder>(dice);
        verb::<verbs::Reclaim>(dice);
        verb::<verbs::Sweep>(dice);
        verb::<verbs::Reach>(dice);
        verb::<verbs::WaitForWork>(dice);
        verb::<verbs::FindKeys>(dice);
        verb::<verbs::Get>(dice);
        verb::<verbs::List>(dice);
        verb::<verbs::Operate>(dice);
        verb::<verbs::ImportTasks>(dice);
        verb::<verbs::DeclareQueue>(dice);
        verb::<verbs::OverrideQueue>(dice);
        verb::<verbs::ResetQueue>(dice);
        verb::<verbs::SetQueuePaused>(dice);
        verb::<verbs::RegisterContract>(dice);
        verb::<verbs::Queues>(dice);
        verb::<verbs::Stats>(dice);
        verb::<verbs::Minutes>(dice);
        verb::<verbs::DeclareSchedule>(dice);
        verb::<verbs::Schedules>(dice);
        verb::<verbs::RemoveSchedule>(dice);
        verb::<verbs::SetSchedulePaused>(dice);
        verb::<verbs::FireSchedule>(dice);
        verb::<verbs::OneDocument>(dice);
        verb::<verbs::Documents>(dice);
        verb::<verbs::SaveDocument>(dice);
        verb::<verbs::Diagnose>(dice);
        travels::<StoreError>(dice);
        travels::<gristmill_remote::wire::About>(dice);
        travels::<Settings>(dice);
        travels::<SettingsPatch>(dice);
    }

    /// Whatever somebody sends, it is a value or a fault with its place.
    #[test]
    fn properties_of_nonsense(seed in any::<u64>(), cut in any::<usize>()) {
        let mut value = Dice(seed).any::<PutRequest>().write();
        spoil(&mut value, cut);
        let _ = PutRequest::read(value);
    }
}

/// Puts something else in the place of some part.
fn spoil(value: &mut Value, at: usize) {
    let (count, next) = match value {
        Value::Object(fields) => (fields.len(), at / 3),
        Value::Array(all) => (all.len(), at / 3),
        _ => (0, at),
    };
    let within = match value {
        Value::Object(fields) if count > 0 => fields.values_mut().nth(at % count),
        Value::Array(all) if count > 0 => all.get_mut(at % count),
        _ => None,
    };
    match within {
        Some(part) => spoil(part, next),
        None => *value = Value::from(at),
    }
}

/// The fields of a struct, as its debug form names them.
fn fields_of(value: &impl Debug) -> BTreeSet<String> {
    let text = format!("{value:#?}");
    let own = text.lines().filter_map(|line| line.strip_prefix("    "));
    let named = own.filter(|line| !line.starts_with([' ', ']', '}', ')']));
    named.filter_map(|line| line.split_once(':')).map(|(name, _)| name.to_owned()).collect()
}

/// Of a struct that may grow, its list of fields here must grow along.
#[test]
fn no_field_stays_behind() {
    fn none_of<T: Wire + Any + Debug>() {
        let (mut sent, mut known) = (BTreeSet::new(), BTreeSet::new());
        for seed in 0..200 {
            let value: T = Dice(seed).any();
            known.extend(fields_of(&value));
            sent.extend(value.write().as_object().unwrap().keys().cloned());
        }
        assert_eq!(sent, known);
    }
    none_of::<Task>();
    none_of::<QueueStats>();
    none_of::<Claim>();
}

#[test]
fn a_fault_names_its_place() {
    let request = |text: &str| {
        let value = serde_json::from_str(text).unwrap();
        PutRequest::read(value).map_err(|fault| fault.to_string())
    };
    for (text, said) in [
        (r#"{"queue":"a","atomic":false}"#, "tasks: it is missing"),
        (r#"{"queue":"a b","tasks":[],"atomic":false}"#, "queue: 'a b' is not a queue name"),
        (
            r#"{"queue":"a","tasks":[{"payload":{"bytes":"!","encoding":"raw"},"priority":0,"start":{"is":"now"}}],"atomic":false}"#,
            "tasks[0].payload.bytes: it is no base64",
        ),
        (
            r#"{"queue":"a","tasks":[{"payload":{"bytes":"","encoding":"raw"},"priority":0,"start":{"is":"soon"}}],"atomic":false}"#,
            "tasks[0].start: 'soon' is not known here",
        ),
        ("[]", "it is no object"),
    ] {
        let fault = request(text).unwrap_err();
        assert!(fault.starts_with(said), "{fault}");
    }
}
