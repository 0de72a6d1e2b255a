//! Names while they are typed: agents, threads and error classes.

use relay_core::error::Code;
use relay_core::verbs::{Request, look};
use rmcp::ErrorData;
use rmcp::model::{CompleteRequestParams, CompleteResult, CompletionInfo, Reference};
use serde_json::Value;

use super::{Handler, prompts, resources};
use crate::ask::{Ask, Origin, Said};

/// What there is that fits, and whether that is all.
#[derive(Default)]
struct Names {
    fitting: Vec<String>,
    more: bool,
}

pub async fn complete(
    handler: &Handler,
    request: &CompleteRequestParams,
    origin: &Origin,
) -> Result<CompleteResult, ErrorData> {
    let noun = noun(&request.r#ref)?;
    let typed = request.argument.value.as_str();
    let names = match (noun, request.argument.name.as_str()) {
        (_, "code") => fitting(Code::ALL.iter().map(|code| code.as_str().to_owned()), typed),
        (_, "agent" | "to") => {
            let result = listed(handler, request, origin, "agents", "").await;
            fitting(column(&result["agents"], "name"), typed)
        }
        (_, "thread") | (Some("thread"), "id") => {
            let result = listed(handler, request, origin, "thread", typed).await;
            Names { more: result["more"] == true, ..fitting(column(&result["threads"], "id"), typed) }
        }
        _ => Names::default(),
    };
    let count = names.fitting.len();
    let values: Vec<String> = names.fitting.into_iter().take(CompletionInfo::MAX_VALUES).collect();
    let has_more = names.more || values.len() < count;
    // Of a list that was cut it is not known how long it would be.
    let total = u32::try_from(count).ok().filter(|_| !names.more);
    let info = CompletionInfo::with_pagination(values, total, has_more)
        .map_err(|fault| ErrorData::internal_error(fault, None))?;
    Ok(CompleteResult::new(info))
}

/// What a resource's template is about; nothing of a prompt.
fn noun(of: &Reference) -> Result<Option<&'static str>, ErrorData> {
    let unknown = |what: String| ErrorData::invalid_params(format!("there is no {what} to complete for"), None);
    match (of.as_prompt_name(), of.as_resource_uri()) {
        (Some(name), _) if prompts::is_known(name) => Ok(None),
        (Some(name), _) => Err(unknown(format!("prompt {name:?}"))),
        (None, uri) => {
            let uri = uri.unwrap_or_default();
            resources::noun(uri).map(Some).ok_or_else(|| unknown(format!("resource {uri:?}")))
        }
    }
}

fn fitting(names: impl IntoIterator<Item = String>, typed: &str) -> Names {
    let typed = typed.to_lowercase();
    Names { fitting: names.into_iter().filter(|name| name.to_lowercase().starts_with(&typed)).collect(), more: false }
}

/// A list that `look` shows, in the project that was said before or is known. Where there is none there are no names.
async fn listed(
    handler: &Handler,
    request: &CompleteRequestParams,
    origin: &Origin,
    noun: &str,
    beginning: &str,
) -> Value {
    let what = vec![noun.to_owned()];
    let look = Request::Look(look::Input { what, beginning: beginning.to_owned(), ..look::Input::default() });
    let arguments = request.context.as_ref().and_then(|context| context.arguments.as_ref());
    let project = arguments.and_then(|arguments| arguments.get("project").cloned());
    let ask = handler.ask(origin, "look", Said { project, ..Said::default() }, Ok(look));
    let ask = ask.map(|ask| Ask { is_glance: true, ..ask });
    handler.answer(origin, ask).await.json()["result"].take()
}

fn column(rows: &Value, field: &str) -> Vec<String> {
    rows.as_array().into_iter().flatten().filter_map(|row| row[field].as_str().map(str::to_owned)).collect()
}
