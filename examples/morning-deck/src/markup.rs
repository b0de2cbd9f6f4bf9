//! Tags and text of XML and HTML, one after the other. Lenient, as the web is:
//! what is no tag is text. It knows no schema and builds no tree.

/// A piece of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    /// `<name a="b">`; `empty` is `<name/>`.
    Open { name: String, attributes: Vec<(String, String)>, empty: bool },
    /// `</name>`
    Close(String),
    /// Text, with its entities and CDATA resolved.
    Text(String),
}

impl Piece {
    /// An attribute of an opening tag.
    pub(crate) fn attribute(&self, wanted: &str) -> Option<&str> {
        let Piece::Open { attributes, .. } = self else { return None };
        attributes.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str())
    }
}

/// Reads a document. Names are in lower case.
pub(crate) fn pieces(document: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut rest = document;
    while !rest.is_empty() {
        rest = match rest.find('<') {
            Some(0) => markup(rest, &mut pieces),
            Some(at) => {
                let (text, after) = rest.split_at(at);
                push_text(&mut pieces, unescape(text));
                after
            }
            None => {
                push_text(&mut pieces, unescape(rest));
                ""
            }
        };
    }
    pieces
}

/// Reads what begins with `<`. Returns what follows it.
fn markup<'a>(rest: &'a str, pieces: &mut Vec<Piece>) -> &'a str {
    if let Some(after) = rest.strip_prefix("<![CDATA[") {
        let (text, after) = after.split_once("]]>").unwrap_or((after, ""));
        push_text(pieces, text.to_owned());
        return after;
    }
    if let Some(after) = rest.strip_prefix("<!--") {
        return after.split_once("-->").map_or("", |(_, after)| after);
    }
    if rest.starts_with("<!") || rest.starts_with("<?") {
        return rest.split_once('>').map_or("", |(_, after)| after);
    }
    let inside = rest.get(1..).unwrap_or("");
    let is_tag = inside.trim_start_matches('/').starts_with(|c: char| c.is_alphabetic());
    let Some(end) = tag_end(inside).filter(|_| is_tag) else {
        push_text(pieces, "<".to_owned());
        return inside;
    };
    let (tag, after) = inside.split_at(end);
    let after = after.strip_prefix('>').unwrap_or(after);
    if let Some(name) = tag.strip_prefix('/') {
        pieces.push(Piece::Close(name.trim().to_lowercase()));
        return after;
    }
    let (tag, empty) = tag.strip_suffix('/').map_or((tag, false), |tag| (tag, true));
    let (name, attributes) =
        tag.split_once(|c: char| c.is_whitespace()).map_or((tag, ""), |(name, rest)| (name, rest));
    let name = name.to_lowercase();
    // What stands in these is not for readers, and may contain anything.
    let hidden = matches!(name.as_str(), "script" | "style") && !empty;
    let close = format!("</{name}");
    pieces.push(Piece::Open { name, attributes: read_attributes(attributes), empty });
    if hidden { skip_to(after, &close) } else { after }
}

/// Where a tag ends: the first `>` that is not inside quotes.
fn tag_end(inside: &str) -> Option<usize> {
    let mut quote = None;
    for (at, c) in inside.char_indices() {
        match (quote, c) {
            (None, '>') => return Some(at),
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), c) if c == open => quote = None,
            _ => {}
        }
    }
    None
}

/// What follows from this close tag on, whatever its case.
fn skip_to<'a>(rest: &'a str, close: &str) -> &'a str {
    rest.match_indices("</")
        .filter_map(|(at, _)| rest.get(at..))
        .find(|tail| tail.get(..close.len()).is_some_and(|head| head.eq_ignore_ascii_case(close)))
        .unwrap_or("")
}

fn read_attributes(mut text: &str) -> Vec<(String, String)> {
    let mut attributes = Vec::new();
    loop {
        text = text.trim_start();
        let end = text.find(|c: char| c == '=' || c.is_whitespace()).unwrap_or(text.len());
        let (name, rest) = text.split_at(end);
        if name.is_empty() && rest.is_empty() {
            return attributes;
        }
        let (value, rest) = match rest.trim_start().strip_prefix('=') {
            None => ("", rest),
            Some(rest) => attribute_value(rest.trim_start()),
        };
        attributes.push((name.to_lowercase(), unescape(value)));
        text = rest;
    }
}

/// A value, quoted or not, and what follows it.
fn attribute_value(text: &str) -> (&str, &str) {
    for quote in ['"', '\''] {
        if let Some(inside) = text.strip_prefix(quote) {
            return inside.split_once(quote).unwrap_or((inside, ""));
        }
    }
    text.split_at(text.find(|c: char| c.is_whitespace()).unwrap_or(text.len()))
}

/// Joins neighbours, so that CDATA in the middle of a text makes no second one.
fn push_text(pieces: &mut Vec<Piece>, text: String) {
    if let Some(Piece::Text(before)) = pieces.last_mut() {
        before.push_str(&text);
    } else if !text.is_empty() {
        pieces.push(Piece::Text(text));
    }
}

/// Longest entity that is known, `&hellip;`, or a number such as `&#x10ffff;`.
const LONGEST: usize = 10;

fn unescape(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        let (before, entity) = rest.split_at(at);
        plain.push_str(before);
        let known = entity
            .find(';')
            .filter(|end| *end <= LONGEST)
            .and_then(|end| Some((character(entity.get(1..end)?)?, entity.get(end + 1..)?)));
        rest = if let Some((c, after)) = known {
            plain.push(c);
            after
        } else {
            plain.push('&');
            entity.get(1..).unwrap_or("")
        };
    }
    plain.push_str(rest);
    plain
}

fn character(name: &str) -> Option<char> {
    if let Some(number) = name.strip_prefix('#') {
        let hex = number.strip_prefix(['x', 'X']);
        let code = hex.map_or_else(|| number.parse(), |hex| u32::from_str_radix(hex, 16));
        return char::from_u32(code.ok()?);
    }
    Some(match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        "nbsp" => ' ',
        "hellip" => '…',
        "ndash" => '–',
        "mdash" => '—',
        "lsquo" => '‘',
        "rsquo" => '’',
        "ldquo" => '“',
        "rdquo" => '”',
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(document: &str) -> Vec<String> {
        let texts = pieces(document).into_iter().filter_map(|piece| match piece {
            Piece::Text(text) => Some(text),
            _ => None,
        });
        texts.collect()
    }

    #[test]
    fn tags_attributes_and_text_come_apart() {
        let found = pieces("<?xml version='1.0'?><A href=\"x>y\" b='c&amp;d' e=f g>hi</a ><br/>");
        let open = &found[0];
        assert_eq!(open.attribute("href"), Some("x>y"));
        assert_eq!(open.attribute("b"), Some("c&d"));
        assert_eq!((open.attribute("e"), open.attribute("g")), (Some("f"), Some("")));
        assert_eq!(found[1], Piece::Text("hi".to_owned()));
        assert_eq!(found[2], Piece::Close("a".to_owned()));
        assert!(matches!(&found[3], Piece::Open { name, empty: true, .. } if name == "br"));
    }

    #[test]
    fn entities_and_cdata_are_resolved() {
        let text = "a &lt;b&gt; &#65;&#x42; &nope; & <![CDATA[<i>&amp;]]> &rsquo;";
        assert_eq!(texts(text), ["a <b> AB &nope; & <i>&amp; ’"]);
        assert_eq!(texts("&#xD800; &#99999999;"), ["&#xD800; &#99999999;"]);
    }

    #[test]
    fn what_is_broken_is_text_or_ends() {
        assert_eq!(texts("1 < 2 and <3"), ["1 < 2 and <3"]);
        assert_eq!(texts("a<!-- b"), ["a"]);
        assert_eq!(texts("<p>a<![CDATA[b"), ["ab"]);
        assert_eq!(texts("<p title='"), ["<p title='"]);
        for odd in ["<", "<>", "</", "<!", "&", "&;", "<a =>", "<é é=é>é</É>"] {
            pieces(odd);
        }
    }

    #[test]
    fn scripts_are_not_text() {
        let text = "<script>if (a < b) { '</p>' }</SCRIPT>after<style>p{}</style>";
        assert_eq!(texts(text), ["after"]);
    }
}
