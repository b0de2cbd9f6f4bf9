//! What a page's address or form says, name by name: a field that was left empty says
//! nothing.

use form_urlencoded::{Serializer, parse};

/// Names and values, in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fields(Vec<(String, String)>);

impl Fields {
    /// Reads what stands behind a question mark, or a form.
    pub(crate) fn read(text: &[u8]) -> Self {
        let pairs = parse(text).filter(|(_, value)| !value.trim().is_empty());
        Fields(pairs.map(|(name, value)| (name.into_owned(), value.into_owned())).collect())
    }

    /// The value of a field, without what stands around it by accident.
    pub(crate) fn one(&self, name: &str) -> Option<String> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.trim().to_owned())
    }

    /// All values of a field.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.trim())
    }

    /// A whole number, if it is one.
    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        self.one(name)?.parse().ok()
    }
}

/// A query of these names and values; what has no value is left out.
pub(crate) fn query<'a>(pairs: impl IntoIterator<Item = (&'a str, Option<&'a str>)>) -> String {
    let mut text = Serializer::new(String::new());
    for (name, value) in pairs {
        if let Some(value) = value {
            text.append_pair(name, value);
        }
    }
    text.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_field_says_nothing() {
        let fields = Fields::read(b"key=&group=+a%26b+&ids=1&ids=2&n=x");
        assert_eq!(fields.one("key"), None);
        assert_eq!(fields.one("group").as_deref(), Some("a&b"));
        assert_eq!(fields.all("ids").collect::<Vec<_>>(), ["1", "2"]);
        assert_eq!(fields.number("n"), None);
    }

    #[test]
    fn a_query_is_read_back() {
        let text = query([("error", Some("a=b & \"c\"")), ("key", None)]);
        assert_eq!(Fields::read(text.as_bytes()).one("error").as_deref(), Some("a=b & \"c\""));
    }
}
