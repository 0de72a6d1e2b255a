//! Words on the command line that become values.

use relay_core::domain::event::Number;
use relay_core::domain::name::{Address, ThreadId};
use relay_core::domain::time::Span;
use relay_core::error::Code;
use relay_core::store::Result;
use relay_core::verbs::look::parse_number;

pub fn span(text: Option<&str>) -> Result<Option<Span>> {
    Ok(text.map(str::parse).transpose()?)
}

pub fn thread(text: Option<&str>) -> Result<Option<ThreadId>> {
    Ok(text.map(ThreadId::parse).transpose()?)
}

pub fn number(text: Option<&str>) -> Result<Option<Number>> {
    text.map(parse_number).transpose()
}

pub fn numbers(texts: &[String]) -> Result<Vec<Number>> {
    texts.iter().map(|text| parse_number(text)).collect()
}

pub fn count(flag: &str, text: Option<&str>) -> Result<Option<usize>> {
    let parse = |text: &str| {
        text.parse().map_err(|_| Code::InputInvalid.refuse(format!("{flag} takes a whole number, not {text:?}")))
    };
    text.map(parse).transpose()
}

/// Names, given once each or separated by commas.
pub fn addresses(texts: &[String]) -> Vec<Address> {
    texts.iter().flat_map(|text| text.split(',')).map(|text| Address::parse(text.trim())).collect()
}
