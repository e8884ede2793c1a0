//! Ledger amounts (ISO 4217 minor units) in the provider's units and back: exactly, or not at all.

use onsale_core::money::{Currency, Money};

/// Where the provider counts in other decimals than ISO 4217: ISK and UGX have none, yet are sent with two that
/// must be `00`; MGA has two, yet is sent in whole units.
const PROVIDER_DECIMALS: [(&str, u32); 3] = [("ISK", 2), ("MGA", 0), ("UGX", 2)];

/// The provider documents no currency with more decimals.
const DECIMALS_MAX: u32 = 3;

/// An amount that has no exact counterpart on the other side.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{amount} {currency} has no exact counterpart in {wanted}")]
pub(super) struct Inexact {
    amount: i64,
    currency: String,
    wanted: &'static str,
}

/// What to send for an amount of the ledger.
pub(super) fn to_provider(money: Money) -> Result<i64, Inexact> {
    let inexact = || Inexact {
        amount: money.amount_minor,
        currency: money.currency.to_string(),
        wanted: "the provider's units",
    };
    let (ledger, provider) = decimals(money.currency).ok_or_else(inexact)?;
    let amount = rescale(money.amount_minor, ledger, provider).ok_or_else(inexact)?;
    // Three decimals are written, but the last is always 0.
    if provider == 3 && amount % 10 != 0 {
        return Err(inexact());
    }
    Ok(amount)
}

/// What an amount of the provider is in the ledger.
pub(super) fn to_ledger(amount: i64, currency: &str) -> Result<Money, Inexact> {
    let inexact = || Inexact { amount, currency: currency.to_owned(), wanted: "ISO 4217 minor units" };
    let known = Currency::parse(&currency.to_ascii_uppercase()).ok_or_else(inexact)?;
    let (ledger, provider) = decimals(known).ok_or_else(inexact)?;
    let amount_minor = rescale(amount, provider, ledger).ok_or_else(inexact)?;
    Ok(Money { amount_minor, currency: known })
}

/// Decimals of a currency in the ledger and at the provider.
fn decimals(currency: Currency) -> Option<(u32, u32)> {
    let ledger = u32::from(iso_currency::Currency::from_code(currency.as_str())?.exponent()?);
    let odd = PROVIDER_DECIMALS.iter().find(|(code, _)| *code == currency.as_str());
    let provider = odd.map_or(ledger, |(_, decimals)| *decimals);
    (provider <= DECIMALS_MAX).then_some((ledger, provider))
}

fn rescale(amount: i64, from: u32, to: u32) -> Option<i64> {
    let factor = 10_i64.pow(from.abs_diff(to));
    match amount {
        ..0 => None,
        _ if to >= from => amount.checked_mul(factor),
        _ => (amount % factor == 0).then_some(amount / factor),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn money(amount_minor: i64, code: &str) -> Money {
        Money { amount_minor, currency: Currency::parse(code).unwrap() }
    }

    #[test]
    fn exact_amounts_go_there_and_back() {
        for (code, ledger, provider) in [
            ("EUR", 1250, 1250),
            ("JPY", 1250, 1250),
            ("KRW", 9, 9),
            ("HUF", 1250, 1250),
            ("TWD", 1250, 1250),
            ("KWD", 1250, 1250),
            ("ISK", 1250, 125_000),
            ("UGX", 7, 700),
            ("MGA", 1200, 12),
            ("EUR", 0, 0),
            ("EUR", i64::MAX, i64::MAX),
        ] {
            assert_eq!(to_provider(money(ledger, code)), Ok(provider), "{ledger} {code}");
            assert_eq!(
                to_ledger(provider, &code.to_lowercase()),
                Ok(money(ledger, code)),
                "{provider} {code}"
            );
        }
    }

    #[test]
    fn inexact_amounts_are_refused() {
        for (amount, code) in [
            (1255, "KWD"),
            (1250, "MGA"),
            (-1, "EUR"),
            (i64::MAX, "ISK"),
            (100, "CLF"),
            (100, "XAU"),
            (100, "QQQ"),
        ] {
            assert!(to_provider(money(amount, code)).is_err(), "{amount} {code}");
        }
        for (amount, code) in
            [(1250, "isk"), (50, "ugx"), (-1, "eur"), (1, "usdc"), (1, ""), (i64::MAX, "mga")]
        {
            assert!(to_ledger(amount, code).is_err(), "{amount} {code}");
        }
        assert_eq!(
            to_ledger(1250, "isk").unwrap_err().to_string(),
            "1250 isk has no exact counterpart in ISO 4217 minor units"
        );
    }
}
