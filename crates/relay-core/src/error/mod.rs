//! The closed catalogue of error classes. A refusal names the things involved; its playbook names the next step.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What sort of error a class is. It gives the exit status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Input,
    Unknown,
    Consent,
    Conflict,
    Busy,
    Damaged,
    Denied,
    Internal,
}

impl Kind {
    pub fn exit_status(self) -> u8 {
        match self {
            Kind::Input => 2,
            Kind::Unknown => 3,
            Kind::Consent => 4,
            Kind::Conflict => 5,
            Kind::Busy => 6,
            Kind::Damaged => 7,
            Kind::Denied => 8,
            Kind::Internal => 70,
        }
    }
}

macro_rules! catalogue {
    ($($variant:ident $code:literal $kind:ident $retryable:literal [$($detail:ident)*])*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Code { $($variant),* }

        impl Code {
            pub const ALL: &'static [Code] = &[$(Code::$variant),*];

            pub fn as_str(self) -> &'static str {
                match self { $(Code::$variant => $code),* }
            }

            pub fn kind(self) -> Kind {
                match self { $(Code::$variant => Kind::$kind),* }
            }

            pub fn is_retryable(self) -> bool {
                match self { $(Code::$variant => $retryable),* }
            }

            /// The names of the values that an error of this class may carry.
            pub fn details(self) -> &'static [&'static str] {
                match self { $(Code::$variant => &[$(stringify!($detail)),*]),* }
            }
        }
    };
}

include!("rows.rs");

impl Code {
    /// The store or its archive is the problem.
    pub fn is_about_the_store(self) -> bool {
        ["STORE_", "ARCHIVE_"].iter().any(|kind| self.as_str().starts_with(kind))
    }

    /// Whether a request that failed so can be kept, to be made again by its key: not where the store is what fails.
    pub fn is_kept(self) -> bool {
        !self.as_str().starts_with("STORE_")
    }

    pub fn parse(text: &str) -> Option<Code> {
        Code::ALL.iter().copied().find(|code| code.as_str().eq_ignore_ascii_case(text))
    }

    /// A refusal of this class. `message` is a fragment that names the things involved.
    pub fn refuse(self, message: impl Into<String>) -> Refusal {
        Refusal(Box::new(Refused { code: self, message: message.into(), details: Map::new() }))
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Code {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Code {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Code::parse(&text).ok_or_else(|| serde::de::Error::custom(format!("{text} is no error class")))
    }
}

/// An expected error: nothing happened, apart from `STORE_IO`, whose outcome is unknown. Where a wait fails, what it
/// waited for was asked, and stands.
///
/// Boxed, so that the happy path of every function does not carry its size.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal(Box<Refused>);

#[derive(Debug, Clone, PartialEq)]
pub struct Refused {
    pub code: Code,
    pub message: String,
    /// Ids and validated names only, never text from messages: the playbook's steps are filled from it.
    pub details: Map<String, Value>,
}

impl Refusal {
    /// Adds a value that the message names and the playbook may use.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        debug_assert!(self.0.code.details().contains(&name), "{} carries no {name:?}", self.0.code);
        self.0.details.insert(name.to_owned(), value.into());
        self
    }
}

impl std::ops::Deref for Refusal {
    type Target = Refused;
    fn deref(&self) -> &Refused {
        &self.0
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

impl std::error::Error for Refusal {}

mod from_domain;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_reads_back_from_its_text() {
        for code in Code::ALL {
            assert_eq!(Code::parse(code.as_str()), Some(*code));
        }
        assert_eq!(Code::ALL.len(), 46);
        assert_eq!(Code::parse("NO_SUCH_CODE"), None);
    }
}
