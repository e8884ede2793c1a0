//! Words that belong to one place: SQL, clocks, waiting, the provider's names; and words that belong nowhere.

use super::lex::Rust;
use super::tree::File;
use super::{Report, Tree};

#[derive(Clone, Copy, PartialEq)]
enum Part {
    Code,
    Literals,
    /// Code and literals.
    Either,
    Comments,
}

struct Rule {
    /// `…` stands for anything between two words.
    words: &'static [&'static str],
    /// Where they are looked for.
    part: Part,
    /// May tests say them anywhere?
    in_tests: bool,
    /// Files and folders that may say them, and why they may.
    places: &'static [(&'static str, &'static str)],
    why: &'static str,
}

const HERE: (&str, &str) = ("xtask/src/tidy/", "the rules, and faults planted to test them");

const RULES: &[Rule] = &[
    Rule {
        words: &["SELECT ", "INSERT INTO", "UPDATE … SET ", "DELETE FROM", "CREATE TABLE"],
        part: Part::Literals,
        in_tests: false,
        places: &[
            HERE,
            ("bench/src/scenario/ceiling.rs", "the same rows by hand, for comparison"),
            ("bench/src/scenario/postgres/", "the same by hand, for comparison"),
            ("crates/postgres_server/src/", "asks a server about itself, not about what is kept in it"),
            (
                "crates/chaos/src/cluster/statements.rs",
                "a cluster's owner looks into it, apart from the application",
            ),
            ("crates/chaos/src/verdict/database.rs", "a witness beside the application reads what is stored"),
            ("crates/store/", "the store is where SQL is"),
            ("crates/onsale/tests/it/util/database.rs", "does to a database what only another program would"),
        ],
        why: "SQL is under crates/store alone: who asks says what he means, and not how it is kept",
    },
    Rule {
        words: &["SystemTime::now", "Timestamp::now", "Zoned::now", "UNIX_EPOCH.elapsed"],
        part: Part::Code,
        in_tests: false,
        places: &[
            ("crates/onsale/src/clock.rs", "the one place that reads the time for decisions"),
            ("crates/onsale/src/demo", "buyers look at their own clocks"),
            ("crates/onsale/src/gateway/simulator.rs", "the provider stamps its objects by its own clock"),
            ("crates/onsale/tests/it/util/", "the provider signs callbacks with the real time"),
        ],
        why: "only the clock reads the time, so that every decision can be replayed",
    },
    Rule {
        words: &["as &dyn std::error::Error"],
        part: Part::Code,
        in_tests: false,
        places: &[],
        why: "a log line of that has the outermost error alone: `chain` gives it with its causes",
    },
    Rule {
        words: &["Instant::now"],
        part: Part::Code,
        in_tests: true,
        places: &[
            (
                "crates/onsale/src/app",
                "how long a command may wait for the writer, and whether the directory was read since",
            ),
            ("crates/onsale/src/desk.rs", "how long a home hasn't answered"),
            ("crates/onsale/src/demo", "measures what buyers see"),
            ("crates/onsale/src/gateway/simulator/", "the provider's deliveries keep their own time"),
            ("crates/onsale/src/http/orders.rs", "how long a caller waits for an order to change"),
            ("crates/onsale/src/http/router.rs", "measures answers"),
            ("crates/postgres_server/src/lib.rs", "how long it is waited for a server"),
            ("crates/chaos/src/play.rs", "measures how long a fault takes"),
            ("crates/chaos/src/sale/ledger.rs", "measures the time without an acknowledged hold"),
            ("crates/chaos/src/wait.rs", "bounds every wait"),
            ("crates/sim/src/main.rs", "measures worlds a second"),
            ("crates/store/src/postgres.rs", "how long ago a home could not be reached"),
            ("crates/store/src/postgres/backend.rs", "how long a commit without an answer is asked about"),
            ("crates/store/src/postgres/pool.rs", "how long a look waits for a connection"),
            ("crates/store/src/sqlite/backend.rs", "measures commits"),
            ("crates/store/src/sqlite/open.rs", "how long opening waits for another program"),
            ("crates/store/src/writer.rs", "drops what waited too long in the queue, and measures batches"),
            ("bench/src/", "measures"),
            ("xtask/src/steps.rs", "measures steps"),
        ],
        why: "an Instant measures or bounds a wait and decides nothing: a new place is named in xtask/src/tidy/words.rs",
    },
    Rule {
        words: &["sleep(", "sleep_until(", "sleep_ms("],
        part: Part::Code,
        in_tests: false,
        places: &[
            ("bench/src/load.rs", "an open load's requests are due at a rate"),
            ("bench/src/scenario/checkouts.rs", "between two looks at how far the payments are"),
            ("crates/chaos/src/sale/buyer.rs", "buyers think, and pause when there is no answer"),
            ("crates/chaos/src/wait.rs", "between two looks, and while a fault lasts"),
            ("crates/onsale/src/demo", "buyers arrive and think at their own pace"),
            ("crates/onsale/src/gateway/simulator.rs", "lets connections end before the simulator stops"),
            ("crates/onsale/src/gateway/simulator/server.rs", "the provider's slowness, as scripted"),
            (
                "crates/onsale/src/http/listener.rs",
                "lets descriptors come free when none is left to accept with",
            ),
            ("crates/onsale/src/http/listener/stream.rs", "the deadline of a connection that stalls"),
            ("crates/onsale/src/http/router.rs", "holds a refusal back when a storm is on"),
            ("crates/onsale/src/server.rs", "lets a load balancer notice before the listeners close"),
            ("crates/onsale/src/worker", "a worker's period"),
            (
                "crates/store/src/postgres/backend.rs",
                "before another try: those who were in each other's way, and a server that doesn't answer yet",
            ),
            ("crates/store/src/fail_point/", "a step that takes its time, as a test wants it"),
            ("crates/postgres_server/src/lib.rs", "between two looks at whether a server is there"),
            (
                "crates/store/src/sqlite/open.rs",
                "the engine itself doesn't wait for whoever else turns on the WAL",
            ),
            ("crates/onsale/tests/it/util/client.rs", "the one loop in which tests wait for a state"),
        ],
        why: "whoever sleeps guesses: wait for the state itself; tests too, or they are slow and fail now and then",
    },
    Rule {
        words: &["payment_intent", "PaymentIntent"],
        part: Part::Either,
        in_tests: true,
        places: &[HERE, ("crates/onsale/src/gateway/", "the provider's adapter and its simulator")],
        why: "the provider's words stop at the gateway, so that another provider changes nothing else",
    },
    Rule {
        words: &["stripe", "Stripe"],
        part: Part::Literals,
        in_tests: true,
        places: &[
            HERE,
            ("crates/onsale/src/gateway/", "the provider's adapter and its simulator"),
            ("crates/chaos/src/sale/shop.rs", "the provider is told our path"),
            ("crates/onsale/src/http/callbacks.rs", "the provider's header and its name in our path"),
            ("crates/onsale/src/server.rs", "our own path for the simulator's callbacks"),
        ],
        why: "the provider's addresses and names stop at the gateway, so that another provider changes nothing else",
    },
    Rule {
        words: &["todo!", "unimplemented!", "dbg!"],
        part: Part::Code,
        in_tests: false,
        places: &[],
        why: "what is not finished is not committed",
    },
    Rule {
        words: &["Ground", "syncs_commits", "onsale_faulty_disk"],
        part: Part::Code,
        in_tests: false,
        places: &[("crates/store/", "the store takes what its tests put under it")],
        why: "the program stands on the usual files and syncs every commit: nothing configures that away",
    },
    Rule {
        words: &["#[ignore"],
        part: Part::Code,
        in_tests: false,
        places: &[],
        why: "a test that nobody runs says nothing: assert today's answer, and say that it is wrong",
    },
    Rule {
        words: &["FIXME", "XXX"],
        part: Part::Comments,
        in_tests: false,
        places: &[],
        why: "mend it now, or write down in the documents what is missing",
    },
];

pub(super) fn check(tree: &Tree, report: &mut Report) {
    for rule in RULES {
        let mut used = vec![false; rule.places.len()];
        for (path, file, rust) in tree.rust() {
            let place = rule.places.iter().position(|(place, _)| path.starts_with(place));
            for (line, word) in found(rule, file, rust) {
                match place {
                    Some(place) => used[place] = true,
                    None => report.fault(path, line, format!("says `{word}`"), rule.why),
                }
            }
        }
        for ((place, reason), _) in rule.places.iter().zip(used).filter(|(_, used)| !used) {
            report.note(format!("nothing in {place} says `{}` any more ({reason})", rule.words[0].trim()));
        }
    }
}

fn found(rule: &Rule, file: &File, rust: &Rust) -> Vec<(usize, &'static str)> {
    let mut found = Vec::new();
    let mut look = |line: usize, text: &str| {
        if !(rule.in_tests && file.is_test(line)) {
            found.extend(rule.words.iter().filter(|word| says(text, word)).map(|word| (line, *word)));
        }
    };
    for (at, line) in rust.lines.iter().enumerate() {
        match rule.part {
            Part::Code | Part::Either => look(at + 1, &line.code),
            Part::Comments => look(at + 1, &line.comment),
            Part::Literals => {}
        }
    }
    if matches!(rule.part, Part::Literals | Part::Either) {
        for literal in &rust.literals {
            // A word at a line's end is still followed by another.
            let text = literal.text.split_whitespace().collect::<Vec<_>>().join(" ") + " ";
            look(literal.line, &text);
        }
    }
    found
}

/// Is the word said, as a word of its own? The parts around a `…` follow each other.
fn says(text: &str, word: &str) -> bool {
    let mut rest = text;
    word.split('…').all(|part| {
        let part = if part.len() < word.len() { part.trim() } else { part };
        match position(rest, part) {
            Some(at) => {
                rest = &rest[at + part.len()..];
                true
            }
            None => false,
        }
    })
}

fn position(text: &str, word: &str) -> Option<usize> {
    let begins = |at: usize| {
        let in_word = |c: char| c.is_alphanumeric() || c == '_';
        !(word.starts_with(in_word) && text[..at].ends_with(in_word))
    };
    text.match_indices(word).map(|(at, _)| at).find(|at| begins(*at))
}

#[cfg(test)]
mod tests {
    use super::super::expect;
    use super::*;

    #[test]
    fn planted_words_are_found_where_they_do_not_belong() {
        let http = "fn f() {\n    // SELECT is fine here\n    q(\"UPDATE seats\n      SET x\");\n    q(\"select one\");\n}\n";
        let clocks = "let a = SystemTime::now();\nlet b = Instant::now();\nlet c = MyInstant::now();\n";
        let tests = "#[cfg(test)]\nmod tests {\n    Instant::now();\n    thread::sleep(d);\n    f(\"payment_intent\");\n}\n";
        let unfinished = "//! XXX\n#[ignore = \"slow\"]\nfn f() { todo!() }\n// FIXME: later\nfn g() { dbg!(\"todo!()\") }\n";
        let provider =
            "f(\"/v1/payment_intents\");\nlet payment_intent = g(\"api.stripe.com\", Stripe::new());\n";
        let files = [
            ("crates/onsale/src/http/a.rs", http),
            ("crates/store/src/a.rs", "q(\"SELECT 1\")\n"),
            ("crates/onsale/src/b.rs", clocks),
            ("crates/onsale/src/clock.rs", "SystemTime::now()\n"),
            ("crates/onsale/src/c.rs", tests),
            ("crates/onsale/src/d.rs", unfinished),
            ("crates/onsale/src/e.rs", provider),
            ("crates/onsale/src/gateway/e.rs", provider),
            ("crates/onsale/src/worker/f.rs", "tokio::time::sleep(period).await;\nnot_sleep(1);\n"),
            ("crates/onsale/tests/it/g.rs", "sleep(period).await;\nSystemTime::now();\n"),
        ];
        let faults = [
            "crates/onsale/src/b.rs:1: says `SystemTime::now`",
            "crates/onsale/src/b.rs:2: says `Instant::now`",
            "crates/onsale/src/c.rs:4: says `sleep(`",
            "crates/onsale/src/d.rs:1: says `XXX`",
            "crates/onsale/src/d.rs:2: says `#[ignore`",
            "crates/onsale/src/d.rs:3: says `todo!`",
            "crates/onsale/src/d.rs:4: says `FIXME`",
            "crates/onsale/src/d.rs:5: says `dbg!`",
            "crates/onsale/src/e.rs:1: says `payment_intent`",
            "crates/onsale/src/e.rs:2: says `payment_intent`",
            "crates/onsale/src/e.rs:2: says `stripe`",
            "crates/onsale/src/http/a.rs:3: says `UPDATE … SET `",
            "crates/onsale/tests/it/g.rs:1: says `sleep(`",
            "crates/onsale/tests/it/g.rs:2: says `SystemTime::now`",
        ];
        expect(check, &files, &faults);
    }

    #[test]
    fn every_place_says_why() {
        for (place, reason) in RULES.iter().flat_map(|rule| rule.places) {
            assert!(!place.is_empty() && reason.len() > 5, "{place}: {reason}");
        }
    }
}
