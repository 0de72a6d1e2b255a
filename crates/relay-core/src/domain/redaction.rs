//! Erasing the texts of a message: who may, and which other messages took its subject over.

use super::event::Number;
use super::message::Message;
use super::name::Party;
use super::time::Timestamp;
use super::topic;

/// What is left to say of erased texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redaction {
    /// The event that erased them.
    pub number: Number,
    pub by: Party,
    pub at: Timestamp,
    pub why: Option<String>,
}

/// Whose texts one may erase: one's own. The human is in charge of all.
pub fn may_erase(party: &Party, message: &Message) -> bool {
    *party == Party::Human || *party == message.from
}

/// The later messages of a thread that bear a message's subject because they were sent without one of their own. Where the
/// message itself had taken its subject over, it is not its to erase elsewhere. `subjects` are those of the thread, in order.
pub fn copies(message: Number, subject: &str, subjects: &[(Number, String)]) -> Vec<Number> {
    let is_same = |other: &str| topic::without_reply(other) == topic::without_reply(subject);
    let same = subjects.iter().filter(|(_, other)| is_same(other)).map(|(number, _)| *number);
    let (earlier, later): (Vec<Number>, Vec<Number>) =
        same.filter(|number| *number != message).partition(|number| *number < message);
    if earlier.is_empty() { later } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_goes_with_those_who_took_it_over() {
        let check = |message: Number, subjects: &[(Number, &str)], expected: &[Number]| {
            let thread: Vec<(Number, String)> = subjects.iter().map(|(n, s)| (*n, (*s).to_owned())).collect();
            let subject = subjects.iter().find(|(number, _)| *number == message).map_or("", |(_, subject)| subject);
            assert_eq!(copies(message, subject, &thread), expected, "#{message} of {subjects:?}");
        };
        let thread = [(3, "Login"), (5, "Re: Login"), (8, "Token"), (9, "Re: Token"), (11, "Login"), (12, "Logins")];
        check(3, &thread, &[5, 11]);
        check(5, &thread, &[]);
        check(8, &thread, &[9]);
        check(11, &thread, &[]);
        check(12, &thread, &[]);
        check(1, &[(1, "Re: key"), (2, "RE: key"), (3, "key")], &[2, 3]);
        check(1, &[(1, "key"), (2, "key words")], &[]);
    }
}
