use std::io::Read;

use relay_core::domain::limits::BODY_MAX;
use relay_core::domain::message::Importance;
use relay_core::error::Code;
use relay_core::store::Result;
use relay_core::verbs::{Request, send::Input};

use super::{Asks, words};

/// Send a message into a thread, or as a reply
///
/// All recipients get it, or none does. A first contact is made by itself where the recipient's policy allows it.
/// A body that is too long for one argument goes through `--body -` or `--body-file`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  relay send --to RedForest --thread bd-123 --subject 'Login: API changed' --body 'See src/auth.rs'\n  relay send --reply-to 128 --body 'Done'\n  git diff | relay send --to @thread --thread bd-123 --subject 'The diff' --body -\n  relay send --to human --subject 'Decide: drop the table?' --body 'I would not.'"
)]
pub struct Args {
    /// Names, separated by commas; @thread, @all or human
    #[arg(long, value_name = "NAME", required_unless_present_any = ["reply_to", "cc", "bcc"])]
    to: Vec<String>,
    /// Copies
    #[arg(long, value_name = "NAME")]
    cc: Vec<String>,
    /// Blind copies
    #[arg(long, value_name = "NAME")]
    bcc: Vec<String>,
    /// One line; may be left out of a reply
    #[arg(long, value_name = "S")]
    subject: Option<String>,
    /// The text, in Markdown; `-` reads it from standard input
    #[arg(
        long,
        value_name = "TEXT",
        allow_hyphen_values = true,
        required_unless_present = "body_file",
        conflicts_with = "body_file"
    )]
    body: Option<String>,
    /// The text, from a file
    #[arg(long, value_name = "F")]
    body_file: Option<std::path::PathBuf>,
    /// The thread; made if it is new
    #[arg(long, value_name = "T")]
    thread: Option<String>,
    /// The message that this one answers
    #[arg(long, value_name = "N")]
    reply_to: Option<String>,
    /// low, normal, high or urgent
    #[arg(long, value_name = "I", default_value = "normal")]
    importance: String,
    /// Ask every recipient for an explicit receipt
    #[arg(long)]
    ack_required: bool,
    /// When the receipt is due, counted from delivery [default: 1h]
    #[arg(long, value_name = "D", allow_hyphen_values = true)]
    ack_within: Option<String>,
    /// Hold it for those who must consent first
    #[arg(long)]
    hold: bool,
    /// Show a refusal as it is, without recovering from it
    #[arg(long)]
    no_recover: bool,
}

impl Args {
    fn body(&self) -> Result<String> {
        let bytes = match (&self.body, &self.body_file) {
            (Some(text), _) if text != "-" => return Ok(text.clone()),
            (_, Some(path)) => {
                let file =
                    std::fs::File::open(path).map_err(|fault| unreadable(&path.display().to_string(), &fault))?;
                read(file).map_err(|fault| unreadable(&path.display().to_string(), &fault))?
            }
            _ => read(std::io::stdin()).map_err(|fault| unreadable("standard input", &fault))?,
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
            reply_to: words::number(self.reply_to.as_deref())?,
            importance,
            ack_required: self.ack_required,
            ack_within: words::span(self.ack_within.as_deref())?,
            hold: self.hold,
            no_recover: self.no_recover,
        }))
    }
}
