//! Money in minor units. No floating point anywhere.

use std::fmt;

/// An ISO 4217 code, three capital letters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Currency([u8; 3]);

impl Currency {
    /// Takes three capital letters; whether such a currency exists is the edge's question.
    pub fn parse(code: &str) -> Option<Currency> {
        let bytes: [u8; 3] = code.as_bytes().try_into().ok()?;
        bytes.iter().all(u8::is_ascii_uppercase).then_some(Currency(bytes))
    }

    /// The code as text.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("capital letters are ASCII")
    }
}

impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An amount in the currency's minor unit: 1250 in EUR is 12.50, 1250 in JPY is 1,250.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Money {
    /// How much, in minor units.
    pub amount_minor: i64,
    /// Of what.
    pub currency: Currency,
}

impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.amount_minor, self.currency)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_currency_is_three_capital_letters() {
        let euro = Currency::parse("EUR").expect("three capital letters");
        assert_eq!((euro.as_str(), euro.to_string().as_str()), ("EUR", "EUR"));
        for stranger in ["", "EU", "EURO", "eur", "E1R"] {
            assert_eq!(Currency::parse(stranger), None, "{stranger:?}");
        }
    }

    /// A case's evidence shows amounts; minor units, since nothing here knows how many of them make one.
    #[test]
    fn an_amount_is_shown_with_its_currency() {
        let currency = Currency::parse("JPY").expect("three capital letters");
        assert_eq!(Money { amount_minor: -1250, currency }.to_string(), "-1250 JPY");
    }
}
