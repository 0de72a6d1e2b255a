//! Words on the command line that become values.

use relay_core::domain::event::Number;
use relay_core::domain::name::{Address, ThreadId};
use relay_core::domain::time::Span;
use relay_core::error::Code;
use relay_core::store::Result;
use relay_core::verbs::look::parse_number;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer};

pub fn span(text: Option<&str>) -> Result<Option<Span>> {
    Ok(text.map(str::parse).transpose()?)
}

pub fn thread(text: Option<&str>) -> Result<Option<ThreadId>> {
    Ok(text.map(ThreadId::parse).transpose()?)
}

/// A number as it was written, which may be wrong.
#[derive(Debug, Clone)]
pub struct Digits(String);

impl From<String> for Digits {
    fn from(text: String) -> Self {
        Digits(text)
    }
}

impl<'de> Deserialize<'de> for Digits {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        Word::deserialize(deserializer).map(|word| Digits(word.text()))
    }
}

impl JsonSchema for Digits {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Digits".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        u64::json_schema(generator)
    }
}

/// What a tool's caller writes where the command line takes a word.
#[derive(Deserialize)]
#[serde(untagged)]
enum Word {
    Text(String),
    Number(serde_json::Number),
}

impl Word {
    fn text(self) -> String {
        match self {
            Word::Text(text) => text,
            Word::Number(number) => number.to_string(),
        }
    }
}

/// A list, also where one word stands for it.
pub fn list<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Given {
        One(Word),
        Many(Vec<Word>),
    }
    Ok(match Given::deserialize(deserializer)? {
        Given::One(word) => vec![word.text()],
        Given::Many(words) => words.into_iter().map(Word::text).collect(),
    })
}

/// A list of words, also where they stand in one text.
pub fn sentence<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Vec<String>, D::Error> {
    let words = list(deserializer)?;
    Ok(match words.as_slice() {
        [one] => one.split_whitespace().map(str::to_owned).collect(),
        _ => words,
    })
}

pub fn number(digits: Option<&Digits>) -> Result<Option<Number>> {
    digits.map(|Digits(text)| parse_number(text)).transpose()
}

pub fn numbers(texts: &[String]) -> Result<Vec<Number>> {
    texts.iter().map(|text| parse_number(text)).collect()
}

pub fn count(flag: &str, digits: Option<&Digits>) -> Result<Option<usize>> {
    let parse = |text: &str| {
        text.parse().map_err(|_| Code::InputInvalid.refuse(format!("{flag} takes a whole number, not {text:?}")))
    };
    digits.map(|Digits(text)| parse(text)).transpose()
}

/// Names, given once each or separated by commas.
pub fn addresses(texts: &[String]) -> Vec<Address> {
    texts.iter().flat_map(|text| text.split(',')).map(|text| Address::parse(text.trim())).collect()
}
