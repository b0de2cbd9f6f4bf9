//! Numbers as JSON has them, and what to say of a value that is another.

use serde_json::{Number, Value};

use super::Wrong;
use super::value::whole;

/// A whole number; 5.0 is one.
pub(super) fn int(value: &Value) -> Result<i64, Wrong> {
    let Value::Number(number) = value else { return Err(not(value, "an int64")) };
    if let Some(int) = number.as_i64() {
        return Ok(int);
    }
    let float = number.as_f64().unwrap_or(f64::NAN);
    #[expect(clippy::cast_possible_truncation, reason = "compared with what it came from")]
    let int = float as i64;
    match whole(int) {
        Ok(same) if same == float => Ok(int),
        _ if number.is_u64() => Err(Wrong::new(format!("{number} is more than an int64 holds"))),
        // Not the number itself: what is left of it is another one.
        _ if float.fract() == 0.0 => {
            Err(Wrong::new(format!("a whole number from {} to {} is wanted", i64::MIN, i64::MAX)))
        }
        _ => Err(Wrong::new(format!("{number} is not a whole number"))),
    }
}

const NOT_FINITE: [(&str, f64); 3] =
    [("NaN", f64::NAN), ("Infinity", f64::INFINITY), ("-Infinity", f64::NEG_INFINITY)];

/// A number; those that JSON has no word for are texts.
pub(super) fn float(value: &Value) -> Result<f64, Wrong> {
    match value {
        Value::Number(number) => match number.as_i64() {
            Some(int) => whole(int),
            None => number.as_f64().ok_or_else(|| not(value, "a float64")),
        },
        Value::String(text) => {
            let found = NOT_FINITE.iter().find(|(word, _)| word == text);
            found.map(|(_, float)| *float).ok_or_else(|| not(value, "a float64"))
        }
        other => Err(not(other, "a float64")),
    }
}

pub(super) fn of_float(value: f64) -> Value {
    Number::from_f64(value).map_or_else(
        || {
            let same = |float: f64| float == value || float.is_nan() && value.is_nan();
            let found = NOT_FINITE.iter().find(|(_, float)| same(*float));
            found.map_or(Value::Null, |(word, _)| (*word).into())
        },
        Value::Number,
    )
}

pub(super) fn not(value: &Value, wanted: &str) -> Wrong {
    let given = match value {
        Value::Null => "null",
        Value::Bool(_) => "a bool",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    };
    Wrong::new(format!("{given} was given and {wanted} is wanted"))
}
