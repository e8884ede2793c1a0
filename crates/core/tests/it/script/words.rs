//! The words of a line, taken one by one.

use onsale_core::time::Timestamp;

pub(super) struct Words<'a> {
    words: Vec<&'a str>,
    at: usize,
}

impl<'a> Words<'a> {
    pub(super) fn of(line: &'a str) -> Words<'a> {
        let split = line.split(|letter: char| letter.is_whitespace() || letter == ';' || letter == ',');
        Words { words: split.filter(|word| !word.is_empty()).collect(), at: 0 }
    }

    pub(super) fn peek(&self) -> Option<&'a str> {
        self.words.get(self.at).copied()
    }

    pub(super) fn next_if_any(&mut self) -> Option<&'a str> {
        let word = self.peek();
        self.at += 1;
        word
    }

    pub(super) fn next(&mut self) -> &'a str {
        self.next_if_any().expect("a word is missing")
    }

    /// Takes the word if it is the next.
    pub(super) fn take(&mut self, word: &str) -> bool {
        let taken = self.peek() == Some(word);
        self.at += usize::from(taken);
        taken
    }

    pub(super) fn expect(&mut self, word: &str) {
        let next = self.next();
        assert!(next == word, "`{word}` is expected, not `{next}`");
    }

    /// Takes all words up to this one, and this one.
    pub(super) fn until(&mut self, word: &str) -> Vec<&'a str> {
        let mut taken = Vec::new();
        while !self.take(word) {
            taken.push(self.next());
        }
        taken
    }

    /// Takes words as long as they name a seat: a capital letter and a number.
    pub(super) fn seats(&mut self) -> Vec<&'a str> {
        let mut taken = Vec::new();
        while self.peek().is_some_and(|word| is_name(word, |letter| letter.is_ascii_uppercase())) {
            taken.push(self.next());
        }
        taken
    }

    pub(super) fn number(&mut self) -> i64 {
        let word = self.next();
        word.parse().unwrap_or_else(|_| panic!("`{word}` is no number"))
    }

    /// `12s`, `12.345s`.
    pub(super) fn time(&mut self) -> Timestamp {
        let word = self.next();
        time(word).unwrap_or_else(|| panic!("`{word}` is no time"))
    }

    pub(super) fn end(&mut self) {
        assert!(self.peek().is_none(), "what is `{}`?", self.next());
    }
}

fn time(word: &str) -> Option<Timestamp> {
    let number = word.strip_suffix('s')?;
    let (seconds, fraction) = number.split_once('.').unwrap_or((number, "000"));
    let millis: i64 = (fraction.len() == 3).then(|| fraction.parse().ok())??;
    Some(Timestamp::from_millis(seconds.parse::<i64>().ok()? * 1_000 + millis))
}

/// As [`Words::time`] reads it.
pub(super) fn time_text(at: Timestamp) -> String {
    match at.millis() {
        i64::MAX => "never".to_owned(),
        millis if millis % 1_000 == 0 => format!("{}s", millis / 1_000),
        millis => format!("{}.{:03}s", millis / 1_000, millis % 1_000),
    }
}

/// A letter of a kind, and a number: `A1`, `h12`.
pub(super) fn is_name(word: &str, letter: impl Fn(char) -> bool) -> bool {
    let mut letters = word.chars();
    let digits = letters.as_str().get(1..).unwrap_or_default();
    letters.next().is_some_and(letter) && !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
}
