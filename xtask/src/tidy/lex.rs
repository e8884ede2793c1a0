//! Takes Rust apart into code, string literals and comments, so that a rule about one doesn't trip over another.

/// A file taken apart.
pub(super) struct Rust {
    pub(super) lines: Vec<Line>,
    pub(super) literals: Vec<Literal>,
}

#[derive(Default)]
pub(super) struct Line {
    /// Without comments, and without what stands inside quotes.
    pub(super) code: String,
    pub(super) comment: String,
    /// Does a string literal begin, go on or end here?
    pub(super) quoted: bool,
}

/// A string literal as it is written, and the line where it begins.
pub(super) struct Literal {
    pub(super) line: usize,
    pub(super) text: String,
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    Code,
    LineComment,
    /// How many are open.
    BlockComment(usize),
    /// With as many `#` as end it; `None` when `\` escapes.
    Text(Option<usize>),
}

pub(super) fn lex(text: &str) -> Rust {
    let chars: Vec<char> = text.chars().collect();
    let mut rust = Rust { lines: vec![Line::default()], literals: Vec::new() };
    let (mut state, mut at) = (State::Code, 0);
    while at < chars.len() {
        let rest = &chars[at..];
        let number = rust.lines.len();
        let line = rust.lines.last_mut().expect("there is always a line");
        // What is taken in one go; no line end is among it, except as an escape in a text.
        let mut taken = 1;
        match state {
            _ if rest[0] == '\n' => {
                let in_text = matches!(state, State::Text(_));
                if let (true, Some(literal)) = (in_text, rust.literals.last_mut()) {
                    literal.text.push('\n');
                }
                if state == State::LineComment {
                    state = State::Code;
                }
                rust.lines.push(Line { quoted: in_text, ..Line::default() });
            }
            State::Code => match rest {
                ['/', '/', ..] => state = State::LineComment,
                ['/', '*', ..] => (state, taken) = (State::BlockComment(1), 2),
                ['\'', ..] => {
                    taken = char_literal(rest);
                    line.code.push('\'');
                }
                _ => match opening(rest, chars[..at].last()) {
                    Some((length, hashes)) => {
                        (state, taken, line.quoted) = (State::Text(hashes), length, true);
                        line.code.push('"');
                        rust.literals.push(Literal { line: number, text: String::new() });
                    }
                    None => line.code.push(rest[0]),
                },
            },
            State::LineComment => line.comment.push(rest[0]),
            State::BlockComment(open) => match rest {
                ['/', '*', ..] => (state, taken) = (State::BlockComment(open + 1), 2),
                ['*', '/', ..] if open == 1 => (state, taken) = (State::Code, 2),
                ['*', '/', ..] => (state, taken) = (State::BlockComment(open - 1), 2),
                _ => line.comment.push(rest[0]),
            },
            State::Text(hashes) => {
                let literal = rust.literals.last_mut().expect("a text was begun");
                match (hashes, rest) {
                    (None, ['\\', next, ..]) if *next != '\n' => {
                        literal.text.extend(['\\', *next]);
                        taken = 2;
                    }
                    (_, ['"', ..]) if closes(rest, hashes.unwrap_or(0)) => {
                        (state, taken) = (State::Code, 1 + hashes.unwrap_or(0));
                        line.code.push('"');
                    }
                    _ => literal.text.push(rest[0]),
                }
            }
        }
        at += taken;
    }
    rust
}

/// How long a character literal is, or 1 for the quote of a lifetime.
fn char_literal(rest: &[char]) -> usize {
    match rest {
        ['\'', '\\', _, more @ ..] => 3 + more.iter().position(|c| *c == '\'').map_or(0, |end| end + 1),
        ['\'', _, '\'', ..] => 3,
        _ => 1,
    }
}

/// The length of a text's beginning, and the `#` that end it when it is raw.
fn opening(rest: &[char], before: Option<&char>) -> Option<(usize, Option<usize>)> {
    let in_word = before.is_some_and(|c| c.is_alphanumeric() || *c == '_');
    match rest {
        ['"', ..] => Some((1, None)),
        ['b' | 'c', 'r', '"' | '#', ..] if !in_word => {
            opening(&rest[1..], None).map(|(length, hashes)| (length + 1, hashes))
        }
        ['r', more @ ..] if !in_word => {
            let hashes = more.iter().take_while(|c| **c == '#').count();
            (more.get(hashes) == Some(&'"')).then_some((hashes + 2, Some(hashes)))
        }
        _ => None,
    }
}

fn closes(rest: &[char], hashes: usize) -> bool {
    rest.len() > hashes && rest[1..=hashes].iter().all(|c| *c == '#')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_literals_and_comments_are_told_apart() {
        let check = |text: &str, code: &str, literals: &[(usize, &str)], comments: &str| {
            let rust = lex(text);
            let joined = |part: fn(&Line) -> &str| rust.lines.iter().map(part).collect::<Vec<_>>().join("\n");
            assert_eq!(joined(|line| &line.code), code, "{text}");
            assert_eq!(joined(|line| &line.comment), comments, "{text}");
            let found: Vec<_> = rust.literals.iter().map(|found| (found.line, found.text.as_str())).collect();
            assert_eq!(found, literals, "{text}");
        };
        check("a // b \"c\"\nd", "a \nd", &[], "/ b \"c\"\n");
        check("f(\"x // y\") // z", "f(\"\") ", &[(1, "x // y")], "/ z");
        check(r#"f("a\"b\\", c)"#, "f(\"\", c)", &[(1, r#"a\"b\\"#)], "");
        check("r#\"a\"b\"# + br\"c\\\"", "\"\" + \"\"", &[(1, "a\"b"), (1, "c\\")], "");
        check("let r#type = 'a';", "let r#type = ';", &[], "");
        check("x::<'a>('\"', '\\'', '\\u{1F}', \"s\")", "x::<'a>(', ', ', \"\")", &[(1, "s")], "");
        check("\"a\nb\" c", "\"\n\" c", &[(1, "a\nb")], "\n");
        check("a /* b /* c */\n d */ e", "a \n e", &[], " b  c \n d ");
        check("var\"x\"", "var\"\"", &[(1, "x")], "");
    }

    #[test]
    fn lines_that_a_literal_touches_are_marked() {
        let quoted: Vec<bool> = lex("a\n\"b\nc\nd\"\ne").lines.iter().map(|line| line.quoted).collect();
        assert_eq!(quoted, [false, true, true, true, false]);
    }
}
