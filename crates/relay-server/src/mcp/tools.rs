//! The ten verbs as tools. An error of relay's protocol is a result that says so, with the playbook inside, so that the model
//! can act on it.

use relay_core::domain::event::hex;
use relay_core::store::Random;
use relay_store::SystemRandom;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, JsonObject, ListToolsResult, Tool,
    ToolAnnotations,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::Value;

use super::{Handler, ours};
use crate::ask::{Answer, Said};
use crate::front::{self, Effect, Front, Speech};

/// The list is the same whatever is in the store, and for everybody.
pub fn list(front: &dyn Front) -> ListToolsResult {
    ListToolsResult::with_all_items(front.tools().iter().map(tool).collect())
}

fn tool(tool: &front::Tool) -> Tool {
    let mut described = Tool::new(tool.name, tool.about, tool.schema.clone());
    described.annotations = Some(hints(tool.effect));
    described.description = ours(tool.about);
    described
}

/// Only what differs from what a client assumes where nothing is said.
fn hints(effect: Effect) -> ToolAnnotations {
    let mut hints = ToolAnnotations::default();
    hints.open_world_hint = Some(false);
    match effect {
        Effect::Reads => hints.read_only_hint = Some(true),
        Effect::Adds => hints.destructive_hint = Some(false),
        Effect::AddsOnce => (hints.destructive_hint, hints.idempotent_hint) = (Some(false), Some(true)),
        Effect::Ends => {}
    }
    hints
}

pub async fn call(
    handler: &Handler,
    request: CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let front = handler.desk.front();
    let Some(tool) = front.tools().iter().find(|tool| tool.name == request.name) else {
        return Err(ErrorData::invalid_params(format!("there is no tool {:?}", request.name), None));
    };
    let origin = handler.caller(context)?;
    let mut arguments = request.arguments.unwrap_or_default();
    let said = said(&mut arguments);
    let asked = handler.ask(&origin, tool.name, said, front.request(tool.name, arguments));
    let mut answer = tokio::select! {
        answer = handler.answer(&origin, asked) => answer,
        () = context.ct.cancelled() => return Err(ErrorData::internal_error("the request was cancelled", None)),
    };
    let result = result(front, &answer);
    if let Some(late) = answer.late.take() {
        handler.outbox.after(context, late);
    }
    Ok(result.into())
}

/// Takes what every tool takes out of its arguments.
fn said(arguments: &mut JsonObject) -> Said {
    let mut text = |name: &str| arguments.remove(name).filter(|value| !value.is_null());
    let (project, agent, key) = (text("project"), text("agent"), text("idempotency_key"));
    let words =
        |value: Option<Value>| value.map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned));
    Said { project: words(project), agent: words(agent), key: words(key), ..Said::default() }
}

/// The one answer shape, and the same as sentences.
fn result(front: &dyn Front, answer: &Answer) -> CallToolResult {
    let content = vec![ContentBlock::text(plain(&front.text(answer, Speech::Tools, &boundary())))];
    let mut result = if answer.is_ok() { CallToolResult::success(content) } else { CallToolResult::error(content) };
    result.structured_content = Some(answer.json());
    if answer.is_ok() {
        // Success is what a client assumes.
        result.is_error = None;
    }
    result
}

/// A model is no terminal.
pub fn plain(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

/// New for every answer, so that no body can contain it.
pub fn boundary() -> String {
    hex(&SystemRandom.bytes())[..16].to_owned()
}
