//! Which module may use which: all of the core, and the layers of the program and the store.

use std::collections::BTreeSet;

use super::lex::Rust;
use super::{Report, Tree};

const CORE: &str = "crates/core/src/";

/// What each module of the core uses, in reading order. A new edge is a decision: it is made here, in review. The
/// lifecycles (`hold`, `order`, `payment`, `reconcile`) don't use each other, so that each can be read and changed
/// alone; `decide` brings them together. `order` alone says what is known of its money in the words of `payment`.
const CORE_USES: &[(&str, &str)] = &[
    ("lib", "planted"), // the macro of bugs that are planted in no program
    ("planted", ""),
    ("time", ""),
    ("money", ""),
    ("id", "time"),
    ("limits", "time"),
    ("manifest", ""),
    ("event", "id money time"),
    ("access", "id time"),
    ("ga", "id time"),
    ("gateway", "id money"),
    ("seat_map", "id time"),
    ("hold", "event ga id time"),
    ("order", "ga id money payment time"),
    ("payment", "id limits money time"),
    ("refund", "ga id time"),
    ("ticket", "id time"),
    ("reconcile", "id time"),
    ("refusal", "id"),
    ("idempotency", "id refusal time"),
    ("comparison", "gateway order payment reconcile time"),
    ("log", "event ga id payment reconcile ticket time"),
    ("layout", "id manifest"),
    ("board", "id layout log seat_map"),
    ("best_available", "best_available/split board event id layout limits"),
    ("best_available/split", "best_available id layout"),
    ("snapshot/need", "hold id"),
    ("snapshot/table", ""),
    (
        "snapshot",
        "access board command event ga hold id idempotency limits log manifest order payment reconcile refund seat_map ticket time",
    ),
    (
        "command",
        "access best_available decide decide/hold decide/observe event gateway hold id idempotency manifest reconcile refund refusal snapshot ticket time",
    ),
    ("decide", "command snapshot time"),
    ("decide/sale", "command event id log manifest refusal seat_map snapshot"),
    ("decide/access", "access command decide/places id limits log refusal seat_map snapshot time"),
    ("decide/ga", "command event ga id limits log refusal snapshot time"),
    ("decide/places", "event ga hold id refusal snapshot time"),
    (
        "decide/hold",
        "best_available command decide/access decide/books decide/places event ga hold id log order reconcile refusal seat_map snapshot time",
    ),
    (
        "decide/checkout",
        "command decide/books decide/hold ga hold id limits log money order payment refusal seat_map snapshot time",
    ),
    (
        "decide/refund",
        "command decide/books decide/hold decide/places ga id log money order payment refund refusal seat_map snapshot ticket time",
    ),
    (
        "decide/answer",
        "command decide/books decide/checkout decide/observe decide/refund gateway id limits payment reconcile refusal snapshot time",
    ),
    (
        "decide/observe",
        "decide/books decide/checkout decide/refund gateway id limits order payment reconcile seat_map snapshot time",
    ),
    (
        "decide/callback",
        "command decide/books decide/observe gateway id limits reconcile refusal snapshot time",
    ),
    (
        "decide/case",
        "command decide/books decide/observe event hold id log order payment reconcile refusal snapshot time",
    ),
    (
        "decide/reconcile",
        "command comparison decide/books decide/observe event gateway id reconcile refusal snapshot time",
    ),
    ("decide/ticket", "command decide/refund event ga id log order payment refusal snapshot ticket time"),
    (
        "decide/books",
        "decide/hold decide/places event ga hold id log money order payment reconcile seat_map snapshot time",
    ),
    ("errand", "command gateway limits payment time"),
];

struct Layer {
    /// Files whose path begins so …
    inside: &'static str,
    /// … don't use modules whose path begins so …
    avoids: &'static str,
    /// … except these.
    except: &'static [&'static str],
    why: &'static str,
}

const LAYERS: &[Layer] = &[
    Layer {
        inside: "crates/onsale/src/http",
        avoids: "crates/onsale/src/worker",
        except: &["crates/onsale/src/http/test_mode.rs"], // runs one pass of a worker when a test asks for it
        why: "a request is answered from the store; what happens by itself goes on beside it",
    },
    Layer {
        inside: "crates/onsale/src/worker",
        avoids: "crates/onsale/src/http",
        except: &[],
        why: "a worker carries messages; our JSON and our HTML are for those who ask",
    },
    Layer {
        inside: "crates/onsale/src/gateway",
        avoids: "crates/onsale/src/http/",
        except: &[],
        why: "the provider's protocol is not ours",
    },
    Layer {
        inside: "crates/store/src/sqlite",
        avoids: "crates/store/src/postgres",
        except: &[],
        why: "each database is read alone",
    },
    Layer {
        inside: "crates/store/src/postgres",
        avoids: "crates/store/src/sqlite",
        except: &[],
        why: "each database is read alone",
    },
];

pub(super) fn check(tree: &Tree, report: &mut Report) {
    let modules: BTreeSet<&str> = tree.rust().filter_map(|(path, ..)| path.strip_suffix(".rs")).collect();
    for (path, file, rust) in tree.rust() {
        let Some((krate, module)) = path.strip_suffix(".rs").and_then(|path| path.split_once("/src/")) else {
            continue;
        };
        let source = format!("{krate}/src/");
        let uses = uses(module, rust).into_iter().filter(|(line, _)| !file.is_test(*line));
        let uses: BTreeSet<(usize, String)> =
            uses.filter_map(|(line, path)| Some((line, file_of(&modules, &source, &path)?))).collect();
        if source == CORE {
            core(path, module, &uses, report);
        }
        for layer in
            LAYERS.iter().filter(|layer| path.starts_with(layer.inside) && !layer.except.contains(&path))
        {
            for (line, used) in
                uses.iter().filter(|(_, used)| format!("{source}{used}").starts_with(layer.avoids))
            {
                report.fault(path, *line, format!("uses {used}"), layer.why);
            }
        }
    }
}

fn core(path: &str, module: &str, uses: &BTreeSet<(usize, String)>, report: &mut Report) {
    let Some((_, allowed)) = CORE_USES.iter().find(|(name, _)| *name == module) else {
        let why = "the core is read in one order: give it a place in CORE_USES, in xtask/src/tidy/modules.rs";
        report.fault(path, 0, "is not in the table of the core's modules", why);
        return;
    };
    for (line, used) in
        uses.iter().filter(|(_, used)| used != module && !allowed.split(' ').any(|one| one == used))
    {
        let why = "the core's modules use each other as CORE_USES says, in xtask/src/tidy/modules.rs, and not otherwise";
        report.fault(path, *line, format!("uses {used}"), why);
    }
    for one in allowed.split_whitespace().filter(|one| !uses.iter().any(|(_, used)| used == one)) {
        report.note(format!("{path} no longer uses {one}: CORE_USES could say so"));
    }
}

/// The file, below `src/`, of the module where a path leads: the longest beginning of the path that is a file.
fn file_of(modules: &BTreeSet<&str>, source: &str, path: &[String]) -> Option<String> {
    let names = (1..=path.len()).rev().map(|length| path[..length].join("/"));
    names.into_iter().find(|name| modules.contains(format!("{source}{name}").as_str()))
}

/// Every path from the crate's root that a file names, with its line.
fn uses(module: &str, rust: &Rust) -> Vec<(usize, Vec<String>)> {
    let code: String = rust.lines.iter().map(|line| format!("{}\n", line.code)).collect();
    let own: Vec<String> = match module {
        "lib" | "main" => Vec::new(),
        _ => module.split('/').map(str::to_owned).collect(),
    };
    let mut found = Vec::new();
    for start in ["crate::", "super::"] {
        for (at, _) in code.match_indices(start) {
            // Not the middle of `super::super::`, nor the end of another word.
            if code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':') {
                continue;
            }
            let line = code[..at].matches('\n').count() + 1;
            let (mut from, mut rest) = (own.clone(), &code[at..]);
            while let Some(more) = rest.strip_prefix("super::") {
                from.pop();
                rest = more;
            }
            if let Some(more) = rest.strip_prefix("crate::") {
                (from, rest) = (Vec::new(), more);
            }
            expand(&from, rest, &mut |path| found.push((line, path)));
        }
    }
    found
}

/// Follows `a::{b, c::d}` from a path, and says where each branch leads. Returns what it has not read.
fn expand<'a>(from: &[String], text: &'a str, found: &mut dyn FnMut(Vec<String>)) -> &'a str {
    let text = text.trim_start();
    if let Some(mut rest) = text.strip_prefix('{') {
        while !rest.trim_start().starts_with('}') && !rest.is_empty() {
            rest = expand(from, rest, found).trim_start();
            rest = rest.strip_prefix(',').unwrap_or(rest);
        }
        return rest.trim_start().strip_prefix('}').unwrap_or("");
    }
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    let mut path = from.to_vec();
    path.push(name.to_owned());
    match rest.strip_prefix("::") {
        Some(rest) => expand(&path, rest, found),
        None => {
            found(path);
            // `as other`, `*`: nothing more to follow on this branch.
            &rest[rest.find([',', '}', ';', '\n']).unwrap_or(rest.len())..]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::expect;
    use super::*;

    #[test]
    fn new_edges_inside_the_core_are_found() {
        let files = [
            (
                "crates/core/src/hold.rs",
                "use crate::id::HoldId;\nuse crate::{event::Policy, payment::Operation};\n",
            ),
            (
                "crates/core/src/order.rs",
                "use crate::payment::PaymentStatus;\n// crate::hold\nfn f(_: crate::hold::Hold) {}\n",
            ),
            ("crates/core/src/payment.rs", "#[cfg(test)]\nmod tests {\n    use crate::order::Order;\n}\n"),
            (
                "crates/core/src/decide/sale.rs",
                "use super::{books::{self, pay}, hold as h};\nuse super::super::gateway::X;\n",
            ),
            ("crates/core/src/decide/books.rs", "pub(super) fn pay() {}\n"),
            ("crates/core/src/decide/hold.rs", ""),
            ("crates/core/src/gateway.rs", ""),
            ("crates/core/src/id.rs", ""),
            ("crates/core/src/event.rs", ""),
            ("crates/core/src/stranger.rs", ""),
        ];
        let faults = [
            "crates/core/src/decide/sale.rs:1: uses decide/books",
            "crates/core/src/decide/sale.rs:1: uses decide/hold",
            "crates/core/src/decide/sale.rs:2: uses gateway",
            "crates/core/src/hold.rs:2: uses payment",
            "crates/core/src/order.rs:3: uses hold",
            "crates/core/src/stranger.rs:0: is not in the table of the core's modules",
        ];
        expect(check, &files, &faults);
    }

    #[test]
    fn layers_that_reach_across_are_found() {
        let files = [
            ("crates/onsale/src/http/holds.rs", "use crate::worker::expirer;\nuse super::wire::X;\n"),
            ("crates/onsale/src/http/test_mode.rs", "use crate::worker::{expirer, payments};\n"),
            ("crates/onsale/src/http/wire.rs", ""),
            ("crates/onsale/src/worker.rs", "use crate::{\n    app::App,\n    http::wire,\n};\n"),
            ("crates/onsale/src/worker/expirer.rs", "use super::super::http::wire::X;\n"),
            ("crates/onsale/src/app.rs", "use crate::http::wire;\nuse crate::worker;\n"),
            (
                "crates/onsale/src/gateway/stripe.rs",
                "use super::super::http::wire::X;\nuse crate::app::App;\n",
            ),
            ("crates/store/src/sqlite/load.rs", "use crate::postgres;\nuse crate::writer;\n"),
            ("crates/store/src/postgres.rs", "use crate::sqlite::load::rows;\n"),
            ("crates/store/src/writer.rs", ""),
        ];
        let faults = [
            "crates/onsale/src/gateway/stripe.rs:1: uses http/wire",
            "crates/onsale/src/http/holds.rs:1: uses worker/expirer",
            "crates/onsale/src/worker.rs:1: uses http/wire",
            "crates/onsale/src/worker/expirer.rs:1: uses http/wire",
            "crates/store/src/postgres.rs:1: uses sqlite/load",
            "crates/store/src/sqlite/load.rs:1: uses postgres",
        ];
        expect(check, &files, &faults);
    }

    #[test]
    fn the_table_keeps_the_lifecycles_apart() {
        let lifecycles = ["hold", "order", "payment", "reconcile"];
        for (module, allowed) in CORE_USES.iter().filter(|(module, _)| lifecycles.contains(module)) {
            let others = allowed.split(' ').filter(|used| lifecycles.contains(used)).collect::<Vec<_>>();
            assert_eq!(others, if *module == "order" { vec!["payment"] } else { vec![] }, "{module}");
        }
    }
}
