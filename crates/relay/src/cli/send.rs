use std::io::Read;

use relay_core::domain::limits::BODY_MAX;
use relay_core::domain::message::Importance;
use relay_core::error::Code;
use relay_core::store::Result;
use relay_core::verbs::{Request, send::Input};
use schemars::JsonSchema;
use serde::Deserialize;

use super::words::Digits;
use super::{Asks, words};

/// Send a message into a thread, or as a reply
///
/// All recipients get it, or none does. A first contact is made by itself where the recipient's policy allows it.
/// A body that is too long for one argument goes through `--body -` or `--body-file`.
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
#[command(
    after_help = "Examples:\n  relay send --to RedForest --thread bd-123 --subject 'Login: API changed' --body 'See src/auth.rs'\n  relay send --reply-to 128 --body 'Done'\n  git diff | relay send --to @thread --thread bd-123 --subject 'The diff' --body -\n  relay send --to human --subject 'Decide: drop the table?' --body 'I would not.'"
)]
pub struct Args {
    /// Names, separated by commas; @thread, @all or human
    #[arg(long, value_name = "NAME", required_unless_present_any = ["reply_to", "cc", "bcc"])]
    #[serde(default, deserialize_with = "words::list")]
    #[schemars(extend("hint" = "names, @thread, @all or human"))]
    to: Vec<String>,
    /// Copies
    #[arg(long, value_name = "NAME")]
    #[serde(default, deserialize_with = "words::list")]
    cc: Vec<String>,
    /// Blind copies
    #[arg(long, value_name = "NAME")]
    #[serde(default, deserialize_with = "words::list")]
    bcc: Vec<String>,
    /// One line; may be left out of a reply
    #[arg(long, value_name = "S")]
    #[schemars(extend("hint" = "one line; needed to open a thread"))]
    subject: Option<String>,
    /// The text, in Markdown; `-` reads it from standard input
    #[arg(
        long,
        value_name = "TEXT",
        allow_hyphen_values = true,
        required_unless_present = "body_file",
        conflicts_with = "body_file"
    )]
    #[schemars(with = "Option<String>", extend("hint" = "Markdown"))]
    body: Option<Body>,
    /// The text, from a file
    #[arg(long, value_name = "F")]
    #[serde(skip)]
    body_file: Option<std::path::PathBuf>,
    /// The thread; made if it is new
    #[arg(long, value_name = "T")]
    thread: Option<String>,
    /// The message that this one answers
    #[arg(long, value_name = "N")]
    #[schemars(extend("hint" = "message number"))]
    reply_to: Option<Digits>,
    /// low, normal, high or urgent
    #[arg(long, value_name = "I", default_value = "normal")]
    #[serde(default = "normal")]
    #[schemars(extend("enum" = ["low", "normal", "high", "urgent"]))]
    importance: String,
    /// Ask every recipient for an explicit receipt
    #[arg(long)]
    #[serde(default)]
    ack_required: bool,
    /// When the receipt is due, counted from delivery [default: 1h]
    #[arg(long, value_name = "D", allow_hyphen_values = true)]
    #[schemars(extend("hint" = "such as 1h"))]
    ack_within: Option<String>,
    /// Hold it for those who must consent first
    #[arg(long)]
    #[serde(default)]
    #[schemars(extend("hint" = "deliver to others once they consent"))]
    hold: bool,
    /// Show a refusal as it is, without recovering from it
    #[arg(long)]
    #[serde(default)]
    no_recover: bool,
}

/// Where the text comes from. A tool's caller says all of it: there a hyphen is a text like any other.
#[derive(Debug, Clone, Deserialize)]
#[serde(from = "Exact")]
enum Body {
    Text(String),
    Input,
}

impl From<String> for Body {
    fn from(word: String) -> Self {
        if word == "-" { Body::Input } else { Body::Text(word) }
    }
}

#[derive(Deserialize)]
struct Exact(String);

impl From<Exact> for Body {
    fn from(Exact(text): Exact) -> Self {
        Body::Text(text)
    }
}

fn normal() -> String {
    Importance::Normal.as_str().to_owned()
}

impl Args {
    fn body(&self) -> Result<String> {
        let bytes = match (&self.body, &self.body_file) {
            (Some(Body::Text(text)), _) => return Ok(text.clone()),
            (_, Some(path)) => {
                let file =
                    std::fs::File::open(path).map_err(|fault| unreadable(&path.display().to_string(), &fault))?;
                read(file).map_err(|fault| unreadable(&path.display().to_string(), &fault))?
            }
            (Some(Body::Input), _) => read(std::io::stdin()).map_err(|fault| unreadable("standard input", &fault))?,
            (None, None) => return Err(Code::InputInvalid.refuse("a message has a body")),
        };
        if bytes.len() > BODY_MAX {
            return Err(Code::BodyTooLarge
                .refuse(format!("the body has more than {BODY_MAX} bytes, the most that can be allowed"))
                .with("limit", BODY_MAX));
        }
        String::from_utf8(bytes).map_err(|fault| {
            Code::InputInvalid
                .refuse(format!("the body is not valid UTF-8 at byte {}", fault.utf8_error().valid_up_to()))
        })
    }
}

/// One byte more than is ever taken tells a body that is too large from one that just fits.
fn read(source: impl Read) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source.take(BODY_MAX as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn unreadable(what: &str, fault: &std::io::Error) -> relay_core::error::Refusal {
    Code::InputInvalid.refuse(format!("the body cannot be read from {what}: {fault}"))
}

impl Asks for Args {
    fn request(&self) -> Result<Request> {
        let importance = Importance::parse(&self.importance).ok_or_else(|| {
            Code::InputInvalid.refuse(format!("--importance is low, normal, high or urgent, not {:?}", self.importance))
        })?;
        Ok(Request::Send(Input {
            to: words::addresses(&self.to),
            cc: words::addresses(&self.cc),
            bcc: words::addresses(&self.bcc),
            subject: self.subject.clone(),
            body: self.body()?,
            thread: words::thread(self.thread.as_deref())?,
            reply_to: words::number(self.reply_to.as_ref())?,
            importance,
            ack_required: self.ack_required,
            ack_within: words::span(self.ack_within.as_deref())?,
            hold: self.hold,
            no_recover: self.no_recover,
        }))
    }
}
