//! Names while they are typed: agents, threads and error classes.

use relay_core::error::Code;
use relay_core::verbs::{Request, look};
use rmcp::ErrorData;
use rmcp::model::{CompleteRequestParams, CompleteResult, CompletionInfo};
use serde_json::Value;

use super::Handler;
use crate::ask::{Ask, Origin, Said};

pub async fn complete(
    handler: &Handler,
    request: &CompleteRequestParams,
    origin: &Origin,
) -> Result<CompleteResult, ErrorData> {
    let is_thread = request.r#ref.as_resource_uri().is_none_or(|uri| uri.contains("thread/"));
    let names = match request.argument.name.as_str() {
        "code" => Code::ALL.iter().map(|code| code.as_str().to_owned()).collect(),
        "agent" | "to" => names(handler, origin, "agents", "/agents", "name").await,
        "thread" => names(handler, origin, "thread", "/threads", "id").await,
        "id" if is_thread => names(handler, origin, "thread", "/threads", "id").await,
        _ => Vec::new(),
    };
    let typed = request.argument.value.to_lowercase();
    let fitting: Vec<String> = names.into_iter().filter(|name| name.to_lowercase().starts_with(&typed)).collect();
    let total = u32::try_from(fitting.len()).unwrap_or(u32::MAX);
    let values: Vec<String> = fitting.into_iter().take(CompletionInfo::MAX_VALUES).collect();
    let has_more = values.len() < total as usize;
    let info = CompletionInfo::with_pagination(values, Some(total), has_more)
        .map_err(|fault| ErrorData::internal_error(fault, None))?;
    Ok(CompleteResult::new(info))
}

/// The names in a list that `look` shows. Where there is no such list there are no names.
async fn names(handler: &Handler, origin: &Origin, noun: &str, list: &str, field: &str) -> Vec<String> {
    let request = Request::Look(look::Input { what: vec![noun.to_owned()], ..look::Input::default() });
    let ask = handler.ask(origin, "look", Said::default(), Ok(request));
    let ask = ask.map(|ask| Ask { is_glance: true, ..ask });
    let result = handler.answer(origin, ask).await.json()["result"].take();
    let rows = result.pointer(list).and_then(Value::as_array).cloned().unwrap_or_default();
    rows.iter().filter_map(|row| row[field].as_str().map(str::to_owned)).collect()
}
