//! How things stand.

use std::rc::Rc;

use super::say::verdict_text;
use super::words::{Words, is_name, time_text};
use super::{Page, account};

impl Page {
    /// Checks a fact, or gives an account tickets from elsewhere.
    pub(super) fn fact(&mut self, text: &str) {
        let mut words = Words::of(text);
        if words.peek().is_some_and(|word| is_name(word, |letter| letter.is_ascii_uppercase())) {
            let seats = words.seats();
            let expected = rest(&mut words);
            for label in seats {
                same(label, self.seat_text(self.ordinal(label)), &expected);
            }
            return;
        }
        let first = words.next();
        match first {
            "cases" => {
                same("cases", self.cases_text(), text.strip_prefix("cases").unwrap_or_default().trim())
            }
            // `case in_doubt o1 of olga: void by olga`
            "case" => {
                let kind = words.next();
                let order = words.peek().filter(|word| *word != "of");
                if order.is_some() {
                    words.next();
                }
                same(kind, self.case_text(self.case(kind, order)), &rest(&mut words));
            }
            "tickets" => {
                let order = words.next();
                let (_, expected) = text.split_once(order).expect("the word was taken");
                same(order, self.tickets_text(self.order(order)), expected.trim());
            }
            "conflicts" => {
                let expected = text.strip_prefix("conflicts").unwrap_or_default();
                same("conflicts", self.conflicts_text(), expected.trim());
            }
            "pending" => same("pending", self.world.hall().payment_pending.to_string(), &rest(&mut words)),
            "log" => {
                let mut kinds = self.world.log.iter().map(|entry| entry.kind.as_str());
                same("log", kinds.next_back().unwrap_or_default().to_owned(), &rest(&mut words));
            }
            hold if is_name(hold, |letter| letter == 'h') => {
                same(hold, self.hold_text(self.hold(hold)), &rest(&mut words));
            }
            callback if callback.starts_with("ev") => {
                let row = &self.world.callbacks[callback];
                let case = if row.case.is_some() { " with a case" } else { "" };
                let due = time_text(row.due_at);
                same(callback, format!("{} due {due}{case}", verdict_text(row.verdict)), &rest(&mut words));
            }
            order if order.starts_with('o') => self.order_fact(order, words, text),
            buyer => {
                words.expect("has");
                let tickets = words.number() as u32;
                words.expect("from");
                words.expect("elsewhere");
                Rc::make_mut(&mut self.world.elsewhere).insert(account(buyer), tickets);
            }
        }
    }

    /// `o1 CONFIRMED CAPTURED`, `o1 did authorize SUCCEEDED, capture PENDING`, `o1 void due 112s`.
    fn order_fact(&self, order: &str, mut words: Words<'_>, text: &str) {
        if words.take("did") {
            let (_, expected) = text.split_once("did ").expect("the word was taken");
            return same(order, self.operations_text(self.order(order)), expected);
        }
        if matches!(words.peek(), Some("due" | "capture" | "void" | "refund")) {
            let operation = self.operation(order, &mut words);
            return same(order, format!("due {}", time_text(operation.due_at)), &rest(&mut words));
        }
        same(order, self.order_text(&self.world.orders[&self.order(order)]), &rest(&mut words));
    }
}

fn rest(words: &mut Words<'_>) -> String {
    let mut rest = Vec::new();
    while let Some(word) = words.next_if_any() {
        rest.push(word);
    }
    rest.join(" ")
}

fn same(what: &str, got: String, expected: &str) {
    assert!(got == expected, "expected: {what} {expected}\n     got: {what} {got}");
}
