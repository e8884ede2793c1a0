//! Refusals and failures as problems.

use onsale_core::limits::{NOTE_BYTES_MAX, is_note};
use onsale_core::refusal::Refusal;
use onsale_store::{StoreError, SubmitError, chain};

use crate::app::AppError;
use crate::catalog::ManifestIndex;

use super::problem::{Code, FieldError, Problem};

/// A refusal that may be about seats, which the problem names by the organiser's ids.
pub(crate) fn refused_seats(refusal: &Refusal, manifest: &ManifestIndex) -> Problem {
    let problem = refused(refusal);
    match refusal {
        Refusal::SeatUnavailable(seats) => {
            let names: Vec<&str> = seats.iter().map(|seat| manifest.seat_id(*seat)).collect();
            problem.with("seats", names)
        }
        Refusal::NotEnoughAvailable { area: Some(area) } => problem.with("ga_area", manifest.ga_area(*area)),
        _ => problem,
    }
}

/// A refusal of the core as a problem.
pub(crate) fn refused(refusal: &Refusal) -> Problem {
    match refusal {
        Refusal::KeyReused => Problem::new(
            Code::IdempotencyKeyReused,
            "This key was used for another request; a new request needs a new key.",
        ),
        Refusal::NotFound => not_found(),
        Refusal::EventPaused => Problem::new(Code::EventPaused, "The sale is paused.").retry_after(10),
        Refusal::NotOnSale => Problem::new(Code::EventNotOnSale, "The event is not on sale now."),
        Refusal::ManifestChanged => {
            Problem::new(Code::Overloaded, "The seats were laid out anew while this was being read.")
                .retry_after(1)
        }
        Refusal::ManifestFrozen => {
            Problem::new(Code::ManifestFrozen, "The event has been opened: its seats can't be laid out anew.")
        }
        Refusal::NotReady(why) => Problem::new(Code::ActionNotPossible, format!("Not done: {why}.")),
        Refusal::TooManySeats { limit } => {
            Problem::new(Code::TooManySeats, format!("A hold of this event has at most {limit} seats."))
                .with("limit", *limit)
        }
        Refusal::AccountLimit { limit, in_use } => Problem::new(
            Code::AccountLimit,
            format!("An account may have {limit} tickets of this event; this one has {in_use}."),
        )
        .with("limit", *limit)
        .with("in_use", *in_use),
        Refusal::SeatUnavailable(_) => Problem::new(
            Code::SeatUnavailable,
            "Someone else has these seats, or they are not for sale; nothing was changed.",
        ),
        Refusal::NotEnoughAvailable { .. } => Problem::new(
            Code::NotEnoughAvailable,
            "There are not as many fitting places left as were asked for; nothing was changed.",
        ),
        Refusal::AccessCodeInvalid(why) => {
            Problem::new(Code::AccessCodeInvalid, format!("The access code can't be used: {why}."))
        }
        Refusal::AccessCodeExhausted { limit, in_use } => Problem::new(
            Code::AccessCodeExhausted,
            format!("The access code is good for {limit} tickets; {in_use} of them are held or bought."),
        )
        .with("limit", *limit)
        .with("in_use", *in_use),
        Refusal::NotRefundable(why) => Problem::new(Code::NotRefundable, format!("Not done: {why}.")),
        Refusal::RefundPending => {
            Problem::new(Code::RefundPending, "A refund of this order is still open; its result comes first.")
        }
        Refusal::RefundTooLarge { left_minor } => Problem::new(
            Code::RefundTooLarge,
            format!("{left_minor} minor units are left of what was taken for this order."),
        )
        .with("left_minor", *left_minor),
        Refusal::HoldExpired => Problem::new(Code::HoldExpired, "The hold's time is over."),
        Refusal::HoldNotActive => Problem::new(Code::HoldNotActive, "The hold has been released or used."),
        Refusal::PaymentPending => {
            Problem::new(Code::PaymentPending, "A payment is still open; its result comes first.")
        }
        Refusal::PriceChanged => Problem::new(
            Code::PriceChanged,
            "The prices of these seats have changed since they were held: release them and hold them anew.",
        ),
        Refusal::TooLittleTime => {
            Problem::new(Code::TooLittleTime, "The hold ends before a payment could be finished.")
        }
        Refusal::AttemptsExhausted => {
            Problem::new(Code::AttemptsExhausted, "This order has been tried as often as it may.")
        }
        Refusal::PaymentsSaturated => {
            Problem::new(Code::Overloaded, "Too many payments of this event are open at once.").retry_after(5)
        }
        Refusal::CaseClosed => Problem::new(Code::CaseClosed, "The case is closed."),
        Refusal::ActionNotPossible(why) => Problem::new(Code::ActionNotPossible, format!("Not done: {why}.")),
    }
}

/// There is no such thing, or the caller may not know of it.
pub(crate) fn not_found() -> Problem {
    Problem::new(Code::NotFound, "There is nothing here that you may see.")
}

/// No home can be read, and what is known without them is no answer.
pub(crate) fn nobody_answers() -> Problem {
    Problem::new(Code::AuthorityUnavailable, "The database can't be read now.")
}

/// A reason or a note that can't be kept.
pub(crate) fn note_fault(pointer: &str, note: &str) -> Option<FieldError> {
    let detail = || format!("say why, in at most {NOTE_BYTES_MAX} bytes, without control characters");
    (!is_note(note)).then(|| FieldError::new(pointer, detail()))
}

/// A member that isn't one of its words.
pub(crate) fn not_one_of(pointer: &str, words: &[&str]) -> FieldError {
    FieldError::new(pointer, format!("must be one of: {}", words.join(", ")))
}

impl From<AppError> for Problem {
    fn from(error: AppError) -> Problem {
        match error {
            AppError::Submit(SubmitError::Overloaded | SubmitError::Expired) => {
                Problem::new(Code::Overloaded, "The sale is very busy; nothing was done.")
            }
            AppError::Submit(SubmitError::Elsewhere) => Problem::new(
                Code::AuthorityUnavailable,
                "The event is moving to another database; nothing was done.",
            ),
            AppError::Submit(SubmitError::Unavailable(cause)) => {
                tracing::error!(cause, "The database could not decide");
                Problem::new(Code::AuthorityUnavailable, "The database can't be used now; nothing was done.")
            }
            AppError::Submit(SubmitError::Unknown(cause)) => {
                tracing::error!(cause, "A commit's outcome is unknown");
                Problem::new(
                    Code::OutcomeUnknown,
                    "Ask again with the same key: the answer will be the truth.",
                )
            }
            AppError::Away(home) => {
                tracing::debug!(home, "A command's home is away");
                Problem::new(Code::AuthorityUnavailable, "The database can't be used now; nothing was done.")
            }
            AppError::Homeless(event) => {
                tracing::error!(
                    event.no = event.0,
                    "An event is at a home that isn't in this process's settings"
                );
                Problem::new(Code::AuthorityUnavailable, "The event's database can't be used from here.")
            }
            // Said once where it is found out, and not by everyone who comes.
            AppError::Store(StoreError::Away(home)) => {
                tracing::debug!(home, "The home of what is asked for is away");
                Problem::new(Code::AuthorityUnavailable, "The database can't be read now.")
            }
            AppError::Store(error) => {
                let error = chain(&error);
                tracing::error!(error, "The database could not be read");
                Problem::new(Code::AuthorityUnavailable, "The database can't be read now.")
            }
        }
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Problem {
        AppError::from(error).into()
    }
}
