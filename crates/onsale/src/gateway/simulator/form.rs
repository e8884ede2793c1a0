//! The provider's form encoding: `amount=5&metadata[order_id]=ord_1&payment_method_types[0]=card`.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::error::ApiError;

/// The decoded parameters of one request, from its body or its query, in the order sent.
#[derive(Debug, Default)]
pub(super) struct Form(Vec<(String, String)>);

impl Form {
    /// Decodes a body or a query string.
    pub(super) fn parse(encoded: &[u8]) -> Result<Form, ApiError> {
        let pairs = encoded.split(|byte| *byte == b'&').filter(|pair| !pair.is_empty());
        let decoded = pairs.map(|pair| {
            let (name, value) = match pair.iter().position(|byte| *byte == b'=') {
                Some(at) => (&pair[..at], &pair[at + 1..]),
                None => (pair, &[][..]),
            };
            Some((decode(name)?, decode(value)?))
        });
        decoded
            .collect::<Option<Vec<_>>>()
            .map(Form)
            .ok_or_else(|| ApiError::malformed("Invalid form: not UTF-8, or a broken percent escape."))
    }

    /// Refuses the first parameter that isn't among the `known` words, so that a misspelt one is never dropped unseen.
    pub(super) fn only(self, known: &str) -> Result<Form, ApiError> {
        let stranger = self.0.iter().find(|(name, _)| {
            let base = name.split_once('[').map_or(name.as_str(), |(base, _)| base);
            !known.split(' ').any(|word| word == base)
        });
        match stranger {
            Some((name, _)) => Err(ApiError::invalid(
                "parameter_unknown",
                name.clone(),
                format!("Received unknown parameter: {name}"),
            )),
            None => Ok(self),
        }
    }

    /// A plain parameter; one that is sent empty counts as not sent.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let value = self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
        value.filter(|value| !value.is_empty())
    }

    /// The entries of `name[…]`, by their inner name.
    pub(super) fn entries<'a>(&'a self, name: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.0.iter().filter_map(move |(key, value)| {
            let inner = key.strip_prefix(name)?.strip_prefix('[')?.strip_suffix(']')?;
            Some((inner, value.as_str()))
        })
    }

    /// The items of `name[]` or `name[0]`.
    pub(super) fn list<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.entries(name)
            .filter_map(|(inner, value)| inner.bytes().all(|b| b.is_ascii_digit()).then_some(value))
    }

    /// A whole number.
    pub(super) fn integer(&self, name: &'static str) -> Result<Option<i64>, ApiError> {
        let Some(text) = self.get(name) else { return Ok(None) };
        let number = text.parse().map_err(|_| {
            ApiError::invalid("parameter_invalid_integer", name, format!("Invalid integer: {text}"))
        })?;
        Ok(Some(number))
    }

    /// `true` or `false`, false when not sent.
    pub(super) fn flag(&self, name: &'static str) -> Result<bool, ApiError> {
        match self.get(name) {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(other) => {
                Err(ApiError::invalid("parameter_invalid", name, format!("Invalid boolean: {other}")))
            }
        }
    }

    /// What an idempotency key is bound to: the path and the parameters, in whatever order they came.
    pub(super) fn fingerprint(&self, path: &str) -> u64 {
        let mut pairs: Vec<_> = self.0.iter().collect();
        pairs.sort_unstable();
        let mut hasher = DefaultHasher::new();
        path.hash(&mut hasher);
        pairs.hash(&mut hasher);
        hasher.finish()
    }
}

fn decode(encoded: &[u8]) -> Option<String> {
    let mut decoded = Vec::with_capacity(encoded.len());
    let mut bytes = encoded.iter();
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'+' => b' ',
            b'%' => {
                let high = char::from(*bytes.next()?).to_digit(16)?;
                let low = char::from(*bytes.next()?).to_digit(16)?;
                (high * 16 + low) as u8
            }
            other => *other,
        });
    }
    String::from_utf8(decoded).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_escapes_and_lists_are_read() {
        let form = Form::parse(
            b"amount=5&metadata%5Border_id%5D=ord%201&metadata[b]=x+y&types[0]=a&types[]=b&created[gte]=7&empty=",
        )
        .unwrap();
        assert_eq!(form.integer("amount").unwrap(), Some(5));
        assert_eq!(form.entries("metadata").collect::<Vec<_>>(), [("order_id", "ord 1"), ("b", "x y")]);
        assert_eq!(form.list("types").collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(form.integer("created[gte]").unwrap(), Some(7));
        assert_eq!(form.get("empty"), None);
    }

    #[test]
    fn what_is_not_a_form_or_not_known_is_refused() {
        for broken in [&b"a=%"[..], b"a=%4", b"a=%zz", b"a=%ff"] {
            assert!(Form::parse(broken).is_err());
        }
        let stranger = Form::parse(b"amount=5&amonut[x]=6").unwrap().only("amount").unwrap_err();
        assert_eq!(
            (stranger.code, stranger.param.as_deref()),
            (Some("parameter_unknown"), Some("amonut[x]"))
        );
    }

    #[test]
    fn a_fingerprint_knows_the_parameters_but_not_their_order() {
        let of = |text: &str, path| Form::parse(text.as_bytes()).unwrap().fingerprint(path);
        assert_eq!(of("a=1&b=2", "/x"), of("b=2&a=1", "/x"));
        assert_ne!(of("a=1&b=2", "/x"), of("a=1&b=3", "/x"));
        assert_ne!(of("a=1", "/x"), of("a=1", "/y"));
    }
}
