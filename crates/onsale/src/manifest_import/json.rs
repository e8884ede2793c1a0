//! Checks a JSON document against a table of members, so that one walk finds every fault. What has been checked is then
//! read with plain look-ups that pass over whatever is wrong.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt::Write;

use serde_json::{Map, Value};

use super::{At, Fault, check};

/// What a value must be.
pub(super) enum Shape {
    /// Exactly these members.
    Object(&'static [Member]),
    /// At most so many elements.
    Array(&'static Shape, usize),
    /// An id, see [`check::id`].
    Id,
    /// A text that is not empty.
    Name,
    /// A text that we keep.
    Text,
    /// A text that we do not keep.
    Note,
    Flag,
    Number,
    Integer,
    Coordinate,
    /// How many people an area takes.
    Capacity,
    /// Over how many buckets an area's capacity is spread.
    Buckets,
    /// How good a seat is.
    Rank,
    OneOf(&'static [&'static str]),
    Nullable(&'static Shape),
    /// A text, in older versions; now this.
    NoteOr(&'static Shape),
}

pub(super) struct Member {
    name: &'static str,
    shape: Shape,
    need: Need,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Need {
    Required,
    Optional,
    /// Only older versions of the schema have it: accepted and named in [`Report::older`].
    Older,
}

pub(super) const fn required(name: &'static str, shape: Shape) -> Member {
    Member { name, shape, need: Need::Required }
}

pub(super) const fn optional(name: &'static str, shape: Shape) -> Member {
    Member { name, shape, need: Need::Optional }
}

pub(super) const fn older(name: &'static str, shape: Shape) -> Member {
    Member { name, shape, need: Need::Older }
}

/// What the walk found.
#[derive(Default)]
pub(super) struct Report {
    pub faults: Vec<Fault>,
    pub older: BTreeSet<&'static str>,
}

/// Checks a whole document.
pub(super) fn check(document: &Value, shape: &Shape) -> Report {
    let mut walk = Walk { path: Vec::new(), report: Report::default() };
    walk.value(document, shape);
    walk.report
}

/// The elements of an array member; none if it is missing or something else.
pub(super) fn elements<'a>(value: &'a Value, member: &str) -> &'a [Value] {
    value.get(member).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// A text member.
pub(super) fn text<'a>(value: &'a Value, member: &str) -> Option<&'a str> {
    value.get(member).and_then(Value::as_str)
}

/// The kind of a value, with its article.
pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

enum Step<'a> {
    Member(&'a str),
    Element(usize),
}

fn push_member(pointer: &mut String, name: &str) {
    pointer.push('/');
    pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
}

fn push_element(pointer: &mut String, index: usize) {
    write!(pointer, "/{index}").expect("writing to a string cannot fail");
}

struct Walk<'a> {
    path: Vec<Step<'a>>,
    report: Report,
}

impl<'a> Walk<'a> {
    fn fault(&mut self, detail: String) {
        let mut pointer = String::new();
        for step in &self.path {
            match step {
                Step::Member(name) => push_member(&mut pointer, name),
                Step::Element(index) => push_element(&mut pointer, *index),
            }
        }
        self.report.faults.push(Fault { at: At::Pointer(pointer), detail });
    }

    fn note(&mut self, verdict: Result<(), String>) {
        if let Err(detail) = verdict {
            self.fault(detail);
        }
    }

    fn value(&mut self, value: &'a Value, shape: &Shape) {
        let expected = match (shape, value) {
            (Shape::Object(members), Value::Object(map)) => return self.object(map, members),
            (Shape::Array(element, max), Value::Array(list)) => return self.array(list, element, *max),
            (Shape::Id, Value::String(text)) => return self.note(check::id(text)),
            (Shape::Name, Value::String(text)) => return self.note(check::name(text)),
            (Shape::Text, Value::String(text)) => return self.note(check::text(text)),
            (Shape::Note | Shape::NoteOr(_), Value::String(_)) => return,
            (Shape::Flag, Value::Bool(_)) => return,
            (Shape::Number, Value::Number(_)) => return,
            (Shape::Integer, Value::Number(number)) if is_integer(number) => return,
            (Shape::Coordinate, Value::Number(number)) => {
                return self.note(check::coordinate(number.as_f64().unwrap_or(f64::NAN)));
            }
            (Shape::Capacity, Value::Number(number)) => return self.note(check::capacity(number.as_u64())),
            (Shape::Buckets, Value::Number(number)) => return self.note(check::buckets(number.as_u64())),
            (Shape::Rank, Value::Number(number)) => {
                return self.note(check::rank(number.as_u64()).map(|_| ()));
            }
            (Shape::OneOf(words), Value::String(text)) => {
                if !words.contains(&text.as_str()) {
                    self.fault(format!("expected one of {}, found {}", words.join(", "), check::quote(text)));
                }
                return;
            }
            (Shape::Nullable(_), Value::Null) => return,
            (Shape::Nullable(inner) | Shape::NoteOr(inner), _) => return self.value(value, inner),
            (Shape::Object(_), _) => "an object",
            (Shape::Array(..), _) => "an array",
            (Shape::Id | Shape::Name | Shape::Text | Shape::Note | Shape::OneOf(_), _) => "a string",
            (Shape::Flag, _) => "true or false",
            (Shape::Number | Shape::Coordinate, _) => "a number",
            (Shape::Integer | Shape::Capacity | Shape::Buckets | Shape::Rank, _) => "an integer",
        };
        self.fault(format!("expected {expected}, found {}", kind(value)));
    }

    fn object(&mut self, map: &'a Map<String, Value>, members: &[Member]) {
        for member in members {
            match map.get(member.name) {
                Some(value) => {
                    if member.need == Need::Older {
                        self.report.older.insert(member.name);
                    }
                    self.path.push(Step::Member(member.name));
                    self.value(value, &member.shape);
                    self.path.pop();
                }
                None if member.need == Need::Required => self.fault(format!("`{}` is missing", member.name)),
                None => {}
            }
        }
        for name in map.keys().filter(|name| members.iter().all(|member| member.name != *name)) {
            self.path.push(Step::Member(name));
            self.fault("unknown member".into());
            self.path.pop();
        }
    }

    fn array(&mut self, list: &'a [Value], element: &Shape, max: usize) {
        if list.len() > max {
            // One fault is enough here: the elements would only add millions of their own.
            return self.fault(format!("has {} elements, at most {max} are allowed", list.len()));
        }
        for (index, value) in list.iter().enumerate() {
            self.path.push(Step::Element(index));
            self.value(value, element);
            self.path.pop();
        }
    }
}

/// In a JSON schema, `3.0` is an integer too.
fn is_integer(number: &serde_json::Number) -> bool {
    number.is_i64() || number.is_u64() || number.as_f64().is_some_and(|number| number.fract() == 0.0)
}

enum Frame {
    /// Its members' names start here in the shared list.
    Object {
        names_start: usize,
    },
    Array {
        index: usize,
    },
}

/// A fault for each member that repeats an earlier one of the same object. The bytes must be valid JSON.
pub(super) fn repeated_members(bytes: &[u8]) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut frames: Vec<Frame> = Vec::new();
    // Names of the members of all open objects, innermost last.
    let mut names: Vec<Cow<str>> = Vec::new();
    let mut name_expected = false;
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        at += 1;
        match byte {
            b'{' => {
                frames.push(Frame::Object { names_start: names.len() });
                name_expected = true;
            }
            b'[' => {
                frames.push(Frame::Array { index: 0 });
                name_expected = false;
            }
            b'}' | b']' => {
                if let Some(Frame::Object { names_start }) = frames.pop() {
                    names[names_start..].sort_unstable();
                    let repeated = names[names_start..].windows(2).filter(|pair| pair[0] == pair[1]);
                    for name in repeated.map(|pair| &pair[0]) {
                        let mut pointer = pointer_to(&frames, &names[..names_start]);
                        push_member(&mut pointer, name);
                        faults.push(Fault { at: At::Pointer(pointer), detail: "member given twice".into() });
                    }
                    names.truncate(names_start);
                }
                name_expected = false;
            }
            b',' => match frames.last_mut() {
                Some(Frame::Array { index }) => *index += 1,
                _ => name_expected = true,
            },
            b'"' => {
                let start = at;
                while let Some(&byte) = bytes.get(at).filter(|byte| **byte != b'"') {
                    at += if byte == b'\\' { 2 } else { 1 };
                }
                if name_expected {
                    names.push(unescaped(&bytes[start..at.min(bytes.len())]));
                    name_expected = false;
                }
                at += 1;
            }
            _ => {}
        }
    }
    faults
}

/// The pointer to the value inside all open frames: in each object, that is the member named last.
fn pointer_to(frames: &[Frame], names: &[Cow<str>]) -> String {
    let mut pointer = String::new();
    for (depth, frame) in frames.iter().enumerate() {
        match frame {
            Frame::Array { index } => push_element(&mut pointer, *index),
            Frame::Object { .. } => {
                let names_end = frames[depth + 1..].iter().find_map(|inner| match inner {
                    Frame::Object { names_start } => Some(*names_start),
                    Frame::Array { .. } => None,
                });
                push_member(&mut pointer, &names[names_end.unwrap_or(names.len()) - 1]);
            }
        }
    }
    pointer
}

/// `"a"` and `"\u0061"` are the same name.
fn unescaped(raw: &[u8]) -> Cow<'_, str> {
    if raw.contains(&b'\\') {
        let quoted = [b"\"", raw, b"\""].concat();
        if let Ok(name) = serde_json::from_slice::<String>(&quoted) {
            return Cow::Owned(name);
        }
    }
    String::from_utf8_lossy(raw)
}
