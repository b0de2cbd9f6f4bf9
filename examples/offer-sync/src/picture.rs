//! The picture of who took what: a line a slot, time from left to right, a letter a
//! worker.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::record::Taken;

/// Signs in a line.
const WIDTH: i64 = 64;

/// Draws the batches of a kind; nothing where there are none.
pub(crate) fn draw(taken: &[Taken], kind: &str) -> String {
    let ours: Vec<&Taken> = taken.iter().filter(|taken| taken.kind == kind).collect();
    let Some(start) = ours.iter().map(|taken| taken.began).min() else {
        return format!("no batch of {kind} yet\n");
    };
    let end = ours.iter().map(|taken| taken.ended.unwrap_or(taken.began)).max().unwrap_or(start);
    let sign = ((end - start) / WIDTH + 1).max(1);
    let mut workers: Vec<&str> = Vec::new();
    for taken in &ours {
        if !workers.contains(&taken.worker.as_str()) {
            workers.push(&taken.worker);
        }
    }
    let mut picture = format!(
        "{kind}: {} batches in {:.2} s, a sign is {} ms, a letter a worker; x never ended\n\n",
        ours.len(),
        seconds(end - start),
        (sign + 999) / 1000,
    );
    let mut slots: BTreeMap<Option<u32>, Vec<&Taken>> = BTreeMap::new();
    for taken in &ours {
        slots.entry(taken.number).or_default().push(taken);
    }
    for (number, batches) in slots {
        let number = number.map_or_else(|| "-".to_owned(), |number| number.to_string());
        let mut line = vec!['·'; usize::try_from((end - start) / sign + 1).unwrap_or_default()];
        for (at, batch) in batches.iter().enumerate() {
            let letter = letter(&workers, &batch.worker);
            let next = batches.get(at + 1).map(|next| next.began);
            let until = batch.ended.or(next).unwrap_or(end);
            let from = (batch.began - start) / sign;
            let to = ((until - start) / sign).max(from);
            for place in from..=to {
                let Some(sign) = usize::try_from(place).ok().and_then(|at| line.get_mut(at)) else {
                    continue;
                };
                *sign = if batch.ended.is_none() && place > from { 'x' } else { letter };
            }
        }
        // Writing to a string cannot fail.
        let _ = writeln!(picture, "slot {number:>2}  {}", line.into_iter().collect::<String>());
    }
    picture.push('\n');
    for worker in &workers {
        let of: Vec<&&Taken> = ours.iter().filter(|taken| taken.worker == *worker).collect();
        let ended = of.iter().filter(|taken| taken.ended.is_some());
        let (count, rows) = ended.fold((0, 0), |(count, rows), one| (count + 1, rows + one.rows));
        let killed = of.len() - count;
        let killed = if killed == 0 { String::new() } else { format!(", {killed} never ended") };
        let letter = letter(&workers, worker);
        let _ = writeln!(picture, "{letter}  {worker}: {count} ended with {rows} rows{killed}");
    }
    picture
}

fn letter(workers: &[&str], worker: &str) -> char {
    let at = workers.iter().position(|known| *known == worker).unwrap_or_default();
    ('A'..='Z').chain('a'..='w').nth(at).unwrap_or('*')
}

#[expect(clippy::cast_precision_loss, reason = "a picture shows hundredths of a second")]
fn seconds(micros: i64) -> f64 {
    micros as f64 / 1e6
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]
mod tests {
    use super::*;

    fn taken(worker: &str, number: u32, began: i64, ended: Option<i64>) -> Taken {
        let (worker, kind) = (worker.to_owned(), "sync".to_owned());
        Taken { worker, kind, number: Some(number), first: 1, last: 10, rows: 10, began, ended }
    }

    #[test]
    fn a_line_a_slot_a_letter_a_worker_and_a_killed_batch() {
        let sign = 1000;
        let drawn = draw(
            &[
                taken("one", 0, 0, Some(20 * sign - 1)),
                taken("two", 1, 0, None),
                taken("one", 0, 30 * sign, Some(40 * sign - 1)),
                taken("one", 1, 50 * sign, Some(64 * sign - 1)),
            ],
            "sync",
        );
        let line = |slot: &str| {
            let line = drawn.lines().find(|line| line.starts_with(slot)).unwrap();
            line.split_whitespace().last().unwrap().to_owned()
        };
        let first = ["A".repeat(20), "·".repeat(10), "A".repeat(10), "·".repeat(24)].concat();
        assert_eq!(line("slot  0"), first, "{drawn}");
        assert_eq!(line("slot  1"), ["B", &"x".repeat(49), &"A".repeat(14)].concat(), "{drawn}");
        assert!(drawn.contains("A  one: 3 ended with 30 rows\n"), "{drawn}");
        assert!(drawn.contains("B  two: 0 ended with 0 rows, 1 never ended\n"), "{drawn}");
    }

    #[test]
    fn nothing_is_said_to_be_nothing() {
        assert_eq!(draw(&[], "sync"), "no batch of sync yet\n");
    }
}
