//! `export`: a thread or the whole project, to take away.

use std::io::{BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

use relay_core::domain::size;
use relay_core::error::{Code, Refusal};
use relay_core::store::Result;
use relay_core::verbs::export::{self, Exported, Format, Input};
use relay_store::filesystem::io_refusal;
use relay_store::fresh::Fresh;
use serde_json::json;

use super::words;
use crate::app::{App, Opened};
use crate::progress::Progress;
use crate::{environment, render};

/// Write a thread or the whole project as a document, or as one event per line
///
/// It shows what the agent that acts may see; `--agent human` exports everything. To another program it goes as it is, to a
/// file only when it is whole.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  relay export --thread bd-123 > bd-123.md\n  relay export --output history.md --agent human\n  relay export --format jsonl --output history.jsonl --json"
)]
pub struct Args {
    /// Only this thread [default: the whole project]
    #[arg(long, value_name = "T")]
    thread: Option<String>,
    /// markdown, or jsonl: one event per line
    #[arg(long, value_name = "FORMAT", default_value = "markdown")]
    format: String,
    /// A file of your own, readable by you alone [default: the standard output, which - names too]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace the file if it is there
    #[arg(long)]
    force: bool,
}

impl Args {
    pub fn run(&self, app: &App) -> u8 {
        match self.export(app) {
            Ok(Some(answer)) => app.answer("export", Ok(answer)),
            Ok(None) => 0,
            Err(refusal) => app.fail_outside("export", &refusal),
        }
    }

    /// The answer, where the export itself did not go where answers go.
    fn export(&self, app: &App) -> Result<Option<(serde_json::Value, String)>> {
        let format = match self.format.as_str() {
            "markdown" => Format::Markdown,
            "jsonl" => Format::Jsonl,
            other => {
                return Err(Code::InputInvalid.refuse(format!("--format is markdown or jsonl, not {other:?}")));
            }
        };
        let input = Input { thread: words::thread(self.thread.as_deref())?, format };
        let opened = app.open(None)?;
        let file = self.output.as_ref().filter(|file| file.as_os_str() != "-");
        if app.output.json && file.is_none() {
            return Err(Code::InputInvalid
                .refuse("--json answers with one line: say in which file the export goes with --output FILE"));
        }
        match file {
            Some(file) => {
                to_file(app, &opened, &input, &environment::working_directory()?.join(file), self.force).map(Some)
            }
            None => to_output(app, &opened, &input).map(|()| None),
        }
    }
}

fn to_file(
    app: &App,
    opened: &Opened,
    input: &Input,
    place: &Path,
    force: bool,
) -> Result<(serde_json::Value, String)> {
    opened.home.must_be_outside(place)?;
    let mut fresh = Fresh::beside(place, force)?;
    let mut writer = BufWriter::new(fresh.file());
    let mut bytes = 0;
    let exported = run(app, opened, input, &mut |text| {
        bytes += text.len() as u64;
        writer.write_all(text.as_bytes()).map_err(|fault| io_refusal(place, &fault))
    })?;
    writer.flush().map_err(|fault| io_refusal(place, &fault))?;
    drop(writer);
    fresh.publish()?;
    let path = place.to_string_lossy().into_owned();
    let text = format!("{} up to #{} in {path} ({}).\n", counted(&exported), exported.number, size::told(bytes));
    let mut result = serde_json::to_value(&exported).unwrap_or_default();
    if let Some(fields) = result.as_object_mut() {
        fields.extend([("path".to_owned(), json!(path)), ("bytes".to_owned(), json!(bytes))]);
    }
    Ok((result, text))
}

fn counted(exported: &Exported) -> String {
    let count = |number: u64, noun| render::count(usize::try_from(number).unwrap_or(usize::MAX), noun);
    match (exported.events, exported.messages, exported.threads) {
        (Some(events), ..) => count(events, "event"),
        (_, Some(messages), Some(threads)) => format!("{} in {}", count(messages, "message"), count(threads, "thread")),
        _ => "Everything".to_owned(),
    }
}

/// A reader that has seen enough is no fault.
fn to_output(app: &App, opened: &Opened, input: &Input) -> Result<()> {
    let mut writer = BufWriter::new(std::io::stdout().lock());
    let mut is_unseen = false;
    let mut written = |outcome: std::io::Result<()>| -> Result<()> {
        outcome.map_err(|fault| {
            is_unseen = fault.kind() == ErrorKind::BrokenPipe;
            cannot_write(&fault)
        })
    };
    let exported = run(app, opened, input, &mut |text| written(writer.write_all(text.as_bytes())));
    let exported = exported.and_then(|_| written(writer.flush()));
    if is_unseen { Ok(()) } else { exported }
}

fn cannot_write(fault: &std::io::Error) -> Refusal {
    io_refusal(Path::new("the standard output"), fault)
}

fn run(app: &App, opened: &Opened, input: &Input, sink: &mut export::Sink<'_>) -> Result<Exported> {
    let ctx = app.context(opened)?;
    let mut progress = Progress::new(app);
    export::run(&ctx, input, sink, &mut |done, of| progress.at("export", done, of))
}
