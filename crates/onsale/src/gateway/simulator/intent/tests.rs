//! The life of one payment, transition by transition.

use super::*;

fn intent(capture_method: CaptureMethod) -> Intent {
    let origin = Origin {
        id: "pi_1".into(),
        secret: "pi_1_secret_2".into(),
        created: 100,
        currency: "eur".into(),
        capture_method,
        description: None,
        payment_method_types: Box::new(["card".into()]),
        metadata: Box::new([]),
        order_id: None,
    };
    Intent::new(origin, 500, None)
}

/// Runs a line such as `confirm pm_card_visa -> requires_capture | cancel -> canceled`, where a refused step names
/// its refusal, and returns what it led to.
#[track_caller]
fn check(capture_method: CaptureMethod, line: &str) -> Intent {
    let mut intent = intent(capture_method);
    for step in line.split(" | ") {
        let (operation, want) = step.split_once(" -> ").unwrap();
        let mut words = operation.split(' ');
        let verb = words.next().unwrap();
        let argument = words.next();
        let amount = argument.and_then(|text| text.parse().ok());
        let before = format!("{intent:?}");
        let result = match verb {
            "confirm" => intent.confirm(argument.map(Into::into), None, 110),
            "less" => intent.confirm(Some("pm_1".into()), Some(Verdict::ApprovedLess), 110),
            "process" => intent.confirm(Some("pm_1".into()), Some(Verdict::Processing), 110),
            "complete" => intent.complete(argument == Some("success"), 120),
            "capture" => intent.capture(amount),
            "cancel" => intent.cancel(Some("abandoned"), 130),
            "refund" => intent.refund(amount),
            other => panic!("no such step: {other}"),
        };
        let got = match result {
            Ok(_) => intent.status.as_str().to_owned(),
            Err(refusal) => {
                assert_eq!(format!("{intent:?}"), before, "{step}: a refusal changes nothing");
                format!("{refusal:?}")
            }
        };
        assert_eq!(got, want, "{step}");
        let open = intent.amount_capturable;
        assert_eq!(intent.authorised, open + intent.amount_received + intent.voided, "{step}: money adds up");
        assert!(intent.amount_refunded <= intent.amount_received, "{step}: no more back than taken");
    }
    intent
}

#[test]
fn manual_capture() {
    let paid = check(
        CaptureMethod::Manual,
        "confirm -> PaymentMethodMissing | confirm pm_x -> requires_capture | confirm pm_x -> UnexpectedState | \
         refund -> UnexpectedState | capture 501 -> AmountTooLarge | capture 400 -> succeeded | \
         capture -> UnexpectedState | cancel -> UnexpectedState",
    );
    assert_eq!((paid.amount_received, paid.voided, paid.charged_at), (400, 100, Some(110)));
}

#[test]
fn automatic_capture_and_refunds() {
    let paid = check(
        CaptureMethod::Automatic,
        "confirm tok_visa -> succeeded | refund 501 -> AmountTooLarge | refund 200 -> succeeded | \
         refund -> succeeded | refund -> AlreadyRefunded",
    );
    assert_eq!(paid.amount_refunded, 500);
}

#[test]
fn declines_can_be_tried_again() {
    let paid = check(
        CaptureMethod::Manual,
        "confirm pm_card_chargeDeclined -> requires_payment_method | confirm -> PaymentMethodMissing | \
         confirm tok_chargeDeclinedExpiredCard -> requires_payment_method | confirm pm_x -> requires_capture",
    );
    assert_eq!(paid.last_error, None);
    assert_eq!(Verdict::of("pm_card_visa_chargeDeclined"), Verdict::declined());
}

#[test]
fn authentication_and_processing() {
    let failed = check(
        CaptureMethod::Manual,
        "complete success -> UnexpectedState | confirm pm_card_authenticationRequired -> requires_action | \
         complete failure -> requires_payment_method",
    );
    let (decline, method) = failed.last_error.unwrap();
    assert_eq!(decline.code, "payment_intent_authentication_failure");
    assert_eq!(method.as_deref(), Some("pm_card_authenticationRequired"));
    check(
        CaptureMethod::Manual,
        "confirm pm_card_threeDSecure2Required -> requires_action | complete success -> requires_capture",
    );
    check(
        CaptureMethod::AutomaticAsync,
        "process -> processing | cancel -> UnexpectedState | complete success -> succeeded",
    );
}

#[test]
fn cancelling_lets_the_money_go() {
    let canceled = check(
        CaptureMethod::Manual,
        "less -> requires_capture | cancel -> canceled | cancel -> UnexpectedState | confirm pm_x -> UnexpectedState",
    );
    assert_eq!((canceled.amount, canceled.voided, canceled.canceled_at), (499, 499, Some(130)));
    check(CaptureMethod::Manual, "cancel -> canceled | capture -> UnexpectedState");
}
