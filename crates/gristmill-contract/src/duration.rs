//! Durations as people write them: `500ms`, `5s`, `1h30m`, `7d`.

use std::time::Duration;

const UNITS: [(&str, u64); 5] =
    [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

/// Reads a duration; every number needs its unit, so that nobody has to
/// remember a default one.
///
/// # Errors
/// One sentence that says what is wrong and how to write it.
pub fn parse(text: &str) -> Result<Duration, String> {
    let wrong = |why: &str| {
        let shown: String = text.chars().take(40).collect();
        format!("'{shown}' is not a duration: {why}; write it like 500ms, 5s, 2m or 1h30m")
    };
    if text.is_empty() {
        return Err("a duration is missing; write it like 500ms, 5s, 2m or 1h30m".to_owned());
    }
    let mut rest = text;
    let mut millis = 0u64;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (number, after) = rest.split_at(digits);
        let letters = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let (unit, next) = after.split_at(letters);
        if number.is_empty() {
            return Err(wrong("a whole number was expected"));
        }
        let Some((_, factor)) = UNITS.iter().find(|(name, _)| *name == unit) else {
            return Err(if unit.is_empty() && next.is_empty() {
                wrong("the unit is missing (ms, s, m, h, d)")
            } else if unit.is_empty() {
                wrong("only whole numbers and the units ms, s, m, h, d are known")
            } else {
                wrong(&format!("there is no unit '{unit}' (ms, s, m, h, d are known)"))
            });
        };
        let part = number.parse::<u64>().ok().and_then(|n| n.checked_mul(*factor));
        millis = part
            .and_then(|part| millis.checked_add(part))
            .ok_or_else(|| wrong("it is too long"))?;
        rest = next;
    }
    Ok(Duration::from_millis(millis))
}

/// A duration in at most two units, for tables: `1h30m`, `5s`, `250ms`.
#[must_use]
pub fn show(duration: Duration) -> String {
    let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    if millis < 1_000 {
        return format!("{millis}ms");
    }
    // From a minute on, fractions of a second tell nobody anything.
    let mut left = if millis < 60_000 { millis } else { millis - millis % 1_000 };
    let mut shown = String::new();
    let mut parts = 0;
    for (unit, factor) in UNITS.iter().rev() {
        let whole = left / factor;
        if whole > 0 && parts < 2 {
            // Seconds with tenths read better than two units.
            if *unit == "s" && millis < 60_000 && left % 1_000 >= 100 {
                return format!("{whole}.{}s", left % 1_000 / 100);
            }
            if *unit != "ms" {
                shown.push_str(&format!("{whole}{unit}"));
                parts += 1;
            }
        } else if parts > 0 {
            break;
        }
        left %= factor;
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read() {
        for (text, millis) in [
            ("500ms", 500),
            ("5s", 5_000),
            ("2m", 120_000),
            ("1h30m", 5_400_000),
            ("7d", 604_800_000),
            ("0s", 0),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn mistakes_say_what_to_write() {
        for (text, part) in [
            ("", "missing"),
            ("5", "unit is missing"),
            ("s", "whole number"),
            ("-5s", "whole number"),
            ("1.5s", "whole numbers"),
            ("5 s", "whole numbers"),
            ("5x", "no unit 'x'"),
            ("5min", "no unit 'min'"),
            ("99999999999999999999s", "too long"),
            ("fünf", "whole number"),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.contains(part) && error.contains("1h30m"), "{text}: {error}");
        }
    }

    #[test]
    fn durations_are_shown_short() {
        for (millis, text) in [
            (0, "0ms"),
            (250, "250ms"),
            (1_000, "1s"),
            (5_400, "5.4s"),
            (60_000, "1m"),
            (61_500, "1m1s"),
            (5_400_000, "1h30m"),
            (3_600_000, "1h"),
            (90_061_000, "1d1h"),
        ] {
            assert_eq!(show(Duration::from_millis(millis)), text);
        }
    }
}
