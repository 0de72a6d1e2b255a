//! What a person typed: the fields of a form, in their order, each maybe more than once.

use relay_core::domain::event::Number;
use relay_core::error::Code;
use relay_core::store::Result;
use relay_core::verbs::look::parse_number;

/// More fields than any form of the page has: what is beyond is not a person's.
const FIELDS: usize = 1_000;
/// The longest address that a page repeats, in bytes.
pub const REPEATED: usize = 2_000;
/// What every form carries beside what it is about.
const CSRF: &str = "csrf";
const KEY: &str = "key";
const BACK: &str = "back";
/// What a step's form carries of the form that failed before it: which one, and its fields behind a prefix.
const FAILED: &str = "failed";
const KEPT: &str = "failed.";

#[derive(Debug, Clone, Default)]
pub struct Form(Vec<(String, String)>);

impl Form {
    /// One with too many fields is none: what were left out of it would be done without.
    pub fn sent(bytes: &[u8]) -> Result<Self> {
        let form = Form::parse(bytes);
        if form.0.len() > FIELDS {
            let text = format!("the form has more than {FIELDS} fields; send it in parts");
            return Err(Code::InputInvalid.refuse(text));
        }
        Ok(form)
    }

    /// The fields of an address, which is a form that was sent by itself.
    pub fn of_query(query: Option<&str>) -> Self {
        Form::parse(query.unwrap_or_default().as_bytes())
    }

    pub fn parse(bytes: &[u8]) -> Self {
        Form(form_urlencoded::parse(bytes).into_owned().take(FIELDS + 1).collect())
    }

    /// What stands in a field; an empty one says nothing.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.texts(name).next()
    }

    pub fn texts<'a, 'b>(&'a self, name: &'b str) -> impl Iterator<Item = &'a str> + use<'a, 'b> {
        let of_the_name = self.0.iter().filter(move |(known, _)| known == name);
        of_the_name.map(|(_, value)| value.as_str()).filter(|value| !value.trim().is_empty())
    }

    /// The lines of a field, as they were typed: browsers end them in a way of their own.
    pub fn lines(&self, name: &str) -> Option<String> {
        self.text(name).map(|text| text.replace("\r\n", "\n"))
    }

    /// Whether a box is ticked.
    pub fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(known, _)| known == name)
    }

    pub fn number(&self, name: &str) -> Result<Option<Number>> {
        self.text(name).map(|text| parse_number(text.trim())).transpose()
    }

    pub fn numbers(&self, name: &str) -> Result<Vec<Number>> {
        self.texts(name).map(|text| parse_number(text.trim())).collect()
    }

    pub fn csrf(&self) -> &str {
        self.text(CSRF).unwrap_or_default()
    }

    /// The idempotency key that the form was made with.
    pub fn key(&self) -> Option<&str> {
        self.text(KEY)
    }

    /// The page to go back to.
    pub fn back(&self) -> Option<&str> {
        self.text(BACK).filter(|path| is_path(path) && path.len() <= REPEATED)
    }

    /// What it carries of a form that failed before it.
    pub fn carried(&self) -> impl Iterator<Item = &(String, String)> {
        self.0.iter().filter(|(name, _)| name == FAILED || name.starts_with(KEPT))
    }

    /// The letter for whose sake all this is done, however many forms stand between.
    pub fn letter(&self) -> Option<Form> {
        let (command, typed) = self.failed()?;
        if command == "send" { Some(typed) } else { typed.letter() }
    }

    /// What was typed, without what the form itself carries.
    pub fn typed(&self) -> impl Iterator<Item = &(String, String)> {
        self.0.iter().filter(|(name, _)| ![CSRF, KEY, BACK].contains(&name.as_str()))
    }

    /// What was typed, with another name among those of a field, which has one or several with commas.
    pub fn with_name(&self, field: &str, wrong: &str, right: &str) -> Vec<(String, String)> {
        let mended = |value: &str| {
            let names = value.split(',').map(str::trim);
            names.map(|name| if name.eq_ignore_ascii_case(wrong) { right } else { name }).collect::<Vec<_>>().join(", ")
        };
        let typed = self.typed();
        typed.map(|(name, value)| (name.clone(), if name == field { mended(value) } else { value.clone() })).collect()
    }

    /// What was typed, as fields of the form of a step that leads out of its failure.
    pub fn kept(&self, command: &str) -> Vec<(String, String)> {
        let typed = self.typed().map(|(name, value)| (format!("{KEPT}{name}"), value.clone()));
        [(FAILED.to_owned(), command.to_owned())].into_iter().chain(typed).collect()
    }

    /// The form that failed before this step, and which one it was.
    pub fn failed(&self) -> Option<(&str, Form)> {
        let fields =
            self.0.iter().filter_map(|(name, value)| Some((name.strip_prefix(KEPT)?.to_owned(), value.clone())));
        Some((self.text(FAILED)?, Form(fields.collect())))
    }
}

/// Whether it is a path of this server, and nothing that a browser could take for another place.
pub fn is_path(text: &str) -> bool {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    is_plain && text.starts_with('/') && !text.starts_with("//")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_says_what_was_typed() {
        let form =
            Form::parse(b"to=BlueLake&to=&to=Red+Forest&body=a%0D%0Ab&ack_required=&id=%23128&csrf=x&key=k&back=/p/a/");
        assert_eq!(form.texts("to").collect::<Vec<_>>(), ["BlueLake", "Red Forest"]);
        assert_eq!(form.lines("body").as_deref(), Some("a\nb"));
        assert!(form.has("ack_required") && !form.has("read"));
        assert_eq!(form.number("id").ok().flatten(), Some(128));
        assert!(Form::parse(b"id=many").number("id").is_err());
        let typed: Vec<&str> = form.typed().map(|(name, _)| name.as_str()).collect();
        assert_eq!(typed, ["to", "to", "to", "body", "ack_required", "id"]);
    }

    #[test]
    fn a_form_has_a_thousand_fields_and_no_more() {
        assert!(Form::sent("a=b&".repeat(1_000).as_bytes()).is_ok());
        assert!(Form::sent("a=b&".repeat(1_001).as_bytes()).is_err());
    }

    #[test]
    fn one_name_takes_the_place_of_another() {
        let form = Form::parse(b"to=BlueLake&to=RedForst,+GreenField&body=RedForst&key=k");
        let mended: Vec<String> = form
            .with_name("to", "RedForst", "RedForest")
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        assert_eq!(mended, ["to=BlueLake", "to=RedForest, GreenField", "body=RedForst"]);
    }

    #[test]
    fn a_step_brings_the_form_that_failed() {
        let typed = Form::parse(b"to=A&to=B&body=a%0D%0Ab&csrf=x&key=k&back=/p/a/");
        let step = Form([vec![("tool".to_owned(), "look".to_owned())], typed.kept("send")].concat());
        let (command, brought) = step.failed().expect("it is there");
        assert_eq!((command, brought.0), ("send", typed.typed().cloned().collect::<Vec<_>>()));
        assert!(typed.failed().is_none());
        // A step for the sake of a step still leads to the letter.
        let again = Form([vec![("id".to_owned(), "7".to_owned())], step.kept("suspend")].concat());
        let letter = again.letter().expect("it is there");
        assert_eq!(letter.lines("body").as_deref(), Some("a\nb"));
        assert_eq!(again.carried().count(), again.0.len() - 1);
        assert!(typed.letter().is_none());
    }

    #[test]
    fn one_goes_back_to_a_path_of_this_server_alone() {
        let check = |back: &str, expected: bool| {
            let encoded: String = form_urlencoded::byte_serialize(back.as_bytes()).collect();
            let form = Form::parse(format!("back={encoded}").as_bytes());
            assert_eq!(form.back().is_some(), expected, "{back:?}");
        };
        for path in ["/", "/p/a-1/", "/p/a-1/threads/bd-1?before=3#m7", &format!("/{}", "a".repeat(1_999))] {
            check(path, true);
        }
        check(&format!("/{}", "a".repeat(2_000)), false);
        for place in
            ["", "//evil.example", "/\\evil.example", "https://evil.example/", "evil", "/a\r\nset-cookie: b", "/a b"]
        {
            check(place, false);
        }
    }
}
