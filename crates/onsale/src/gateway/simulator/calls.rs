//! Reads the parameters of a call. What isn't well-formed is refused here, before a key or a script is touched.

use std::sync::Arc;

use super::error::ApiError;
use super::form::Form;
use super::intent::{CaptureMethod, Metadata};
use super::limits::{
    AMOUNT_MAX, LIST_LIMIT_DEFAULT, LIST_LIMIT_MAX, METADATA_ENTRIES_MAX, METADATA_NAME_CHARS_MAX,
    METADATA_VALUE_CHARS_MAX,
};
use super::operations::{Call, Create, CreateRefund};

// The provider's parameters of each call. Those that change nothing here are taken and ignored; those that would, and
// aren't simulated, are left out and so refused.
const CREATE: &str = "amount automatic_payment_methods capture_method confirm confirmation_method currency customer \
                      description expand metadata off_session payment_method payment_method_options \
                      payment_method_types receipt_email return_url setup_future_usage shipping \
                      statement_descriptor statement_descriptor_suffix use_stripe_sdk";
const CONFIRM: &str = "expand off_session payment_method payment_method_options receipt_email return_url \
                       setup_future_usage shipping use_stripe_sdk";
const CAPTURE: &str = "amount_to_capture expand statement_descriptor statement_descriptor_suffix";
const CANCEL: &str = "cancellation_reason expand";
const REFUND: &str = "amount metadata payment_intent reason";

/// `POST /v1/payment_intents`.
pub(super) fn create(form: Form) -> Result<(Form, Call), ApiError> {
    let form = form.only(CREATE)?;
    let amount = amount(&form, "amount")?.ok_or_else(|| ApiError::missing("amount"))?;
    let currency = form.get("currency").ok_or_else(|| ApiError::missing("currency"))?.to_ascii_lowercase();
    if currency.len() != 3 || !currency.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return Err(ApiError::invalid(
            "parameter_invalid",
            "currency",
            format!("Invalid currency: {currency}"),
        ));
    }
    let capture_method = match form.get("capture_method") {
        None | Some("automatic_async") => CaptureMethod::AutomaticAsync,
        Some("automatic") => CaptureMethod::Automatic,
        Some("manual") => CaptureMethod::Manual,
        Some(other) => {
            let message = format!("Invalid capture_method: {other}");
            return Err(ApiError::invalid("parameter_invalid", "capture_method", message));
        }
    };
    let payment_method = payment_method(&form)?;
    let confirm = form.flag("confirm")?;
    if confirm && payment_method.is_none() {
        return Err(ApiError::missing("payment_method"));
    }
    let mut types: Vec<Box<str>> = form.list("payment_method_types").map(Box::from).collect();
    if types.is_empty() {
        types.push("card".into());
    }
    let metadata = metadata(&form)?;
    let order_id =
        metadata.iter().find(|(name, _)| &**name == "order_id").map(|(_, value)| (&**value).into());
    let call = Call::Create(Create {
        amount,
        currency: currency.into(),
        capture_method,
        payment_method,
        payment_method_types: types.into(),
        confirm,
        return_url: form.get("return_url").map(Arc::from),
        description: form.get("description").map(Box::from),
        metadata,
        order_id,
    });
    Ok((form, call))
}

/// `POST /v1/payment_intents/{id}/confirm`.
pub(super) fn confirm(form: Form, intent_id: &str) -> Result<(Form, Call), ApiError> {
    let form = form.only(CONFIRM)?;
    let call = Call::Confirm {
        intent_id: intent_id.to_owned(),
        payment_method: payment_method(&form)?,
        return_url: form.get("return_url").map(Arc::from),
    };
    Ok((form, call))
}

/// `POST /v1/payment_intents/{id}/capture`.
pub(super) fn capture(form: Form, intent_id: &str) -> Result<(Form, Call), ApiError> {
    let form = form.only(CAPTURE)?;
    let amount = amount(&form, "amount_to_capture")?;
    Ok((form, Call::Capture { intent_id: intent_id.to_owned(), amount }))
}

/// `POST /v1/payment_intents/{id}/cancel`.
pub(super) fn cancel(form: Form, intent_id: &str) -> Result<(Form, Call), ApiError> {
    let form = form.only(CANCEL)?;
    let reasons = ["duplicate", "fraudulent", "requested_by_customer", "abandoned"];
    let reason = one_of(&form, "cancellation_reason", &reasons)?;
    Ok((form, Call::Cancel { intent_id: intent_id.to_owned(), reason }))
}

/// `POST /v1/refunds`.
pub(super) fn refund(form: Form) -> Result<(Form, Call), ApiError> {
    let form = form.only(REFUND)?;
    let call = Call::Refund(CreateRefund {
        intent_id: form.get("payment_intent").ok_or_else(|| ApiError::missing("payment_intent"))?.to_owned(),
        amount: amount(&form, "amount")?,
        reason: one_of(&form, "reason", &["duplicate", "fraudulent", "requested_by_customer"])?,
        metadata: metadata(&form)?,
    });
    Ok((form, call))
}

/// `GET /v1/payment_intents/{id}`.
pub(super) fn query(form: Form, intent_id: &str) -> Result<(Form, Call), ApiError> {
    let form = form.only("client_secret expand")?;
    Ok((form, Call::Query { intent_id: intent_id.to_owned() }))
}

/// Whether what a member names is to come whole, such as the charge of an intent.
pub(super) fn expand_one(form: &Form, expandable: &str) -> Result<bool, ApiError> {
    let mut expand = false;
    for wanted in form.list("expand") {
        if wanted != expandable {
            let message = format!("This property cannot be expanded ({wanted}).");
            return Err(ApiError::invalid("parameter_invalid", "expand", message));
        }
        expand = true;
    }
    Ok(expand)
}

/// Which page of a list is wanted.
pub(super) struct Paging<'a> {
    pub(super) limit: usize,
    pub(super) starting_after: Option<&'a str>,
    /// Seconds: from the first on, before the second.
    pub(super) created: std::ops::Range<i64>,
}

/// The parameters that every list has.
pub(super) fn paging(form: &Form) -> Result<Paging<'_>, ApiError> {
    let limit = match form.integer("limit")? {
        None => LIST_LIMIT_DEFAULT,
        Some(limit) => {
            usize::try_from(limit).ok().filter(|limit| (1..=LIST_LIMIT_MAX).contains(limit)).ok_or_else(
                || ApiError::invalid("parameter_invalid_integer", "limit", "The limit is from 1 to 100."),
            )?
        }
    };
    let from = form.integer("created[gte]")?.or(form.integer("created[gt]")?.map(|at| at.saturating_add(1)));
    let to = form.integer("created[lt]")?.or(form.integer("created[lte]")?.map(|at| at.saturating_add(1)));
    let created = from.unwrap_or(i64::MIN)..to.unwrap_or(i64::MAX);
    Ok(Paging { limit, starting_after: form.get("starting_after"), created })
}

fn amount(form: &Form, name: &'static str) -> Result<Option<i64>, ApiError> {
    match form.integer(name)? {
        Some(amount) if amount < 1 => Err(ApiError::invalid(
            "parameter_invalid_integer",
            name,
            "This value must be greater than or equal to 1.",
        )),
        Some(amount) if amount > AMOUNT_MAX => Err(ApiError::invalid(
            "amount_too_large",
            name,
            format!("Amount must be no more than {AMOUNT_MAX}."),
        )),
        amount => Ok(amount),
    }
}

fn payment_method(form: &Form) -> Result<Option<Arc<str>>, ApiError> {
    let Some(id) = form.get("payment_method") else { return Ok(None) };
    if ["pm_", "tok_", "card_"].iter().any(|prefix| id.starts_with(prefix)) {
        Ok(Some(id.into()))
    } else {
        Err(ApiError::no_such(400, "PaymentMethod", id, "payment_method"))
    }
}

fn one_of(form: &Form, name: &'static str, words: &[&'static str]) -> Result<Option<&'static str>, ApiError> {
    let Some(text) = form.get(name) else { return Ok(None) };
    let word = words.iter().find(|word| **word == text).copied();
    let word = word.ok_or_else(|| {
        let message = format!("Invalid {name}: must be one of {}", words.join(", "));
        ApiError::invalid("parameter_invalid", name, message)
    })?;
    Ok(Some(word))
}

fn metadata(form: &Form) -> Result<Metadata, ApiError> {
    // Sent empty, an entry is taken away, as at the provider.
    let entries: Metadata = form
        .entries("metadata")
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| (name.into(), value.into()))
        .collect();
    let fits = |(name, value): &(Box<str>, Box<str>)| {
        name.chars().count() <= METADATA_NAME_CHARS_MAX && value.chars().count() <= METADATA_VALUE_CHARS_MAX
    };
    if entries.len() > METADATA_ENTRIES_MAX || !entries.iter().all(fits) {
        let message = format!(
            "Metadata can have {METADATA_ENTRIES_MAX} entries, with names of {METADATA_NAME_CHARS_MAX} and values \
             of {METADATA_VALUE_CHARS_MAX} characters."
        );
        return Err(ApiError::invalid("parameter_invalid", "metadata", message));
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal_of(read: fn(Form) -> Result<(Form, Call), ApiError>, text: &str) -> String {
        let error = Form::parse(text.as_bytes()).and_then(read).err().expect("it is refused");
        assert!(!error.executed, "what isn't well-formed isn't kept");
        format!("{} {} {}", error.status, error.code.unwrap_or("-"), error.param.as_deref().unwrap_or("-"))
    }

    #[test]
    fn what_is_not_well_formed_is_refused_with_its_parameter() {
        let table = [
            ("currency=eur", "400 parameter_missing amount"),
            ("amount=5", "400 parameter_missing currency"),
            ("amount=0&currency=eur", "400 parameter_invalid_integer amount"),
            ("amount=5.5&currency=eur", "400 parameter_invalid_integer amount"),
            ("amount=100000000&currency=eur", "400 amount_too_large amount"),
            ("amount=5&currency=euro", "400 parameter_invalid currency"),
            ("amount=5&currency=eur&capture_method=later", "400 parameter_invalid capture_method"),
            ("amount=5&currency=eur&payment_method=visa", "400 resource_missing payment_method"),
            ("amount=5&currency=eur&confirm=true", "400 parameter_missing payment_method"),
            ("amount=5&currency=eur&confirm=yes&payment_method=pm_x", "400 parameter_invalid confirm"),
            ("amount=5&currency=eur&metdata[a]=b", "400 parameter_unknown metdata[a]"),
        ];
        for (text, want) in table {
            assert_eq!(refusal_of(create, text), want, "{text}");
        }
        assert_eq!(refusal_of(refund, "amount=5"), "400 parameter_missing payment_intent");
        assert_eq!(refusal_of(refund, "payment_intent=pi_1&reason=mood"), "400 parameter_invalid reason");
    }
}
