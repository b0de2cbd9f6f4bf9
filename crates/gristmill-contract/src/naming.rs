//! What names become in code, and which ones no code could bear.

/// Words of Rust that are no names.
const KEYWORDS: &[&str] = &[
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate",
    "do", "dyn", "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl",
    "in", "let", "loop", "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref",
    "return", "self", "static", "struct", "super", "trait", "true", "try", "type", "typeof",
    "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
];

/// Names of types that the generated code uses itself.
const TAKEN: &[&str] = &[
    "Arc",
    "BatchContext",
    "Bytes",
    "Clone",
    "Debug",
    "Err",
    "Error",
    "Fields",
    "Future",
    "Handled",
    "Handlers",
    "MapReader",
    "MapWriter",
    "Mill",
    "None",
    "Ok",
    "Option",
    "PartialEq",
    "Payload",
    "QueueSpec",
    "Result",
    "Self",
    "Send",
    "Some",
    "String",
    "Sync",
    "TaskPayload",
    "TaskType",
    "Timestamp",
    "Typed",
    "Vec",
    "Worker",
    "Wrong",
];

/// Whether it is a word of the generated code's language.
#[must_use]
pub fn is_keyword(name: &str) -> bool {
    KEYWORDS.contains(&name)
}

/// Words of Rust that are no names even as `r#…`.
const NEVER: &[&str] = &["crate", "self", "super"];

/// A field's name in code: `userId` is `user_id`, and a word of Rust is written as
/// `r#type`. None where no code could bear it.
#[must_use]
pub fn field_name(name: &str) -> Option<String> {
    let snake = snake_case(name);
    if NEVER.contains(&snake.as_str()) {
        None
    } else if is_keyword(&snake) {
        Some(format!("r#{snake}"))
    } else {
        Some(snake)
    }
}

/// Whether the generated code needs this type's name itself.
#[must_use]
pub fn is_taken(type_name: &str) -> bool {
    TAKEN.contains(&type_name)
}

/// The name in lower case with underscores: `userId` becomes `user_id`.
#[must_use]
pub fn snake_case(name: &str) -> String {
    words(name).join("_")
}

/// The name in capitals without underscores: `price-trend` becomes
/// `PriceTrend`.
#[must_use]
pub fn pascal_case(name: &str) -> String {
    let word = |word: String| {
        let mut letters = word.chars();
        let first = letters.next().map(|c| c.to_ascii_uppercase());
        first.into_iter().chain(letters).collect::<String>()
    };
    words(name).into_iter().map(word).collect()
}

/// The words of a name, in lower case.
fn words(name: &str) -> Vec<String> {
    let letters: Vec<char> = name.chars().collect();
    let mut words = vec![String::new()];
    for (at, letter) in letters.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|at| letters.get(at));
        let after = letters.get(at + 1);
        // A capital begins a word, unless it stands within capitals.
        let begins = letter.is_ascii_uppercase()
            && before.is_some_and(|before| {
                before.is_ascii_lowercase()
                    || before.is_ascii_digit()
                    || before.is_ascii_uppercase() && after.is_some_and(char::is_ascii_lowercase)
            });
        if begins || !letter.is_ascii_alphanumeric() {
            words.push(String::new());
        }
        if letter.is_ascii_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.push(letter.to_ascii_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_of_rust_can_be_a_field() {
        for (name, code) in [("type", "r#type"), ("userId", "user_id"), ("Match", "r#match")] {
            assert_eq!(field_name(name).as_deref(), Some(code));
        }
        assert_eq!(field_name("self"), None);
    }

    #[test]
    fn names_become_identifiers() {
        for (name, snake, pascal) in [
            ("emails", "emails", "Emails"),
            ("user_id", "user_id", "UserId"),
            ("userId", "user_id", "UserId"),
            ("price-trend", "price_trend", "PriceTrend"),
            ("PRICE_UPDATED", "price_updated", "PriceUpdated"),
            ("HTTPServer", "http_server", "HttpServer"),
            ("offer.sync.v2", "offer_sync_v2", "OfferSyncV2"),
            ("a__b_", "a_b", "AB"),
            ("utf8Text", "utf8_text", "Utf8Text"),
        ] {
            assert_eq!((snake_case(name).as_str(), pascal_case(name).as_str()), (snake, pascal));
        }
    }
}
