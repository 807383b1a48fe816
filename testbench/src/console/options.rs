//! A command's words, taken one after the other; whoever wants another word than is there learns the usage.

use std::str::FromStr;

use super::CommandError;
use super::commands::Spec;

/// The words after a command's name.
pub(super) struct Words<'a> {
    spec: &'a Spec,
    words: &'a [String],
}

impl<'a> Words<'a> {
    pub(super) fn new(spec: &'a Spec, words: &'a [String]) -> Words<'a> {
        Words { spec, words }
    }

    /// What is wrong, with how it would be right: the forms of the command, or where to find them if they are many.
    pub(super) fn usage(&self, why: impl std::fmt::Display) -> CommandError {
        CommandError::Usage(match self.spec.usage {
            [one] => format!("{why} (usage: {one})"),
            [one, other] => format!("{why} (usage: {one} | {other})"),
            _ => format!("{why} (help {})", self.spec.name),
        })
    }

    pub(super) fn peek(&self) -> Option<&'a str> {
        self.words.first().map(String::as_str)
    }

    pub(super) fn next(&mut self) -> Option<&'a str> {
        let (first, rest) = self.words.split_first()?;
        self.words = rest;
        Some(first)
    }

    /// Take the next word if it is this one.
    pub(super) fn take(&mut self, word: &str) -> bool {
        let found = self.peek() == Some(word);
        if found {
            self.next();
        }
        found
    }

    /// The next word, which must be there.
    pub(super) fn word(&mut self, what: &str) -> Result<&'a str, CommandError> {
        self.next().ok_or_else(|| self.usage(format_args!("{what} is missing")))
    }

    /// The next word as a value of its type, with that type's reason if it is none.
    pub(super) fn value<T: FromStr>(&mut self, what: &str) -> Result<T, CommandError>
    where
        T::Err: std::fmt::Display,
    {
        let word = self.word(what)?;
        word.parse().map_err(|error| self.usage(format_args!("{what}: `{word}`: {error}")))
    }

    /// The next word as a whole number, decimal or 0x hexadecimal.
    pub(super) fn number<T: TryFrom<u64>>(&mut self, what: &str) -> Result<T, CommandError> {
        let word = self.word(what)?;
        let parsed = number(word).and_then(|value| T::try_from(value).ok());
        parsed.ok_or_else(|| self.usage(format_args!("{what}: `{word}` is no number that fits")))
    }

    /// No words are left.
    pub(super) fn end(&self) -> Result<(), CommandError> {
        match self.peek() {
            None => Ok(()),
            Some(word) => Err(self.usage(format_args!("`{word}` is one word too many"))),
        }
    }
}

/// A whole number, decimal or 0x hexadecimal.
pub(super) fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

/// How two numbers must stand to each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Relation {
    Equal,
    Unequal,
    Less,
    AtMost,
    More,
    AtLeast,
}

impl Relation {
    pub(super) fn holds<T: PartialOrd>(self, left: &T, right: &T) -> bool {
        match self {
            Relation::Equal => left == right,
            Relation::Unequal => left != right,
            Relation::Less => left < right,
            Relation::AtMost => left <= right,
            Relation::More => left > right,
            Relation::AtLeast => left >= right,
        }
    }
}

impl FromStr for Relation {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Relation, &'static str> {
        match text {
            "=" | "==" => Ok(Relation::Equal),
            "!=" => Ok(Relation::Unequal),
            "<" => Ok(Relation::Less),
            "<=" => Ok(Relation::AtMost),
            ">" => Ok(Relation::More),
            ">=" => Ok(Relation::AtLeast),
            _ => Err("is none of = != < <= > >="),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_decimal_or_hexadecimal_and_whole() {
        assert_eq!(["0", "10", "0x10", "0XfF"].map(number), [Some(0), Some(10), Some(16), Some(255)]);
        assert_eq!(["", "x", "-1", "1.5", "0x", "99999999999999999999"].map(number), [None; 6]);
    }

    #[test]
    fn relations_are_what_they_look_like() {
        for (text, holds) in [
            ("=", [false, true, false]),
            ("!=", [true, false, true]),
            ("<", [true, false, false]),
            ("<=", [true, true, false]),
            (">", [false, false, true]),
            (">=", [false, true, true]),
        ] {
            let relation: Relation = text.parse().expect(text);
            assert_eq!([1, 2, 3].map(|left| relation.holds(&left, &2)), holds, "{text}");
        }
        assert!("=<".parse::<Relation>().is_err());
    }
}
